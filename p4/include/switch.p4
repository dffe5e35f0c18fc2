// The architecture of a switch's output port: a program says in which of the port's queues a packet
// waits, whether its payload is cut off, and whether it is sent back or lost. Where packets go is
// decided before. docs/p4.md explains it.
//
//   packet -> ArrivalParser -> Arrival -> queue -> wire
//                                 departure -> Departure
//
// Every port has registers and counters of its own. What a parser rejects is lost.

/// What a port knows of an arriving packet beside its headers.
struct arrival_t {
    bit<16> length;   // bytes on the wire
    bit<1>  bounced;  // it is on its way back to its sender
    bit<64> random;   // drawn for it
}

/// What becomes of it; zero unless the program sets it.
struct decision_t {
    bit<16> trim_to;  // other than 0: the payload is cut off, which leaves this many bytes
    bit<3>  queue;    // it waits in this queue
    bit<1>  bounce;   // 1: instead, its header goes back to its sender, once
    bit<1>  drop;     // 1: instead, it is lost
}

/// A packet that has been sent, its last bit included.
struct departure_t {
    bit<3>  queue;    // where it waited
    bit<16> length;   // bytes on the wire
}

extern Register<T> {
    Register(bit<32> size);
    @latency(1)
    T read(in bit<32> index);
    @latency(1)
    void write(in bit<32> index, in T value);
}

extern Counter {
    Counter(bit<32> size);
    @latency(1)
    void count(in bit<32> index);
}

/// Reads the headers; what is left of the packet is payload.
parser ArrivalParser<H>(packet_in packet, out H headers);

control Arrival<H>(inout H headers, in arrival_t arrival, inout decision_t decision);

/// Called for every packet that has been sent, to keep account of the queues.
control Departure(in departure_t departure);

package SwitchPort<H>(ArrivalParser<H> arrival_parser, Arrival<H> arrival, Departure departure);
