//! The `[queue]` table: the discipline of every switch port.

use endpoint::Framing;
use queues::{Capacity, CutPayloadSpec, DropTailSpec, NdpSpec, QueueSpec};

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
    let trim_to = trim_to(table)?;
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

/// `kind = "cut-payload"`. Defaults are those of the NDP authors' code (ndp.md, section 4).
pub(crate) fn cut_payload(
    table: &mut Reader<'_>,
    framing: Framing,
) -> Result<QueueSpec, Diagnostic> {
    // Headers and full packets share the queue, so it is memory that counts, not packets.
    let full = u32::from(framing.payload.saturating_add(framing.overhead));
    let memory = |capacity| match capacity {
        Capacity::Packets(n) => n.saturating_mul(full),
        Capacity::Bytes(n) => n,
    };
    let bytes = memory(table.need("capacity")?);
    let capacity = Capacity::Bytes(bytes);
    let trim_threshold = memory(table.or("trim_threshold", Capacity::Bytes(bytes / 2))?);
    table.within("trim_threshold", trim_threshold, 1..=bytes)?;
    let trim_threshold = Capacity::Bytes(trim_threshold);
    let trim_to = trim_to(table)?;
    Ok(QueueSpec::CutPayload(CutPayloadSpec { capacity, trim_threshold, trim_to }))
}

/// The length of a trimmed packet.
fn trim_to(table: &mut Reader<'_>) -> Result<u16, Diagnostic> {
    let trim_to = table.or("trim_to", units::Bytes(64))?;
    // At most 1500, so it fits.
    Ok(table.within("trim_to", trim_to, units::Bytes(64)..=units::Bytes(1_500))?.0 as u16)
}

/// Check that what `spec` holds of full packets is at least one, of `mtu` bytes.
fn check_mtu(table: &Reader<'_>, spec: &QueueSpec, mtu: u16) -> Result<(), Diagnostic> {
    let (key, capacity) = match spec {
        QueueSpec::DropTail(spec) => ("capacity", spec.capacity),
        QueueSpec::Ndp(spec) => ("capacity", spec.data_capacity),
        // The queue above the threshold is for headers.
        QueueSpec::CutPayload(spec) => ("trim_threshold", spec.trim_threshold),
    };
    let held = match capacity {
        Capacity::Bytes(n) if n < u32::from(mtu) => format!("{n} bytes"),
        Capacity::Packets(0) => "0 packets".to_owned(),
        _ => return Ok(()),
    };
    let message = format!("a queue of {held} holds no packet of {mtu} bytes");
    let key = table.likeliest(&[key, "capacity"]).unwrap_or(key);
    let error = table.error(key, message, "too small");
    let hint = match spec {
        QueueSpec::CutPayload(_) => format!(
            "`trim_threshold`, half of `capacity` if it is not written, is at least \"{mtu}B\" or \
             \"1 packets\""
        ),
        _ => format!("at least \"{mtu}B\", or count packets: \"8 packets\""),
    };
    Err(error.hint(hint))
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
