// What hpcc.p4, swift.p4 and dcqcn.p4 have in common: transports whose senders decide how fast they send. Over a
// `headers_t` that has `ethernet`, `ipv4` and `sender`, and constants PROTOCOL and TRANSPORT_LEN (bytes after IPv4).
// Every DATA packet is answered by an ACK, which says what has arrived and echoes when that was sent. What is lost, the
// sender's timeout repeats.

/// A DATA packet has come: keep it, and answer it with `answer_flags`. Of the notes, the low 64 bits of the last go into
/// `remark` and `sent_at`; the others are the program's.
control ReceiveData(in headers_t headers, in bit<8> answer_flags, in bit<128> note0,
                    in bit<128> note1, in bit<128> note2, inout ingress_metadata_t ingress) {
    action acknowledge(in bit<9> ack_no) {
        egress_metadata_t ack;
        ack.protocol = PROTOCOL;
        ack.dst_ip = headers.ipv4.src;
        ack.dst_context = headers.sender.src_context;
        ack.src_context = headers.sender.dst_context;
        ack.msg_len = headers.sender.msg_len;
        ack.pkt_offset = headers.sender.pkt_offset;
        ack.tx_msg_id = headers.sender.tx_msg_id;
        ack.buf_ptr = headers.sender.buf_ptr;
        ack.size_class = headers.sender.size_class;
        ack.credit = 0;
        ack.rank = (bit<8>)ack_no;
        ack.flags = answer_flags;
        ack.is_new_msg = 0;
        ack.is_rtx = 0;
        ack.note0 = note0;
        ack.note1 = note1;
        ack.note2 = note2;
        ack_pkt(ack);
    }

    apply {
        rx_msg_request_t request;
        request.mark_received = 1;
        request.src_ip = headers.ipv4.src;
        request.src_context = headers.sender.src_context;
        request.tx_msg_id = headers.sender.tx_msg_id;
        request.msg_len = headers.sender.msg_len;
        request.pkt_offset = headers.sender.pkt_offset;
        rx_msg_info_t info = get_rx_msg_info(request);
        // Without room for the message: not a word, its sender will time out.
        if (info.fail == 0) {
            acknowledge(info.ack_no);
            if (info.is_done == 0) {
                ingress.rx_msg_id = info.rx_msg_id;
                ingress.is_last_pkt = info.is_last_pkt;
                ingress.drop = 0;
            }
        }
    }
}

/// An ACK has come: the packet that it answers has arrived, and all below its ackNo, of which ACKs may have been lost.
control Delivered(in headers_t headers) {
    apply {
        delivered_event_t event;
        event.tx_msg_id = headers.sender.tx_msg_id;
        event.src_context = headers.sender.dst_context;
        event.delivered_pkts = ((64w1 << headers.sender.ack_no) - 1)
                               | (64w1 << headers.sender.pkt_offset);
        delivered(event);
    }
}

/// The headers of a packet with `tos`. The header of an ACK is filled from its notes.
control FillHeaders(inout headers_t headers, in nic_t nic, in egress_metadata_t egress, in bit<8> tos) {
    apply {
        bool data = (egress.flags & DATA_FLAG) != 0;
        bit<16> segment = CONTROL_LEN;
        if (data) {
            bit<16> before_last_byte = egress.msg_len - 1;
            bool is_last = (bit<16>)egress.pkt_offset == before_last_byte >> 10;
            segment = is_last ? (before_last_byte & 1023) + 1 : 1024;
        }
        headers.ethernet.setValid();
        headers.ethernet.dst = nic.switch_mac;
        headers.ethernet.src = nic.nic_mac;
        headers.ethernet.ether_type = ETHERTYPE_IPV4;

        headers.ipv4.setValid();
        headers.ipv4.version_ihl = VERSION_IHL;
        headers.ipv4.tos = tos;
        headers.ipv4.total_len = 20 + TRANSPORT_LEN + segment;
        headers.ipv4.id = IPV4_ID;
        headers.ipv4.flags_fragment = 0;
        headers.ipv4.ttl = TTL;
        headers.ipv4.protocol = PROTOCOL;
        headers.ipv4.checksum = 0;
        headers.ipv4.src = nic.nic_ip;
        headers.ipv4.dst = egress.dst_ip;

        headers.sender.setValid();
        headers.sender.flags = egress.flags | (egress.is_rtx == 1 ? RTX_FLAG : 0);
        headers.sender.src_context = egress.src_context;
        headers.sender.dst_context = egress.dst_context;
        headers.sender.msg_len = egress.msg_len;
        headers.sender.pkt_offset = egress.pkt_offset;
        headers.sender.ack_no = egress.rank;
        headers.sender.tx_msg_id = egress.tx_msg_id;
        headers.sender.buf_ptr = egress.buf_ptr;
        headers.sender.size_class = egress.size_class;
        headers.sender.remark = egress.note2[63:32];
        headers.sender.sent_at = data ? nic.now : egress.note2[31:0];
    }
}
