// Headers of the transport programs of this folder (specs/nanotransport.md#3.2).

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> VERSION_IHL = 0x45;  // IPv4 without options
const bit<8> TTL = 64;
const bit<16> IPV4_ID = 1;

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
    bit<16> checksum;  // zero: not computed
    bit<32> src;
    bit<32> dst;
}

const bit<8> NDP = 155;

header ndp_t {
    bit<8>   flags;
    bit<16>  src_context;
    bit<16>  dst_context;
    bit<16>  msg_len;
    bit<8>   pkt_offset;
    bit<16>  pull_offset;
    bit<16>  tx_msg_id;
    bit<16>  buf_ptr;
    bit<8>   size_class;
    bit<120> padding;
}

const bit<8> HOMA = 154;

header homa_t {
    bit<8>   flags;
    bit<16>  src_context;
    bit<16>  dst_context;
    bit<16>  msg_len;
    bit<8>   pkt_offset;    // ACK, GRANT: ackNo
    bit<16>  grant_offset;  // NACK: ackNo
    bit<8>   grant_prio;    // NACK: 1 if no GRANT will follow
    bit<16>  tx_msg_id;
    bit<16>  buf_ptr;
    bit<8>   size_class;
    bit<112> padding;
}

/// Of transports whose senders decide how fast they send (sender_rules.p4).
header sender_t {
    bit<8>  flags;
    bit<16> src_context;
    bit<16> dst_context;
    bit<16> msg_len;
    bit<8>  pkt_offset;  // ACK: of the packet that it answers
    bit<8>  ack_no;      // ACK: all packets below have arrived
    bit<16> tx_msg_id;
    bit<16> buf_ptr;
    bit<8>  size_class;
    bit<32> sent_at;     // the data sender's clock; ACK: as it came
    bit<32> remark;      // ACK: what the receiver has to say
}

/// Types of service, for local use: bits 7 to 5 are the class, 4 asks switches for telemetry, 1 and 0 are ECN.
const bit<8> TOS_DATA = 0xcc;  // class 6
const bit<8> TOS_LOCAL = 0x0c;
const bit<8> TOS_ECT = 0x02;
const bit<8> TOS_CE = 0x03;
const bit<8> TOS_TELEMETRY = 0x10;

/// Flags beside those that the architecture knows.
const bit<8> ACK_FLAG = 0x02;
const bit<8> NACK_FLAG = 0x04;
const bit<8> GRANT_FLAG = 0x08;
/// A DATA packet that is sent again, and its ACK.
const bit<8> RTX_FLAG = 0x20;

/// IPv4 and the transport header.
const bit<16> HEADERS_LEN = 50;
/// A control packet carries one byte of nothing, since the NIC handles no packet of 64 bytes.
const bit<16> CONTROL_LEN = 1;

/// For blocks that keep nothing between parser and control.
struct nothing_t {}
