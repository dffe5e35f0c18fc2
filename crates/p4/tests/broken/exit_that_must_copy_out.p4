#include "skeleton.inc"
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    action a(inout bit<8> n) { n = 1; exit; }
    apply {
        a(info.port);
    }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
