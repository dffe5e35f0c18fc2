//! A transport written in Python, as a transport of the simulator.
//!
//! Each call of the contract is one call of a method. An exception ends the run: the host is
//! broken, and the caller of the run raises what was raised. What Python asks for is checked here,
//! where its lines can still be named: a transport in Rust is trusted with it.

pub(crate) mod context;
pub(crate) mod packet;

use std::sync::{Arc, Mutex, PoisonError};

use endpoint::{Cx, Endpoint, Framing, Msg, MsgId, Submit, TimerId, Tx, TxPort};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use scenario::{CustomHost, CustomTransport};
use units::Time;

use self::context::Context;
use self::packet::{Message, Packet};

/// A class of endpoints in Python.
#[pyclass(module = "trimline._trimline", frozen)]
pub(crate) struct Transport {
    /// Called with a host and the table `[transport]`, it makes an endpoint.
    factory: Arc<Py<PyAny>>,
    raised: Raised,
}

/// The first exception of any endpoint.
type Raised = Arc<Mutex<Option<PyErr>>>;

#[pymethods]
impl Transport {
    #[new]
    fn new(factory: Py<PyAny>) -> Self {
        Self { factory: Arc::new(factory), raised: Raised::default() }
    }
}

impl Transport {
    /// What `kind = "custom"` means.
    pub(crate) fn custom(&self) -> CustomTransport {
        let (factory, raised) = (Arc::clone(&self.factory), Arc::clone(&self.raised));
        Arc::new(move |host| {
            let made = Python::attach(|py| PyEndpoint::new(py, &factory, host, &raised));
            match made {
                Ok(endpoint) => Ok(Box::new(endpoint)),
                Err(error) => {
                    let why = error.to_string();
                    keep(&raised, error);
                    Err(why)
                }
            }
        })
    }

    /// What an endpoint has raised since this was asked before.
    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Keep the first one.
fn keep(raised: &Raised, error: PyErr) {
    raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

/// Methods that an endpoint need not have.
#[derive(Clone, Copy)]
struct Optional {
    on_cancel: bool,
    on_sent: bool,
}

/// The endpoint of a host.
struct PyEndpoint {
    object: Py<PyAny>,
    context: Py<Context>,
    framing: Framing,
    hosts: u32,
    has: Optional,
    raised: Raised,
    is_broken: bool,
}

impl PyEndpoint {
    fn new(
        py: Python<'_>,
        factory: &Py<PyAny>,
        host: &CustomHost<'_>,
        raised: &Raised,
    ) -> PyResult<Self> {
        let table = table_in_python(py, host.table)?;
        table.set_item("payload", host.framing.payload)?;
        table.set_item("header", host.framing.overhead)?;
        let object = factory.bind(py).call1((host.me.0, table))?;
        let base = py.import("trimline")?.getattr("Endpoint")?;
        if !object.is_instance(&base)? {
            let message = format!("the transport made {object}, which is no trimline.Endpoint");
            return Err(PyTypeError::new_err(message));
        }
        let class = object.get_type();
        let has = |name: &str| Ok::<_, PyErr>(!class.getattr(name)?.is(&base.getattr(name)?));
        let has = Optional { on_cancel: has("on_cancel")?, on_sent: has("on_sent")? };
        Ok(Self {
            object: object.unbind(),
            context: Py::new(py, Context::new(host.me, host.hosts))?,
            framing: host.framing,
            hosts: host.hosts,
            has,
            raised: Arc::clone(raised),
            is_broken: false,
        })
    }

    /// Call Python with a context for `cx`, and put what it wants done into `cx`. An exception
    /// breaks the host.
    fn call<T>(
        &mut self,
        cx: &mut Cx<'_>,
        met: Option<units::HostId>,
        body: impl FnOnce(&Self, Python<'_>) -> PyResult<T>,
    ) -> Option<T> {
        if self.is_broken {
            return None;
        }
        let called = Python::attach(|py| {
            self.context.bind(py).borrow_mut().begin(cx, met);
            let called = body(self, py);
            self.context.bind(py).borrow_mut().end(cx.fx);
            called
        });
        match called {
            Ok(value) => Some(value),
            Err(error) => {
                self.is_broken = true;
                cx.fx.broken(format!("the transport in Python has raised {error}"));
                keep(&self.raised, error);
                None
            }
        }
    }

    /// What `poll_tx` has returned, which is a packet in `slot`, an instant or nothing.
    fn answer(
        &self,
        answer: &Bound<'_, PyAny>,
        slot: &mut endpoint::Packet,
        cx: (units::HostId, Time, u16),
    ) -> PyResult<Tx> {
        let (me, now, mtu) = cx;
        if answer.is_none() {
            return Ok(Tx::Idle);
        }
        if let Ok(packet) = answer.cast::<Packet>() {
            packet.borrow().send(slot, me, self.framing, (self.hosts, mtu))?;
            return Ok(Tx::Sent);
        }
        match answer.extract::<u64>() {
            Ok(at) if at > now.0 => Ok(Tx::NotBefore(Time(at))),
            Ok(at) => {
                let message = format!("poll_tx would send at {at} ps, and it is {} ps", now.0);
                Err(PyValueError::new_err(message))
            }
            Err(_) => {
                let message = format!("poll_tx returns a Packet, an int or None, not {answer}");
                Err(PyTypeError::new_err(message))
            }
        }
    }
}

impl Endpoint for PyEndpoint {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        let taken = self.call(cx, Some(msg.dst), |this, py| {
            let msg = Message::of(msg);
            let method = intern!(py, "on_submit");
            let answer = this.object.call_method1(py, method, (&this.context, msg))?;
            Ok(answer.bind(py).cast::<pyo3::types::PyBool>().is_ok_and(|b| !b.is_true()))
        });
        if taken == Some(true) { Submit::Full } else { Submit::Taken }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &endpoint::Packet) {
        self.call(cx, Some(pkt.src), |this, py| {
            let packet = Packet::of(pkt);
            let method = intern!(py, "on_packet");
            this.object.call_method1(py, method, (&this.context, packet)).map(drop)
        });
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        self.call(cx, None, |this, py| {
            let method = intern!(py, "on_timer");
            this.object.call_method1(py, method, (&this.context, id.0)).map(drop)
        });
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, _: TxPort, slot: &mut endpoint::Packet) -> Tx {
        let around = (cx.me, cx.now, cx.net.mtu);
        let answer = self.call(cx, None, |this, py| {
            let method = intern!(py, "poll_tx");
            let answer = this.object.call_method1(py, method, (&this.context,))?;
            this.answer(answer.bind(py), slot, around)
        });
        answer.unwrap_or(Tx::Idle)
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        if self.has.on_cancel {
            self.call(cx, None, |this, py| {
                let method = intern!(py, "on_cancel");
                this.object.call_method1(py, method, (&this.context, id.0)).map(drop)
            });
        }
    }

    fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, at: Time) {
        if self.has.on_sent {
            self.call(cx, None, |this, py| {
                let method = intern!(py, "on_sent");
                this.object.call_method1(py, method, (&this.context, token, at.0)).map(drop)
            });
        }
    }
}

fn table_in_python<'py>(py: Python<'py>, table: &toml::Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    table.iter().try_for_each(|(key, value)| dict.set_item(key, in_python(py, value)?))?;
    Ok(dict)
}

fn in_python<'py>(py: Python<'py>, value: &toml::Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        toml::Value::String(text) => PyString::new(py, text).into_any(),
        toml::Value::Integer(n) => n.into_pyobject(py)?.into_any(),
        toml::Value::Float(x) => x.into_pyobject(py)?.into_any(),
        toml::Value::Boolean(b) => b.into_pyobject(py)?.to_owned().into_any(),
        toml::Value::Datetime(date) => PyString::new(py, &date.to_string()).into_any(),
        toml::Value::Array(items) => {
            let list = PyList::empty(py);
            items.iter().try_for_each(|item| list.append(in_python(py, item)?))?;
            list.into_any()
        }
        toml::Value::Table(table) => table_in_python(py, table)?.into_any(),
    })
}
