//! The `[transport]` table: which transport, and every one of its parameters.
//!
//! A parameter is written by the name of the transport's `Config` field. None has a default here;
//! `preset` names a published set of them, which the other keys then change.

mod cbr;
mod ndp;
mod newreno;

use endpoint::{Endpoint, Framing};
use units::{Bytes, Dur};

use crate::diagnostic::Diagnostic;
use crate::packet_latency::Acknowledges;
use crate::reader::Reader;
use crate::registry::{Kind, TRANSPORTS};
use crate::routing::Mode;

pub(crate) use cbr::cbr;
pub(crate) use ndp::ndp;
pub(crate) use newreno::newreno;

/// A transport with its parameters, ready to be put on hosts.
pub(crate) struct Transport {
    /// How it cuts messages into packets.
    pub(crate) framing: Framing,
    /// Its longest packet on the wire, data or control.
    pub(crate) mtu: u16,
    /// What it sends before it hears anything, payload bytes.
    pub(crate) first_window: u64,
    /// Whether it can choose a path for each packet.
    pub(crate) sprays: bool,
    /// Whether it carries only messages without an end.
    pub(crate) unbounded_only: bool,
    /// The longest life of a packet with which it delivers nothing twice; `None` if that does not
    /// matter.
    pub(crate) life_max: Option<Dur>,
    /// Tells acknowledgements of single packets from other control packets; `None` if the transport
    /// has none.
    pub(crate) acknowledges: Option<Acknowledges>,
    /// Makes the endpoint of one host. `None` for a configuration that the transport refuses,
    /// which reading has checked.
    pub(crate) endpoint: Box<dyn Fn() -> Option<Box<dyn Endpoint>> + Send + Sync>,
}

/// How one transport is read.
pub(crate) type ReadTransport = fn(&mut Reader<'_>, Mode, u32) -> Result<Transport, Diagnostic>;

/// Read `[transport]`, for `hosts` hosts; `mode` says how its senders choose paths.
pub(crate) fn read(
    table: &mut Reader<'_>,
    mode: Mode,
    hosts: u32,
) -> Result<Transport, Diagnostic> {
    let kind: &Kind<ReadTransport> = table.choose("kind", TRANSPORTS, |k| k.name)?;
    (kind.read)(table, mode, hosts)
}

/// The largest payload: with its headers it must fit the 16 bits of a packet's length.
const PAYLOAD_MAX: Bytes = Bytes(65_000);

/// A number of bytes that fits 16 bits.
fn bytes(
    table: &mut Reader<'_>,
    key: &'static str,
    preset: Option<u16>,
    least: u64,
) -> Result<u16, Diagnostic> {
    let n = table.given(key, preset.map(|n| Bytes(u64::from(n))))?;
    // At most 65000, so it fits.
    Ok(table.within(key, n, Bytes(least)..=PAYLOAD_MAX)?.0 as u16)
}

/// The configuration that `preset` names, if any.
fn preset<C>(table: &mut Reader<'_>, known: &[(&'static str, C)]) -> Result<Option<C>, Diagnostic>
where
    C: Clone,
{
    if !table.has("preset") {
        return Ok(None);
    }
    table.choose("preset", known, |(name, _)| name).map(|(_, config)| Some(config.clone()))
}

/// A configuration that its transport refuses, because of the values of `keys`.
fn refused(table: &Reader<'_>, why: &str, keys: &[&str]) -> Diagnostic {
    // What comes from a preset is not written anywhere; presets alone are never refused.
    let key = table.likeliest(keys).unwrap_or("kind");
    let error = table.error(key, why, "refused");
    error.hint("docs/scenario-reference.md has the range of every key")
}
