#include "skeleton.inc"

parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); transition accept; }
    state orphan { nonsense = 1; h.ethernet.type = 3w1; transition nowhere; }
}
control W(inout headers_t h, inout info_t info) {
    
    apply {  }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
