// An architecture as small as can be: packets in, packets out, and the port for each.
#ifndef BOX
#define BOX
#include <core.p4>

struct box_t {
    bit<8> in_port;
    bit<8> out_port;  // 0: drop
}

parser BoxParser<H>(packet_in packet, out H headers);
control BoxControl<H>(inout H headers, inout box_t box);
control BoxDeparser<H>(packet_out packet, in H headers);
package Box<H>(BoxParser<H> parse, BoxControl<H> work, BoxDeparser<H> deparse);

extern Register<T> {
    Register(bit<32> size);
    T read(in bit<32> index);
    void write(in bit<32> index, in T value);
}
extern Counter {
    Counter(bit<32> size);
    void count(in bit<32> index);
}
#endif
