// TCP, DCTCP and MPTCP of csg-htsim over its own fat tree, with flows from a connection matrix: the
// peer's programs for these transports read none. Only wiring and output are here; every packet,
// window and queue is the peer's library. repeat.py builds and runs it.
//
// tcp_cm MATRIX tcp|dctcp|dctcp-marked|mptcp SEED RATE_MBPS PACKET QUEUE
//        END_US FROM_US SUBFLOWS JITTER_NS
//
// A flow of `size` bytes of payload has as many packets as it takes with 40 bytes of header in each,
// and is over when the sender has the acknowledgement of the last one. `size 0` never ends; what is
// received of it from FROM_US to END_US is its goodput.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "clock.h"
#include "connection_matrix.h"
#include "dctcp.h"
#include "ecn.h"
#include "eventlist.h"
#include "fat_tree_topology.h"
#include "firstfit.h"
#include "mtcp.h"
#include "network.h"
#include "tcp.h"

EventList eventlist;
uint32_t RTT = 1;

namespace {

const int HEADER = 40;

// DCTCP as RFC 8257 has it, over the peer's TcpSrc: the window is cut only after a window of data in
// which something was marked. The peer's DCTCPSrc cuts after each one while its estimate is not 0.
struct MarkedOnly : TcpSrc {
    MarkedOnly(TcpLogger* l, TrafficLogger* t, EventList& e) : TcpSrc(l, t, e), window(2 * _mss) {}
    void receivePacket(Packet& ack) override {
        const bool echo = ack.flags() & ECN_ECHO;
        if (echo) _ssthresh = std::min(_ssthresh, _cwnd);
        answers++, echoes += echo;
        if (uint64_t(answers) * _mss >= window) end_window();
        TcpSrc::receivePacket(ack);
    }
    void deflate_window() override {
        TcpSrc::deflate_window();
        begin_window();
    }
    void end_window() {
        alpha += (double(echoes) / answers - alpha) / 16;
        if (echoes > 0)
            _ssthresh = _cwnd = std::max<uint32_t>(_mss, _cwnd * (1 - alpha / 2));
        begin_window();
    }
    void begin_window() {
        answers = echoes = 0;
        window = _cwnd;
    }
    uint32_t answers = 0, echoes = 0, window;
    double alpha = 0;
};

struct Sender {
    virtual ~Sender() = default;
    // Distinct bytes that the receiver has.
    virtual uint64_t received() const = 0;
    simtime_picosec finished = 0;
};

// Notes when the last packet is acknowledged. `Base` is the peer's sender.
template <class Base>
struct Timed : Base, Sender {
    Timed() : Base(NULL, NULL, ::eventlist) {}
    void limit(uint64_t packets) {
        // One byte less than the packets hold: the peer then sends these and no more.
        this->_flow_size = packets * this->_mss - 2;
    }
    void receivePacket(Packet& packet) override {
        Base::receivePacket(packet);
        if (finished == 0 && this->_last_acked >= this->_flow_size) finished = ::eventlist.now();
    }
    uint64_t received() const override {
        return this->_sink->_cumulative_ack + this->_sink->_received.size() * this->_mss;
    }
};

// Delays each packet by a draw of up to `MOST`, less than an acknowledgement takes on the wire, so
// nothing is overtaken. Without it packets meet at one instant all the time, and the order of the
// peer's event list says which one is lost.
struct Jitter : EventSource, PacketSink {
    static simtime_picosec MOST;
    Jitter() : EventSource(::eventlist, "jitter") {}
    void receivePacket(Packet& packet) override {
        waiting.push_back(&packet);
        ::eventlist.sourceIsPendingRel(*this, MOST == 0 ? 0 : random() % MOST);
    }
    void doNextEvent() override {
        Packet* packet = waiting.front();
        waiting.pop_front();
        packet->sendOn();
    }
    const std::string& nodename() override { return EventSource::str(); }
    std::deque<Packet*> waiting;
};
simtime_picosec Jitter::MOST = 0;

// One of the paths, with jitter behind the host's link.
Route* one_of(std::vector<const Route*>* paths, PacketSink* end) {
    const Route& path = *paths->at(random() % paths->size());
    Route* route = new Route();
    for (size_t i = 0; i < path.size(); i++) {
        route->push_back(path.at(i));
        if (i == 1 && Jitter::MOST > 0) route->push_back(new Jitter());
    }
    route->push_back(end);
    return route;
}

// What has been received at one instant.
struct Snapshot : EventSource {
    Snapshot(const std::vector<Sender*>& senders, simtime_picosec at)
        : EventSource(::eventlist, "snapshot"), senders(senders) {
        ::eventlist.sourceIsPending(*this, at);
    }
    void doNextEvent() override {
        for (Sender* sender : senders) bytes.push_back(sender->received());
    }
    const std::vector<Sender*>& senders;
    std::vector<uint64_t> bytes;
};

template <class Base>
Sender* start(FatTreeTopology& top, const connection& flow, MultipathTcpSrc* joint, int payload,
              TcpRtxTimerScanner& timers) {
    auto* sender = new Timed<Base>();
    auto* sink = new TcpSink();
    if (flow.size > 0) sender->limit((flow.size + payload - 1) / payload);
    timers.registerTcp(*sender);
    if (joint) joint->addSubflow(sender);
    Route* out = one_of(top.get_bidir_paths(flow.src, flow.dst, false), sink);
    Route* back = one_of(top.get_bidir_paths(flow.dst, flow.src, false), sender);
    sender->connect(*out, *back, *sink, flow.start);
    return sender;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 11) return fprintf(stderr, "see the head of tcp_cm.cpp\n"), 2;
    const std::string kind = argv[2];
    srand(atoi(argv[3]));
    srandom(atoi(argv[3]));
    const int packet = atoi(argv[5]), payload = packet - HEADER;
    const simtime_picosec end = timeFromUs(atof(argv[7])), from = timeFromUs(atof(argv[8]));
    Jitter::MOST = timeFromNs(atof(argv[10]));
    Packet::set_packet_size(packet);
    eventlist.setEndtime(end + timeFromUs(1.0));

    ConnectionMatrix matrix(128);
    if (!matrix.load(argv[1])) return 2;
    FatTreeTopology::set_tiers(3);
    FatTreeTopology top(matrix.N, speedFromMbps(atof(argv[4])), memFromPkt(atoi(argv[6])), NULL,
                        &eventlist, NULL, ECN, timeFromUs(1.0), 0, FAIR_PRIO);
    TcpRtxTimerScanner timers(timeFromMs(10), eventlist);

    std::vector<Sender*> senders;
    std::vector<connection*>& flows = *matrix.getAllConnections();
    const int subflows = kind == "mptcp" ? atoi(argv[9]) : 1;
    for (connection* flow : flows) {
        MultipathTcpSrc* joint =
            kind == "mptcp" ? new MultipathTcpSrc(COUPLED_INC, eventlist, NULL) : NULL;
        for (int i = 0; i < subflows; i++) {
            auto* begin = kind == "dctcp"          ? start<DCTCPSrc>
                          : kind == "dctcp-marked" ? start<MarkedOnly>
                                                   : start<TcpSrc>;
            senders.push_back(begin(top, *flow, joint, payload, timers));
        }
    }
    Snapshot before(senders, from), after(senders, end);
    while (eventlist.doNextEvent()) {
    }

    for (size_t i = 0; i < flows.size(); i++) {
        uint64_t bytes = 0;
        for (int j = 0; j < subflows; j++)
            bytes += after.bytes[i * subflows + j] - before.bytes[i * subflows + j];
        const simtime_picosec finished = senders[i * subflows]->finished;
        printf("RESULT %d %d %.6f %.6f\n", flows[i]->src, flows[i]->dst,
               finished > 0 ? timeAsUs(finished - flows[i]->start) : 0.0,
               bytes * 8e-3 / timeAsUs(end - from) * payload / packet);
    }
    // The peer's objects are never freed.
    fflush(stdout);
    _Exit(0);
}
