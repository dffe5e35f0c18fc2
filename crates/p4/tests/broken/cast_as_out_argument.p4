#include "skeleton.inc"
enum bit<8> E { A = 1 }
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    action a(inout bit<8> x) { x = 9; }
    E e;
    apply { a((bit<8>)info.port); a(true ? info.port : 8w1); e[7:4] = 3; }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
