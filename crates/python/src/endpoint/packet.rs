//! [`Packet`] and [`Message`] as Python sees them.

use endpoint::{Flags, Framing, HDR_MAX, Msg, Span, UNBOUNDED};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use units::{Dur, HostId, MsgId};

/// The shortest packet on the wire, bytes.
const SHORTEST: u16 = 40;

/// A message that an application hands over.
#[pyclass(module = "trimline", frozen, get_all)]
pub(crate) struct Message {
    id: u64,
    dst: u32,
    length: Option<u64>,
    channel: u32,
    priority: u8,
    deadline: Option<u64>,
}

impl Message {
    pub(crate) fn of(msg: &Msg) -> Self {
        Self {
            id: msg.id.0,
            dst: msg.dst.0,
            length: (msg.len != UNBOUNDED).then_some(msg.len),
            channel: msg.channel,
            priority: msg.prio,
            deadline: (msg.deadline != Dur::MAX).then_some(msg.deadline.0),
        }
    }
}

/// A packet that has arrived, or one to be sent.
#[pyclass(module = "trimline", frozen)]
pub(crate) struct Packet {
    /// Not beside the object's own fields: Python aligns objects to 16 bytes only.
    packet: Box<endpoint::Packet>,
}

impl Packet {
    pub(crate) fn of(packet: &endpoint::Packet) -> Self {
        Self { packet: Box::new(*packet) }
    }

    /// Put it into `slot`. `bounds`: the hosts, and the longest packet that links carry.
    pub(crate) fn send(
        &self,
        slot: &mut endpoint::Packet,
        me: HostId,
        framing: Framing,
        bounds: (u32, u16),
    ) -> PyResult<()> {
        let packet = &*self.packet;
        let (hosts, mtu) = bounds;
        let refused = |what: String| Err(PyValueError::new_err(what));
        if packet.dst.0 >= hosts {
            return refused(format!("a packet to host {}, of {hosts} hosts", packet.dst.0));
        }
        if packet.dst == me {
            return refused(format!("a packet to itself, host {}", me.0));
        }
        if packet.span.len > u32::from(framing.payload) {
            let (len, most) = (packet.span.len, framing.payload);
            return refused(format!("a packet with {len} bytes of payload, of {most} at most"));
        }
        let wire_len = match packet.wire_len {
            0 if packet.flags.has(Flags::CONTROL) => framing.overhead,
            0 => framing.overhead + packet.span.len as u16,
            written => written,
        };
        let carried = if packet.flags.payload() { packet.span.len } else { 0 };
        if wire_len < SHORTEST || u32::from(wire_len) < carried || wire_len > mtu {
            return refused(format!(
                "a packet of {wire_len} bytes on the wire with {carried} of payload: from \
                 {SHORTEST} bytes to {mtu}"
            ));
        }
        *slot = endpoint::Packet { src: me, wire_len, ..*packet };
        Ok(())
    }
}

#[pymethods]
impl Packet {
    #[new]
    #[pyo3(signature = (
        dst, msg, *, offset=0, length=0, header=None, control=false, ecn=false, traffic_class=0,
        path=0, token=0, wire_length=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        dst: u32,
        msg: u64,
        offset: u64,
        length: u32,
        header: Option<&[u8]>,
        control: bool,
        ecn: bool,
        traffic_class: u8,
        path: u32,
        token: u32,
        wire_length: u16,
    ) -> PyResult<Self> {
        let header = header.unwrap_or_default();
        if header.len() > HDR_MAX {
            let message = format!("a header of {} bytes, of {HDR_MAX} at most", header.len());
            return Err(PyValueError::new_err(message));
        }
        if traffic_class > 7 {
            let message = format!("traffic class {traffic_class}: there are 0 to 7");
            return Err(PyValueError::new_err(message));
        }
        let mut flags = if control { Flags::CONTROL } else { Flags::default() };
        if ecn {
            flags.set(Flags::ECT);
        }
        let mut packet = endpoint::Packet {
            span: Span { msg: MsgId(msg), offset, len: length },
            dst: HostId(dst),
            path,
            token,
            wire_len: wire_length,
            flags,
            class: traffic_class,
            proto: scenario::CUSTOM_PROTO,
            ..endpoint::Packet::EMPTY
        };
        packet.put_header(header);
        Ok(Self { packet: Box::new(packet) })
    }

    #[getter]
    fn src(&self) -> u32 {
        self.packet.src.0
    }

    #[getter]
    fn dst(&self) -> u32 {
        self.packet.dst.0
    }

    #[getter]
    fn msg(&self) -> u64 {
        self.packet.span.msg.0
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.packet.span.offset
    }

    #[getter]
    fn length(&self) -> u32 {
        self.packet.span.len
    }

    #[getter]
    fn wire_length(&self) -> u16 {
        self.packet.wire_len
    }

    #[getter]
    fn path(&self) -> u32 {
        self.packet.path
    }

    #[getter]
    fn traffic_class(&self) -> u8 {
        self.packet.class
    }

    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.packet.header())
    }

    #[getter]
    fn control(&self) -> bool {
        self.packet.flags.has(Flags::CONTROL)
    }

    #[getter]
    fn trimmed(&self) -> bool {
        self.packet.flags.has(Flags::TRIMMED)
    }

    #[getter]
    fn bounced(&self) -> bool {
        self.packet.flags.has(Flags::BOUNCED)
    }

    #[getter]
    fn ecn_marked(&self) -> bool {
        self.packet.flags.has(Flags::CE)
    }
}
