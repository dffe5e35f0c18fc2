//! `kind = "hpcc"`: the keys of [`transports::rdma::rule::hpcc::Params`].

use transports::rdma::rule::hpcc::{Increase, Params, Reaction};
use transports::rdma::{Config, RuleConfig};

use super::super::{Transport, bytes, named, preset};
use super::{Variant, read};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;
use crate::transport::Around;

/// `kind = "hpcc"`.
pub(crate) fn hpcc(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let payload = bytes(table, "payload", None, 1)?;
    let known = [
        ("paper", Config::hpcc(payload, Params::PAPER)),
        ("simulator", Config::hpcc(payload, Params::SIMULATOR)),
    ];
    let p = preset(table, &known)?;
    let usual = p.map(|p| match p.rule {
        RuleConfig::Hpcc(params) => params,
        _ => Params::PAPER,
    });
    let rule = RuleConfig::Hpcc(params(table, usual.as_ref())?);
    read(table, payload, p.as_ref(), &Variant { rule, cnp_interval: None, telemetry: true })
}

/// T and N are those of a network: no preset sets them.
fn params(table: &mut Reader<'_>, p: Option<&Params>) -> Result<Params, Diagnostic> {
    let increase = match p.map(|p| p.increase) {
        Some(Increase::Speed(speed)) => Increase::Speed(table.or("increase", speed)?),
        _ if table.has("increase") => Increase::Speed(table.need("increase")?),
        _ => Increase::Flows(table.need("flows")?),
    };
    Ok(Params {
        utilization: table.given("utilization", p.map(|p| p.utilization))?,
        stages: table.given("stages", p.map(|p| p.stages))?,
        rtt: table.need("rtt")?,
        increase,
        min_rate: table.given("min_rate", p.map(|p| p.min_rate))?,
        reaction: named(table, "reaction", REACTIONS, p.map(|p| p.reaction))?,
    })
}

const REACTIONS: &[(&str, Reaction)] =
    &[("both", Reaction::Both), ("per-rtt", Reaction::PerRtt), ("per-ack", Reaction::PerAck)];
