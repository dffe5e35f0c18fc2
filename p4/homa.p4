// Homa for the nanoTransport NIC; Homa-Tr with TRIM = true.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    homa_t     homa;
}

#include "homa_rules.p4"

parser HomaParser(packet_in packet, out headers_t headers, inout nothing_t local) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: reject;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition select(headers.ipv4.version_ihl, headers.ipv4.protocol) {
            (VERSION_IHL, HOMA): homa;
            default: reject;
        }
    }
    state homa {
        packet.extract(headers.homa);
        transition accept;
    }
}

control HomaDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.homa);
    }
}

NanoNic(HomaParser(), HomaIngress(), HomaEgress(), HomaDeparser()) main;
