#include "skeleton.inc"
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    apply {
        if (info.port & 1) { info.port = 0; }
    }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
