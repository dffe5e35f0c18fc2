// HPCC (Li et al., SIGCOMM 2019, algorithm 1; specs/rdma.md#5) for the nanoTransport NIC, with
// the parameters of the NIC's ns-3 model (specs/nanotransport.md#13). Switches write what their
// links carry and how long their queues are into DATA packets (INT); receivers send that back in
// ACKs; the sender finds the busiest link and sets a window that leaves it a little below full.
//
// A flow is all messages to one host. What the algorithm counts in sequence numbers is in times here: an ACK ends a round
// trip if what it answers was sent after the window last became the reference.
//
// Arithmetic is in fixed point. Against the algorithm in real numbers, one ACK's U is wrong by at most 0.03 % and 2^-22, its
// window by 0.06 % and 1/16 byte, its pace by 0.03 %; a test holds it to that.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"
#include "reciprocal.p4"

const bit<8> PROTOCOL = 197;
const bit<16> TRANSPORT_LEN = 64;

/// T: a little more than the longest round-trip time without queues, ns.
const int BASE_RTT = 13000;
/// The NIC's line, Gb/s.
const int LINE_RATE = 100;
/// W_AI: what is added to the window at each step, bytes.
const int INCREASE = 80;
/// Eta: the utilisation aimed at, in thousandths.
const int UTILIZATION = 950;
/// maxStage: after this many increases the window is set by the utilisation, whatever that is.
const bit<8> MAX_STAGE = 5;
/// Packets that may be in flight at least.
const bit<16> MIN_CREDIT = 2;
/// The window never means less than this, Mb/s.
const int MIN_RATE = 100;

/// What the port of a switch writes (wire::int): 3 bits of rate, 24 bits of time in ns, 20 bits of bytes sent in 128
/// bytes for each 25 Gb/s of its line, 17 bits of queue in 80 bytes for each 25 Gb/s.
header int_t {
    bit<16> passed;  // switch ports
    bit<64> hop0;
    bit<64> hop1;
    bit<64> hop2;
    bit<64> hop3;
    bit<64> hop4;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    sender_t   sender;
    int_t      telemetry;
}

#include "sender_rules.p4"

parser HpccParser(packet_in packet, out headers_t headers, inout nothing_t local) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.ipv4);
        transition select(headers.ethernet.ether_type, headers.ipv4.version_ihl,
                          headers.ipv4.protocol) {
            (ETHERTYPE_IPV4, VERSION_IHL, PROTOCOL): hpcc;
            default: reject;
        }
    }
    state hpcc {
        packet.extract(headers.sender);
        packet.extract(headers.telemetry);
        transition accept;
    }
}

// ---- Units. A utilisation counts in 2^-24, a window in 2^-8 bytes; products of a utilisation and a time in ns.

/// Bytes of a full packet on the wire.
const int PACKET = 1122;
/// A unit of bytes sent lasts 128 * 8 / 25 ns on its line.
const bit<80> SENT_TIME = (128 * 8 << 24) / 25;
/// A unit of queue, 80 * 8 / 25 ns long, as a part of T; in 2^-40.
const bit<80> QUEUE_SHARE = (80 * 8 << 40) / (25 * BASE_RTT);
const bit<24> ROUND_TRIP = BASE_RTT;
/// 1/T in 2^-40.
const bit<96> PER_ROUND_TRIP = (1 << 40) / BASE_RTT;
const bit<32> TARGET = (UTILIZATION << 24) / 1000;
/// Eta in 2^-16.
const bit<96> ETA = (UTILIZATION << 16) / 1000;
/// W_init: what the line carries in T.
const bit<32> FULL_WINDOW = (LINE_RATE * BASE_RTT << 8) / 8;
const bit<32> LEAST_WINDOW = (MIN_RATE * BASE_RTT << 8) / 8000;
const bit<32> STEP = INCREASE << 8;
/// One packet's part of a window, in 2^-40.
const bit<64> PER_PACKET = (1 << 32) / PACKET;
/// T in cycles of 3.2 GHz, for a packet's bytes in each of its 16 words, in 1/256: over a window it is the gap.
const bit<96> SPREAD = BASE_RTT * 32 * PACKET * 65536 / 160;

/// One link's load since the ACK before: the new one if it is busier than what was found before it.
control Hop(in bit<64> now, in bit<64> before, in bool counts, inout bool found,
            inout bit<24> gap, inout bit<56> load) {
    apply {
        bit<24> time = now[60:37] - before[60:37];
        bit<20> sent = now[36:17] - before[36:17];
        bit<17> queue = now[16:0] < before[16:0] ? now[16:0] : before[16:0];
        // u * time, where u = queue / (B T) + sent / (time B)
        bit<80> queued = ((bit<80>)queue * (bit<80>)time * QUEUE_SHARE) >> 16;
        bit<80> busy = (bit<80>)sent * SENT_TIME + queued;
        bit<56> here = busy[79:56] == 0 ? busy[55:0] : 0xffffffffffffff;
        bool busier = (bit<80>)here * (bit<80>)gap > (bit<80>)load * (bit<80>)time;
        if (counts && time != 0 && (!found || busier)) {
            found = true;
            gap = time;
            load = here;
        }
    }
}

/// MeasureInflight: U after an ACK that brings `now`, where the one before brought `before`. Another way than then has
/// nothing to compare with.
control MeasureInflight(in int_t now, in int_t before, inout bit<32> u, out bool found) {
    Hop() link0;
    Hop() link1;
    Hop() link2;
    Hop() link3;
    Hop() link4;
    Reciprocal() reciprocal;

    apply {
        bool same_way = now.passed == before.passed && now.hop0[63:61] == before.hop0[63:61]
                        && now.hop1[63:61] == before.hop1[63:61]
                        && now.hop2[63:61] == before.hop2[63:61]
                        && now.hop3[63:61] == before.hop3[63:61]
                        && now.hop4[63:61] == before.hop4[63:61];
        found = false;
        bit<24> time = 1;
        bit<56> load = 0;
        link0.apply(now.hop0, before.hop0, same_way, found, time, load);
        link1.apply(now.hop1, before.hop1, same_way && now.passed > 1, found, time, load);
        link2.apply(now.hop2, before.hop2, same_way && now.passed > 2, found, time, load);
        link3.apply(now.hop3, before.hop3, same_way && now.passed > 3, found, time, load);
        link4.apply(now.hop4, before.hop4, same_way && now.passed > 4, found, time, load);
        bit<18> inverse;
        bit<8> exponent;
        reciprocal.apply((bit<32>)time, inverse, exponent);
        bit<96> fresh;
        if (time > ROUND_TRIP) {
            fresh = ((bit<96>)load * (bit<96>)inverse) >> (18 + exponent);
        } else {
            bit<96> rest = (bit<96>)(ROUND_TRIP - time);
            fresh = (((bit<96>)u * rest + (bit<96>)load) * PER_ROUND_TRIP) >> 40;
        }
        u = fresh[95:32] == 0 ? fresh[31:0] : 0xffffffff;
    }
}

/// ComputeWind: the window for utilisation `u` from the reference, and the stage.
control ComputeWind(in bit<32> u, in bit<32> w_c, inout bit<8> stage, out bit<32> w) {
    Reciprocal() reciprocal;

    apply {
        bool multiply = u >= TARGET || stage >= MAX_STAGE;
        bit<18> inverse;
        bit<8> exponent;
        reciprocal.apply(u | 1, inverse, exponent);
        bit<96> share = (((bit<96>)w_c * ETA) >> 16) * (bit<96>)inverse;
        bit<96> window = multiply ? (share << 24) >> (18 + exponent) : (bit<96>)w_c;
        window = window + (bit<96>)STEP;
        w = window > (bit<96>)FULL_WINDOW ? FULL_WINDOW : window[31:0];
        w = w < LEAST_WINDOW ? LEAST_WINDOW : w;
        stage = multiply ? 0 : stage + 1;
    }
}

/// An ACK with telemetry has come (NewAck).
control React(in headers_t headers, in nic_t nic) {
    // Of each flow. W_c is zero before its first ACK.
    Register<bit<32>>(FLOWS) reference;  // W_c
    Register<bit<8>>(FLOWS) stages;      // incStage
    Register<bit<32>>(FLOWS) utilization;  // U
    Register<bit<32>>(FLOWS) round_began;  // when W_c last changed: lastUpdateSeq
    // L: what the last ACK brought.
    Register<bit<16>>(FLOWS) passed;
    Register<bit<64>>(FLOWS) hop0;
    Register<bit<64>>(FLOWS) hop1;
    Register<bit<64>>(FLOWS) hop2;
    Register<bit<64>>(FLOWS) hop3;
    Register<bit<64>>(FLOWS) hop4;

    MeasureInflight() measure;
    ComputeWind() compute;
    Reciprocal() by_window;

    apply {
        bit<32> flow = headers.ipv4.src & (FLOWS - 1);
        int_t now = headers.telemetry;
        int_t last;
        last.passed = passed.read(flow);
        last.hop0 = hop0.read(flow);
        last.hop1 = hop1.read(flow);
        last.hop2 = hop2.read(flow);
        last.hop3 = hop3.read(flow);
        last.hop4 = hop4.read(flow);
        passed.write(flow, now.passed);
        hop0.write(flow, now.hop0);
        hop1.write(flow, now.hop1);
        hop2.write(flow, now.hop2);
        hop3.write(flow, now.hop3);
        hop4.write(flow, now.hop4);
        bit<32> w_c = reference.read(flow);
        bit<8> stage = stages.read(flow);
        bit<32> u = utilization.read(flow);
        bool ends_round = (headers.sender.sent_at - round_began.read(flow))[31:31] == 0;

        bool found;
        bit<32> w;
        measure.apply(now, last, u, found);
        compute.apply(u, w_c, stage, w);
        bit<18> inverse;
        bit<8> exponent;
        by_window.apply(w, inverse, exponent);
        bit<96> gap = (SPREAD * (bit<96>)inverse) >> (18 + exponent);

        if (w_c == 0) {
            reference.write(flow, FULL_WINDOW);
            utilization.write(flow, 1 << 24);
            round_began.write(flow, nic.now);
        } else if (found) {
            utilization.write(flow, u);
            if (ends_round) {
                reference.write(flow, w);
                stages.write(flow, stage);
                round_began.write(flow, nic.now);
            }
            bit<64> packets = ((bit<64>)w * PER_PACKET + 0xffffffffff) >> 40;
            flow_event_t event;
            event.flow = (bit<8>)flow;
            event.window = packets[15:0] < MIN_CREDIT ? MIN_CREDIT : packets[15:0];
            event.gap = gap[31:0];
            set_flow(event);
        }
    }
}

control HpccIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                    inout ingress_metadata_t ingress) {
    ReceiveData() receive_data;
    Delivered() deliver;
    React() react;

    apply {
        ingress.drop = 1;
        int_t t = headers.telemetry;
        if ((headers.sender.flags & (DATA_FLAG | CHOP_FLAG)) == DATA_FLAG) {
            receive_data.apply(headers, ACK_FLAG, t.hop0 ++ t.hop1, t.hop2 ++ t.hop3,
                               t.hop4 ++ 16w0 ++ t.passed ++ headers.sender.sent_at, ingress);
        } else if ((headers.sender.flags & ACK_FLAG) != 0) {
            deliver.apply(headers);
            if (t.passed != 0) {
                react.apply(headers, nic);
            }
        }
    }
}

control HpccEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                   in egress_metadata_t egress) {
    FillHeaders() fill;

    apply {
        bool data = (egress.flags & DATA_FLAG) != 0;
        fill.apply(headers, nic, egress, data ? TOS_DATA | TOS_TELEMETRY : 0);
        headers.telemetry.setValid();
        headers.telemetry.passed = egress.note2[47:32];
        headers.telemetry.hop0 = egress.note0[127:64];
        headers.telemetry.hop1 = egress.note0[63:0];
        headers.telemetry.hop2 = egress.note1[127:64];
        headers.telemetry.hop3 = egress.note1[63:0];
        headers.telemetry.hop4 = egress.note2[127:64];
    }
}

control HpccDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.sender);
        packet.emit(headers.telemetry);
    }
}

NanoNic(HpccParser(), HpccIngress(), HpccEgress(), HpccDeparser()) main;
