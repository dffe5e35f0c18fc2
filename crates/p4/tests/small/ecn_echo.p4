// Answers every data segment of a TCP-like protocol at once: addresses swapped, what has been
// received acknowledged, and, if a switch marked the packet, the mark echoed.
#include "box.p4"

enum bit<2> Ecn { NotCapable = 0, Capable1 = 1, Capable0 = 2, Experienced = 3 }

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header segment_t {
    bit<8> flow; bit<5> reserved; Ecn ecn; bool echo;
    bit<32> sequence; bit<32> acknowledged; bit<16> length;
}
struct headers_t { ethernet_t ethernet; segment_t segment; }

parser Parse(packet_in packet, out headers_t h) {
    state start {
        packet.extract(h.ethernet);
        bit<8> first = packet.lookahead<bit<8>>();
        transition select(first, h.ethernet.type) {
            (0x00 &&& 0x80, 0x88B5): segment;
            default: reject;
        }
    }
    state segment {
        packet.extract(h.segment);
        transition accept;
    }
}

// Swaps two addresses, as a control of its own.
control Swap(inout bit<48> a, inout bit<48> b) {
    apply {
        bit<48> kept = a;
        a = b;
        b = kept;
    }
}

control Work(inout headers_t h, inout box_t box) {
    Register<bit<32>>(128) expected;
    Swap() swap;

    action acknowledge(out bit<32> number, in bool in_order) {
        bit<32> index = 24w0 ++ h.segment.flow;
        bit<32> next = expected.read(index);
        number = next;
        if (in_order && next == h.segment.sequence) {
            number = next + (bit<32>)h.segment.length;
            expected.write(index, number);
        }
    }

    apply {
        if (h.segment.length == 0) {
            box.out_port = 0;
            exit;
        }
        acknowledge(h.segment.acknowledged, true);
        h.segment.echo = h.segment.ecn == Ecn.Experienced;
        switch (h.segment.ecn) {
            Ecn.NotCapable: { }
            default: { h.segment.ecn = Ecn.Capable0; }
        }
        h.segment.length = 0;
        swap.apply(h.ethernet.dst, h.ethernet.src);
        box.out_port = box.in_port;
    }
}

control Deparse(packet_out packet, in headers_t h) {
    apply {
        packet.emit(h.ethernet);
        packet.emit(h.segment);
    }
}

Box(Parse(), Work(), Deparse()) main;
