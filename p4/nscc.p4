// NSCC, the sender's window of Ultra Ethernet, with REPS for its entropy values, for the nanoTransport NIC (specs/uet.md#3,4,
// profile `ue-1.0`). The window grows by bytes that arrive and by what is left to a target delay; it shrinks by marks and
// trimmed packets; where hardly anything arrives, it becomes what did. Entropy values of packets that came unmarked are used again.
//
// A flow is all messages to one host. Delays are of the NIC's clock: DATA carries when it left, its answer echoes that. What is
// trimmed is repeated when the window lets it. The NIC's timeouts are not programmable: a packet that is lost whole changes no window and
// freezes no entropy values. What is in flight is what the egress pipeline has counted less what was answered.
//
// Arithmetic is in fixed point. Against the rules in real numbers one answer changes the window wrongly by at most two bytes and
// 0.1 % of the change, the average delay by 2^-8 cycle, at 200 Gb/s; a test holds it to that. (Increases are cut to whole
// numbers, which is up to 0.4 % at 1 Gb/s.) Times are modulo 2^32 cycles, 1.34 s: what a flow does after half as long without
// an answer may be as if a period or a round trip had not passed.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"
#include "reciprocal.p4"

const bit<8> PROTOCOL = 200;
const bit<16> TRANSPORT_LEN = 30;

/// The NIC's line, Mb/s, and the base round trip, cycles of 3.2 GHz: 200 Gb/s and 10 us.
const int RATE = 200000;
const int BASE_RTT = 32000;
/// Bytes of a full packet, and of what is not payload.
const int MTU = 1088;
const int HEADERS = 64;
const int PAYLOAD = 1024;
/// A packet that arrived marked, and its ACK.
const bit<8> MARK_FLAG = 0x40;

header nscc_t {
    bit<16> entropy;  // ACK, NACK: of what they answer
    bit<48> padding;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    sender_t   sender;
    nscc_t     nscc;
}

#include "sender_rules.p4"

parser NsccParser(packet_in packet, out headers_t headers, inout nothing_t local) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.ipv4);
        transition select(headers.ethernet.ether_type, headers.ipv4.version_ihl,
                          headers.ipv4.protocol) {
            (ETHERTYPE_IPV4, VERSION_IHL, PROTOCOL): nscc;
            default: reject;
        }
    }
    state nscc {
        packet.extract(headers.sender);
        packet.extract(headers.nscc);
        transition accept;
    }
}

// ---- What follows from the network (specs/uet.md#2). The rules were found on 150 kB in 12 us: 38400 cycles.

const int BDP = RATE * BASE_RTT / 25600;
const bit<32> MOST = BDP * 3 / 2;
const bit<32> LEAST = MTU;
/// One and a half times what the line carries in a cycle, 2^-16 bytes.
const bit<64> MOST_PER_CYCLE = (RATE * 3 << 16) / 51200;
const bit<32> TARGET = BASE_RTT * 3 / 4;
/// The same, 2^-16.
const bit<64> FINE_TARGET = (BASE_RTT * 3 / 4) << 16;
/// Beyond this delay the window is adapted at once.
const bit<32> FAR = 4 * TARGET;
/// Increase for each byte: below the target, by each cycle that is left to it (2^-16); at the target; and without delay
/// (2^-16). In each round trip, bytes.
const bit<96> ALPHA = (4 * PAYLOAD * BDP << 16) / (150000 * 38400);
const bit<96> FI = 5 * PAYLOAD * BDP / 150000;
const bit<64> FI_SCALE = (BDP << 14) / 150000;
const bit<32> ETA = 15 * PAYLOAD * BDP / 15000000;
/// The window is adjusted after more than so many bytes.
const bit<32> ADJUST_BYTES = 8 * MTU;
/// 1 us: below this delay a window may grow fast.
const bit<32> NO_DELAY = 3200;
/// The weight of a new delay in their average, 0.0125, and gamma, 0.8: 2^-24. At most half comes off.
const bit<96> DELAY_GAIN = 209715;
const bit<96> GAMMA = 13421773;
const bit<32> HALF = 1 << 23;
/// Less than the greatest window, shifted by this, achieved in a period is next to nothing.
const bit<8> QA_GATE = 3;
/// 1 / MTU, 2^-40, rounded up.
const bit<64> PER_PACKET = ((1 << 40) + MTU - 1) / MTU;

// ---- Entropy values: REPS without freezing (specs/uet.md#3).

/// Of each flow: the last eight that came unmarked, how many there were, and how many of these were used again.
Register<bit<128>>(FLOWS) ring;
Register<bit<32>>(FLOWS) kept;
Register<bit<32>>(FLOWS) used;
/// Bytes that were sent, with those that were repeated.
Register<bit<32>>(FLOWS) sent;

/// A packet with this entropy value came unmarked: it takes the place of the oldest.
control Keep(in bit<32> flow, in bit<16> entropy) {
    apply {
        bit<32> n = kept.read(flow);
        bit<8> at = (bit<8>)(n & 7) << 4;
        bit<128> all = ring.read(flow);
        ring.write(flow, (all & ~((128w0xffff) << at)) | ((bit<128>)entropy << at));
        kept.write(flow, n + 1);
    }
}

/// The oldest that was not used again, otherwise one that is drawn.
control NextEntropy(in bit<32> flow, in bit<32> nic_ip, out bit<16> entropy) {
    /// A linear congruential sequence of each flow.
    Register<bit<32>>(FLOWS) drawn;

    apply {
        bit<32> n = kept.read(flow);
        bit<32> next = used.read(flow);
        next = n - next > 8 ? n - 8 : next;
        if (next != n) {
            bit<8> at = (bit<8>)(next & 7) << 4;
            bit<128> from = ring.read(flow) >> at;
            entropy = from[15:0];
            used.write(flow, next + 1);
        } else {
            // Knuth, The Art of Computer Programming 2, section 3.3.4: 1664525. Flows and hosts begin apart.
            bit<32> last = drawn.read(flow);
            bit<32> state = last * 1664525 + 1013904223;
            drawn.write(flow, state);
            bit<32> mixed = (state ^ (nic_ip * 2654435769) ^ (flow * 2246822519)) * 3266489917;
            entropy = mixed[31:16];
        }
    }
}

// ---- The window

/// What became of a packet.
struct answer_t {
    bit<32> now;
    bit<32> bytes;    // on the wire
    bool    trimmed;
    bool    marked;   // or trimmed
    bool    is_sure;  // its round trip is known
    bit<32> rtt;
    bit<32> in_flight;
}

/// A window, with what a period of quick adapt has brought.
struct window_t {
    bit<32> bytes;
    bit<32> most;
    bit<64> inc;       // to be added to the window, times the window; 2^-16
    bit<32> received;  // bytes since the last adjustment
}

/// Between one packet and the most.
control Bound(inout window_t window) {
    apply {
        window.bytes = window.bytes > window.most ? window.most : window.bytes;
        window.bytes = window.bytes < LEAST ? LEAST : window.bytes;
    }
}

/// The average delay, 2^-16 cycles (specs/uet.md#4.2). A long queue that does not mark is not believed to last.
control Average(in bit<32> flow, in answer_t answer, in bit<32> delay, in bit<32> base, out bit<64> average) {
    Register<bit<64>>(FLOWS) averages;

    apply {
        average = averages.read(flow);
        bit<64> sample = (bit<64>)delay << 16;
        if (answer.trimmed) {
            sample = BASE_RTT << 16;
        } else if (!answer.marked && delay > TARGET) {
            sample = (bit<64>)base << 14;
        }
        if (answer.trimmed || answer.is_sure) {
            bool up = sample > average;
            bit<96> apart = (bit<96>)(up ? sample - average : average - sample);
            bit<96> by = (apart * DELAY_GAIN) >> 24;
            average = up ? average + by[63:0] : average - by[63:0];
            averages.write(flow, average);
        }
    }
}

/// Quick adapt (specs/uet.md#4.4): whether the answer has to be ignored, or has changed the window at once.
control QuickAdapt(in bit<32> flow, in answer_t answer, in bit<32> delay, in bit<32> base,
                   inout window_t window, out bool done) {
    /// Bytes that arrived in this period; its end, with a one before it once there is one.
    Register<bit<32>>(FLOWS) achieved;
    Register<bit<33>>(FLOWS) period_end;
    /// Something was trimmed.
    Register<bit<1>>(FLOWS) trigger;
    Register<bit<32>>(FLOWS) ignored;
    Register<bit<32>>(FLOWS) to_ignore;

    Bound() bound;

    apply {
        bit<32> got = achieved.read(flow) |+| (answer.trimmed ? 0 : answer.bytes);
        bit<32> passed = ignored.read(flow) |+| answer.bytes;
        bit<32> passes = to_ignore.read(flow);
        bit<33> end = period_end.read(flow);
        bool trimmed = answer.trimmed || trigger.read(flow) == 1;
        bit<32> beyond = answer.now - end[31:0];
        bool at_end = end[32:32] == 0 || beyond[31:31] == 0;
        done = false;
        if (answer.trimmed || answer.is_sure) {
            if (passed < passes && answer.marked) {
                done = true;
            } else if (at_end) {
                bool bad = trimmed || delay > FAR;
                if (end[32:32] == 1 && bad && got < window.most >> QA_GATE) {
                    window.bytes = got;
                    bound.apply(window);
                    to_ignore.write(flow, answer.in_flight);
                    passed = 0;
                    trimmed = false;
                    done = true;
                }
                got = 0;
                period_end.write(flow, 1w1 ++ (answer.now + base + TARGET));
            }
        }
        achieved.write(flow, got);
        ignored.write(flow, passed);
        trigger.write(flow, trimmed ? 1w1 : 1w0);
        if (done) {
            window.inc = 0;
            window.received = 0;
        }
    }
}

/// By how much a marked packet beyond the target shrinks the window, at most once in a round trip (specs/uet.md#4.3).
control Decrease(in bit<32> flow, in answer_t answer, in bit<64> average, in bit<32> base,
                 in bool wanted, inout window_t window) {
    /// The last one, with a one before it.
    Register<bit<33>>(FLOWS) fell;
    Reciprocal() reciprocal;

    apply {
        bit<33> last = fell.read(flow);
        bool lately = last[32:32] == 1 && answer.now - last[31:0] <= base;
        bit<18> inverse;
        bit<8> exponent;
        reciprocal.apply(average[47:16] | 1, inverse, exponent);
        bit<96> excess = (bit<96>)(average - FINE_TARGET) * GAMMA;
        bit<96> ratio = ((excess >> 16) * (bit<96>)inverse) >> (18 + exponent);
        bit<32> off = ratio > (bit<96>)HALF ? HALF : ratio[31:0];
        if (wanted && average > FINE_TARGET && !lately) {
            bit<64> less = ((bit<64>)window.bytes * (bit<64>)off) >> 24;
            window.bytes = window.bytes - less[31:0];
            fell.write(flow, 1w1 ++ answer.now);
        }
    }
}

/// Below the target (specs/uet.md#4.3): fast where there is no delay, else in proportion to what is left to it.
control Increase(in bit<32> flow, in answer_t answer, in bit<32> delay, in bool wanted, in bool resets,
                 inout window_t window) {
    /// Bytes without delay, and whether the window grows fast.
    Register<bit<32>>(FLOWS) fast_count;
    Register<bit<1>>(FLOWS) fast;

    apply {
        bit<32> count = fast_count.read(flow);
        bool was_fast = fast.read(flow) == 1;
        bool none = delay < NO_DELAY;
        count = none ? count |+| answer.bytes : 0;
        bool is_fast = none && (was_fast || count > window.bytes);
        if (wanted) {
            fast_count.write(flow, count);
            fast.write(flow, is_fast ? 1w1 : 1w0);
            if (is_fast) {
                bit<64> more = ((bit<64>)answer.bytes * FI_SCALE) >> 16;
                window.bytes = window.bytes + more[31:0];
            } else {
                bit<96> more = ALPHA * (bit<96>)answer.bytes * (bit<96>)(TARGET - delay);
                window.inc = window.inc |+| more[63:0];
            }
        } else if (resets) {
            fast_count.write(flow, 0);
            fast.write(flow, 0);
        }
    }
}

/// What has been gathered goes into the window after enough bytes, or a round trip.
control Adjust(in bit<32> flow, in bit<32> now, in bool wanted, inout window_t window) {
    /// The last time that a round trip had passed.
    Register<bit<32>>(FLOWS) adjusted;
    Reciprocal() reciprocal;

    apply {
        bit<32> waited = now - adjusted.read(flow);
        bit<18> inverse;
        bit<8> exponent;
        reciprocal.apply(window.bytes, inverse, exponent);
        bit<96> more = ((bit<96>)window.inc * (bit<96>)inverse) >> (34 + exponent);
        if (wanted && (window.received > ADJUST_BYTES || waited > BASE_RTT)) {
            window.bytes = window.bytes |+| more[31:0];
            if (waited >= BASE_RTT) {
                window.bytes = window.bytes |+| ETA;
                adjusted.write(flow, now);
            }
            window.inc = 0;
            window.received = 0;
        }
    }
}

/// An answer has come.
control React(in bit<32> flow, inout answer_t answer, out bit<32> bytes) {
    // Of each flow, zero before its first answer.
    Register<bit<32>>(FLOWS) windows;
    Register<bit<32>>(FLOWS) bases;
    Register<bit<64>>(FLOWS) incs;
    Register<bit<32>>(FLOWS) receiveds;
    /// Bytes that were answered.
    Register<bit<32>>(FLOWS) answered;

    Average() averaging;
    QuickAdapt() quick_adapt;
    Decrease() decrease;
    Increase() increase;
    Adjust() adjust;
    Bound() bound;
    Bound() bound_again;

    apply {
        window_t window;
        window.bytes = windows.read(flow);
        bit<32> base = bases.read(flow);
        window.inc = incs.read(flow);
        window.received = receiveds.read(flow) |+| (answer.trimmed ? 0 : answer.bytes);
        window.bytes = window.bytes == 0 ? MOST : window.bytes;
        base = base == 0 ? BASE_RTT : base;
        base = answer.is_sure && answer.rtt < base ? answer.rtt : base;
        bit<64> most = ((bit<64>)base * MOST_PER_CYCLE) >> 16;
        window.most = most[31:0] < LEAST ? LEAST : most[31:0];
        bound.apply(window);

        bit<32> total = answered.read(flow) + answer.bytes;
        answered.write(flow, total);
        bit<32> in_flight = sent.read(flow) - total;
        answer.in_flight = in_flight > window.most ? window.most : in_flight;

        bit<32> delay = answer.is_sure && !answer.trimmed ? answer.rtt - base : 0;
        bit<64> average;
        averaging.apply(flow, answer, delay, base, average);
        bool done;
        quick_adapt.apply(flow, answer, delay, base, window, done);
        bool goes_on = !done && !answer.trimmed && answer.is_sure;
        if (answer.trimmed && !done) {
            window.bytes = window.bytes |-| answer.bytes;
        }
        bool below = delay < TARGET;
        decrease.apply(flow, answer, average, base, goes_on && answer.marked && !below, window);
        increase.apply(flow, answer, delay, goes_on && !answer.marked && below,
                       goes_on && answer.marked && !below, window);
        if (goes_on && !answer.marked && !below) {
            bit<96> more = (FI * (bit<96>)answer.bytes) << 16;
            window.inc = window.inc |+| more[63:0];
        }
        bound.apply(window);
        adjust.apply(flow, answer.now, goes_on, window);
        bound_again.apply(window);

        windows.write(flow, window.bytes);
        bases.write(flow, base);
        incs.write(flow, window.inc);
        receiveds.write(flow, window.received);
        bytes = window.bytes;
    }
}

/// A trimmed packet has come: its sender repeats it. If all has arrived meanwhile, only the ACK was lost.
control AnswerTrimmed(in headers_t headers) {
    apply {
        rx_msg_request_t request;
        request.mark_received = 0;
        request.src_ip = headers.ipv4.src;
        request.src_context = headers.sender.src_context;
        request.tx_msg_id = headers.sender.tx_msg_id;
        request.msg_len = headers.sender.msg_len;
        request.pkt_offset = headers.sender.pkt_offset;
        rx_msg_info_t info = get_rx_msg_info(request);
        if (info.fail == 0) {
            egress_metadata_t nack;
            nack.protocol = PROTOCOL;
            nack.dst_ip = headers.ipv4.src;
            nack.dst_context = headers.sender.src_context;
            nack.src_context = headers.sender.dst_context;
            nack.msg_len = headers.sender.msg_len;
            nack.pkt_offset = headers.sender.pkt_offset;
            nack.tx_msg_id = headers.sender.tx_msg_id;
            nack.buf_ptr = headers.sender.buf_ptr;
            nack.size_class = headers.sender.size_class;
            nack.credit = 0;
            nack.rank = (bit<8>)info.ack_no;
            // A copy of what has arrived was trimmed: its entropy value is no good one.
            nack.flags = (info.is_done == 1 ? ACK_FLAG | MARK_FLAG : NACK_FLAG)
                         | (headers.sender.flags & RTX_FLAG);
            nack.is_new_msg = 0;
            nack.is_rtx = 0;
            nack.note0 = (bit<128>)headers.nscc.entropy;
            nack.note1 = 0;
            nack.note2 = (bit<128>)headers.sender.sent_at;
            nack_pkt(nack);
        }
    }
}

/// The packet that was trimmed may go again.
control Repeat(in headers_t headers) {
    apply {
        credit_event_t event;
        event.tx_msg_id = headers.sender.tx_msg_id;
        event.src_context = headers.sender.dst_context;
        event.rtx = 1;
        event.rtx_pkt_offset = headers.sender.pkt_offset;
        event.update_credit = 1;
        event.new_credit = (bit<16>)headers.sender.pkt_offset + 1;
        credit_to_btx(event);
    }
}

/// Bytes on the wire of the packet that these headers are of, or answer.
control WireBytes(in headers_t headers, out bit<32> bytes) {
    apply {
        bit<16> before_last_byte = headers.sender.msg_len - 1;
        bool is_last = (bit<16>)headers.sender.pkt_offset == before_last_byte >> 10;
        bytes = is_last ? (bit<32>)(before_last_byte & 1023) + HEADERS + 1 : MTU;
    }
}

control NsccIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                    inout ingress_metadata_t ingress) {
    ReceiveData() receive_data;
    AnswerTrimmed() answer_trimmed;
    Delivered() deliver;
    Repeat() repeat;
    WireBytes() wire_bytes;
    Keep() keep;
    React() react;

    apply {
        ingress.drop = 1;
        bit<8> flags = headers.sender.flags;
        if ((flags & CHOP_FLAG) != 0) {
            answer_trimmed.apply(headers);
        } else if ((flags & DATA_FLAG) != 0) {
            bool marked = (headers.ipv4.tos & (TOS_LOCAL | TOS_CE)) == (TOS_LOCAL | TOS_CE);
            receive_data.apply(headers, ACK_FLAG | (flags & RTX_FLAG) | (marked ? MARK_FLAG : 0),
                               (bit<128>)headers.nscc.entropy, 0,
                               (bit<128>)headers.sender.sent_at, ingress);
        } else if ((flags & (ACK_FLAG | NACK_FLAG)) != 0) {
            bit<32> flow = headers.ipv4.src & (FLOWS - 1);
            answer_t answer;
            answer.now = nic.now;
            wire_bytes.apply(headers, answer.bytes);
            answer.trimmed = (flags & NACK_FLAG) != 0;
            answer.marked = answer.trimmed || (flags & MARK_FLAG) != 0;
            answer.is_sure = (flags & RTX_FLAG) == 0;
            answer.rtt = nic.now - headers.sender.sent_at;
            if (answer.trimmed) {
                repeat.apply(headers);
            } else {
                deliver.apply(headers);
            }
            if (!answer.marked) {
                keep.apply(flow, headers.nscc.entropy);
            }
            bit<32> bytes;
            react.apply(flow, answer, bytes);
            bit<64> packets = ((bit<64>)bytes * PER_PACKET) >> 40;
            flow_event_t event;
            event.flow = (bit<8>)flow;
            event.window = packets[15:0];
            event.gap = 0;
            set_flow(event);
        }
    }
}

control NsccEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                   in egress_metadata_t egress) {
    FillHeaders() fill;
    WireBytes() wire_bytes;
    NextEntropy() next_entropy;

    apply {
        bool data = (egress.flags & DATA_FLAG) != 0;
        fill.apply(headers, nic, egress, data ? TOS_DATA | TOS_ECT : 0);
        bit<16> entropy = egress.note0[15:0];
        if (data) {
            bit<32> flow = egress.dst_ip & (FLOWS - 1);
            bit<32> bytes;
            wire_bytes.apply(headers, bytes);
            sent.write(flow, sent.read(flow) + bytes);
            next_entropy.apply(flow, nic.nic_ip, entropy);
        }
        headers.nscc.setValid();
        headers.nscc.entropy = entropy;
        headers.nscc.padding = 0;
        set_path(entropy);
    }
}

control NsccDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.sender);
        packet.emit(headers.nscc);
    }
}

NanoNic(NsccParser(), NsccIngress(), NsccEgress(), NsccDeparser()) main;
