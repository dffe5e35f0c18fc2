//! [`Host`]: the loop that calls an endpoint and an application and does what they want done.
//!
//! One turn of the loop: receive, send, fire what is due, send, sleep until the next deadline or
//! datagram. Received first, an answer that came in time stops its timer, however late both are
//! looked at. What answers leaves before anything else is looked at. After every call of the
//! endpoint its effects are applied, as [`Endpoint`] demands; then the application hears what
//! happened and its wishes are served. The port is busy meanwhile: it is polled when packets leave.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use endpoint::{
    App, AppCx, AppEffect, AppEvent, Cx, Draw, Effect, Effects, Endpoint, FailReason, Flags, Job,
    Msg, NetView, Packet, Purpose, Stat, Submit, Tx, TxPort,
};
use nix::sys::prctl;
use units::{Dur, HostId, MsgId, MsgKey, Time};

use crate::backend::Left;
use crate::clock::Clock;
use crate::doorbell::Doorbell;
use crate::inbox::{Contradiction, Inbox};
use crate::introductions::Introductions;
use crate::link::{Beside, Link, Received, Said};
use crate::lives::{Lives, Verdict};
use crate::outbox::Outbox;
use crate::signals::{self, Answer, Signals};
use crate::timers::Timers;
use crate::{Config, Content, ContractViolation, Error, Faults, Socket};

/// Message ids start at the incarnation shifted by this, see [`Config::incarnation`].
const INCARNATION_SHIFT: u32 = 12;
/// The longest sleep, so that the caller of [`Host::run`] is asked often enough.
const MAX_SLEEP: Dur = Dur::from_ms(5);
/// One interface, no class ever paused.
const PORT: TxPort = TxPort { nic: 0, open: 0xff };

/// What has happened at a host so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams sent, those lost on purpose included.
    pub sent: u64,
    /// Those of them that carry payload.
    pub data_sent: u64,
    /// Datagrams not sent on purpose.
    pub dropped_on_purpose: u64,
    /// Datagrams sent two times on purpose.
    pub doubled_on_purpose: u64,
    /// Datagrams damaged on purpose.
    pub damaged_on_purpose: u64,
    /// Datagrams that the kernel refused to send.
    pub send_losses: u64,
    /// Datagrams received, the ignored ones included.
    pub received: u64,
    /// Bytes of the packets received and not ignored, as they would be on a wire
    /// ([`Packet::wire_len`]).
    pub received_bytes: u64,
    /// Ignored: not a Trimline datagram, or cut off.
    pub malformed: u64,
    /// Ignored: changed on the way, by a check of its headers or its payload.
    pub damaged: u64,
    /// Ignored: for another host.
    pub misaddressed: u64,
    /// Ignored: not from the address of the host that it names as its source.
    pub unknown_peer: u64,
    /// Ignored: without a tag though there are keys, with one though there are none, or with a
    /// false one.
    pub forged: u64,
    /// Ignored: of, or for, a former life of a host.
    pub stale: u64,
    /// Ignored: beyond `max_message` or `max_buffered`.
    pub refused: u64,
    /// Packets, or ends of messages, that contradict what the same peer sent before or that
    /// contradict themselves: bytes placed twice or outside their packet, a message delivered
    /// twice or with a hole. The first of a message fails it; nothing more of it is taken.
    pub contradictions: u64,
    /// Payload bytes placed, each byte once.
    pub placed: u64,
    /// Messages that the application submitted.
    pub submitted: u64,
    /// Messages of this host known to be delivered.
    pub acked: u64,
    /// Messages to this host delivered.
    pub delivered: u64,
    /// Messages of or to this host that failed.
    pub failed: u64,
    /// Signals to other hosts that were given up, because those did not answer.
    pub signals_lost: u64,
    /// Departures that the endpoint asked for and was told of ([`Endpoint::on_sent`]), by the
    /// kernel's stamp, as it handed the packet to the interface.
    pub left_stamped: u64,
    /// The same, by when the kernel gave the packet's frame back: AF_XDP's ring of completions.
    pub left_completed: u64,
    /// The same, by when the kernel took the packet: there was no stamp, or the packet was lost on
    /// purpose.
    pub left_handed: u64,
    /// What the transport counted, indexed by [`Stat`].
    pub stats: [u64; Stat::COUNT],
}

/// When the endpoint is asked for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Ready,
    NotBefore(Time),
    Idle,
}

/// The draws of this life of one of the host's two parties.
fn draw(config: &Config, party: &str) -> Draw {
    let host = Draw::new(config.seed, Purpose::new(party), u64::from(config.me.0));
    host.part(config.incarnation)
}

/// The first number of this life of the host.
pub(crate) fn first_id(config: &Config) -> u64 {
    config.incarnation << INCARNATION_SHIFT
}

/// Whether the next of these effects that is about messages delivers `key`.
fn delivers(effects: &[Effect], key: MsgKey) -> bool {
    let beside = |effect: &&Effect| matches!(effect, Effect::Arm { .. } | Effect::Count(_));
    effects.iter().find(|effect| !beside(effect)) == Some(&Effect::Delivered(key))
}

/// Whether `control`, which was chosen before `data`, may be about its message. An answer to a
/// message of the same number from the same host looks like it: then the order stays as chosen.
/// Where hosts number from their start, as all but testbeds do, there is none.
fn may_announce(control: &Packet, data: &Packet) -> bool {
    (control.dst, control.span.msg) == (data.dst, data.span.msg)
}

/// Where in the payload of `pkt` the `len` bytes at `offset` of message `key` are, if they are.
fn payload_range(pkt: &Packet, key: MsgKey, offset: u64, len: u32) -> Option<Range<usize>> {
    if !pkt.carries_payload() || pkt.span.msg != key.id {
        return None;
    }
    let start = usize::try_from(offset.checked_sub(pkt.span.offset)?).ok()?;
    Some(start..start.checked_add(len as usize)?)
}

/// One host: an endpoint and an application on a real clock and a socket.
pub struct Host<'a> {
    config: Config,
    clock: Clock,
    /// When the clock was last looked at: once for each packet that arrives, once for each turn and
    /// each time that packets have left. All that is done meanwhile is done then.
    now: Time,
    /// Nothing has happened in the last turn, and it did not sleep: what comes now has come since
    /// the last look at the clock, a moment ago.
    spins: bool,
    /// Timers that have fired.
    fired: u64,
    link: Link,
    /// Those of this life of the endpoint and of the application.
    draws: [Draw; 2],
    /// Rung by who wants the application to look.
    doorbell: Option<Arc<Doorbell>>,
    endpoint: Box<dyn Endpoint>,
    app: &'a mut dyn App,
    content: &'a mut dyn Content,
    started: bool,

    // The endpoint's side.
    effects: Effects,
    timers: Timers,
    inbox: Inbox,
    port: Port,
    /// Of a paced interface: until when it is busy.
    busy_until: Time,
    /// Packets that may still be sent in this turn.
    budget: usize,
    /// Packets that have been chosen, and what travels beside them; empty between turns but for
    /// what the socket has no room for.
    chosen: VecDeque<(Packet, Beside)>,
    /// Tokens of packets that have left, empty between looks.
    left: Vec<(u32, Left)>,
    /// The least room that the endpoint was told of since `on_room`.
    lowest_room: u64,
    /// The endpoint is looking at the packet received last.
    receiving: bool,

    // The application's side.
    /// What it wants and has not got yet.
    wishes: Vec<AppEffect>,
    app_timers: Timers,
    next_id: MsgId,
    /// What the application has not been told yet.
    events: VecDeque<AppEvent>,
    /// Messages that the endpoint has no room for, oldest first.
    backlog: VecDeque<Msg>,
    /// A message has left the endpoint: it may have room again.
    retry: bool,
    /// Its messages that are not over.
    outbox: Outbox,
    /// Signals that wait for their time, by time and order: to whom, and what.
    later: BTreeMap<(Time, u64), (HostId, Said)>,
    /// Signals between this host and others.
    signals: Signals,
    lives: Lives,
    /// Messages that the endpoint has not been offered, as their destinations are not known.
    introductions: Introductions,
    /// Of whom it has just been learned that he has started again.
    restarting: Option<HostId>,
    /// What it has reported.
    jobs: Vec<Job>,

    counters: Counters,
}

impl<'a> Host<'a> {
    /// A host on `socket`: of [`crate::bind`], or a [`crate::Xdp`].
    ///
    /// # Errors
    /// The socket cannot be made non-blocking, or cannot reach a peer; or keys are not those of all
    /// peers, or the incarnation is zero in spite of them.
    pub fn new(
        mut config: Config,
        socket: impl Into<Socket>,
        endpoint: Box<dyn Endpoint>,
        app: &'a mut dyn App,
        content: &'a mut dyn Content,
    ) -> Result<Self, Error> {
        if !config.keys.is_empty() && config.incarnation == 0 {
            return Err(Error::NoLife);
        }
        // With none per turn nothing would ever happen.
        config.batch = config.batch.max(1);
        Ok(Self {
            clock: Clock::new(config.start),
            now: Time::ZERO,
            spins: false,
            fired: 0,
            draws: ["endpoint", "application"].map(|party| draw(&config, party)),
            link: Link::new(socket.into(), &config)?,
            doorbell: None,
            endpoint,
            lowest_room: u64::MAX,
            app,
            content,
            started: false,
            effects: Effects::new(),
            timers: Timers::default(),
            inbox: Inbox::new(config.max_message, config.max_buffered),
            port: Port::Ready,
            busy_until: Time::ZERO,
            budget: 0,
            chosen: VecDeque::new(),
            left: Vec::new(),
            receiving: false,
            wishes: Vec::new(),
            app_timers: Timers::default(),
            next_id: MsgId(first_id(&config)),
            events: VecDeque::new(),
            backlog: VecDeque::new(),
            retry: false,
            outbox: Outbox::default(),
            lives: Lives::new(config.incarnation, !config.keys.is_empty()),
            introductions: Introductions::default(),
            restarting: None,
            later: BTreeMap::new(),
            signals: Signals::new(config.me, first_id(&config)),
            jobs: Vec::new(),
            counters: Counters::default(),
            config,
        })
    }

    /// Lose or double datagrams on purpose, on the sending side.
    pub fn set_faults(&mut self, faults: Faults) {
        self.link.faults = faults;
    }

    /// When `doorbell` rings, the application gets a signal from its own host.
    pub(crate) fn set_doorbell(&mut self, doorbell: Arc<Doorbell>) {
        self.doorbell = Some(doorbell);
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The pieces of work that the application has reported, in that order.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Run until `done` says so (returns true) or the host is `limit` old (returns false). May be
    /// called again to go on. The thread has the finest timers from then on (prctl(2)).
    ///
    /// # Errors
    /// The socket failed, or the endpoint broke its contract.
    pub fn run(
        &mut self,
        limit: Dur,
        mut done: impl FnMut(&Counters) -> bool,
    ) -> Result<bool, Error> {
        // A sleeper would be woken up to 50 us late. Without it, it is only less exact.
        let _ = prctl::set_timerslack(1);
        self.look_at_clock();
        if !self.started {
            self.started = true;
            self.call_app(|app, cx| app.on_start(cx));
        }
        loop {
            let before = (self.counters.sent, self.counters.received, self.fired);
            let more_to_receive = self.turn()?;
            let after = (self.counters.sent, self.counters.received, self.fired);
            self.spins = self.config.busy && after == before;
            if done(&self.counters) {
                return Ok(true);
            }
            if self.now >= Time::ZERO + limit {
                return Ok(false);
            }
            self.sleep(more_to_receive)?;
        }
    }

    fn look_at_clock(&mut self) -> Time {
        self.now = self.clock.now();
        self.now
    }

    /// One turn of the loop, without the sleep. Returns whether more may wait at the socket.
    fn turn(&mut self) -> Result<bool, Error> {
        self.budget = self.config.batch;
        self.report_departures()?;
        let more_to_receive = self.receive()?;
        self.transmit()?;
        let now = self.look_at_clock();
        if self.doorbell.as_ref().is_some_and(|bell| bell.take()) {
            self.hear(self.config.me, (0, 0));
        }
        self.fire_due(now)?;
        if self.content.room() > self.lowest_room {
            self.lowest_room = u64::MAX;
            self.call(|endpoint, cx| endpoint.on_room(cx))?;
        }
        if matches!(self.port, Port::NotBefore(t) if t <= now) {
            self.port = Port::Ready;
        }
        self.serve_app()?;
        self.send_signals(now)?;
        self.transmit()?;
        Ok(more_to_receive)
    }

    /// Load the signals that are due and that the port takes.
    fn send_signals(&mut self, now: Time) -> Result<(), Error> {
        while !self.link.is_full()
            && let Some((pkt, said)) = self.signals.poll(now)
        {
            let beside = self.beside(&pkt, said);
            self.link.load(&pkt, beside, self.content, &mut self.counters)?;
        }
        self.counters.signals_lost = self.signals.lost;
        Ok(())
    }

    /// Fire the timers and signals that are due at `now`, a bounded number of them.
    fn fire_due(&mut self, now: Time) -> Result<(), Error> {
        for _ in 0..self.config.batch {
            let Some(id) = self.timers.pop_due(now) else { break };
            self.fired += 1;
            self.call(|endpoint, cx| endpoint.on_timer(cx, id))?;
        }
        for _ in 0..self.config.batch {
            let Some(id) = self.app_timers.pop_due(now) else { break };
            self.fired += 1;
            self.call_app(|app, cx| app.on_timer(cx, id));
        }
        while let Some((host, given_up)) = self.introductions.ask(now) {
            match given_up.is_empty() {
                true => self.ask(host)?,
                false => given_up.iter().for_each(|msg| {
                    self.fail(MsgKey { src: self.config.me, id: msg.id }, FailReason::TimedOut);
                }),
            }
        }
        while let Some(entry) = self.later.first_entry().filter(|e| e.key().0 <= now) {
            match entry.remove() {
                (to, said) if to == self.config.me => self.hear(to, said),
                (to, said) => self.signals.push(to, said),
            }
        }
        Ok(())
    }

    /// Receive until nothing is waiting or the batch is full. Returns whether more may wait.
    fn receive(&mut self) -> Result<bool, Error> {
        for _ in 0..self.config.batch {
            match self.link.receive(&mut self.counters)? {
                Received::Nothing => return Ok(false),
                Received::Ignored => {}
                Received::Packet => self.on_received()?,
            }
            if !self.link.gathers() {
                self.transmit()?;
            }
        }
        Ok(true)
    }

    /// A packet has come.
    fn on_received(&mut self) -> Result<(), Error> {
        let (pkt, beside) = (*self.link.packet(), self.link.beside());
        if pkt.proto == signals::PROTO {
            let at = self.look_at_clock();
            return self.on_control(&pkt, &beside, at);
        }
        // What it answers has left.
        self.report_departures()?;
        let at = if std::mem::take(&mut self.spins) { self.now } else { self.look_at_clock() };
        if !self.is_current(&pkt, &beside, at)? {
            return Ok(());
        }
        // What comes back says what of this host's is over.
        let news = !pkt.flags.has(Flags::BOUNCED);
        if news && self.inbox.is_over_below(pkt.src, beside.oldest) {
            self.endpoint.on_over_below(pkt.src, beside.oldest);
        }
        self.on_packet(&pkt)
    }

    /// Whether `pkt`, which came at `at`, is of the life of its source that counts, and for this
    /// one.
    fn is_current(&mut self, pkt: &Packet, beside: &Beside, at: Time) -> Result<bool, Error> {
        // What comes back says what this host wrote.
        let lives = match pkt.flags.has(Flags::BOUNCED) {
            true => (self.lives.of(pkt.src), beside.src_life),
            false => (beside.src_life, beside.dst_life),
        };
        match self.lives.judge(pkt.src, lives, at)? {
            Verdict::Current => return Ok(true),
            Verdict::Former => self.signals.answer(pkt.src, Answer::Hello),
            Verdict::Other(Some(number)) => self.signals.answer(pkt.src, Answer::WhoAreYou(number)),
            Verdict::Other(None) => {}
        }
        self.counters.stale += 1;
        Ok(false)
    }

    /// A packet between the hosts themselves.
    fn on_control(&mut self, pkt: &Packet, beside: &Beside, at: Time) -> Result<(), Error> {
        match signals::kind(pkt) {
            Some(signals::Kind::WhoAreYou) => {
                if !self.lives.knows(pkt.src) {
                    self.ask(pkt.src)?;
                }
                self.signals.answer(pkt.src, Answer::ThisLife(beside.said.1));
            }
            Some(signals::Kind::ThisLife) => {
                if self.lives.answered(pkt.src, beside.said.1, beside.src_life) {
                    self.on_restart(pkt.src)?;
                }
                self.introduce(pkt.src)?;
            }
            Some(signals::Kind::Signal)
                if self.is_current(pkt, beside, at)? && self.signals.hear(pkt) =>
            {
                self.hear(pkt.src, beside.said);
            }
            Some(signals::Kind::Confirmed) if self.is_current(pkt, beside, at)? => {
                self.signals.confirmed(pkt);
            }
            Some(signals::Kind::Hello) => {
                self.is_current(pkt, beside, at)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ask `host` in which life it is, unless it has just been asked.
    fn ask(&mut self, host: HostId) -> Result<(), Error> {
        if let Some(number) = self.lives.ask(host, self.now)? {
            self.signals.answer(host, Answer::WhoAreYou(number));
        }
        Ok(())
    }

    /// `host` may have answered: what waits for it does so no more.
    fn introduce(&mut self, host: HostId) -> Result<(), Error> {
        if !self.lives.knows(host) {
            return Ok(());
        }
        let messages = self.introductions.answered(host);
        if !messages.is_empty() {
            // What this host answers goes first, for the peer has to know it, too.
            self.send_signals(self.now)?;
        }
        messages.into_iter().try_for_each(|msg| self.offer(msg))
    }

    /// `host` has started again. Its former life may have delivered what it did not confirm, so
    /// that nothing is sent to it a second time: what the endpoint has of it fails.
    fn on_restart(&mut self, host: HostId) -> Result<(), Error> {
        let waits = |id| self.backlog.iter().any(|msg| msg.id == id);
        let under_way: Vec<MsgId> = self.outbox.to(host).filter(|&id| !waits(id)).collect();
        self.restarting = Some(host);
        for id in under_way {
            self.call(|endpoint, cx| endpoint.on_cancel(cx, id))?;
        }
        self.call(|endpoint, cx| endpoint.on_restart(cx, host))?;
        self.restarting = None;
        self.inbox.restart(host);
        self.serve_app()
    }

    /// The application is to hear what `from` signals.
    fn hear(&mut self, from: HostId, (tag, token): Said) {
        self.events.push_back(AppEvent::Signal { from, tag, token });
    }

    fn on_packet(&mut self, pkt: &Packet) -> Result<(), Error> {
        self.counters.received_bytes += u64::from(pkt.wire_len);
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        // `Packet::of_datagram` has checked that the sum fits.
        let end = pkt.span.offset + u64::from(pkt.span.len);
        if pkt.carries_payload() && !self.inbox.admits(key, pkt.span.offset, end) {
            self.counters.refused += 1;
            return Ok(());
        }
        self.receiving = true;
        self.call(|endpoint, cx| endpoint.on_packet(cx, pkt))?;
        self.serve_app()
    }

    /// Sleep until the next deadline or datagram, unless there is work left.
    fn sleep(&mut self, more_to_receive: bool) -> Result<(), Error> {
        let chosen = self.may_choose() || !self.chosen.is_empty();
        let more_to_send = chosen && !self.link.is_loaded();
        if more_to_receive || more_to_send || self.config.busy {
            return Ok(());
        }
        let port = match self.port {
            Port::NotBefore(t) if !self.link.is_loaded() => Some(t.max(self.busy_until)),
            Port::Ready if !self.link.is_loaded() => Some(self.busy_until),
            _ => None,
        };
        let later = self.later.keys().next().map(|&(at, _)| at);
        let signals = self.signals.due();
        let introductions = self.introductions.due();
        let deadlines =
            [self.timers.next(), self.app_timers.next(), later, signals, introductions, port];
        let now = self.look_at_clock();
        let wake = deadlines.into_iter().flatten().min().unwrap_or(Time::NEVER);
        Ok(self.link.wait(wake.since(now).min(MAX_SLEEP), self.doorbell.as_deref())?)
    }
}

/// The endpoint's side.
impl Host<'_> {
    /// One of the endpoint's `on_*`, then its effects: the caller's contract. The port is polled
    /// in [`Self::transmit`].
    fn call<R>(&mut self, f: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>) -> R) -> Result<R, Error> {
        let result = self.with_cx(f);
        self.apply_effects()?;
        self.receiving = false;
        self.port = Port::Ready;
        Ok(result)
    }

    /// Call the endpoint in its context.
    fn with_cx<R>(&mut self, f: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>) -> R) -> R {
        let (now, me) = (self.now, self.config.me);
        let nics = [self.config.rate];
        let net = NetView {
            me,
            nics: &nics,
            mtu: self.config.mtu,
            whole: false,
            lateness: self.config.lateness,
            routes: &self.config,
        };
        let room = self.content.room();
        self.lowest_room = self.lowest_room.min(room);
        let mut cx =
            Cx { now, rx_at: now, me, room, net: &net, draw: self.draws[0], fx: &mut self.effects };
        f(&mut *self.endpoint, &mut cx)
    }

    /// Apply the effects of the last call, in order.
    fn apply_effects(&mut self) -> Result<(), Error> {
        let (mut whole, mut n) = (None, 0);
        while let Some(&effect) = self.effects.as_slice().get(n) {
            n += 1;
            match effect {
                Effect::Broken => return Err(Error::Broken(self.effects.why_broken().to_owned())),
                Effect::Place { key, offset: 0, len }
                    if delivers(&self.effects.as_slice()[n..], key)
                        && self.deliver_whole(key, len) =>
                {
                    whole = Some(key);
                }
                Effect::Delivered(key) if whole == Some(key) => whole = None,
                effect => self.apply(effect)?,
            }
        }
        self.effects.clear();
        Ok(())
    }

    fn apply(&mut self, effect: Effect) -> Result<(), Error> {
        match effect {
            Effect::Arm { timer, at } => self.timers.arm(timer, at),
            Effect::Place { key, offset, len } => self.place(key, offset, len)?,
            Effect::Delivered(key) => self.deliver(key),
            Effect::Acked(id) => {
                self.counters.acked += 1;
                self.retry = true;
                self.outbox.remove(id);
                self.events.push_back(AppEvent::Acked(id));
            }
            Effect::Failed(key, why) => {
                self.retry = true;
                let is_mine = key.src == self.config.me;
                if !is_mine {
                    self.inbox.forget(key);
                }
                // Nothing more is said of a message that was delivered or refused. One that the
                // transport gave up may be begun anew by its peer: then it fails again, or arrives.
                if is_mine || !self.inbox.is_over(key) {
                    self.fail(key, why);
                }
            }
            Effect::Count(stat) | Effect::CountFor(stat, _) | Effect::CountReceived(stat, _) => {
                self.counters.stats[stat as usize] += 1;
            }
            Effect::Rtt(..) | Effect::RttReceived(..) | Effect::Broken => {}
        }
        Ok(())
    }

    fn fail(&mut self, key: MsgKey, why: FailReason) {
        self.counters.failed += 1;
        let mut why = why;
        if key.src == self.config.me {
            if self.restarting.is_some() && self.outbox.whom(key.id) == self.restarting {
                why = FailReason::Refused;
            }
            self.outbox.remove(key.id);
        }
        self.events.push_back(AppEvent::Failed(key, why));
    }

    fn deliver(&mut self, key: MsgKey) {
        let was_over = self.inbox.is_over(key);
        match self.inbox.deliver(key) {
            Ok((bytes, said)) => {
                // A message of no bytes may have left nothing behind but its last packet.
                let last = self.receiving(key.src);
                let last = last.filter(|(pkt, _)| bytes.is_empty() && pkt.span.msg == key.id);
                self.delivered(key, bytes, last.map_or(said, |(_, said)| said));
            }
            Err(Contradiction) => self.reject(key, was_over),
        }
    }

    /// The packet that the endpoint is looking at, if it is of `src`, and what its message says.
    fn receiving(&self, src: HostId) -> Option<(&Packet, Said)> {
        let pkt = self.link.packet();
        (self.receiving && pkt.src == src).then(|| (pkt, self.link.beside().said))
    }

    /// A message of which all `len` bytes are in the packet being received: what placing and
    /// delivering it would come to, without its being kept between. False if that is not so simple.
    fn deliver_whole(&mut self, key: MsgKey, len: u32) -> bool {
        let Some((pkt, said)) = self.receiving(key.src) else { return false };
        let payload = payload_range(pkt, key, 0, len);
        let bytes = payload.and_then(|range| self.link.payload().get(range));
        let Some(bytes) = bytes.and_then(|bytes| self.inbox.whole(key, bytes)) else {
            return false;
        };
        self.counters.placed += u64::from(len);
        self.delivered(key, bytes, said);
        true
    }

    /// The application gets `key`, which says `said`.
    fn delivered(&mut self, key: MsgKey, bytes: Vec<u8>, (tag, token): Said) {
        let len = bytes.len() as u64;
        self.content.received(key, bytes);
        self.counters.delivered += 1;
        self.events.push_back(AppEvent::Delivered { key, len, tag, token });
    }

    /// Copy payload of the packet being received to where it belongs.
    fn place(&mut self, key: MsgKey, offset: u64, len: u32) -> Result<(), ContractViolation> {
        let elsewhere = ContractViolation::PlacedElsewhere { key, offset, len };
        let (pkt, said) = self.receiving(key.src).ok_or(elsewhere)?;
        let payload = payload_range(pkt, key, offset, len);
        let was_over = self.inbox.is_over(key);
        let bytes = payload.and_then(|range| self.link.payload().get(range)).ok_or(Contradiction);
        let placed = bytes.and_then(|bytes| self.inbox.place(key, offset, bytes, said));
        match placed {
            Ok(()) => self.counters.placed += u64::from(len),
            Err(Contradiction) => self.reject(key, was_over),
        }
        Ok(())
    }

    /// A peer contradicts itself (its two headers may disagree): its message fails, unless it
    /// `was_over` already, and the host goes on. An endpoint that itself is wrong looks the same
    /// here; simulated runs, where no packet lies, find that.
    fn reject(&mut self, key: MsgKey, was_over: bool) {
        self.counters.contradictions += 1;
        self.inbox.give_up(key);
        if !was_over {
            self.fail(key, FailReason::Refused);
        }
    }

    /// Choose packets, and send them, until there are none, the socket is full, or the turn's
    /// budget is spent.
    fn transmit(&mut self) -> Result<(), Error> {
        loop {
            self.choose()?;
            if !self.link.is_loaded() || !self.link.flush(&mut self.counters)? {
                return Ok(());
            }
            self.report_departures()?;
            if self.budget == 0 || !self.may_choose() {
                return Ok(());
            }
        }
    }

    /// What travels beside `pkt`.
    fn beside(&self, pkt: &Packet, said: Said) -> Beside {
        let oldest = self.outbox.oldest(pkt.dst);
        // A source that wants no confirmation has done with a message as it sends its last packet.
        let at_most = if pkt.carries_payload() { pkt.span.msg } else { oldest };
        Beside {
            said,
            oldest: oldest.min(at_most),
            src_life: self.lives.mine,
            dst_life: self.lives.of(pkt.dst),
        }
    }

    /// Poll the port until it has nothing to send, the socket is full, or the turn's budget is
    /// spent.
    ///
    /// The first packet with payload goes before the control packets that were chosen before it,
    /// unless one of them is about its message: a response before the acknowledgement of its
    /// request, which nobody waits for. They wait for one packet, as behind one that a link has
    /// just begun with.
    fn choose(&mut self) -> Result<(), Error> {
        self.load_chosen()?;
        let mut led = false;
        while self.budget > 0 && self.may_choose() && !self.link.is_full() {
            let Some((pkt, beside)) = self.poll_port()? else { continue };
            let has_payload = pkt.carries_payload();
            let about_it = |(earlier, _): &(Packet, Beside)| may_announce(earlier, &pkt);
            if led || has_payload && !self.chosen.iter().any(about_it) {
                self.link.load(&pkt, beside, self.content, &mut self.counters)?;
            } else {
                self.chosen.push_back((pkt, beside));
            }
            if has_payload && !led {
                led = true;
                self.load_chosen()?;
            }
        }
        self.load_chosen()
    }

    /// Load what has been chosen, as much as the socket takes.
    fn load_chosen(&mut self) -> Result<(), Error> {
        while let Some((pkt, beside)) = self.chosen.front() {
            if self.link.is_full() {
                break;
            }
            self.link.load(pkt, *beside, self.content, &mut self.counters)?;
            self.chosen.pop_front();
        }
        Ok(())
    }

    /// Whether the endpoint may be asked for a packet now.
    fn may_choose(&self) -> bool {
        self.port == Port::Ready && (!self.config.paced || self.busy_until <= self.now)
    }

    /// Ask the endpoint for one packet, and what travels beside it.
    fn poll_port(&mut self) -> Result<Option<(Packet, Beside)>, Error> {
        let mut slot = Packet::EMPTY;
        let (tx, now) =
            self.with_cx(|endpoint, cx| (endpoint.poll_tx(cx, PORT, &mut slot), cx.now));
        self.apply_effects()?;
        match tx {
            Tx::Sent => {
                self.budget -= 1;
                let begins = self.busy_until.max(now - self.config.lateness.min(Dur(now.0)));
                self.busy_until = begins + self.config.rate.serialise(u64::from(slot.wire_len));
                let said = match slot.carries_payload() {
                    true => self.outbox.said(slot.span.msg),
                    false => (0, 0),
                };
                return Ok(Some((slot, self.beside(&slot, said))));
            }
            Tx::NotBefore(at) if at <= now => {
                return Err(ContractViolation::NotLater { now, at }.into());
            }
            Tx::NotBefore(at) => self.port = Port::NotBefore(at),
            Tx::Idle => self.port = Port::Idle,
        }
        Ok(None)
    }

    /// Tell the endpoint which packets have left, and when. The port is polled at the end of the
    /// turn.
    fn report_departures(&mut self) -> Result<(), Error> {
        if !self.link.awaits() {
            return Ok(());
        }
        let mut left = std::mem::take(&mut self.left);
        self.link.left(&mut left);
        if !left.is_empty() {
            self.look_at_clock();
        }
        for (token, how) in left.drain(..) {
            let at = self.left_at(how);
            self.with_cx(|endpoint, cx| endpoint.on_sent(cx, token, at));
            self.port = Port::Ready;
            self.apply_effects()?;
        }
        self.left = left;
        Ok(())
    }

    /// When a packet left, not later than now.
    fn left_at(&mut self, how: Left) -> Time {
        let (count, at) = match how {
            Left::Stamped(at) => (&mut self.counters.left_stamped, self.clock.at_system(at)),
            Left::Completed => (&mut self.counters.left_completed, self.now),
            Left::Handed(at) => (&mut self.counters.left_handed, self.clock.at(at)),
        };
        *count += 1;
        at.min(self.now)
    }
}

/// The application's side.
impl Host<'_> {
    /// Tell the application what happened and do what it wants, until neither is left.
    fn serve_app(&mut self) -> Result<(), Error> {
        loop {
            if std::mem::take(&mut self.retry) {
                self.offer_backlog()?;
            } else if !self.wishes.is_empty() {
                self.grant_all()?;
            } else if let Some(event) = self.events.pop_front() {
                self.call_app(|app, cx| app.on_event(cx, event));
            } else {
                return Ok(());
            }
        }
    }

    fn call_app(&mut self, f: impl FnOnce(&mut dyn App, &mut AppCx<'_>)) {
        let me = self.config.me;
        let mut cx = AppCx {
            now: self.now,
            me,
            draw: self.draws[1],
            received: self.counters.received_bytes,
            next_id: &mut self.next_id,
            fx: &mut self.wishes,
        };
        f(self.app, &mut cx);
    }

    /// Do what the application wants. It has no more wishes until it is called again.
    fn grant_all(&mut self) -> Result<(), Error> {
        let mut wishes = std::mem::take(&mut self.wishes);
        wishes.drain(..).try_for_each(|wish| self.grant(wish))?;
        // Keep the memory.
        self.wishes = wishes;
        Ok(())
    }

    fn grant(&mut self, wish: AppEffect) -> Result<(), Error> {
        match wish {
            AppEffect::Submit { msg, tag, token } => {
                self.outbox.insert(msg.id, msg.dst, (tag, token));
                self.submit(msg)
            }
            AppEffect::Cancel(id) => self.cancel(id),
            AppEffect::Arm { timer, at } => {
                self.app_timers.arm(timer, at);
                Ok(())
            }
            AppEffect::Signal { to, .. } if !self.link.knows(to) => Err(Error::Stranger(to)),
            AppEffect::Signal { to, token, after, tag } => {
                let at = self.now.saturating_add(after);
                // Signals of one instant keep their order.
                let nth = self.later.range((at, 0)..).take_while(|(k, _)| k.0 == at).count();
                self.later.insert((at, nth as u64), (to, (tag, token)));
                Ok(())
            }
            AppEffect::Job(job) => {
                self.jobs.push(job);
                Ok(())
            }
        }
    }

    /// Hand a message to the endpoint, behind those that wait already.
    fn submit(&mut self, msg: Msg) -> Result<(), Error> {
        self.counters.submitted += 1;
        if !self.link.knows(msg.dst) || msg.len > self.config.max_message {
            self.fail(MsgKey { src: self.config.me, id: msg.id }, FailReason::Refused);
            return Ok(());
        }
        if !self.lives.knows(msg.dst) {
            self.introductions.wait(msg);
            return Ok(());
        }
        self.offer(msg)
    }

    /// Offer a message to the endpoint, behind those that wait.
    fn offer(&mut self, msg: Msg) -> Result<(), Error> {
        if !self.backlog.is_empty() || !self.is_taken(&msg)? {
            self.backlog.push_back(msg);
        }
        Ok(())
    }

    /// Offer waiting messages until the endpoint is full.
    fn offer_backlog(&mut self) -> Result<(), Error> {
        while let Some(&msg) = self.backlog.front()
            && self.is_taken(&msg)?
        {
            self.backlog.pop_front();
        }
        Ok(())
    }

    /// Whether the endpoint takes `msg`.
    fn is_taken(&mut self, msg: &Msg) -> Result<bool, Error> {
        Ok(self.call(|endpoint, cx| endpoint.on_submit(cx, msg))? == Submit::Taken)
    }

    fn cancel(&mut self, id: MsgId) -> Result<(), Error> {
        let backlogged = self.backlog.iter().position(|msg| msg.id == id);
        let waits = backlogged.and_then(|at| self.backlog.remove(at)).is_some()
            || self.introductions.cancel(id);
        match waits {
            true => {
                self.fail(MsgKey { src: self.config.me, id }, FailReason::Cancelled);
                Ok(())
            }
            false => self.call(|endpoint, cx| endpoint.on_cancel(cx, id)),
        }
    }
}

#[cfg(test)]
mod tests;
