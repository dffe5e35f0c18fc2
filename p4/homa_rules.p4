// The rules of Homa and Homa-Tr (specs/nanotransport.md#11; specs/homa-tr.md) over a `headers_t`
// that has `ethernet`, `ipv4` and `homa`. A receiver grants packets to the messages with the fewest
// packets left, and says at which priority; acknowledgements are cumulative.

/// Homa-Tr: chopped packets are reported with a NACK. Otherwise they are ignored.
const bool TRIM = false;
/// As published, without the repairs E2 and E9 (docs/nic.md): what a NACK reports
/// always waits for a GRANT, and duplicates are not answered.
const bool STRICT_PAPER = false;
/// E3: a chopped packet lets the receiver grant another, as in NDP.
const bool COUNT_CHOPS = false;
/// Messages that may be granted at once, each at a priority of its own.
const bit<8> OVERCOMMITMENT = 3;  // at least 1
/// Priorities of unscheduled packets; those of granted ones follow.
const bit<8> N_UNSCHED = 1;       // 1 to 8

/// How to reach the sender of a message: what a GRANT needs that is not the answer to one of its
/// packets.
struct origin_t {
    bit<32> src_ip;
    bit<16> src_context;
    bit<16> dst_context;
    bit<16> msg_len;
    bit<16> tx_msg_id;
    bit<16> buf_ptr;
    bit<8>  size_class;
}

/// Set by GRANTs, read when packets leave.
TxMsgPrio() tx_prio;

control HomaIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                    inout ingress_metadata_t ingress) {
    // Per message that is being received. The second ports serve the message that is granted.
    DualPortRaw<bit<16>>() granted;     // packets below this index may be sent, and the sender knows
    IfElseRaw<bit<16>>() grantable;     // and it could be granted this
    IfElseRaw<bit<16>>() remaining;     // packets that have not arrived
    DualPortRaw<bit<16>>() first_missing;
    DualPortRaw<bit<120>>() origins;
    SrptScheduler(OVERCOMMITMENT) scheduler;

    origin_t origin;
    egress_metadata_t packet;

    /// The sender of this packet.
    action set_origin() {
        origin.src_ip = headers.ipv4.src;
        origin.src_context = headers.homa.src_context;
        origin.dst_context = headers.homa.dst_context;
        origin.msg_len = headers.homa.msg_len;
        origin.tx_msg_id = headers.homa.tx_msg_id;
        origin.buf_ptr = headers.homa.buf_ptr;
        origin.size_class = headers.homa.size_class;
    }

    /// A control packet for `origin`.
    action address(in bit<8> flags, in bit<8> pkt_offset, in bit<16> credit, in bit<8> prio) {
        packet.protocol = HOMA;
        packet.dst_ip = origin.src_ip;
        packet.dst_context = origin.src_context;
        packet.src_context = origin.dst_context;
        packet.msg_len = origin.msg_len;
        packet.tx_msg_id = origin.tx_msg_id;
        packet.buf_ptr = origin.buf_ptr;
        packet.size_class = origin.size_class;
        packet.pkt_offset = pkt_offset;
        packet.credit = credit;
        packet.rank = prio;
        packet.flags = flags;
        packet.is_new_msg = 0;
        packet.is_rtx = 0;
    }

    action ack(in bit<9> ack_no) {
        address(ACK_FLAG, (bit<8>)ack_no, 0, 0);
        ack_pkt(packet);
    }

    action nack(in bit<9> ack_no, in bit<8> no_grant_follows) {
        address(NACK_FLAG, headers.homa.pkt_offset, (bit<16>)ack_no, no_grant_follows);
        nack_pkt(packet);
    }

    action grant(in bit<16> ack_no, in bit<16> credit, in bit<8> prio) {
        address(GRANT_FLAG, (bit<8>)ack_no, credit, prio);
        grant_pkt(packet);
    }

    /// Hand the payload to reassembly.
    action accept_payload(in rx_msg_info_t info) {
        ingress.src_ip = headers.ipv4.src;
        ingress.src_context = headers.homa.src_context;
        ingress.msg_len = headers.homa.msg_len;
        ingress.pkt_offset = headers.homa.pkt_offset;
        ingress.dst_context = headers.homa.dst_context;
        ingress.rx_msg_id = info.rx_msg_id;
        ingress.tx_msg_id = headers.homa.tx_msg_id;
        ingress.is_last_pkt = info.is_last_pkt;
        ingress.drop = 0;
    }

    apply {
        ingress.drop = 1;
        bit<8> flags = headers.homa.flags;
        bool chop = (flags & CHOP_FLAG) != 0;
        if (chop || (flags & DATA_FLAG) != 0) {
            if (!chop || TRIM) {
                set_origin();
                rx_msg_request_t request;
                request.mark_received = chop ? 1w0 : 1w1;
                request.src_ip = origin.src_ip;
                request.src_context = origin.src_context;
                request.tx_msg_id = origin.tx_msg_id;
                request.msg_len = origin.msg_len;
                request.pkt_offset = headers.homa.pkt_offset;
                rx_msg_info_t info = get_rx_msg_info(request);
                if (info.fail == 1) {
                    // E5: the sender will repeat it when its timer fires.
                    nack(0, 0);
                } else if (info.is_done == 1) {
                    // E6: the last ACK was lost.
                    ack(info.ack_no);
                } else if (info.is_new_pkt == 0) {
                    // E9: the sender repeats what has arrived, so an answer was lost.
                    if (!STRICT_PAPER) {
                        bit<16> told = granted.execute(info.rx_msg_id, true, RAW_READ, 0,
                                                       RAW_READ, 0);
                        if (told > nic.rtt_pkts) {
                            grant((bit<16>)info.ack_no, told, N_UNSCHED);
                        } else {
                            ack(info.ack_no);
                        }
                    }
                } else {
                    bit<16> msg_pkts = ((origin.msg_len - 1) >> 10) + 1;
                    bit<16> intact = chop ? 16w0 : 16w1;
                    bit<16> counted = (chop && !COUNT_CHOPS) ? 16w0 : 16w1;
                    // E1: also where the first packet of the message has been chopped.
                    bool is_new = info.is_new_msg == 1;
                    bit<16> told = granted.execute(info.rx_msg_id, is_new, RAW_WRITE, nic.rtt_pkts,
                                                   RAW_READ, 0);
                    bit<16> may_tell = grantable.execute(info.rx_msg_id, is_new,
                                                         RAW_WRITE, nic.rtt_pkts + counted,
                                                         RAW_ADD, counted);
                    bit<16> left = remaining.execute(info.rx_msg_id, is_new,
                                                     RAW_WRITE, msg_pkts - intact,
                                                     RAW_ADD, 0 - intact);
                    first_missing.execute(info.rx_msg_id, true, RAW_WRITE, (bit<16>)info.ack_no,
                                          RAW_READ, 0);
                    origins.execute(info.rx_msg_id, is_new, RAW_WRITE,
                                    origin.src_ip ++ origin.src_context ++ origin.dst_context
                                    ++ origin.msg_len ++ origin.tx_msg_id ++ origin.buf_ptr
                                    ++ origin.size_class, RAW_READ, 0);

                    bit<1> all_granted = told >= msg_pkts ? 1w1 : 1w0;
                    bit<1> answered = 0;
                    if (chop) {
                        // E2: repeat it at once if no GRANT will follow that it could leave with.
                        nack(info.ack_no, STRICT_PAPER ? 8w0 : (bit<8>)all_granted);
                        answered = 1;
                    } else {
                        accept_payload(info);
                        if (info.is_last_pkt == 1) {
                            ack(info.ack_no);
                            answered = 1;
                        }
                    }

                    if (!chop || COUNT_CHOPS) {
                        srpt_request_t update;
                        update.rx_msg_id = info.rx_msg_id;
                        update.remove = all_granted | info.is_last_pkt;
                        update.rank = left;
                        update.granted = told;
                        update.grantable = may_tell;
                        srpt_response_t best = scheduler.schedule(update);
                        if (best.success == 1) {
                            granted.second(best.rx_msg_id, RAW_WRITE, best.grant_offset);
                            bit<16> ack_no = first_missing.second(best.rx_msg_id, RAW_READ, 0);
                            bit<120> found = origins.second(best.rx_msg_id, RAW_READ, 0);
                            origin.src_ip = found[119:88];
                            origin.src_context = found[87:72];
                            origin.dst_context = found[71:56];
                            origin.msg_len = found[55:40];
                            origin.tx_msg_id = found[39:24];
                            origin.buf_ptr = found[23:8];
                            origin.size_class = found[7:0];
                            grant(ack_no, best.grant_offset, best.prio_level + N_UNSCHED);
                        } else if (answered == 0) {
                            ack(info.ack_no);
                        }
                    }
                }
            }
        } else if ((flags & (ACK_FLAG | NACK_FLAG | GRANT_FLAG)) != 0) {
            bit<16> ack_no = (bit<16>)headers.homa.pkt_offset;
            if ((flags & NACK_FLAG) != 0) {
                ack_no = headers.homa.grant_offset;
            }
            delivered_event_t arrived;
            arrived.tx_msg_id = headers.homa.tx_msg_id;
            arrived.src_context = headers.homa.dst_context;
            arrived.delivered_pkts = (64w1 << ack_no) - 1;
            delivered(arrived);
            if ((flags & GRANT_FLAG) != 0) {
                tx_prio.grant(headers.homa.tx_msg_id, headers.homa.dst_context,
                              headers.homa.grant_prio);
            }
            if ((flags & (NACK_FLAG | GRANT_FLAG)) != 0) {
                bool is_grant = (flags & GRANT_FLAG) != 0;
                credit_event_t event;
                event.tx_msg_id = headers.homa.tx_msg_id;
                event.src_context = headers.homa.dst_context;
                event.rtx = is_grant ? 1w0 : 1w1;
                event.rtx_pkt_offset = headers.homa.pkt_offset;
                // A NACK that no GRANT follows sends what waits below the credit there is.
                event.update_credit = (is_grant || headers.homa.grant_prio == 1) ? 1w1 : 1w0;
                event.new_credit = is_grant ? headers.homa.grant_offset : 16w0;
                credit_to_btx(event);
            }
        }
    }
}

control HomaEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                   in egress_metadata_t egress) {
    apply {
        bit<16> segment = CONTROL_LEN;
        bit<8> prio = 0;
        if ((egress.flags & DATA_FLAG) != 0) {
            // All packets but the last are full; its length is that of the rest, 1 to 1024.
            bit<16> before_last_byte = egress.msg_len - 1;
            bit<16> last = before_last_byte >> 10;
            segment = 1024;
            if ((bit<16>)egress.pkt_offset == last) {
                segment = (before_last_byte & 1023) + 1;
            }
            bit<8> first_prio = last < nic.rtt_pkts ? 8w0 : N_UNSCHED - 1;
            prio = tx_prio.read(egress.tx_msg_id, egress.is_new_msg, first_prio);
            if (egress.is_rtx == 1 && prio < N_UNSCHED) {
                prio = N_UNSCHED;
            }
        }
        headers.ethernet.setValid();
        headers.ethernet.dst = nic.switch_mac;
        headers.ethernet.src = nic.nic_mac;
        headers.ethernet.ether_type = ETHERTYPE_IPV4;

        headers.ipv4.setValid();
        headers.ipv4.version_ihl = VERSION_IHL;
        headers.ipv4.tos = prio;
        headers.ipv4.total_len = HEADERS_LEN + segment;
        headers.ipv4.id = IPV4_ID;
        headers.ipv4.flags_fragment = 0;
        headers.ipv4.ttl = TTL;
        headers.ipv4.protocol = HOMA;
        headers.ipv4.checksum = 0;
        headers.ipv4.src = nic.nic_ip;
        headers.ipv4.dst = egress.dst_ip;

        headers.homa.setValid();
        headers.homa.flags = egress.flags;
        headers.homa.src_context = egress.src_context;
        headers.homa.dst_context = egress.dst_context;
        headers.homa.msg_len = egress.msg_len;
        headers.homa.pkt_offset = egress.pkt_offset;
        headers.homa.grant_offset = egress.credit;
        headers.homa.grant_prio = egress.rank;
        headers.homa.tx_msg_id = egress.tx_msg_id;
        headers.homa.buf_ptr = egress.buf_ptr;
        headers.homa.size_class = egress.size_class;
        headers.homa.padding = 0;
    }
}
