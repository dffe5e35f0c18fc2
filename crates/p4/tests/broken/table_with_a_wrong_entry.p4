#include "skeleton.inc"
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    action a(bit<8> port) { info.port = port; }
    table t {
        key = { info.length: exact; h.ethernet.dst: ternary; }
        actions = { a; NoAction; }
        default_action = NoAction();
        const entries = {
            (1, _): a(2);
            (1 &&& 3, 4): a(2);
            3: a(2);
        }
    }
    apply {
        t.apply();
    }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
