// DCQCN (Zhu et al., SIGCOMM 2015, section 5; specs/rdma.md#4) for the nanoTransport NIC, with the
// paper's parameters for 40 Gb/s. Switches mark packets; the receiver says so in an ACK, once in a while (the CNP of
// RoCEv2, which is a bit of the ACK here); the sender cuts its rate by half of alpha, an estimate of how much is
// marked; a timer and a byte counter raise it again, first back to what it was, then beyond.
//
// A flow is all messages to one host. The NIC has no timers for programs: what has expired is made up for at the
// next ACK, one expiry of each timer at a time, so that MIN_RATE should let several packets go in every period. The byte
// counter counts what is acknowledged.
//
// Arithmetic is in fixed point. Against the rule in real numbers a rate is wrong by at most 2^-11 Mb/s after an event, alpha by
// 2^-24, the pace by 0.03 %; a test holds it to that, and to 0.1 % after hundreds of events.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"
#include "reciprocal.p4"

const bit<8> PROTOCOL = 199;
const bit<16> TRANSPORT_LEN = 30;

/// The NIC's line, R_AI, R_HAI (the paper states none: R_AI) and R_min, Mb/s.
const int LINE_RATE = 40000;
const int INCREASE = 40;
const int HYPER_INCREASE = 40;
const int MIN_RATE = 200;
/// A receiver says no more often that packets are marked; cycles of 3.2 GHz: 50 us.
const bit<32> CNP_INTERVAL = 160000;
/// Alpha falls, and the rate is raised, after so long without: 55 us.
const bit<32> ALPHA_TIMER = 176000;
const bit<32> RATE_TIMER = 176000;
/// The rate is raised after this many bytes, too.
const bit<32> BYTE_COUNTER = 10000000;
/// F: from which expiry of either on the target is raised as well.
const bit<16> STAGES = 5;
/// g is 2 to the power of minus this.
const bit<8> GAIN_SHIFT = 8;

header dcqcn_t {
    bit<64> padding;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    sender_t   sender;
    dcqcn_t    dcqcn;
}

#include "sender_rules.p4"

parser DcqcnParser(packet_in packet, out headers_t headers, inout nothing_t local) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.ipv4);
        transition select(headers.ethernet.ether_type, headers.ipv4.version_ihl,
                          headers.ipv4.protocol) {
            (ETHERTYPE_IPV4, VERSION_IHL, PROTOCOL): dcqcn;
            default: reject;
        }
    }
    state dcqcn {
        packet.extract(headers.sender);
        packet.extract(headers.dcqcn);
        transition accept;
    }
}

/// An ACK that is a congestion notification as well.
const bit<8> CNP_FLAG = 0x40;

// ---- Units. Rates count in 2^-12 Mb/s, alpha in 2^-24.

const bit<32> LINE = LINE_RATE << 12;
const bit<32> STEP = INCREASE << 12;
const bit<32> HYPER_STEP = HYPER_INCREASE << 12;
const bit<32> LEAST = MIN_RATE << 12;
const bit<32> WHOLE = 1 << 24;
/// Bytes of a full packet on the wire.
const bit<32> PACKET = 1088;
/// Its bits for each of its 16 words, in 1/256 cycle: over a rate it is the gap.
const bit<96> SPREAD = (1088 * 8 / 16) * 3200 * 256 << 12;

/// A timer or the counter has expired: fast recovery, additive or hyper increase, by the stages reached.
control Increase(in bit<16> timer_stage, in bit<16> byte_stage, inout bit<32> rate,
                 inout bit<32> target) {
    apply {
        bool timer_more = timer_stage > byte_stage;
        bit<16> most = timer_more ? timer_stage : byte_stage;
        bit<16> least = timer_more ? byte_stage : timer_stage;
        if (most >= STAGES) {
            bit<48> step = (bit<48>)STEP;
            if (least >= STAGES) {
                step = (bit<48>)HYPER_STEP * (bit<48>)(least - STAGES + 1);
            }
            bit<48> raised = (bit<48>)target + step;
            target = raised > (bit<48>)LINE ? LINE : raised[31:0];
        }
        rate = (target + rate + 1) >> 1;
    }
}

/// What the reaction point knows of a flow.
struct point_t {
    bit<32> rate;         // R_C
    bit<32> target;       // R_T
    bit<32> alpha;
    bit<32> alpha_began;  // when the period of alpha's timer began
    bit<32> rate_began;   // and that of the rate's
    bit<32> acked;        // bytes since the counter last expired
    bit<16> timer_stage;
    bit<16> byte_stage;
}

/// What has expired by `now`, each once, with a packet acknowledged.
control Expire(in bit<32> now, inout point_t point) {
    Increase() by_timer;
    Increase() by_bytes;

    apply {
        if (now - point.alpha_began >= ALPHA_TIMER) {
            point.alpha = point.alpha - (point.alpha >> GAIN_SHIFT);
            point.alpha_began = point.alpha_began + ALPHA_TIMER;
        }
        if (now - point.rate_began >= RATE_TIMER) {
            point.rate_began = point.rate_began + RATE_TIMER;
            point.timer_stage = point.timer_stage |+| 1;
            by_timer.apply(point.timer_stage, point.byte_stage, point.rate, point.target);
        }
        point.acked = point.acked + PACKET;
        if (point.acked >= BYTE_COUNTER) {
            point.acked = point.acked - BYTE_COUNTER;
            point.byte_stage = point.byte_stage |+| 1;
            by_bytes.apply(point.timer_stage, point.byte_stage, point.rate, point.target);
        }
    }
}

/// A congestion notification has come.
control Cut(in bit<32> now, inout point_t point) {
    apply {
        point.target = point.rate;
        bit<64> less = ((bit<64>)point.rate * (bit<64>)point.alpha) >> 25;
        point.rate = point.rate - less[31:0];
        point.rate = point.rate < LEAST ? LEAST : point.rate;
        point.alpha = point.alpha + ((WHOLE - point.alpha) >> GAIN_SHIFT);
        point.alpha_began = now;
        point.rate_began = now;
        point.acked = 0;
        point.timer_stage = 0;
        point.byte_stage = 0;
    }
}

/// An ACK has come. Nothing happens before a flow's first cut: its rate is the line's.
control React(in headers_t headers, in nic_t nic) {
    // Of each flow, zero before its first cut: see point_t.
    Register<bit<32>>(FLOWS) current;
    Register<bit<32>>(FLOWS) target;
    Register<bit<32>>(FLOWS) alpha;
    Register<bit<32>>(FLOWS) alpha_began;
    Register<bit<32>>(FLOWS) rate_began;
    Register<bit<32>>(FLOWS) acked;
    Register<bit<16>>(FLOWS) timer_stages;
    Register<bit<16>>(FLOWS) byte_stages;

    Expire() expire;
    Cut() cut;
    Reciprocal() by_rate;

    apply {
        bit<32> flow = headers.ipv4.src & (FLOWS - 1);
        bool notified = (headers.sender.flags & CNP_FLAG) != 0;
        point_t point;
        point.rate = current.read(flow);
        point.target = target.read(flow);
        point.alpha = alpha.read(flow);
        point.alpha_began = alpha_began.read(flow);
        point.rate_began = rate_began.read(flow);
        point.acked = acked.read(flow);
        point.timer_stage = timer_stages.read(flow);
        point.byte_stage = byte_stages.read(flow);
        bool cut_before = point.rate != 0;
        if (cut_before) {
            expire.apply(nic.now, point);
        } else {
            point.rate = LINE;
            point.alpha = WHOLE;
        }
        if (notified) {
            cut.apply(nic.now, point);
        }
        bit<18> inverse;
        bit<8> exponent;
        by_rate.apply(point.rate, inverse, exponent);
        bit<96> gap = (SPREAD * (bit<96>)inverse) >> (18 + exponent);
        if (cut_before || notified) {
            current.write(flow, point.rate);
            target.write(flow, point.target);
            alpha.write(flow, point.alpha);
            alpha_began.write(flow, point.alpha_began);
            rate_began.write(flow, point.rate_began);
            acked.write(flow, point.acked);
            timer_stages.write(flow, point.timer_stage);
            byte_stages.write(flow, point.byte_stage);
            flow_event_t event;
            event.flow = (bit<8>)flow;
            event.window = 0xffff;
            event.gap = gap[31:0];
            set_flow(event);
        }
    }
}

/// The notification point: what the ACK of a packet says, that of a marked one no more often than each CNP_INTERVAL.
control Notify(in headers_t headers, in nic_t nic, out bit<8> flags) {
    /// Of each host that sends here: when it was last notified, with a one before it.
    Register<bit<33>>(FLOWS) told;

    apply {
        bit<32> flow = headers.ipv4.src & (FLOWS - 1);
        bit<33> last = told.read(flow);
        bool marked = (headers.ipv4.tos & (TOS_LOCAL | TOS_CE)) == (TOS_LOCAL | TOS_CE);
        bool due = last[32:32] == 0 || nic.now - last[31:0] >= CNP_INTERVAL;
        flags = ACK_FLAG;
        if (marked && due) {
            told.write(flow, 1w1 ++ nic.now);
            flags = ACK_FLAG | CNP_FLAG;
        }
    }
}

control DcqcnIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                     inout ingress_metadata_t ingress) {
    ReceiveData() receive_data;
    Delivered() deliver;
    Notify() notify;
    React() react;

    apply {
        ingress.drop = 1;
        if ((headers.sender.flags & (DATA_FLAG | CHOP_FLAG)) == DATA_FLAG) {
            bit<8> flags;
            notify.apply(headers, nic, flags);
            receive_data.apply(headers, flags, 0, 0, 96w0 ++ headers.sender.sent_at, ingress);
        } else if ((headers.sender.flags & ACK_FLAG) != 0) {
            deliver.apply(headers);
            react.apply(headers, nic);
        }
    }
}

control DcqcnEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                    in egress_metadata_t egress) {
    FillHeaders() fill;

    apply {
        bool data = (egress.flags & DATA_FLAG) != 0;
        fill.apply(headers, nic, egress, data ? TOS_DATA | TOS_ECT : 0);
        headers.dcqcn.setValid();
        headers.dcqcn.padding = 0;
    }
}

control DcqcnDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.sender);
        packet.emit(headers.dcqcn);
    }
}

NanoNic(DcqcnParser(), DcqcnIngress(), DcqcnEgress(), DcqcnDeparser()) main;
