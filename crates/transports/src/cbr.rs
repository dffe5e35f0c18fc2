//! Constant-bit-rate sources: unresponsive load for switches, as in figure 2 of the NDP paper
//! (SIGCOMM'17; specs/ndp.md#4). Each message is a source of its own that sends full packets at
//! one rate for ever, whatever becomes of them. Nothing is acknowledged or sent again; the receiver
//! places what arrives and ignores trimmed headers.
//!
//! When a source begins within its first packet interval is drawn once. From then on its packets
//! are due at exact multiples of the interval, so that sources of one rate keep their phases to
//! each other: what a switch does to one of them it does for ever, and that is what figure 2 shows.
//!
//! Such a message can have no end: its sender could not know whether it arrived. One that has is
//! refused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use endpoint::{
    Cx, Endpoint, FailReason, Flags, Framing, Msg, Packet, Purpose, Span, Stat, Submit, TimerId,
    Tx, TxPort, UNBOUNDED,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgId, MsgKey, Rate, Time};
use wire::cbr::Repr;
use wire::frame::UDP;

use crate::config::{self, ConfigError};

const PHASE: Purpose = Purpose::new("cbr phase");
const PATH: Purpose = Purpose::new("cbr path");

/// The parameters of all sources of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Payload of each packet, bytes; 1 or more, with `header` at most 65535. Figure 2: 9000, 1500.
    pub payload: u16,
    /// Bytes on the wire beside the payload. Figure 2: 64.
    pub header: u16,
    /// Bits on the wire per second, of each source; more than zero. Figure 2: that of the link.
    pub rate: Rate,
}

impl Config {
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let &Self { payload, header, rate } = self;
        config::positive("CBR", &[("payload", u64::from(payload)), ("rate", rate.0)])?;
        config::fits("CBR", payload, header)
    }

    /// How a message is cut into packets.
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing { payload: self.payload, overhead: self.header }
    }

    /// Bytes of a packet on the wire.
    fn wire_len(&self) -> u16 {
        self.payload.saturating_add(self.header)
    }

    /// The time from packet to packet.
    fn interval(&self) -> Dur {
        self.rate.serialise(u64::from(self.wire_len()))
    }
}

/// The constant-bit-rate sources and sinks of one host.
#[derive(Debug)]
pub struct Cbr {
    config: Config,
    interval: Dur,
    sources: Vec<Source>,
    /// When the next packet of each source is due, by its place in `sources`.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    /// What has arrived of each message.
    sinks: HashMap<MsgKey, Sink, FxBuildHasher>,
}

/// One message at its sender.
#[derive(Debug)]
struct Source {
    id: MsgId,
    dst: HostId,
    path: u32,
    /// The next packet.
    seq: u64,
    cancelled: bool,
}

/// Which of the latest packets of a message have come, so that none is placed twice: the window of
/// RFC 4303, section 3.4.3, with its default size. What is older than that is ignored.
#[derive(Debug, Default)]
struct Sink {
    /// One above the highest sequence number seen.
    end: u64,
    /// Bit n: whether packet `end - 1 - n` has come.
    seen: u64,
}

impl Sink {
    /// Whether packet `seq` is new.
    fn take(&mut self, seq: u64) -> bool {
        if seq >= self.end {
            let ahead = seq - self.end + 1;
            self.seen = if ahead < 64 { self.seen << ahead } else { 0 };
            self.end = seq + 1;
        }
        let age = self.end - 1 - seq;
        let new = age < 64 && self.seen >> age & 1 == 0;
        if new {
            self.seen |= 1 << age;
        }
        new
    }
}

impl Cbr {
    /// A host without sources.
    ///
    /// # Errors
    /// If `config` is impossible.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let (sources, due, sinks) = (Vec::new(), BinaryHeap::new(), HashMap::default());
        Ok(Self { config, interval: config.interval(), sources, due, sinks })
    }

    fn fill(&self, me: HostId, source: &Source, slot: &mut Packet) {
        let payload = u32::from(self.config.payload);
        slot.src = me;
        slot.dst = source.dst;
        slot.path = source.path;
        slot.proto = UDP;
        slot.wire_len = self.config.wire_len();
        let offset = source.seq * u64::from(payload);
        slot.span = Span { msg: source.id, offset, len: payload };
        let header = Repr { message: source.id.0, seq: source.seq };
        slot.put_header(&header.to_bytes());
    }
}

impl Endpoint for Cbr {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        if msg.len != UNBOUNDED {
            cx.fx.failed(MsgKey { src: cx.me, id: msg.id }, FailReason::Refused);
            return Submit::Taken;
        }
        let draw = cx.draw.part(msg.id.0);
        let phase = Dur(draw.below(PHASE, 0, self.interval.0));
        let path = draw.bits(PATH, 0) as u32;
        self.due.push(Reverse((cx.now + phase, self.sources.len())));
        self.sources.push(Source { id: msg.id, dst: msg.dst, path, seq: 0, cancelled: false });
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let header = Repr::parse(pkt.header());
        let (Ok(header), UDP) = (header, pkt.proto) else {
            cx.fx.count(Stat::Rejected);
            return;
        };
        if !pkt.carries_payload() || pkt.flags.has(Flags::BOUNCED) {
            return;
        }
        let key = MsgKey { src: pkt.src, id: MsgId(header.message) };
        let offset = header.seq.wrapping_mul(u64::from(self.config.payload));
        let whole = u32::from(self.config.payload);
        // On a real network a peer may say anything.
        if (Span { msg: key.id, offset, len: whole }) != pkt.span || header.seq == u64::MAX {
            cx.fx.count(Stat::Rejected);
        } else if !self.sinks.entry(key).or_default().take(header.seq) {
            cx.fx.count(Stat::Duplicate);
        } else if cx.room >= u64::from(whole) {
            cx.fx.place(key, offset, whole);
        }
    }

    fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        if port.open & 1 == 0 {
            return Tx::Idle;
        }
        while let Some(&Reverse((due, at))) = self.due.peek() {
            if self.sources[at].cancelled {
                self.due.pop();
                continue;
            }
            if due > cx.now {
                return Tx::NotBefore(due);
            }
            self.due.pop();
            self.fill(cx.me, &self.sources[at], slot);
            self.sources[at].seq += 1;
            // Where the link is too slow for its sources, packets are never built rather than
            // queued.
            let missed = cx.now.since(due).0 / self.interval.0;
            self.due.push(Reverse((due + self.interval * (missed + 1), at)));
            return Tx::Sent;
        }
        Tx::Idle
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        let source = self.sources.iter_mut().find(|source| source.id == id && !source.cancelled);
        if let Some(source) = source {
            source.cancelled = true;
            cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use endpoint::Endpoint;
    use testkit::fault::{self, Mix};
    use testkit::{Bottleneck, Link, Net};

    const TEN_GIG: Rate = Rate(10_000_000_000);
    const CONFIG: Config = Config { payload: 9000, header: 64, rate: TEN_GIG };
    const LINK: Link =
        Link { rate: TEN_GIG, delay: Dur::from_us(2), mtu: 9064, paths: 4, hashed: true };
    const TO: HostId = HostId(0);

    fn net(config: Config, hosts: usize) -> Net {
        let make = |_| Box::new(Cbr::new(config).unwrap()) as Box<dyn Endpoint>;
        Net::new(1, LINK, (0..hosts).map(make).collect())
    }

    #[test]
    fn packets_leave_at_exact_multiples_of_the_interval() {
        let slow = Config { rate: Rate(3_000_000_000), ..CONFIG };
        let mut net = net(slow, 2);
        net.submit(HostId(1), TO, UNBOUNDED);
        net.run_until(Time::ZERO + Dur::from_ms(1));
        let interval = slow.rate.serialise(9064);
        let first = net.log()[0].at;
        assert!(first.since(Time::ZERO) < interval, "the phase");
        for (n, sent) in net.log().iter().enumerate() {
            assert_eq!(sent.at, first + interval * n as u64);
        }
        assert!(net.log().len() as u64 >= Dur::from_ms(1).0 / interval.0);
    }

    #[test]
    fn at_the_rate_of_its_link_a_source_never_pauses_and_phases_differ() {
        let mut net = net(CONFIG, 4);
        for host in 1..4 {
            net.submit(HostId(host), TO, UNBOUNDED);
        }
        net.run_until(Time::ZERO + Dur::from_ms(1));
        let first = |host| net.log().iter().find(|s| s.pkt.src == HostId(host)).unwrap().at;
        assert!(first(1) != first(2) && first(2) != first(3) && first(1) != first(3));
        assert!(net.log().len() >= 3 * 137, "137 packets in a millisecond");
    }

    /// Sources that want twice what their link carries share it, and lose the rest for good.
    #[test]
    fn a_link_that_is_too_slow_is_shared() {
        let mut net = net(CONFIG, 3);
        net.submit(HostId(1), TO, UNBOUNDED);
        net.submit(HostId(1), HostId(2), UNBOUNDED);
        net.run_until(Time::ZERO + Dur::from_ms(1));
        let to = |dst| net.log().iter().filter(|s| s.pkt.dst == dst).count();
        assert!(to(TO).abs_diff(to(HostId(2))) <= 1, "{} {}", to(TO), to(HostId(2)));
        assert!(net.log().len() >= 137);
    }

    /// The test kit's ledger asserts that nothing is placed twice.
    #[test]
    fn nothing_that_the_network_does_stops_a_source() {
        let mut net = net(CONFIG, 3);
        let draw = endpoint::Draw::new(1, Purpose::new("test"), 0);
        let (drop, duplicate, delay, trim, bounce) = (0.1, 0.1, 0.1, 0.1, 0.1);
        let late_max = Dur::from_us(400);
        net.fault(fault::random(draw, Mix { drop, duplicate, delay, trim, bounce, late_max }));
        net.set_bottleneck(TO, Bottleneck { rate: TEN_GIG, packets: 8, trim: true });
        let keys = [1, 2].map(|host| net.submit(HostId(host), TO, UNBOUNDED));
        net.run_until(Time::ZERO + Dur::from_ms(10));
        assert!(net.log().len() >= 2 * 1378, "as if nothing had happened");
        assert!(net.ledger().bytes_placed() > 500 * 9000);
        net.cancel(keys[0]);
        net.cancel(keys[1]);
        net.run_until_idle(Dur::from_ms(1));
    }

    #[test]
    fn a_message_with_an_end_is_refused() {
        let mut net = net(CONFIG, 2);
        let key = net.submit(HostId(1), TO, 9000);
        net.run_until_idle(Dur::from_ms(1));
        assert_eq!(net.record(key).failed.map(|(_, why)| why), Some(FailReason::Refused));
    }

    #[test]
    fn a_sink_takes_each_packet_once_and_nothing_older_than_its_window() {
        let mut sink = Sink::default();
        assert!(sink.take(3) && sink.take(0) && !sink.take(3) && !sink.take(0));
        assert!(sink.take(64) && sink.take(1) && !sink.take(0), "0 is too old");
        assert!(sink.take(1000) && !sink.take(64) && sink.take(999) && sink.take(937));
        assert!(!sink.take(936) && !sink.take(937));
    }
}
