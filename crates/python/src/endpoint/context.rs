//! [`Context`]: what an endpoint in Python is told with every call, and where it says what it wants
//! done.

use std::collections::BTreeMap;

use endpoint::{Cx, Draw, Effects, FailReason, Purpose, Stat};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};

/// The stats of `Context.count`, by name.
const STATS: [(&str, Stat); 6] = [
    ("retransmission", Stat::Retransmission),
    ("timeout", Stat::Timeout),
    ("fast_retransmit", Stat::FastRetransmit),
    ("duplicate", Stat::Duplicate),
    ("rejected", Stat::Rejected),
    ("host_drop", Stat::HostDrop),
];

/// Why a message failed, by name.
const REASONS: [(&str, FailReason); 3] = [
    ("cancelled", FailReason::Cancelled),
    ("timed_out", FailReason::TimedOut),
    ("refused", FailReason::Refused),
];

/// The one of `list` called `name`.
fn named<T: Copy>(list: &[(&str, T)], name: &str) -> PyResult<T> {
    let found = list.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
        PyValueError::new_err(format!("{name:?} is none of {}", names.join(", ")))
    })
}

/// What a host knows of the way to another.
#[derive(Clone, Copy)]
struct Way {
    paths: u32,
    hops: u32,
    base_rtt: Dur,
}

/// Time, draws and effects of one call. The same object serves all calls of a host.
#[pyclass(module = "trimline")]
pub(crate) struct Context {
    me: HostId,
    hosts: u32,
    now: Time,
    rate: u64,
    mtu: u16,
    draw: Draw,
    effects: Effects,
    /// To every host that messages have come from or go to.
    ways: BTreeMap<HostId, Way>,
    /// A call goes on.
    is_open: bool,
}

impl Context {
    pub(crate) fn new(me: HostId, hosts: u32) -> Self {
        Self {
            me,
            hosts,
            now: Time::ZERO,
            rate: 0,
            mtu: 0,
            draw: Draw::new(0, Purpose::new("host"), 0),
            effects: Effects::new(),
            ways: BTreeMap::new(),
            is_open: false,
        }
    }

    /// A call begins; it is about host `met`, if about one.
    pub(crate) fn begin(&mut self, cx: &Cx<'_>, met: Option<HostId>) {
        (self.now, self.draw, self.is_open) = (cx.now, cx.draw, true);
        (self.mtu, self.rate) = (cx.net.mtu, cx.net.rate(0).0);
        if let Some(host) = met {
            self.ways.entry(host).or_insert_with(|| Way {
                paths: cx.net.paths(host),
                hops: cx.net.hops(host),
                base_rtt: cx.net.base_rtt(host),
            });
        }
    }

    /// It ends: hand over what it wants done.
    pub(crate) fn end(&mut self, fx: &mut Effects) {
        self.is_open = false;
        fx.append(&mut self.effects);
    }

    /// Where the effects of the call that goes on are collected.
    fn effects(&mut self) -> PyResult<&mut Effects> {
        if self.is_open {
            Ok(&mut self.effects)
        } else {
            Err(PyRuntimeError::new_err("a context is good for the call that it comes with"))
        }
    }

    fn way(&self, host: u32) -> PyResult<Way> {
        self.ways.get(&HostId(host)).copied().ok_or_else(|| {
            PyKeyError::new_err(format!("no message to or from host {host} has been seen here"))
        })
    }

    fn key(&self, (host, id): (u32, u64)) -> PyResult<MsgKey> {
        if host >= self.hosts {
            let message = format!("message of host {host}, and there are {} hosts", self.hosts);
            return Err(PyValueError::new_err(message));
        }
        Ok(MsgKey { src: HostId(host), id: MsgId(id) })
    }
}

#[pymethods]
impl Context {
    #[getter]
    fn now(&self) -> u64 {
        self.now.0
    }

    #[getter]
    fn me(&self) -> u32 {
        self.me.0
    }

    #[getter]
    fn hosts(&self) -> u32 {
        self.hosts
    }

    #[getter]
    fn rate(&self) -> u64 {
        self.rate
    }

    #[getter]
    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn paths(&self, host: u32) -> PyResult<u32> {
        Ok(self.way(host)?.paths)
    }

    fn hops(&self, host: u32) -> PyResult<u32> {
        Ok(self.way(host)?.hops)
    }

    fn base_rtt(&self, host: u32) -> PyResult<u64> {
        Ok(self.way(host)?.base_rtt.0)
    }

    fn unit(&self, purpose: &str, n: u64) -> f64 {
        self.draw.unit(Purpose::new(purpose), n)
    }

    fn below(&self, purpose: &str, n: u64, bound: u64) -> u64 {
        self.draw.below(Purpose::new(purpose), n, bound)
    }

    fn arm(&mut self, timer: u32, at: u64) -> PyResult<()> {
        let now = self.now.0;
        if at < now {
            let message = format!("timer {timer} would fire at {at} ps, and it is {now} ps");
            return Err(PyValueError::new_err(message));
        }
        self.effects()?.arm(TimerId(timer), Time(at));
        Ok(())
    }

    fn disarm(&mut self, timer: u32) -> PyResult<()> {
        self.effects()?.disarm(TimerId(timer));
        Ok(())
    }

    fn place(&mut self, key: (u32, u64), offset: u64, length: u32) -> PyResult<()> {
        let key = self.key(key)?;
        self.effects()?.place(key, offset, length);
        Ok(())
    }

    fn delivered(&mut self, key: (u32, u64)) -> PyResult<()> {
        let key = self.key(key)?;
        self.effects()?.delivered(key);
        Ok(())
    }

    fn acked(&mut self, id: u64) -> PyResult<()> {
        self.effects()?.acked(MsgId(id));
        Ok(())
    }

    fn failed(&mut self, key: (u32, u64), why: &str) -> PyResult<()> {
        let (key, why) = (self.key(key)?, named(&REASONS, why)?);
        self.effects()?.failed(key, why);
        Ok(())
    }

    #[pyo3(signature = (what, id=None))]
    fn count(&mut self, what: &str, id: Option<u64>) -> PyResult<()> {
        let stat = named(&STATS, what)?;
        let effects = self.effects()?;
        match (stat, id) {
            (Stat::Timeout, Some(id)) => effects.timeout(Stat::OtherTimeout, MsgId(id)),
            (_, Some(id)) => effects.count_for(stat, MsgId(id)),
            (_, None) => effects.count(stat),
        }
        Ok(())
    }

    fn rtt(&mut self, id: u64, rtt: u64) -> PyResult<()> {
        self.effects()?.rtt(MsgId(id), Dur(rtt));
        Ok(())
    }
}
