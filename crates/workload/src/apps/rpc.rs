//! [`Rpc`]: remote procedure calls. A client sends a request, the server works on it and sends its
//! response; the call is over when the client has that whole. Each call is a job of the results.
//!
//! Closed loop: a client keeps a number of calls in flight, the next after a gap. Open loop: calls
//! come at random instants, whatever is in flight. Requests and responses of equal size in both
//! directions are the load of TIMELY (SIGCOMM 2015, section 6); small requests for large responses,
//! and the other way round, are reads and writes of a storage service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use endpoint::{App, AppCx, AppEvent, Job, Msg, Purpose};
use units::{HostId, MsgId, MsgKey, Time, TimerId};

use crate::{Arrivals, Destinations, Gap, SizeDist, arrivals};

const ARRIVAL: Purpose = Purpose::new("rpc: arrival");
const SERVER: Purpose = Purpose::new("rpc: server");
const REQUEST: Purpose = Purpose::new("rpc: request");
const RESPONSE: Purpose = Purpose::new("rpc: response");
const COMPUTE: Purpose = Purpose::new("rpc: compute");

/// The first of the responses that are being worked out. A slot's timer is its number plus one.
const DUE: TimerId = TimerId(0);

/// The largest response, bytes: a request says how large in 40 bits.
pub const RESPONSE_MAX: u64 = (1 << 40) - 1;

/// What all hosts of an RPC workload have in common.
#[derive(Clone, Debug)]
pub struct RpcSpec {
    /// How long requests are.
    pub requests: SizeDist,
    /// How long responses are, at most [`RESPONSE_MAX`].
    pub responses: SizeDist,
    /// How long a server takes for a response.
    pub compute: Gap,
    /// When a client calls: each of its slots by itself.
    pub arrivals: Arrivals,
    /// Slots of each client: in a closed loop, calls in flight at once; 1 in an open one.
    pub slots: u32,
    /// Whether a slot draws its server once, or anew for each call.
    pub keep_server: bool,
    /// No call before this, ...
    pub start: Time,
    /// ... and none at or after this.
    pub until: Time,
    /// Each client calls so often at most.
    pub calls: u64,
    /// As in [`BarrierSpec`](crate::BarrierSpec).
    pub channel: u32,
    /// See [`Msg::prio`].
    pub prio: u8,
}

impl RpcSpec {
    /// Whether it ends without being stopped.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.until != Time::NEVER || self.calls != u64::MAX
    }
}

/// What a message says. As a token: the highest bit, 23 bits, 40 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Answer call `call` of the sender with so many bytes.
    Request { call: u32, response: u64 },
    /// The response to call `call` of the receiver.
    Response { call: u32 },
    /// Call `call` of the receiver has a response that could not be delivered.
    Failure { call: u32 },
}

impl Said {
    const RESPONSE: u64 = 1 << 63;
    const FAILURE: u64 = Self::RESPONSE | 1;
    const CALL: u32 = 40;
    /// Calls are numbered modulo this: more are never in flight at one client.
    const CALLS: u32 = 1 << 23;

    fn token(self) -> u64 {
        match self {
            Self::Request { call, response } => u64::from(call) << Self::CALL | response,
            Self::Response { call } => Self::RESPONSE | u64::from(call) << Self::CALL,
            Self::Failure { call } => Self::FAILURE | u64::from(call) << Self::CALL,
        }
    }

    fn of(token: u64) -> Self {
        let call = (token >> Self::CALL) as u32 & (Self::CALLS - 1);
        match token & Self::FAILURE {
            Self::RESPONSE => Self::Response { call },
            failure if failure == Self::FAILURE => Self::Failure { call },
            _ => Self::Request { call, response: token & RESPONSE_MAX },
        }
    }
}

/// A call in flight.
#[derive(Debug)]
struct Call {
    slot: u32,
    /// Its request.
    request: MsgId,
    start: Time,
    /// What had arrived at the host before, bytes on the wire.
    received_before: u64,
}

/// One of the calls that a client makes at a time.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its calls so far: the number of its next draws.
    calls: u64,
    /// When it calls next; never, if that is not known yet, or will not be.
    next: Time,
}

/// One host's part: client, server or both.
#[derive(Debug)]
pub struct Rpc {
    spec: Arc<RpcSpec>,
    /// Whom it calls; `None`: no host.
    servers: Option<Destinations>,
    slots: Vec<Slot>,
    /// Its calls so far.
    called: u64,
    calls: BTreeMap<u32, Call>,
    /// Responses so far: the number of the next draw.
    answered: u64,
    /// The responses that it works out: when each is ready, its number, for whom it is, how long it
    /// is and which call it answers, and which request.
    due: BTreeSet<(Time, u64, HostId, u64, u32, MsgId)>,
    /// Its responses in flight: for whom each is, and which call it answers.
    responses: BTreeMap<MsgId, (HostId, u32)>,
}

impl Rpc {
    /// The part of a host that calls `servers`, if any, and answers its callers.
    #[must_use]
    pub fn new(spec: Arc<RpcSpec>, servers: Option<Destinations>) -> Self {
        let (calls, responses) = (BTreeMap::new(), BTreeMap::new());
        let (slots, due) = (Vec::new(), BTreeSet::new());
        Self { spec, servers, slots, called: 0, calls, answered: 0, due, responses }
    }

    /// Slot `index` calls again, some time after `from`; not at all if that is too late.
    fn pause(&mut self, cx: &mut AppCx<'_>, index: u32, from: Time) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        let draw = cx.draw.part(u64::from(index));
        let unit = || draw.unit(ARRIVAL, slot.calls);
        let gap = match self.spec.arrivals {
            Arrivals::Closed(gap) => gap.length(unit),
            Arrivals::Poisson(mean) => arrivals::exponential(mean, unit()),
        };
        let at = from.saturating_add(gap);
        slot.next = if at < self.spec.until { at } else { Time::NEVER };
        if slot.next <= cx.now {
            self.call(cx, index);
        } else {
            cx.arm(TimerId(index + 1), slot.next);
        }
    }

    fn call(&mut self, cx: &mut AppCx<'_>, index: u32) {
        let (Some(slot), Some(servers)) = (self.slots.get_mut(index as usize), &self.servers)
        else {
            return;
        };
        slot.next = Time::NEVER;
        let (draw, n) = (cx.draw.part(u64::from(index)), slot.calls);
        let which = if self.spec.keep_server { 0 } else { n };
        let Some(server) = servers.pick(cx.me, draw, SERVER, which) else { return };
        if self.called == self.spec.calls {
            return;
        }
        let call = (self.called % u64::from(Said::CALLS)) as u32;
        (slot.calls, self.called) = (n + 1, self.called + 1);
        let len = self.spec.requests.sample(draw.unit(REQUEST, n));
        let response = self.spec.responses.sample(draw.unit(RESPONSE, n));
        let request = self.submit(cx, server, len, Said::Request { call, response });
        let (start, received_before) = (cx.now, cx.received);
        self.calls.insert(call, Call { slot: index, request, start, received_before });
        if let Arrivals::Poisson(_) = self.spec.arrivals {
            self.pause(cx, index, cx.now);
        }
    }

    fn msg(&self, dst: HostId, len: u64) -> Msg {
        let RpcSpec { channel, prio, .. } = *self.spec;
        Msg { channel, prio, ..Msg::new(dst, len) }
    }

    fn submit(&self, cx: &mut AppCx<'_>, dst: HostId, len: u64, said: Said) -> MsgId {
        cx.submit_saying(self.msg(dst, len), said.token())
    }

    /// Message `key` has arrived.
    fn hear(&mut self, cx: &mut AppCx<'_>, key: MsgKey, len: u64, said: Said) {
        match said {
            Said::Request { call, response } => {
                let time = self.spec.compute.length(|| cx.draw.unit(COMPUTE, self.answered));
                let at = cx.now.saturating_add(time);
                self.due.insert((at, self.answered, key.src, response, call, key.id));
                self.answered += 1;
                self.answer(cx);
            }
            Said::Response { call } => {
                if let Some(call) = self.calls.remove(&call) {
                    self.end(cx, &call, Some(len));
                }
            }
            Said::Failure { call } => {
                if let Some(call) = self.calls.remove(&call) {
                    self.end(cx, &call, None);
                }
            }
        }
    }

    /// Send the responses that are ready, and be called when the next one is.
    fn answer(&mut self, cx: &mut AppCx<'_>) {
        while let Some(&ready) = self.due.first().filter(|due| due.0 <= cx.now) {
            self.due.remove(&ready);
            let (_, _, client, len, call, id) = ready;
            let request = MsgKey { src: client, id };
            let msg = Msg { reply_to: Some(request), ..self.msg(client, len) };
            let response = cx.submit_saying(msg, Said::Response { call }.token());
            self.responses.insert(response, (client, call));
        }
        if let Some(next) = self.due.first() {
            cx.arm(DUE, next.0);
        }
    }

    /// `call` is over, with a response of so many bytes or without one.
    fn end(&mut self, cx: &mut AppCx<'_>, call: &Call, response: Option<u64>) {
        cx.report(Job {
            tag: 0,
            completed: response.is_some(),
            start: call.start,
            end: cx.now,
            bytes: response.unwrap_or(0),
            received: cx.received - call.received_before,
            parts: 1,
            in_time: u64::from(response.is_some()),
            work: None,
        });
        if response.is_some() && matches!(self.spec.arrivals, Arrivals::Closed(_)) {
            self.pause(cx, call.slot, cx.now);
        }
    }
}

impl App for Rpc {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        let slots = if self.servers.is_some() { self.spec.slots } else { 0 };
        self.slots = vec![Slot { calls: 0, next: Time::NEVER }; slots as usize];
        for index in 0..slots {
            self.pause(cx, index, self.spec.start);
        }
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Delivered { key, len, token, .. } => {
                self.hear(cx, key, len, Said::of(token));
            }
            AppEvent::Acked(id) => {
                self.responses.remove(&id);
            }
            AppEvent::Failed(key, _) if key.src == cx.me => {
                if let Some((client, call)) = self.responses.remove(&key.id) {
                    // Once: who cannot be told either waits for ever, as in a network without
                    // deadlines.
                    self.submit(cx, client, 1, Said::Failure { call });
                }
                let failed = self.calls.iter().find(|(_, call)| call.request == key.id);
                let failed = failed.map(|(&call, _)| call);
                if let Some(call) = failed.and_then(|call| self.calls.remove(&call)) {
                    self.end(cx, &call, None);
                }
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, id: TimerId) {
        match id.0.checked_sub(1) {
            Some(slot) => self.call(cx, slot),
            None => self.answer(cx),
        }
    }

    fn more_to_come(&self) -> bool {
        let calls = self.called < self.spec.calls;
        let calls = calls && self.slots.iter().any(|slot| slot.next != Time::NEVER);
        self.spec.ends_by_itself() && (calls || !self.due.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use units::Dur;

    use super::*;
    use crate::apps::bench::Bench;

    const US: u64 = 1_000_000;
    /// How long a message takes in the bench.
    const TRANSIT: u64 = 5 * US;

    /// Host 0 calls hosts 1 and 2, two calls at a time.
    fn spec() -> RpcSpec {
        RpcSpec {
            requests: SizeDist::fixed(100),
            responses: SizeDist::fixed(64_000),
            compute: Gap::Fixed(Dur::from_us(3)),
            arrivals: Arrivals::Closed(Gap::Fixed(Dur::from_us(7))),
            slots: 2,
            keep_server: true,
            start: Time(10 * US),
            until: Time::NEVER,
            calls: 6,
            channel: 9,
            prio: 1,
        }
    }

    fn bench(spec: RpcSpec) -> Bench<Rpc> {
        let spec = Arc::new(spec);
        let servers = Destinations::among(vec![HostId(1), HostId(2)]);
        let client = Rpc::new(Arc::clone(&spec), Some(servers));
        let server = || Rpc::new(Arc::clone(&spec), None);
        Bench::new(vec![client, server(), server()], 3)
    }

    fn run(spec: RpcSpec) -> Bench<Rpc> {
        let mut bench = bench(spec);
        bench.run();
        assert!(bench.apps.iter().all(|app| app.calls.is_empty() && app.due.is_empty()));
        assert!(bench.apps.iter().all(|app| !app.more_to_come()), "it is over");
        bench
    }

    #[test]
    fn a_call_is_a_request_a_computation_and_a_response() {
        let bench = run(spec());
        let took = 2 * TRANSIT + 3 * US;
        let starts: Vec<u64> = bench.jobs.iter().map(|job| job.start.0).collect();
        let round = |n| 17 * US + n * (took + 7 * US);
        assert_eq!(starts, [round(0), round(0), round(1), round(1), round(2), round(2)]);
        let job = Job {
            completed: true,
            start: Time(round(0)),
            end: Time(round(0) + took),
            bytes: 64_000,
            parts: 1,
            in_time: 1,
            ..Job::default()
        };
        assert_eq!(bench.jobs[0], job);
        assert!(bench.jobs.iter().all(|job| job.end.since(job.start) == Dur(took)));
        let lengths = |src| bench.submitted.iter().filter(move |s| (s.src.0 == 0) == src);
        assert!(lengths(true).all(|s| s.msg.len == 100));
        assert!(lengths(false).all(|s| s.msg.len == 64_000 && s.msg.dst == HostId(0)));
        assert!(bench.submitted.iter().all(|s| (s.msg.channel, s.msg.prio) == (9, 1)));
    }

    #[test]
    fn servers_are_drawn_for_every_call_if_not_kept() {
        let servers = |keep_server| {
            let bench = run(RpcSpec { keep_server, slots: 1, calls: 400, ..spec() });
            let to = |host| bench.submitted.iter().filter(|s| s.msg.dst == HostId(host)).count();
            (to(1), to(2))
        };
        let (first, second) = servers(false);
        // Half of 400; sigma is 10.
        assert!(first + second == 400 && first.abs_diff(200) < 50, "{first}");
        assert!(matches!(servers(true), (400, 0) | (0, 400)));
    }

    #[test]
    fn an_open_loop_calls_whatever_is_under_way() {
        let bench = run(RpcSpec {
            arrivals: Arrivals::Poisson(5.0 * US as f64),
            slots: 1,
            until: Time(10_010 * US),
            calls: u64::MAX,
            ..spec()
        });
        // 2000 in 10 ms; sigma is 45.
        assert!(bench.jobs.len().abs_diff(2_000) < 200, "{}", bench.jobs.len());
        let overlap = bench.jobs.windows(2).filter(|pair| pair[1].start < pair[0].end).count();
        assert!(overlap > 1_500, "{overlap}");
    }

    #[test]
    fn a_request_that_fails_ends_its_call_and_its_slot() {
        let mut bench =
            bench(RpcSpec { arrivals: Arrivals::Closed(Gap::Fixed(Dur::ZERO)), ..spec() });
        bench.run_for(2);
        bench.fail(MsgKey { src: HostId(0), id: bench.submitted[0].msg.id });
        let failed = bench.jobs[0];
        assert_eq!((failed.completed, failed.bytes, failed.in_time), (false, 0, 0));
        bench.resume(usize::MAX);
        let calls = bench.submitted.iter().filter(|s| s.src == HostId(0)).count();
        assert_eq!((calls, bench.jobs.len()), (6, 6), "the other slot makes the other five");
    }

    #[test]
    fn a_response_that_fails_ends_its_call_and_its_slot() {
        let mut bench =
            bench(RpcSpec { arrivals: Arrivals::Closed(Gap::Fixed(Dur::ZERO)), ..spec() });
        // Two requests and a response.
        bench.run_for(3);
        let response = bench.submitted[2];
        bench.fail(MsgKey { src: response.src, id: response.msg.id });
        bench.resume(usize::MAX);
        let failed = bench.jobs.iter().filter(|job| !job.completed).count();
        assert_eq!((failed, bench.jobs.len()), (1, 6), "the other slot makes the other five");
    }

    #[test]
    fn what_is_said_survives_its_token() {
        let call = Said::CALLS - 1;
        for said in [
            Said::Request { call, response: RESPONSE_MAX },
            Said::Request { call: 0, response: 1 },
            Said::Response { call },
            Said::Response { call: 0 },
            Said::Failure { call },
            Said::Failure { call: 0 },
        ] {
            assert_eq!(Said::of(said.token()), said);
        }
    }
}
