//! The sending side of one connection: messages in data sequence numbers, cut into segments as TCP
//! does, which its subflows carry (specs/mptcp.md#1,2). Which of them is next
//! is in `scheduler.rs`, when there are which in `phases.rs`.

use std::collections::VecDeque;

use endpoint::{Draw, Effects, FlowState, Purpose};
use units::{Dur, HostId, MsgId, Time};

use super::config::{Config, Reinject};
use super::coupling;
use super::mappings::{Chunk, Mappings};
use super::phases::Phase;
use crate::deadlines::Timer;
use crate::tcp::rule::{RuleConfig, Standing};
use crate::tcp::sender::{Identity, Incoming, Sender};
use crate::tcp::stream::{Segment, Source, Stream};

/// The timeout of the first SYN of a subflow; it doubles (specs/mptcp.md#1).
const SYN_TIMEOUT: Dur = Dur::from_ms(200);
/// So often the SYN of a join is sent again (the same).
const SYN_RETRIES: u32 = 3;

/// How a packet of a scattering connection gets its path.
const SCATTER: Purpose = Purpose::new("mptcp scatter");

/// How far a subflow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its SYN is not to be sent before this.
    Waiting(Time),
    /// It is being opened, or open.
    Live,
    /// It has failed.
    Dead,
}

/// A subflow of a connection, at the sender.
#[derive(Clone, Debug)]
pub(super) struct Subflow {
    pub(super) sender: Sender<Mappings>,
    pub(super) state: State,
    /// When its window was last halved because it held up the connection.
    pub(super) penalised: Option<Time>,
}

impl Subflow {
    pub(super) fn new(sender: Sender<Mappings>, state: State) -> Self {
        Self { sender, state, penalised: None }
    }

    /// Its smoothed round-trip time, once there is one. Linux keeps it in microseconds, so that the
    /// ticks of timers do not matter.
    pub(super) fn srtt(&self) -> Option<Dur> {
        self.sender.rto().exact_srtt()
    }

    /// Whether data may be sent over it.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Live && self.sender.is_open()
    }
}

/// Data that one subflow has outstanding and another may send.
#[derive(Clone, Copy, Debug)]
struct Held {
    dsn: u64,
    by: usize,
}

/// What comes next, whichever subflow carries it: the new data, if there is any, and the message in
/// front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    chunk: Option<Chunk>,
    front: Option<MsgId>,
}

/// The sending side of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// Of the first subflow; the others' differ in `conn` and `path`.
    pub(super) id: Identity,
    /// Unique among the connections from this host to its peer.
    pub(super) token: u32,
    stream: Stream,
    /// The message submitted last.
    latest: Option<MsgId>,
    /// The lowest data sequence number not acknowledged.
    pub(super) una: u64,
    /// The next one to be sent for the first time.
    pub(super) next: u64,
    /// The first one that the receiver's window does not cover. It never moves back.
    pub(super) edge: u64,
    pub(super) phase: Phase,
    pub(super) subflows: Vec<Subflow>,
    /// The subflow after that which sent last.
    pub(super) turn: usize,
    /// What is to be sent over other subflows, too, in the order in which timers expired.
    reinject: VecDeque<Held>,
    /// Packets scattered so far.
    scattered: u64,
    /// A loss was inferred from duplicate acknowledgements in the first phase.
    pub(super) lost: bool,
    /// Room for what a coupled rule is given.
    pub(super) standings: Vec<Standing>,
    /// The connection stands in the endpoint's round.
    pub(super) in_round: bool,
}

impl Connection {
    /// A connection without messages or subflows.
    pub(super) fn new(config: &Config, id: Identity, token: u32) -> Self {
        Self {
            id,
            token,
            stream: Stream::default(),
            latest: None,
            una: 0,
            next: 0,
            edge: config.receive_buffer,
            phase: Phase::first(config),
            subflows: Vec::new(),
            turn: 0,
            reinject: VecDeque::new(),
            scattered: 0,
            lost: false,
            standings: Vec::new(),
            in_round: false,
        }
    }

    /// Begin anew as another connection, keeping some memory and the place in the round.
    pub(super) fn reopen(&mut self, config: &Config, id: Identity, token: u32) {
        let mut stream = std::mem::take(&mut self.stream);
        stream.clear();
        let mut subflows = std::mem::take(&mut self.subflows);
        subflows.clear();
        let mut reinject = std::mem::take(&mut self.reinject);
        reinject.clear();
        let standings = std::mem::take(&mut self.standings);
        let in_round = self.in_round;
        let new = Self::new(config, id, token);
        *self = Self { stream, subflows, reinject, standings, in_round, ..new };
    }

    /// Take on a message of `len` bytes.
    pub(super) fn submit(&mut self, id: MsgId, len: u64) {
        // None of the rules of subflows heeds deadlines.
        self.stream.submit(id, len, Time::NEVER, self.una);
        self.latest = Some(id);
    }

    /// Give message `id` up; false if it is not here or has already been given up.
    pub(super) fn cancel(&mut self, id: MsgId) -> bool {
        self.stream.cancel(id, self.next)
    }

    /// What its subflows together may send of message `id`, if that is here; for traces.
    pub(super) fn state(&self, config: &Config, id: MsgId) -> Option<FlowState> {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a.unwrap_or(0) + b.unwrap_or(0));
        let open = self.subflows.iter().filter(|subflow| subflow.is_open());
        let states = open.map(|subflow| subflow.sender.state(&config.tcp));
        self.stream.holds(id).then(|| {
            states.fold(FlowState::default(), |all, one| FlowState {
                window: sum(all.window, one.window),
                in_flight: sum(all.in_flight, one.in_flight),
                ..all
            })
        })
    }

    /// Fail every message.
    pub(super) fn give_up(&mut self, me: HostId, fx: &mut Effects) {
        self.stream.give_up(me, fx);
    }

    /// Messages whose end has not been reported to the application.
    pub(super) fn open_messages(&self) -> u32 {
        self.stream.open()
    }

    /// Whether nothing is left to do: every message has ended, and none can follow or none was
    /// begun.
    pub(super) fn is_over(&self) -> bool {
        self.stream.is_done() && (self.id.channel == 0 || !self.is_open())
    }

    /// Whether any subflow is open.
    pub(super) fn is_open(&self) -> bool {
        self.subflows.iter().any(Subflow::is_open)
    }

    /// Whether there is a subflow that is open or may be some time.
    pub(super) fn is_alive(&self) -> bool {
        self.subflows.iter().any(|subflow| subflow.state != State::Dead)
    }

    /// The data at data sequence number `dsn`.
    pub(super) fn chunk(&self, dsn: u64) -> Option<Chunk> {
        let Segment { len, msg, offset, control, .. } = self.stream.segment_at(dsn, &self.id)?;
        Some(Chunk { dsn, len, msg, offset, control })
    }

    /// What comes next for every subflow.
    pub(super) fn next_data(&self) -> Next {
        Next { chunk: self.chunk(self.next), front: self.stream.in_front().or(self.latest) }
    }

    /// What subflow `i` would carry next, beside what it has outstanding, when `fresh` is the new
    /// data.
    fn chunk_for(&self, config: &Config, i: usize, fresh: Option<Chunk>) -> Option<Chunk> {
        if !self.phase.maps_to(i) {
            return None;
        }
        if let Some(held) = self.reinject.iter().find(|held| held.by != i && self.is_missing(held))
        {
            return self.chunk(held.dsn);
        }
        let chunk = fresh?;
        if self.is_blocked(config, &chunk) {
            let oldest = || self.chunk(self.una).filter(|_| self.may_rescue(i));
            return config.opportunistic.then(oldest).flatten();
        }
        Some(chunk)
    }

    /// Whether neither its subflow nor the connection has acknowledged what `held` is about.
    fn is_missing(&self, held: &Held) -> bool {
        held.dsn >= self.una && self.subflows[held.by].sender.source().holds(held.dsn)
    }

    /// The path of the next packet of subflow `i`, and whether it is one of its own; `draw`: this
    /// host's.
    pub(super) fn next_path(&mut self, draw: Draw, i: usize) -> (u32, bool) {
        if !self.phase.scatters(i) {
            return (self.subflows[i].sender.id.path, false);
        }
        let mine = draw.part(u64::from(self.id.dst.0)).part(u64::from(self.token));
        self.scattered += 1;
        (mine.bits(SCATTER, self.scattered) as u32, true)
    }

    /// Let subflow `i` know what it may carry.
    fn offer(&mut self, config: &Config, i: usize, next: Next) {
        let chunk = self.chunk_for(config, i, next.chunk);
        self.subflows[i].sender.source_mut().offer(chunk, next.front);
    }

    /// Whether anything may be sent now.
    pub(super) fn can_send(&mut self, config: &Config) -> bool {
        let next = self.next_data();
        (0..self.subflows.len()).any(|i| self.sendable(config, i, next).is_some())
    }

    /// What subflow `i` may send now; `next`: [`Self::next_data`].
    pub(super) fn sendable(&mut self, config: &Config, i: usize, next: Next) -> Option<Segment> {
        if self.subflows[i].state != State::Live {
            return None;
        }
        if self.subflows[i].sender.is_full(&config.tcp) {
            debug_assert!(self.offered(config, i, next).is_none(), "a full subflow may send");
            return None;
        }
        self.offered(config, i, next)
    }

    /// What subflow `i` may send of what it is offered.
    fn offered(&mut self, config: &Config, i: usize, next: Next) -> Option<Segment> {
        self.offer(config, i, next);
        self.subflows[i].sender.peek(&config.tcp)
    }

    /// Take the next segment of subflow `i`, which is [`Self::sendable`] as it was asked last, with
    /// its data sequence number; `again`: it was sent before, wherever.
    pub(super) fn take(&mut self, config: &Config, now: Time, i: usize) -> Option<(Segment, u64)> {
        let sender = &mut self.subflows[i].sender;
        let mut segment = sender.next_segment(&config.tcp, now)?;
        self.turn = (i + 1) % self.subflows.len();
        let sender = &mut self.subflows[i].sender;
        if !sender.is_open() {
            return Some((segment, 0)); // a SYN
        }
        if sender.source().is_new(&segment)
            && let Some(chunk) = sender.source_mut().map()
        {
            segment.again = chunk.dsn < self.next;
            if chunk.dsn == self.next {
                self.next = chunk.end();
            } else {
                self.reinject.retain(|held| held.dsn != chunk.dsn || held.by == i);
            }
        }
        let dsn = self.subflows[i].sender.source().dsn(segment.seq)?;
        Some((segment, dsn))
    }

    /// An acknowledgement of subflow `i`, and with it of all data before `data_ack`; `window`:
    /// bytes that the receiver has room for beyond that.
    pub(super) fn on_ack(
        &mut self,
        config: &Config,
        now: Time,
        i: usize,
        (incoming, data_ack, window): (&Incoming<'_>, u64, u64),
        fx: &mut Effects,
    ) -> Timer {
        self.offer(config, i, self.next_data());
        self.hear_of_group(config, i);
        let timer = self.subflows[i].sender.on_ack(&config.tcp, now, incoming, fx);
        let data_ack = if incoming.complete { self.next } else { data_ack };
        if (self.una..=self.next).contains(&data_ack) {
            self.una = data_ack;
            self.edge = self.edge.max(data_ack.saturating_add(window));
            self.stream.acknowledged(data_ack, fx);
        }
        while let Some(held) = self.reinject.front()
            && !self.is_missing(held)
        {
            self.reinject.pop_front();
        }
        if config.opportunistic {
            self.penalise(config, now);
        }
        timer
    }

    /// Tell the rule of subflow `i` where the connection stands, if it wants to know.
    fn hear_of_group(&mut self, config: &Config, i: usize) {
        if config.tcp.rule == RuleConfig::NewReno || !self.phase.is_coupled(i) {
            return;
        }
        self.standings.clear();
        let mut me = None;
        for (j, subflow) in self.subflows.iter().enumerate() {
            if subflow.is_open() && self.phase.is_coupled(j) {
                me = if i == j { Some(self.standings.len()) } else { me };
                self.standings.push(subflow.sender.standing());
            }
        }
        if let Some(me) = me {
            self.subflows[i].sender.on_group(&coupling::group(
                &config.tcp.rule,
                &self.standings,
                me,
            ));
        }
    }

    /// The timer of subflow `i` has expired. False if the subflow has failed.
    pub(super) fn on_timeout(
        &mut self,
        config: &Config,
        now: Time,
        i: usize,
        fx: &mut Effects,
    ) -> bool {
        let subflow = &mut self.subflows[i];
        if let State::Waiting(_) = subflow.state {
            subflow.state = State::Live;
            return true;
        }
        self.offer(config, i, self.next_data());
        self.hear_of_group(config, i);
        let sender = &mut self.subflows[i].sender;
        let tries = sender.on_timeout(&config.tcp, now, fx);
        let joined = i == 0 || sender.is_open() || sender.expiries() <= SYN_RETRIES;
        if !tries || !joined {
            self.subflows[i].state = State::Dead;
            self.reinject_all(i);
            self.after_failure();
            return false;
        }
        if config.reinject == Reinject::Timeout {
            self.reinject_all(i);
        }
        true
    }

    /// What subflow `i` has outstanding may go over others.
    fn reinject_all(&mut self, i: usize) {
        for mapping in self.subflows[i].sender.source_mut().outstanding() {
            if !mapping.reinjected && mapping.chunk.dsn >= self.una {
                mapping.reinjected = true;
                self.reinject.push_back(Held { dsn: mapping.chunk.dsn, by: i });
            }
        }
    }

    /// How long subflow `i` waits for an acknowledgement.
    pub(super) fn timeout(&self, config: &Config, i: usize) -> Dur {
        let sender = &self.subflows[i].sender;
        if sender.is_open() {
            sender.rto().timeout(&config.tcp.rto)
        } else {
            // A connection that nobody answers gives up after so many tries, not after days.
            let most = config.tcp.rto.max.max(SYN_TIMEOUT);
            (SYN_TIMEOUT * (1 << sender.expiries().min(20))).min(most)
        }
    }
}
