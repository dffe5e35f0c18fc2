#include "skeleton.inc"
control I(inout bit<8> n) { apply { n = 1; } }
parser Q(packet_in packet, out headers_t h) {
    I() inner;
    state start { transition accept; }
}
parser P(packet_in packet, out headers_t h) {
    bit<8> next;
    state start { next = 1; transition next; }
    state next { transition accept; }
}
control W(inout headers_t h, inout info_t info) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
