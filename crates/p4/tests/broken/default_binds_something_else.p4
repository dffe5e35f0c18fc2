#include "skeleton.inc"
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    action set(in bit<8> a, bit<8> b) { info.port = a + b; }
    table t {
        key = { info.length: exact; }
        actions = { set(info.port); @tableonly NoAction; }
        default_action = set(7, 1);
        const entries = { 1: set(info.port, 2); 2: NoAction(); }
    }
    apply {
        t.apply();
    }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
