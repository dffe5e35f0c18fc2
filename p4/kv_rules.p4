// A cache of small values in the NIC, whatever the transport: requests are messages of one packet, and what the
// NIC knows it answers by a message of its own; its host is never notified. The host has all values: a
// PUT passes through the cache and goes on to it.

const bit<32> KV_MAGIC = 0x4b56_4331;  // "KVC1"
const bit<16> KV_LEN = 32;             // bytes of every request and answer

const bit<8> KV_GET    = 1;
const bit<8> KV_PUT    = 2;
const bit<8> KV_FOUND  = 0x81;  // the answer to a GET: the value
const bit<8> KV_STORED = 0x82;  // the answer to a PUT: it comes from the host
const bit<8> KV_NONE   = 0x83;  // the answer to a GET: the host has no value either

header kv_t {
    bit<32>  magic;
    bit<8>   op;
    bit<24>  request;  // what the client calls it; the answer has the same
    bit<64>  key;
    bit<128> value;
}

/// Cells of the cache; a power of two. 25 bytes each.
const bit<32> KV_CELLS = 4096;

/// `kv` has come in a packet that its transport has accepted, if `ingress.drop` is 0: of a message of one
/// packet that is so once.
control KvCache(in ipv4_t ipv4, in kv_t kv, inout ingress_metadata_t ingress) {
    /// The key in each cell, and above it a bit that says that there is one.
    Register<bit<65>>(KV_CELLS) keys;
    Register<bit<128>>(KV_CELLS) values;
    /// GETs that were answered here, and those that were not.
    Counter(2) answered;

    apply {
        if (kv.isValid() && kv.magic == KV_MAGIC && ingress.drop == 0) {
            bit<64> folded = kv.key ^ (kv.key >> 12) ^ (kv.key >> 24) ^ (kv.key >> 36);
            bit<32> cell = (bit<32>)folded & (KV_CELLS - 1);
            if (kv.op == KV_PUT) {
                keys.write(cell, 1w1 ++ kv.key);
                values.write(cell, kv.value);
            } else if (kv.op == KV_GET) {
                bit<65> held = keys.read(cell);
                if (held == 1w1 ++ kv.key) {
                    own_message_t answer;
                    answer.protocol = ipv4.protocol;
                    answer.dst_ip = ipv4.src;
                    answer.msg_len = KV_LEN;
                    answer.data0 = kv.magic ++ KV_FOUND ++ kv.request ++ kv.key;
                    answer.data1 = values.read(cell);
                    answer.data2 = 0;
                    answer.data3 = 0;
                    send_message(answer);
                    ingress.to = TO_NOBODY;
                    answered.count(0);
                } else {
                    answered.count(1);
                }
            }
        }
    }
}
