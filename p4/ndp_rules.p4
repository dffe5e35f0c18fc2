// The rules of NDP (specs/nanotransport.md#10) over a `headers_t` that has `ethernet`, `ipv4` and
// `ndp`. Every DATA packet is answered with an ACK, every chopped one with a NACK, and the same packet asks
// for the next: the pull offset of a message grows by one for each packet that has arrived whole.

control NdpIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                   inout ingress_metadata_t ingress) {
    /// Per message: packets below this index have been asked for.
    IfElseRaw<bit<16>>() pull_offset;

    /// Answer the packet: addresses swapped, what names the message at its sender echoed.
    action answer(in bit<8> flags, in bit<16> pull) {
        egress_metadata_t packet;
        packet.protocol = NDP;
        packet.dst_ip = headers.ipv4.src;
        packet.dst_context = headers.ndp.src_context;
        packet.src_context = headers.ndp.dst_context;
        packet.msg_len = headers.ndp.msg_len;
        packet.pkt_offset = headers.ndp.pkt_offset;
        packet.tx_msg_id = headers.ndp.tx_msg_id;
        packet.buf_ptr = headers.ndp.buf_ptr;
        packet.size_class = headers.ndp.size_class;
        packet.credit = pull;
        packet.rank = 0;
        packet.flags = flags;
        packet.is_new_msg = 0;
        packet.is_rtx = 0;
        ctrl_pkt(packet);
    }

    /// Hand the payload to reassembly.
    action accept_payload(in rx_msg_info_t info) {
        ingress.src_ip = headers.ipv4.src;
        ingress.src_context = headers.ndp.src_context;
        ingress.msg_len = headers.ndp.msg_len;
        ingress.pkt_offset = headers.ndp.pkt_offset;
        ingress.dst_context = headers.ndp.dst_context;
        ingress.rx_msg_id = info.rx_msg_id;
        ingress.tx_msg_id = headers.ndp.tx_msg_id;
        ingress.is_last_pkt = info.is_last_pkt;
        ingress.drop = 0;
    }

    apply {
        ingress.drop = 1;
        bit<8> flags = headers.ndp.flags;
        if ((flags & (DATA_FLAG | CHOP_FLAG)) != 0) {
            bool chop = (flags & CHOP_FLAG) != 0;
            rx_msg_request_t request;
            request.mark_received = chop ? 1w0 : 1w1;
            request.src_ip = headers.ipv4.src;
            request.src_context = headers.ndp.src_context;
            request.tx_msg_id = headers.ndp.tx_msg_id;
            request.msg_len = headers.ndp.msg_len;
            request.pkt_offset = headers.ndp.pkt_offset;
            rx_msg_info_t info = get_rx_msg_info(request);
            // Without an id or a buffer for the message: not a word, its sender will time out.
            if (info.fail == 0) {
                if (info.is_done == 1) {
                    // Its last ACK was lost. Nothing is left to pull.
                    answer(ACK_FLAG, 0);
                } else {
                    // A chopped packet gives no credit: its own place in the window is free again.
                    bit<16> diff = chop ? 16w0 : 16w1;
                    bit<16> pull = pull_offset.execute(info.rx_msg_id, info.is_new_msg == 1,
                                                       RAW_WRITE, nic.rtt_pkts + diff,
                                                       RAW_ADD, diff);
                    if (chop) {
                        answer(NACK_FLAG | PULL_FLAG, pull);
                    } else {
                        answer(ACK_FLAG | PULL_FLAG, pull);
                        accept_payload(info);
                    }
                }
            }
        } else {
            if ((flags & ACK_FLAG) != 0) {
                delivered_event_t event;
                event.tx_msg_id = headers.ndp.tx_msg_id;
                event.src_context = headers.ndp.dst_context;
                event.delivered_pkts = 64w1 << headers.ndp.pkt_offset;
                delivered(event);
            }
            if ((flags & (NACK_FLAG | PULL_FLAG)) != 0) {
                credit_event_t event;
                event.tx_msg_id = headers.ndp.tx_msg_id;
                event.src_context = headers.ndp.dst_context;
                event.rtx = (flags & NACK_FLAG) != 0 ? 1w1 : 1w0;
                event.rtx_pkt_offset = headers.ndp.pkt_offset;
                event.update_credit = (flags & PULL_FLAG) != 0 ? 1w1 : 1w0;
                event.new_credit = headers.ndp.pull_offset;
                credit_to_btx(event);
            }
        }
    }
}

control NdpEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                  in egress_metadata_t egress) {
    apply {
        bit<16> segment = CONTROL_LEN;
        if ((egress.flags & DATA_FLAG) != 0) {
            // All packets but the last are full; its length is that of the rest, 1 to 1024.
            bit<16> before_last_byte = egress.msg_len - 1;
            segment = 1024;
            if ((bit<16>)egress.pkt_offset == before_last_byte >> 10) {
                segment = (before_last_byte & 1023) + 1;
            }
        }
        headers.ethernet.setValid();
        headers.ethernet.dst = nic.switch_mac;
        headers.ethernet.src = nic.nic_mac;
        headers.ethernet.ether_type = ETHERTYPE_IPV4;

        headers.ipv4.setValid();
        headers.ipv4.version_ihl = VERSION_IHL;
        headers.ipv4.tos = 0;
        headers.ipv4.total_len = HEADERS_LEN + segment;
        headers.ipv4.id = IPV4_ID;
        headers.ipv4.flags_fragment = 0;
        headers.ipv4.ttl = TTL;
        headers.ipv4.protocol = NDP;
        headers.ipv4.checksum = 0;
        headers.ipv4.src = nic.nic_ip;
        headers.ipv4.dst = egress.dst_ip;

        headers.ndp.setValid();
        headers.ndp.flags = egress.flags;
        headers.ndp.src_context = egress.src_context;
        headers.ndp.dst_context = egress.dst_context;
        headers.ndp.msg_len = egress.msg_len;
        headers.ndp.pkt_offset = egress.pkt_offset;
        headers.ndp.pull_offset = egress.credit;
        headers.ndp.tx_msg_id = egress.tx_msg_id;
        headers.ndp.buf_ptr = egress.buf_ptr;
        headers.ndp.size_class = egress.size_class;
        headers.ndp.padding = 0;
    }
}
