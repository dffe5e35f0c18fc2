#include "skeleton.inc"

parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    action a() { }
    table t { actions = { a; } default_action = a; }
    apply { switch (t.aply().action_run) { a: { } } switch (t.apply(1).action_run) { a: { } }
        if (t.lookup().hit) { } }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
