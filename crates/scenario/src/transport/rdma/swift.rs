//! `kind = "swift"`: the keys of [`transports::rdma::rule::swift::Params`].

use transports::rdma::rule::swift::{Params, Scaling};
use transports::rdma::{Config, RuleConfig};

use super::super::{Transport, bytes, preset};
use super::{Off, Variant, read};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;
use crate::transport::Around;

/// `kind = "swift"`.
pub(crate) fn swift(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let payload = bytes(table, "payload", None, 1)?;
    let p = preset(table, &[("paper", Config::swift(payload, Params::PAPER))])?;
    let rule = RuleConfig::Swift(params(table, p.is_some().then_some(&Params::PAPER))?);
    read(table, payload, p.as_ref(), &Variant { rule, cnp_interval: None, telemetry: false })
}

fn params(table: &mut Reader<'_>, p: Option<&Params>) -> Result<Params, Diagnostic> {
    Ok(Params {
        base_target: table.given("base_target", p.map(|p| p.base_target))?,
        per_hop: table.given("per_hop", p.map(|p| p.per_hop))?,
        scaling: scaling(table, p.map(|p| p.scaling))?,
        endpoint_target: table.given("endpoint_target", p.map(|p| p.endpoint_target))?,
        increase: table.given("increase", p.map(|p| p.increase))?,
        decrease: table.given("decrease", p.map(|p| p.decrease))?,
        most_decrease: table.given("most_decrease", p.map(|p| p.most_decrease))?,
        least_window: table.given("least_window", p.map(|p| p.least_window))?,
        most_window: table.given("most_window", p.map(|p| p.most_window))?,
        initial_window: table.given("initial_window", p.map(|p| p.initial_window))?,
        reset_after: table.given("reset_after", p.map(|p| p.reset_after))?,
    })
}

/// `scaling_range`, and unless that is "off", `scaling_least` and `scaling_most`.
fn scaling(
    table: &mut Reader<'_>,
    p: Option<Option<Scaling>>,
) -> Result<Option<Scaling>, Diagnostic> {
    let range = table.given("scaling_range", p.map(|p| Off(p.map(|p| p.range))))?;
    let Some(range) = range.0 else { return Ok(None) };
    let p = p.flatten();
    Ok(Some(Scaling {
        range,
        least: table.given("scaling_least", p.map(|p| p.least))?,
        most: table.given("scaling_most", p.map(|p| p.most))?,
    }))
}
