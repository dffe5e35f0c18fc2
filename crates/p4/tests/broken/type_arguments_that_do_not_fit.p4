#include "skeleton.inc"
extern Register<T> { Register(bit<32> size); T read(in bit<32> index); void write(in bit<32> index, in T value); }
extern T same<T>(in T x);
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); packet.extract<tag_t>(h.ethernet); packet.advance<bit<8>>(8); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    Register<bit<8>>(4) r;
    action a() { }
    apply { info.length = hash<bit<16>>(1); info.port = r.read<bit<8>>(0);
        a<bit<8>>(); h.ethernet.setValid<bit<8>>(); info.port = same<bit<8>, bit<8>>(1); info.port = same<bit<16>>(1); }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
