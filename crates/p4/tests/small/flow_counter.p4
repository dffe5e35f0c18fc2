// Counts packets and bytes of flows, and remembers the largest packet of each. Which flow a packet
// belongs to, the control plane says, by address. Packets are counted by the class of their port, too.
#include "box.p4"

typedef bit<32> address_t;
const bit<16> IPV4 = 0x0800;
const bit<16> FLOWS = 16;

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> total_len;
    bit<16> id; bit<3> flags; bit<13> fragment; bit<8> ttl; bit<8> protocol; bit<16> checksum;
    address_t src; address_t dst;
}
header ports_t { bit<16> src; bit<16> dst; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; ports_t ports; }

error { Options }

parser Parse(packet_in packet, out headers_t h) {
    state start {
        packet.extract(h.ethernet);
        transition select(h.ethernet.type) {
            IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(h.ipv4);
        verify(h.ipv4.ihl == 5, error.Options);
        transition select(h.ipv4.fragment, h.ipv4.protocol) {
            (0, 6 .. 7): ports;
            (0, 17): ports;
            (_, _): accept;
        }
    }
    state ports {
        packet.extract(h.ports);
        transition accept;
    }
}

control Work(inout headers_t h, inout box_t box) {
    Counter((bit<32>)FLOWS) packets;
    Register<bit<16>>((bit<32>)FLOWS) largest;

    bit<16> port = 0;

    action flow(bit<8> number) {
        packets.count((bit<32>)number);
        bit<16> before = largest.read((bit<32>)number);
        if (h.ipv4.total_len > before) {
            largest.write((bit<32>)number, h.ipv4.total_len);
        }
    }

    table flows {
        key = {
            h.ipv4.dst: lpm;
            h.ipv4.protocol: exact;
        }
        actions = { flow; NoAction; }
        default_action = NoAction();
        entries = {
            (0x0a000000 &&& 0xff000000, 17): flow(1);
            (0x0a000100 &&& 0xffffff00, 17): flow(2);
        }
        size = 64;
    }

    Counter(4) classes;
    action count_class(in bit<8> offset, bit<32> class) { classes.count(class + (bit<32>)offset); }

    table by_port {
        key = { port: ternary; }
        actions = { count_class(1); }
        default_action = count_class(1, 2);
        const entries = {
            0x1000 &&& 0xf000: count_class(1, 0);
            0x0000 &&& 0x8000: count_class(1, 1);
        }
    }

    apply {
        box.out_port = box.in_port ^ 1;
        if (h.ports.isValid()) {
            port = h.ports.dst;
            by_port.apply();
        }
        if (h.ipv4.isValid() && flows.apply().miss) {
            packets.count(0);
        }
    }
}

control Deparse(packet_out packet, in headers_t h) {
    apply { packet.emit(h); }
}

Box(Parse(), Work(), Deparse()) main;
