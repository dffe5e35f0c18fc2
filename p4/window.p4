// A transport with a fixed window, built step by step in docs/p4-transport.md.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"

const bit<8> WINDOW = 253;

header window_t {
    bit<8>   flags;
    bit<16>  src_context;
    bit<16>  dst_context;
    bit<16>  msg_len;
    bit<8>   pkt_offset;  // ACK: the packet that has arrived
    bit<16>  credit;      // ACK: packets below this index may be sent
    bit<8>   ack_no;      // ACK: all packets below this index have arrived
    bit<16>  tx_msg_id;
    bit<16>  buf_ptr;
    bit<8>   size_class;
    bit<112> padding;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    window_t   window;
}

parser WindowParser(packet_in packet, out headers_t headers, inout nothing_t local) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.ipv4);
        transition select(headers.ethernet.ether_type, headers.ipv4.version_ihl,
                          headers.ipv4.protocol) {
            (ETHERTYPE_IPV4, VERSION_IHL, WINDOW): window;
            default: reject;
        }
    }
    state window {
        packet.extract(headers.window);
        transition accept;
    }
}

control WindowIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                      inout ingress_metadata_t ingress) {
    IfElseRaw<bit<16>>() arrived;  // packets of each message

    action acknowledge(in bit<9> ack_no, in bit<16> credit) {
        egress_metadata_t ack;
        ack.protocol = WINDOW;
        ack.dst_ip = headers.ipv4.src;
        ack.dst_context = headers.window.src_context;
        ack.src_context = headers.window.dst_context;
        ack.msg_len = headers.window.msg_len;
        ack.pkt_offset = headers.window.pkt_offset;
        ack.tx_msg_id = headers.window.tx_msg_id;
        ack.buf_ptr = headers.window.buf_ptr;
        ack.size_class = headers.window.size_class;
        ack.credit = credit;
        ack.rank = (bit<8>)ack_no;  // free here: egress writes it as the ackNo
        ack.flags = ACK_FLAG;
        ack.is_new_msg = 0;
        ack.is_rtx = 0;
        ack_pkt(ack);
    }

    action data() {
        rx_msg_request_t request;
        request.mark_received = 1;
        request.src_ip = headers.ipv4.src;
        request.src_context = headers.window.src_context;
        request.tx_msg_id = headers.window.tx_msg_id;
        request.msg_len = headers.window.msg_len;
        request.pkt_offset = headers.window.pkt_offset;
        rx_msg_info_t info = get_rx_msg_info(request);
        if (info.is_done == 1) {
            acknowledge(info.ack_no, 0);
        } else if (info.fail == 0) {
            bit<16> new_packets = (bit<16>)info.is_new_pkt;
            bit<16> count = arrived.execute(info.rx_msg_id, info.is_new_msg == 1,
                                            RAW_WRITE, new_packets, RAW_ADD, new_packets);
            acknowledge(info.ack_no, count + nic.rtt_pkts);
            // The payload goes to reassembly, with the place where it belongs.
            ingress.src_ip = headers.ipv4.src;
            ingress.src_context = headers.window.src_context;
            ingress.msg_len = headers.window.msg_len;
            ingress.pkt_offset = headers.window.pkt_offset;
            ingress.dst_context = headers.window.dst_context;
            ingress.rx_msg_id = info.rx_msg_id;
            ingress.tx_msg_id = headers.window.tx_msg_id;
            ingress.is_last_pkt = info.is_last_pkt;
            ingress.drop = 0;
        }
    }

    action acknowledged() {
        delivered_event_t event;
        event.tx_msg_id = headers.window.tx_msg_id;
        event.src_context = headers.window.dst_context;
        event.delivered_pkts = ((64w1 << headers.window.ack_no) - 1)
                               | (64w1 << headers.window.pkt_offset);
        delivered(event);
        credit_event_t more;
        more.tx_msg_id = headers.window.tx_msg_id;
        more.src_context = headers.window.dst_context;
        more.rtx = 0;
        more.rtx_pkt_offset = 0;
        more.update_credit = 1;
        more.new_credit = headers.window.credit;
        credit_to_btx(more);
    }

    apply {
        ingress.drop = 1;  // unless there is payload to keep
        // A trimmed packet is as good as lost here.
        if (headers.window.flags == DATA_FLAG) {
            data();
        } else if (headers.window.flags == ACK_FLAG) {
            acknowledged();
        }
    }
}

control WindowEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                     in egress_metadata_t egress) {
    apply {
        bit<16> segment = CONTROL_LEN;
        if (egress.flags == DATA_FLAG) {
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
        headers.ipv4.tos = 0;
        headers.ipv4.total_len = HEADERS_LEN + segment;
        headers.ipv4.id = IPV4_ID;
        headers.ipv4.flags_fragment = 0;
        headers.ipv4.ttl = TTL;
        headers.ipv4.protocol = WINDOW;
        headers.ipv4.checksum = 0;
        headers.ipv4.src = nic.nic_ip;
        headers.ipv4.dst = egress.dst_ip;

        headers.window.setValid();
        headers.window.flags = egress.flags;
        headers.window.src_context = egress.src_context;
        headers.window.dst_context = egress.dst_context;
        headers.window.msg_len = egress.msg_len;
        headers.window.pkt_offset = egress.pkt_offset;
        headers.window.credit = egress.credit;
        headers.window.ack_no = egress.rank;
        headers.window.tx_msg_id = egress.tx_msg_id;
        headers.window.buf_ptr = egress.buf_ptr;
        headers.window.size_class = egress.size_class;
        headers.window.padding = 0;
    }
}

control WindowDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.window);
    }
}

NanoNic(WindowParser(), WindowIngress(), WindowEgress(), WindowDeparser()) main;
