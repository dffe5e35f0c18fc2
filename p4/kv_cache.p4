// A key-value cache in the NIC beside two transports that do not know of it: NDP and Homa as they are, and
// the rules of kv_rules.p4 behind them.
#include <core.p4>
#include <nano.p4>
#include "headers.p4"
#include "kv_rules.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ndp_t      ndp;
    homa_t     homa;
    kv_t       kv;
}

#include "ndp_rules.p4"
#include "homa_rules.p4"

parser CacheParser(packet_in packet, out headers_t headers, inout nothing_t local) {
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
        transition select(headers.ndp.flags, headers.ndp.msg_len) {
            (DATA_FLAG, KV_LEN): kv;
            default: accept;
        }
    }
    state homa {
        packet.extract(headers.homa);
        transition select(headers.homa.flags, headers.homa.msg_len) {
            (DATA_FLAG, KV_LEN): kv;
            default: accept;
        }
    }
    state kv {
        packet.extract(headers.kv);
        transition accept;
    }
}

control CacheIngress(inout headers_t headers, inout nothing_t local, in nic_t nic,
                     inout ingress_metadata_t ingress) {
    NdpIngress() ndp;
    HomaIngress() homa;
    KvCache() cache;
    apply {
        if (headers.ndp.isValid()) {
            ndp.apply(headers, local, nic, ingress);
        } else {
            homa.apply(headers, local, nic, ingress);
        }
        cache.apply(headers.ipv4, headers.kv, ingress);
    }
}

control CacheEgress(inout headers_t headers, inout nothing_t local, in nic_t nic,
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

control CacheDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.ndp);
        packet.emit(headers.homa);
    }
}

NanoNic(CacheParser(), CacheIngress(), CacheEgress(), CacheDeparser()) main;
