#include "skeleton.inc"
struct pair_t { bit<4> a; bit<4> b; }
header pairs_t { pair_t pair; }
extern bit<8> pick(in bit<8> n);
extern bit<8> pick(in bit<8> n, in bit<8> m);
parser P(packet_in packet, out headers_t h) {
    state start { packet.extract(h.ethernet); tag_t t = packet.lookahead<tag_t>(); transition accept; }
}
control W(inout headers_t h, inout info_t info) {
    action a(out bit<8> n) { n = 1; if (info.port == 1) { exit; } }
    action b(inout bit<8> n) { }
    table t {
        key = { info.port: exact; }
        actions = { NoAction; }
        default_action = NoAction;
        const entries = { 1: NoAction; _: NoAction; }
    }
    table u { key = { pick(1): exact; } actions = { NoAction; } default_action = NoAction; }
    apply { a(info.port); b(_); info.length = (bit<16>)h.ethernet.minSizeInBits(); }
}
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
Switch(P(), W(), D()) main;
