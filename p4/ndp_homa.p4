// NDP and Homa at once on one nanoTransport NIC: the IP protocol of a packet says whose it is. They
// share ids, buffers, timers, generator and link, and nothing of their state.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ndp_t      ndp;
    homa_t     homa;
}

#include "ndp_rules.p4"
#include "homa_rules.p4"

parser BothParser(packet_in packet, out headers_t headers, inout nothing_t local) {
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
            (VERSION_IHL, NDP): ndp;
            (VERSION_IHL, HOMA): homa;
            default: reject;
        }
    }
    state ndp {
        packet.extract(headers.ndp);
        transition accept;
    }
    state homa {
        packet.extract(headers.homa);
        transition accept;
    }
}

control BothIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                    inout ingress_metadata_t ingress) {
    NdpIngress() ndp;
    HomaIngress() homa;
    apply {
        if (headers.ndp.isValid()) {
            ndp.apply(headers, local, nic, ingress);
        } else {
            homa.apply(headers, local, nic, ingress);
        }
    }
}

control BothEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                   in egress_metadata_t egress) {
    NdpEgress() ndp;
    HomaEgress() homa;
    apply {
        if (egress.protocol == NDP) {
            ndp.apply(headers, local, nic, egress);
        } else {
            homa.apply(headers, local, nic, egress);
        }
    }
}

control BothDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.ndp);
        packet.emit(headers.homa);
    }
}

NanoNic(BothParser(), BothIngress(), BothEgress(), BothDeparser()) main;
