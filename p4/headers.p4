// Headers of the transport programs of this folder (specs/nanotransport.md, 3.2).

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

/// Flags beside those that the architecture knows.
const bit<8> ACK_FLAG = 0x02;
const bit<8> NACK_FLAG = 0x04;
const bit<8> GRANT_FLAG = 0x08;

/// IPv4 and the transport header.
const bit<16> HEADERS_LEN = 50;
/// A control packet carries one byte of nothing, since the NIC handles no packet of 64 bytes.
const bit<16> CONTROL_LEN = 1;

/// For blocks that keep nothing between parser and control.
struct nothing_t {}
