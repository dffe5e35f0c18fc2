//! The `[queue]` table: the discipline of every switch port.

use endpoint::Framing;
use queues::{Capacity, DropTailSpec, NdpSpec, QueueSpec};

use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::reader::{Knob, Reader};
use crate::registry::{Kind, QUEUES};
use crate::transport::Transport;

/// Read `[queue]`, for the packets of `transport`.
pub(crate) fn read(table: &mut Reader<'_>, transport: &Transport) -> Result<QueueSpec, Diagnostic> {
    let kind: &Kind<ReadQueue> = table.choose("kind", QUEUES, |k| k.name)?;
    let spec = (kind.read)(table, transport.framing)?;
    check_mtu(table, &spec, transport.mtu)?;
    Ok(spec)
}

/// How one kind of queue is read.
pub(crate) type ReadQueue = fn(&mut Reader<'_>, Framing) -> Result<QueueSpec, Diagnostic>;

/// `kind = "drop-tail"`: capacity and, for transports that understand marks, a threshold.
pub(crate) fn drop_tail(table: &mut Reader<'_>, _: Framing) -> Result<QueueSpec, Diagnostic> {
    let capacity = table.need("capacity")?;
    let ecn_threshold = table.maybe("ecn_threshold")?;
    Ok(QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold }))
}

/// `kind = "ndp"`. Defaults are those of the paper and its code (ndp.md, section 1).
pub(crate) fn ndp(table: &mut Reader<'_>, framing: Framing) -> Result<QueueSpec, Diagnostic> {
    let data_capacity = table.need("capacity")?;
    // "The same byte memory as the data queue"; the paper counts eight packets as 72 000 bytes.
    let same_memory = match data_capacity {
        Capacity::Bytes(n) => Capacity::Bytes(n),
        Capacity::Packets(n) => Capacity::Bytes(n.saturating_mul(u32::from(framing.payload))),
    };
    let header_capacity = table.or("header_capacity", same_memory)?;
    let header_weight = table.or("header_weight", 10)?;
    table.within("header_weight", header_weight, 1..=u8::MAX)?;
    let data_weight = table.or("data_weight", 1)?;
    table.within("data_weight", data_weight, 1..=u8::MAX)?;
    let trim_arriving = table.or("trim_arriving", 0.5)?;
    table.within("trim_arriving", trim_arriving, 0.0..=1.0)?;
    let trim_to = table.or("trim_to", units::Bytes(64))?;
    table.within("trim_to", trim_to, units::Bytes(64)..=units::Bytes(1_500))?;
    let trim_to = trim_to.0 as u16; // At most 1500.
    let bounce = table.or("bounce", true)?;
    Ok(QueueSpec::Ndp(NdpSpec {
        data_capacity,
        header_capacity,
        header_weight,
        data_weight,
        trim_arriving,
        trim_to,
        bounce,
    }))
}

/// Check that each queue of `spec` holds at least one packet of `mtu` bytes.
fn check_mtu(table: &Reader<'_>, spec: &QueueSpec, mtu: u16) -> Result<(), Diagnostic> {
    let capacity = match spec {
        QueueSpec::DropTail(spec) => spec.capacity,
        QueueSpec::Ndp(spec) => spec.data_capacity,
    };
    match capacity {
        Capacity::Bytes(n) if n < u32::from(mtu) => {
            let message = format!("a queue of {n} bytes holds no packet of {mtu} bytes");
            let error = table.error("capacity", message, "too small");
            Err(error.hint(format!("at least \"{mtu}B\", or count packets: \"8 packets\"")))
        }
        _ => Ok(()),
    }
}

impl Knob for Capacity {
    const EXAMPLE: &'static str = "\"72000B\"` or `\"8 packets\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => text.parse().map_err(|e: queues::CapacityError| e.to_string()),
            Value::Integer(n) if *n < 0 => Err(format!("{n} is negative")),
            Value::Integer(n) => Err(format!("{n} has no unit")),
            other => Err(format!("a size or a number of packets is wanted, not {}", other.kind())),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.to_string())
    }
}
