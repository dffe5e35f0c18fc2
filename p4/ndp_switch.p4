// The trimming switch of NDP (SIGCOMM 2017, section 3.1; specs/ndp.md#3): full packets wait in a
// short queue, headers and control in another, which is served ten times as often. A full packet that
// finds no room loses its payload; a header that finds none goes back to its sender.
//
// Registers track how full the queues are, the packet in service included. That is all a P4 switch
// can do: it cannot reach the packet at the tail, so it is always the arriving one that is trimmed.
// Arrivals and departures come at once, so each has registers of its own, which it alone writes: the bytes
// that have joined a queue and those that have left it, modulo 2^32. Their difference waits.

#include <core.p4>
#include <switch.p4>

/// Bytes that each queue holds.
const bit<32> DATA_CAPACITY = 72000;
const bit<32> HEADER_CAPACITY = 72000;
/// Bytes that trimming leaves.
const bit<16> TRIM_TO = 64;
/// Headers without room go back to their senders.
const bool BOUNCE = true;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> NDP = 199;

/// Flags of the NDP header.
const bit<16> DATA = 0x001;
const bit<16> CHOPPED = 0x080;

/// The queues. The first is served ten times as often (weights = [10, 1] in the scenario).
const bit<3> HEADERS = 0;
const bit<3> FULL = 1;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<8>  version_ihl;
    bit<8>  tos;
    bit<16> total_len;
    bit<16> id;
    bit<16> flags_fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

/// The beginning of it.
header ndp_t {
    bit<16> flags;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ndp_t      ndp;
}

/// Bytes that have joined, of full packets and of headers; written on arrival.
Register<bit<32>>(1) full_joined;
Register<bit<32>>(1) headers_joined;
/// Bytes that have left; written on departure.
Register<bit<32>>(1) full_left;
Register<bit<32>>(1) headers_left;

parser NdpSwitchParser(packet_in packet, out headers_t headers) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: reject;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition select(headers.ipv4.protocol) {
            NDP: ndp;
            default: accept;  // another transport: its packets are full ones, and lost without room
        }
    }
    state ndp {
        packet.extract(headers.ndp);
        transition accept;
    }
}

control NdpSwitchArrival(inout headers_t headers, in arrival_t arrival,
                         inout decision_t decision) {
    apply {
        bit<16> length = arrival.length;
        bool ndp = headers.ndp.isValid();
        bool chopped = ndp && (headers.ndp.flags & CHOPPED) != 0;
        bool full = !ndp || ((headers.ndp.flags & DATA) != 0 && !chopped && arrival.bounced == 0);
        bit<32> full_after = full_joined.read(0) + (bit<32>)length;
        if (full && full_after - full_left.read(0) > DATA_CAPACITY) {
            if (ndp) {
                length = length < TRIM_TO ? length : TRIM_TO;
                decision.trim_to = length;
                chopped = true;
                full = false;
            } else {
                decision.drop = 1;
            }
        }
        bit<32> headers_after = headers_joined.read(0) + (bit<32>)length;
        bool room = headers_after - headers_left.read(0) <= HEADER_CAPACITY;
        if (decision.drop == 1) {
            return;
        }
        if (full) {
            full_joined.write(0, full_after);
            decision.queue = FULL;
        } else if (room) {
            headers_joined.write(0, headers_after);
            decision.queue = HEADERS;
        } else if (BOUNCE && chopped && arrival.bounced == 0) {
            decision.bounce = 1;
        } else {
            decision.drop = 1;
        }
    }
}

control NdpSwitchDeparture(in departure_t departure) {
    apply {
        bit<32> length = (bit<32>)departure.length;
        if (departure.queue == FULL) {
            full_left.write(0, full_left.read(0) + length);
        } else {
            headers_left.write(0, headers_left.read(0) + length);
        }
    }
}

SwitchPort(NdpSwitchParser(), NdpSwitchArrival(), NdpSwitchDeparture()) main;
