// The architecture of the nanoTransport NIC (SOSR 2021; specs/nanotransport.md#2,3,4,9):
// what a transport program finds around its two pipelines. docs/nic.md explains the blocks.
//
//   wire -> IngressParser -> Ingress -> reassembly -> application
//   application -> packetization -> arbiter -> Egress -> EgressDeparser -> wire
//
// A program sees whole packets on ingress; what its parser has not extracted is payload. On egress it
// writes the headers; the NIC appends the payload. @latency is in cycles of 3.2 GHz.

// ---- What the NIC tells a program about itself

/// Parameters set at run time (specs/nanotransport.md#3.1).
struct nic_t {
    bit<48> nic_mac;     // this NIC
    bit<48> switch_mac;  // the other end of its link
    bit<32> nic_ip;
    bit<16> rtt_pkts;    // packets that a message may send unasked
    bit<32> now;         // its clock: cycles, modulo 2^32
}

// ---- Metadata (specs/nanotransport.md#3.1)

/// Ingress to reassembly: where the payload belongs. Zero unless the program sets it.
struct ingress_metadata_t {
    bit<32> src_ip;
    bit<16> src_context;
    bit<16> msg_len;      // bytes
    bit<8>  pkt_offset;   // index of the packet in the message
    bit<16> dst_context;
    bit<16> rx_msg_id;    // from get_rx_msg_info
    bit<16> tx_msg_id;
    bit<1>  is_last_pkt;  // the message is whole with this packet
    bit<1>  drop;         // 1: there is no payload for reassembly
    bit<2>  to;           // who gets the payload, below
}

const bit<2> TO_HOST     = 0;  // in a message that reassembly has made whole
const bit<2> TO_SOFTWARE = 1;  // the packet as it is, round reassembly; `drop` means nothing
const bit<2> TO_NOBODY   = 2;  // the message was for this program: it ends here once it is whole

/// Packetization or packet generator to egress: the packet to make. Programs make one, too, for
/// each control packet that they ask the generator for.
struct egress_metadata_t {
    bit<8>  protocol;     // IP protocol: of the message's transport, or as the program asked
    bit<32> dst_ip;
    bit<16> dst_context;
    bit<16> msg_len;      // bytes
    bit<8>  pkt_offset;
    bit<16> src_context;
    bit<16> tx_msg_id;    // the data sender's number of the message
    bit<16> buf_ptr;      // its buffer there, in words of 64 bytes
    bit<8>  size_class;   // the size class of that buffer
    bit<16> credit;       // packets below this index may be sent
    bit<8>  rank;         // priority in the network
    bit<8>  flags;        // DATA_FLAG, or what the program asked for
    bit<1>  is_new_msg;   // first packet of its message that is sent
    bit<1>  is_rtx;       // sent again
    // What a program tells its egress control of a control packet beside. Zero in data.
    bit<128> note0;
    bit<128> note1;
    bit<128> note2;
}

/// Flags that the NIC itself knows (specs/nanotransport.md#3.2). They are in the first byte of
/// every transport header.
const bit<8> DATA_FLAG = 0x01;
const bit<8> PULL_FLAG = 0x08;
const bit<8> CHOP_FLAG = 0x10;  // a switch has cut the payload off

// ---- Reassembly (specs/nanotransport.md#5)

struct rx_msg_request_t {
    bit<1>  mark_received;  // 0: the payload is missing, remember nothing
    bit<32> src_ip;
    bit<16> src_context;
    bit<16> tx_msg_id;
    bit<16> msg_len;
    bit<8>  pkt_offset;
}

struct rx_msg_info_t {
    bit<1>  fail;         // no id or buffer is free, or the packet is impossible; nothing else holds
    bit<16> rx_msg_id;    // index of the message's cells in the registers below
    bit<1>  is_new_msg;   // its first packet
    bit<1>  is_new_pkt;   // not a duplicate
    bit<1>  is_last_pkt;  // the message is whole now
    bit<9>  ack_no;       // index of the first packet that is missing
    bit<1>  is_done;      // the message had been delivered before: rx_msg_id means nothing
}

/// Find the message of a packet, or begin one.
@latency(2)
extern rx_msg_info_t get_rx_msg_info(in rx_msg_request_t request);

// ---- Packetization (specs/nanotransport.md#6). An event that names a message that is over is
// ignored.

struct delivered_event_t {
    bit<16> tx_msg_id;
    bit<16> src_context;     // of the message: the destination of the control packet
    bit<64> delivered_pkts;  // bit i: packet i has arrived
}

@latency(1)
extern void delivered(in delivered_event_t event);

struct credit_event_t {
    bit<16> tx_msg_id;
    bit<16> src_context;
    bit<1>  rtx;             // packet rtx_pkt_offset is to be sent again
    bit<8>  rtx_pkt_offset;
    bit<1>  update_credit;   // raise the credit to new_credit and send all that waits below it
    bit<16> new_credit;
}

@latency(1)
extern void credit_to_btx(in credit_event_t event);

// ---- Paths

/// On egress: the entropy value of the packet, by which switches choose its path. A program that does not call this leaves
/// paths to the NIC.
@latency(1)
extern void set_path(in bit<16> entropy);

// ---- Flows: all messages to one host, for transports whose senders decide how fast they send

/// Flows of a NIC. The low bits of a host's address choose its flow; hosts in which they agree share one.
const bit<32> FLOWS = 256;

struct flow_event_t {
    bit<8>  flow;
    bit<16> window;  // packets of the flow that may be in flight; one may always
    bit<32> gap;     // from a packet to the next: in 1/256 cycle for each 64 bytes of its payload
}

/// A program that calls this needs no credit: what is submitted goes as the window and the gap of its flow
/// have it. Before the first call the window is rtt_pkts, the gap 0.
@latency(1)
extern void set_flow(in flow_event_t event);

/// A message of the program's own, as an application would submit it (specs/nanotransport.md#3.3):
/// the transport of `protocol` carries it. It waits for an id and a buffer, if none is free.
struct own_message_t {
    bit<8>   protocol;
    bit<32>  dst_ip;
    bit<16>  msg_len;  // bytes, 1 to 64: that many of the following, data0 first
    bit<128> data0;
    bit<128> data1;
    bit<128> data2;
    bit<128> data3;
}

@latency(1)
extern void send_message(in own_message_t message);

// ---- Packet generator (specs/nanotransport.md#8). Each takes the metadata of the packet to send.

/// Paced: a PULL_FLAG waits for the pacer's token, what else the flags say goes at once.
@latency(1)
extern void ctrl_pkt(in egress_metadata_t packet);

/// Unpaced, three FIFOs: ack before nack before grant.
@latency(1)
extern void ack_pkt(in egress_metadata_t packet);
@latency(1)
extern void nack_pkt(in egress_metadata_t packet);
@latency(1)
extern void grant_pkt(in egress_metadata_t packet);

// ---- State per message (specs/nanotransport.md#4): one cell for every message id of the NIC, zero
// at first. The low bits of the index choose the cell. One request per packet and port.

/// What is done to a cell. The answer is the value afterwards.
const bit<8> RAW_READ  = 0;
const bit<8> RAW_WRITE = 1;
const bit<8> RAW_ADD   = 2;  // modulo 2^width

/// One read-modify-write unit.
extern IfElseRaw<T> {
    IfElseRaw();
    /// Apply `op0` with `data0` if `predicate`, else `op1` with `data1`.
    @latency(2)
    T execute(in bit<16> index, in bool predicate, in bit<8> op0, in T data0,
              in bit<8> op1, in T data1);
}

/// Two of them on one memory: a program uses `execute` for the message of the packet and `second`,
/// later in the pipeline, for one that it has found out meanwhile.
extern DualPortRaw<T> {
    DualPortRaw();
    @latency(2)
    T execute(in bit<16> index, in bool predicate, in bit<8> op0, in T data0,
              in bit<8> op1, in T data1);
    @latency(2)
    T second(in bit<16> index, in bit<8> op, in T data);
}

/// The priority of each message that is being sent. Ingress writes it, egress reads it.
extern TxMsgPrio {
    TxMsgPrio();
    /// Set it; ignored if the message is over.
    @latency(1)
    void grant(in bit<16> tx_msg_id, in bit<16> src_context, in bit<8> prio);
    /// If `update`, set it first. Returns it.
    @latency(2)
    bit<8> read(in bit<16> tx_msg_id, in bit<1> update, in bit<8> prio);
}

// ---- Priority scheduler (specs/nanotransport.md#9)

struct srpt_request_t {
    bit<16> rx_msg_id;   // the message of the packet: its entry is set to what follows
    bit<1>  remove;      // 1: it has none from now on
    bit<16> rank;        // smaller is better
    bit<16> granted;
    bit<16> grantable;
}

struct srpt_response_t {
    bit<1>  success;     // a message may be granted
    bit<8>  prio_level;  // entries that are better than it
    bit<16> rx_msg_id;   // which message
    bit<16> grant_offset;  // its grantable, which is its granted from now on
}

/// Of the entries that have more grantable than granted, the one with the least rank, if fewer than
/// `overcommitment` entries of any kind are better. Sixteen entries are compared; others wait in a
/// FIFO for one of them to be removed.
extern SrptScheduler {
    SrptScheduler(bit<8> overcommitment);
    @latency(2)
    srpt_response_t schedule(in srpt_request_t request);
}

// ---- General state, shared with no block of the NIC

extern Register<T> {
    Register(bit<32> size);
    @latency(1)
    T read(in bit<32> index);
    @latency(1)
    void write(in bit<32> index, in T value);
}

extern Counter {
    Counter(bit<32> size);
    @latency(1)
    void count(in bit<32> index);
}

// ---- The pipelines

/// Reads the headers of a packet from the wire. What it rejects is dropped.
parser IngressParser<H, M>(packet_in packet, out H headers, inout M local);

/// Says what the packet means: events, and where its payload goes.
control Ingress<H, M>(inout H headers, inout M local, in nic_t nic,
                      inout ingress_metadata_t ingress);

/// Fills the headers of the packet that `egress` describes; all are invalid at first.
control Egress<H, M>(inout H headers, inout M local, in nic_t nic, in egress_metadata_t egress);

/// Writes them: 64 bytes.
control EgressDeparser<H>(packet_out packet, in H headers);

package NanoNic<IH, IM, EH, EM>(IngressParser<IH, IM> ingress_parser, Ingress<IH, IM> ingress,
                                Egress<EH, EM> egress, EgressDeparser<EH> egress_deparser);
