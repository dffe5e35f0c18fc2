#include "skeleton.inc"
parser P(packet_in packet, out headers_t h) {
    state start { if (true) { packet.extract(h.tags.next); } transition tags; }
    state tags { packet.extract(h.tags.last); transition tags; }
}
control W(inout headers_t h, inout info_t info) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
