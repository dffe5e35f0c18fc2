//! A slow queue before a host of a [`Net`](crate::Net), so that congestion has somewhere to happen.

use std::collections::VecDeque;

use endpoint::Packet;
use units::{Rate, Time};

use crate::fault;

/// A slow queue before a host.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    /// How fast packets leave it.
    pub rate: Rate,
    /// How many packets may wait, the one in transmission not counted.
    pub packets: usize,
    /// Packets with payload that find it full are trimmed instead of dropped; control and trimmed
    /// packets go first, and as many of them again may wait.
    pub trim: bool,
}

pub(crate) struct Queue {
    config: Bottleneck,
    high: VecDeque<Packet>,
    low: VecDeque<Packet>,
    serving: Option<Packet>,
    done: Time,
}

impl Queue {
    pub(crate) fn new(config: Bottleneck) -> Self {
        let (high, low) = (VecDeque::new(), VecDeque::new());
        Self { config, high, low, serving: None, done: Time::NEVER }
    }

    /// When the packet in transmission has left; `NEVER` if there is none.
    pub(crate) fn done(&self) -> Time {
        self.done
    }

    /// Take in a packet; false if it is dropped.
    pub(crate) fn offer(&mut self, now: Time, mut pkt: Packet) -> bool {
        let Bottleneck { packets, trim, .. } = self.config;
        if trim && pkt.carries_payload() && self.low.len() >= packets && self.serving.is_some() {
            fault::trim(&mut pkt);
        }
        let first = trim && !pkt.carries_payload();
        let queue = if first { &mut self.high } else { &mut self.low };
        if queue.len() >= packets && self.serving.is_some() {
            return false;
        }
        queue.push_back(pkt);
        if self.serving.is_none() {
            self.serve(now);
        }
        true
    }

    /// The packet whose transmission ends now.
    pub(crate) fn take(&mut self, now: Time) -> Option<Packet> {
        let pkt = self.serving.take();
        self.serve(now);
        pkt
    }

    fn serve(&mut self, now: Time) {
        self.serving = self.high.pop_front().or_else(|| self.low.pop_front());
        self.done = self
            .serving
            .map_or(Time::NEVER, |pkt| now + self.config.rate.serialise(u64::from(pkt.wire_len)));
    }
}
