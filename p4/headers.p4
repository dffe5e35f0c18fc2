// Ethernet and IPv4 as the transport programs of this folder use them (specs/nanotransport.md, 3.2).

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

/// Flags of both transports, beside those that the architecture knows.
const bit<8> ACK_FLAG = 0x02;
const bit<8> NACK_FLAG = 0x04;
const bit<8> GRANT_FLAG = 0x08;
const bit<8> CHOP_FLAG = 0x10;

/// IPv4 and the transport header.
const bit<16> HEADERS_LEN = 50;
/// A control packet carries one byte of nothing, since the NIC handles no packet of 64 bytes.
const bit<16> CONTROL_LEN = 1;
