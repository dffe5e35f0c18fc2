//! The receiver's side of nano-NDP (specs/nanotransport.md#8,10): every packet of data is answered,
//! with a PULL for one more, and PULLs leave as far apart as full packets arrive.

use std::collections::VecDeque;

use units::Time;
use wire::nano::Kind;

use super::config::Config;
use super::control::{Control, Controls, Data};
use super::reassembly::{Info, Lookup};

/// PULLs that may wait; more are lost ("PACED queues 256", specs/nanotransport.md#12).
const PULLS_MAX: usize = 256;

/// How far each message has been pulled, and the pacer.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Of each message in reassembly: packets that its sender may send.
    pulled: Vec<u16>,
    pacer: Pacer,
}

impl Receiver {
    pub(super) fn new(config: &Config) -> Self {
        Self { pulled: vec![0; usize::from(config.rx_messages)], pacer: Pacer::default() }
    }

    /// Answer `data`, about which reassembly says `lookup`.
    pub(super) fn on_data(
        &mut self,
        at: Time,
        data: &Data,
        lookup: Lookup,
        config: &Config,
        out: &mut Controls,
    ) {
        let offset = u16::from(data.header.pkt_offset);
        match lookup {
            Lookup::Fail => {}
            Lookup::Done => {
                self.pacer.release_before(at, config, out);
                out.push(at, data.reply(Kind::Ack { pull: false }, offset, 0));
            }
            Lookup::Known(info) => {
                let credit = self.pull(info, data.chopped, config);
                let kind = if data.chopped {
                    Kind::Nack { pull: false }
                } else {
                    Kind::Ack { pull: false }
                };
                self.pacer.answer(at, data.reply(kind, offset, credit), config, out);
            }
        }
    }

    /// One packet more, if one has come whole; also if it had come before.
    fn pull(&mut self, info: Info, chopped: bool, config: &Config) -> u16 {
        let pulled = &mut self.pulled[info.rx];
        if info.is_new_message {
            *pulled = config.rtt_packets;
        }
        *pulled = pulled.wrapping_add(u16::from(!chopped));
        *pulled
    }

    /// PULLs whose time has come by `until` leave for the arbiter.
    pub(super) fn release(&mut self, until: Time, config: &Config, out: &mut Controls) {
        self.pacer.release(until, config, out);
    }

    /// When the next one will.
    pub(super) fn next_release(&self) -> Option<Time> {
        self.pacer.next()
    }
}

/// One token, there again so long after it was taken.
#[derive(Debug, Default)]
struct Pacer {
    token: Time,
    waiting: VecDeque<Control>,
}

impl Pacer {
    fn answer(&mut self, at: Time, control: Control, config: &Config, out: &mut Controls) {
        self.release_before(at, config, out);
        let mut control = control;
        if self.token <= at {
            self.token = at + config.pull_time();
            control.header.kind = with_pull(control.header.kind);
        } else if self.waiting.len() < PULLS_MAX {
            let mut pull = control;
            pull.header.kind = Kind::Credit;
            self.waiting.push_back(pull);
        }
        out.push(at, control);
    }

    /// What is released at this very instant comes after the packet that takes effect then.
    fn release_before(&mut self, at: Time, config: &Config, out: &mut Controls) {
        self.release(Time(at.0.saturating_sub(1)), config, out);
    }

    fn release(&mut self, until: Time, config: &Config, out: &mut Controls) {
        while self.token <= until
            && let Some(pull) = self.waiting.pop_front()
        {
            out.push(self.token, pull);
            self.token += config.pull_time();
        }
    }

    fn next(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.token)
    }
}

const fn with_pull(kind: Kind) -> Kind {
    match kind {
        Kind::Nack { .. } => Kind::Nack { pull: true },
        _ => Kind::Ack { pull: true },
    }
}
