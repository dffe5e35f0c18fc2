#include "skeleton.inc"
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    apply { }
}
control D(packet_out packet, in headers_t h) {
    tag_t last = { 1, 2, 1 };
    apply {
        hash(7);
        packet.emit(h);
        packet.emit(last);
    }
}
Switch(P(), W(), D()) main;
