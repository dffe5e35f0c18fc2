// NDP in the NIC, and everything else for software on the host: packets of other protocols go round
// reassembly as they are.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ndp_t      ndp;
}

#include "ndp_rules.p4"

parser BypassParser(packet_in packet, out headers_t headers, inout nothing_t local) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition select(headers.ipv4.version_ihl, headers.ipv4.protocol) {
            (VERSION_IHL, NDP): ndp;
            default: accept;
        }
    }
    state ndp {
        packet.extract(headers.ndp);
        transition accept;
    }
}

control BypassIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                      inout ingress_metadata_t ingress) {
    NdpIngress() ndp;
    apply {
        if (headers.ndp.isValid()) {
            ndp.apply(headers, local, nic, ingress);
        } else {
            ingress.to = TO_SOFTWARE;
        }
    }
}

control BypassDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.ndp);
    }
}

NanoNic(BypassParser(), BypassIngress(), NdpEgress(), BypassDeparser()) main;
