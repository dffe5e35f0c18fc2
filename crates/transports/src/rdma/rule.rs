//! Rate rules: how fast a queue pair sends, and how much it may have in flight, by what its
//! acknowledgements say. A rule knows rates, bytes and times, no packets. Everything else
//! (segments, pacing, acknowledgements, recovery, round-trip times) is the same for all of them.
//!
//! To add a rule: a file here with its `Parameters` and its [`Rule`], its `mod`, its line in the
//! table below, and its keys in `crates/scenario/src/transport/rdma/rules.rs`. `rule/timely.rs` is
//! an example.

pub mod dcqcn;
pub mod fast;
pub mod hpcc;
mod patched;
pub mod swift;
pub mod timely;
mod unlimited;

use units::{Dur, Rate, Time};
use wire::int::Hop;

use crate::config::ConfigError;
use crate::rules::rules;

rules! { pub,
    /// Line rate, always: the fabric's flow control is all there is.
    Unlimited => unlimited::Unlimited,
    /// TIMELY (Mittal and others, SIGCOMM 2015), also as patched by Zhu and others (CoNEXT 2016).
    Timely(params: timely::Params) => timely::Timely,
    /// FAST's equation for a rate.
    Fast(params: fast::Params) => fast::Fast,
    /// DCQCN (Zhu and others, SIGCOMM 2015).
    Dcqcn(params: dcqcn::Params) => dcqcn::Dcqcn,
    /// HPCC (Li and others, SIGCOMM 2019).
    Hpcc(params: hpcc::Params) => hpcc::Hpcc,
    /// Swift (Kumar and others, SIGCOMM 2020).
    Swift(params: swift::Params) => swift::Swift,
}

/// What is asked of the parameters of any rule.
pub(super) trait Parameters {
    /// An error if one of them is out of its range.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl Parameters for () {}

/// What a queue pair knows of its way, when it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Of the host's interface.
    pub line_rate: Rate,
    /// One full packet there and one of 64 bytes back, nothing else on the way.
    pub base_rtt: Dur,
    /// Links on the way, at least 1.
    pub hops: u32,
    /// Bytes of a full packet on the wire.
    pub packet: u32,
    /// Queue pairs of this host that have something in flight, this one not counted: the n of an
    /// initial rate of C / (n + 1).
    pub others: u32,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// When it came.
    pub now: Time,
    /// Everything below this packet number is acknowledged: never wraps, counts packets of the
    /// queue pair from 0.
    pub acked: u64,
    /// The number of the next packet to send (`snd_nxt`); where a sender goes back, that is what is
    /// acknowledged next.
    pub next: u64,
    /// Bytes on the wire that it acknowledges and no one before it did, headers included; out of
    /// order too. Zero for a duplicate.
    pub bytes: u64,
    /// The round-trip time that it measures, the serialisation of the segment at the sender
    /// removed; `None` if what it answers was sent more than once, or is not known.
    pub rtt: Option<Dur>,
    /// Between the arrival of what it answers at the receiver's interface and its own departure
    /// there, as the receiver says. A part of `rtt`.
    pub remote: Dur,
    /// Between its own arrival at this host's interface and `now`, if `rtt` ends with the arrival.
    /// Not a part of `rtt`.
    pub local: Dur,
    /// It echoes a congestion mark.
    pub ce: bool,
    /// What the switches wrote on the way of what it answers, the first first. Empty without
    /// telemetry.
    pub hops: &'a [Hop],
    /// What was handed to the interface since the last acknowledgement, spread over the pacing
    /// gaps: bits on the wire per second. Less than the rate where the application has nothing to
    /// send, or the fabric pauses.
    pub achieved: f64,
    /// A loss is being repaired.
    pub recovering: bool,
}

/// A rule. Bytes and rates count what is on the wire, headers included.
pub trait Rule {
    /// The queue pair begins; before any other call.
    fn start(&mut self, path: &PathView, now: Time);

    /// An acknowledgement has come, of new data or not.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// A congestion notification packet (RoCEv2 CNP) has come.
    fn on_cnp(&mut self, _now: Time) {}

    /// A packet of so many bytes has been handed to the interface.
    fn on_sent(&mut self, _bytes: u64, _now: Time) {}

    /// The receiver misses a packet: it said so, or its acknowledgements show it. Once for each
    /// recovery.
    fn on_nack(&mut self, _now: Time) {}

    /// The retransmission timer has expired.
    fn on_timeout(&mut self, _now: Time) {}

    /// When [`Rule::on_timer`] is wanted; [`Time::NEVER`]: not. Asked after every other call.
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// The deadline has come.
    fn on_timer(&mut self, _now: Time) {}

    /// Bits on the wire per second, above zero.
    fn rate(&self) -> Rate;

    /// Bytes that may be in flight. A packet may leave if what is in flight and the packet are
    /// together not more than this, or if nothing is in flight: below one packet, the rate alone
    /// says when. [`u64::MAX`]: no limit.
    fn window(&self) -> u64 {
        u64::MAX
    }
}

/// `bits` per second as a rate of at least one bit per second.
fn rate(bits: f64) -> Rate {
    Rate((bits as u64).max(1))
}

/// What rules' tests share.
#[cfg(test)]
mod bench {
    use super::*;

    /// A path of 10 Gb/s without anybody else.
    pub(super) const PATH: PathView = PathView {
        line_rate: Rate(10_000_000_000),
        base_rtt: Dur::from_us(20),
        hops: 2,
        packet: 1082,
        others: 0,
    };

    /// The acknowledgement of a packet that measures `rtt` at `now`, sent at the full rate of
    /// `rule`.
    pub(super) fn ack(rule: &dyn Rule, now: Time, rtt: Dur) -> Ack<'static> {
        Ack {
            now,
            acked: 1,
            next: 2,
            bytes: 1082,
            rtt: Some(rtt),
            remote: Dur::ZERO,
            local: Dur::ZERO,
            ce: false,
            hops: &[],
            achieved: rule.rate().0 as f64,
            recovering: false,
        }
    }
}
