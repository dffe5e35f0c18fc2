#include "skeleton.inc"
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    apply {
        info.port = 16w1;
        info.length = nothing;
        h.ethernet.isvalid();
        info = 3;
    }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
