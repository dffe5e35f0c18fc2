// Source routing: the sender puts the ports of the whole way into the packet; every switch takes the
// first, and writes where the packet came from behind the last.
#include "box.p4"

const bit<16> ROUTED = 0x88B6;

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header hop_t { bit<1> last; bit<7> port; }
header trail_t { bit<8> length; bit<56> ports; }
struct headers_t { ethernet_t ethernet; hop_t[4] hops; trail_t trail; }

parser Parse(packet_in packet, out headers_t h) {
    state start {
        packet.extract(h.ethernet);
        transition select(h.ethernet.type) {
            ROUTED: hop;
            default: accept;
        }
    }
    state hop {
        packet.extract(h.hops.next);
        transition select(h.hops.last.last) {
            0: hop;
            1: trail;
        }
    }
    state trail {
        packet.extract(h.trail);
        transition accept;
    }
}

control Work(inout headers_t h, inout box_t box) {
    action forward(bit<8> port) { box.out_port = port; }
    action drop() { box.out_port = 0; }

    // Ports have other numbers outside.
    table ports {
        key = { h.hops[0].port: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        const entries = {
            1: forward(11);
            2: forward(12);
            7w3: forward(8w13);
        }
    }

    apply {
        if (!h.hops[0].isValid()) {
            drop();
            return;
        }
        switch (ports.apply().action_run) {
            forward: {
                h.trail.ports = h.trail.ports << 8;
                h.trail.ports[7:0] = box.in_port;
                h.trail.length = h.trail.length |+| 1;
                h.hops.pop_front(1);
                if (!h.hops[0].isValid()) {
                    h.ethernet.type = 0x88B7;
                }
            }
            default: { }
        }
    }
}

control Deparse(packet_out packet, in headers_t h) {
    apply { packet.emit(h); }
}

Box(Parse(), Work(), Deparse()) main;
