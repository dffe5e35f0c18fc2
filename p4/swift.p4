// Swift (Kumar et al., SIGCOMM 2020, algorithms 1 and 2; specs/rdma.md#7) for the nanoTransport
// NIC: windows that hold the delay at a target, one for the fabric and one for the hosts. The
// fabric's target grows with the way and as the window shrinks. A window below one packet is a
// packet every 1/w round trips.
//
// A flow is all messages to one host. Delays are of the NIC's clock: DATA carries when it left, its ACK echoes that and
// says how long the receiver has had it. That a packet was lost is learnt when its repeat is acknowledged; such an ACK
// measures no delay. (The NIC's timeouts are not programmable, so that windows are not reset after several of them.)
//
// Arithmetic is in fixed point. Against the algorithms in real numbers, SCALE / sqrt(w) in the target is wrong by at most
// 0.14 % and two cycles, what a packet adds to a window by 0.03 %, the part that comes off by 0.03 % and what the target's
// error makes of it (each and 3 * 2^-20 packets), the pace by 0.03 %; a test holds it to that.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"
#include "reciprocal.p4"
#include "inverse_root.p4"

const bit<8> PROTOCOL = 198;
const bit<16> TRANSPORT_LEN = 30;

/// The fabric's target for no links and a large window, what each link adds, and the target for the hosts: cycles.
const bit<32> BASE_TARGET = 80000;
const bit<32> PER_HOP = 3200;
const bit<32> HOST_TARGET = 320000;
/// What a window of w packets adds: SCALE / sqrt(w) - SCALE_LESS cycles, from none to SCALE_MOST. For fs_range = 125 us,
/// fs_min = 0.1 and fs_max = 100: SCALE = fs_range / (1/sqrt(fs_min) - 1/sqrt(fs_max)), SCALE_LESS = SCALE / sqrt(fs_max).
const bit<32> SCALE = 130622;
const bit<32> SCALE_LESS = 13062;
const bit<32> SCALE_MOST = 400000;
/// Packets that a window grows by in a round trip, in thousandths.
const int INCREASE = 1000;
/// Beta, and max_mdf: how much of a relative excess of delay comes off, and the most of it; in thousandths.
const int DECREASE = 800;
const int MOST_DECREASE = 500;
/// The first window, packets; the greatest; and the least, in thousandths.
const int INITIAL_WINDOW = 15;
const int MOST_WINDOW = 256;
const int LEAST_WINDOW = 1;

header swift_t {
    bit<8>  hops;  // ACK: links on the way of what it answers
    bit<56> padding;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    sender_t   sender;
    swift_t    swift;
}

#include "sender_rules.p4"

parser SwiftParser(packet_in packet, out headers_t headers, inout nothing_t local) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.ipv4);
        transition select(headers.ethernet.ether_type, headers.ipv4.version_ihl,
                          headers.ipv4.protocol) {
            (ETHERTYPE_IPV4, VERSION_IHL, PROTOCOL): swift;
            default: reject;
        }
    }
    state swift {
        packet.extract(headers.sender);
        packet.extract(headers.swift);
        transition accept;
    }
}

// ---- Units. A window counts in 2^-20 packets, a part of it in 2^-24.

const bit<32> ONE = 1 << 20;
const bit<32> FIRST = INITIAL_WINDOW << 20;
const bit<32> LEAST = (LEAST_WINDOW << 20) / 1000;
const bit<32> MOST = MOST_WINDOW << 20;
const bit<32> ADDED = (INCREASE << 20) / 1000;
const bit<96> BETA = (DECREASE << 24) / 1000;
const bit<32> MOST_OFF = (MOST_DECREASE << 24) / 1000;

/// One of the two windows (algorithm 1): what `delay` makes of `window`, where `target` is wanted, or a packet was lost.
control Adjust(in bit<32> flow, in bit<32> window, in bit<32> delay, in bit<32> target,
               in bit<32> now, in bit<32> rtt, in bool lost, out bit<32> next) {
    /// t_last_decrease, with a one before it.
    Register<bit<33>>(FLOWS) fell;
    Reciprocal() reciprocal;

    apply {
        bit<33> last = fell.read(flow);
        bool may_fall = last[32:32] == 0 || now - last[31:0] >= rtt;
        bool grows = !lost && delay < target;
        bit<18> inverse;
        bit<8> exponent;
        reciprocal.apply(grows ? window : delay | 1, inverse, exponent);
        bit<96> by = grows ? (bit<96>)ADDED << 20 : (bit<96>)(delay - target) * BETA;
        bit<96> ratio = (by * (bit<96>)inverse) >> (18 + exponent);
        next = window;
        if (grows) {
            next = window + (window >= ONE ? ratio[31:0] : ADDED);
            next = next > MOST ? MOST : next;
        } else if (may_fall) {
            bit<32> off = lost || ratio > (bit<96>)MOST_OFF ? MOST_OFF : ratio[31:0];
            bit<64> less = ((bit<64>)window * (bit<64>)off) >> 24;
            next = window - less[31:0];
            next = next < LEAST ? LEAST : next;
            if (next < window) {
                fell.write(flow, 1w1 ++ now);
            }
        }
    }
}

/// The fabric's target for a path of this many links and a window (section 3.5 of the paper).
control Target(in bit<32> window, in bit<8> hops, out bit<32> target) {
    InverseRoot() root;

    apply {
        bit<18> inverse;
        bit<8> exponent;
        root.apply(window, inverse, exponent);
        // The window counts in 2^-20, so its root in 2^-10.
        bit<64> scaled = (((bit<64>)SCALE * (bit<64>)inverse) << 10) >> exponent;
        bit<32> adds = scaled[31:0] |-| SCALE_LESS;
        adds = scaled > (bit<64>)(SCALE_MOST + SCALE_LESS) ? SCALE_MOST : adds;
        target = BASE_TARGET + PER_HOP * (bit<32>)hops + adds;
    }
}

/// An ACK has come.
control React(in headers_t headers, in nic_t nic) {
    // Of each flow, zero before its first ACK.
    Register<bit<32>>(FLOWS) fabric_window;
    Register<bit<32>>(FLOWS) host_window;
    Register<bit<32>>(FLOWS) round_trip;

    Target() aim;
    Adjust() fabric;
    Adjust() hosts;
    Reciprocal() by_window;

    apply {
        bit<32> flow = headers.ipv4.src & (FLOWS - 1);
        bit<32> window = fabric_window.read(flow);
        bit<32> host = host_window.read(flow);
        window = window == 0 ? FIRST : window;
        host = host == 0 ? FIRST : host;

        // Delays. What hosts take is the time in the receiver's NIC.
        bool lost = (headers.sender.flags & RTX_FLAG) != 0;
        bit<32> rtt = lost ? round_trip.read(flow) : nic.now - headers.sender.sent_at;
        bit<32> delay = rtt |-| headers.sender.remark;
        bit<32> target;
        aim.apply(window, headers.swift.hops, target);
        fabric.apply(flow, window, delay, target, nic.now, rtt, lost, window);
        hosts.apply(flow, host, headers.sender.remark, HOST_TARGET, nic.now, rtt, lost, host);
        fabric_window.write(flow, window);
        host_window.write(flow, host);
        round_trip.write(flow, rtt);

        // Below one packet: one every rtt / window. Otherwise ACKs say when.
        bit<32> least = window < host ? window : host;
        bit<18> inverse;
        bit<8> exponent;
        by_window.apply(least, inverse, exponent);
        bit<96> gap = (((bit<96>)rtt << 24) * (bit<96>)inverse) >> (18 + exponent);
        flow_event_t event;
        event.flow = (bit<8>)flow;
        event.window = (bit<16>)(least >> 20);
        event.gap = 0;
        if (least < ONE) {
            event.gap = gap[95:32] == 0 ? gap[31:0] : 0xffffffff;
        }
        set_flow(event);
    }
}

control SwiftIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                     inout ingress_metadata_t ingress) {
    ReceiveData() receive_data;
    Delivered() deliver;
    React() react;

    apply {
        ingress.drop = 1;
        bit<8> flags = headers.sender.flags;
        if ((flags & (DATA_FLAG | CHOP_FLAG)) == DATA_FLAG) {
            bit<8> hops = TTL + 1 - headers.ipv4.ttl;
            receive_data.apply(headers, ACK_FLAG | (flags & RTX_FLAG), 0, (bit<128>)hops,
                               64w0 ++ nic.now ++ headers.sender.sent_at, ingress);
        } else if ((flags & ACK_FLAG) != 0) {
            deliver.apply(headers);
            react.apply(headers, nic);
        }
    }
}

control SwiftEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                    in egress_metadata_t egress) {
    FillHeaders() fill;

    apply {
        bool data = (egress.flags & DATA_FLAG) != 0;
        fill.apply(headers, nic, egress, data ? TOS_DATA : 0);
        headers.swift.setValid();
        headers.swift.hops = egress.note1[7:0];
        headers.swift.padding = 0;
        if (!data) {
            // From the arrival of what it answers until now.
            headers.sender.remark = nic.now - egress.note2[63:32];
        }
    }
}

control SwiftDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.sender);
        packet.emit(headers.swift);
    }
}

NanoNic(SwiftParser(), SwiftIngress(), SwiftEgress(), SwiftDeparser()) main;
