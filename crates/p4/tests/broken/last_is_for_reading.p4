#include "skeleton.inc"

parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); packet.extract(h.tags.next); h.tags.last.id = 7; transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    
    apply {  }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
