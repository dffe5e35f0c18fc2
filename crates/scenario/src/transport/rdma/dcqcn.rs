//! `kind = "dcqcn"`: the keys of [`transports::rdma::rule::dcqcn::Params`].

use transports::rdma::rule::dcqcn::{Cuts, Params};
use transports::rdma::{Config, RuleConfig};
use units::{Bytes, Dur};

use super::super::{Transport, bytes, named, preset};
use super::{Off, Variant, read};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;
use crate::transport::Around;

/// `kind = "dcqcn"`.
pub(crate) fn dcqcn(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let payload = bytes(table, "payload", None, 1)?;
    let known = [
        ("paper", Config::dcqcn(payload, Params::PAPER)),
        ("ns3-rdma", Config::dcqcn(payload, Params::NS3_RDMA)),
        ("mlx", Config::dcqcn(payload, Params::MLX)),
        ("mlx-paper", Config::dcqcn(payload, Params::MLX_PAPER)),
    ];
    let p = preset(table, &known)?;
    let usual = p.map(|p| match p.rule {
        RuleConfig::Dcqcn(params) => params,
        _ => Params::PAPER,
    });
    let (cuts, cnp_interval) = cuts(table, usual.map(|p| p.cuts), p.and_then(|p| p.cnp_interval))?;
    let rule = RuleConfig::Dcqcn(params(table, usual.as_ref(), cuts)?);
    read(table, payload, p.as_ref(), &Variant { rule, cnp_interval, telemetry: false })
}

/// `feedback = "cnp"` with `cnp_interval`, or `"ack"` with `cut_interval`.
fn cuts(
    table: &mut Reader<'_>,
    usual: Option<Cuts>,
    cnp_interval: Option<Dur>,
) -> Result<(Cuts, Option<Dur>), Diagnostic> {
    let by_ack = usual.map(|cuts| cuts != Cuts::Cnp);
    if !named(table, "feedback", &[("cnp", false), ("ack", true)], by_ack)? {
        return Ok((Cuts::Cnp, Some(table.given("cnp_interval", cnp_interval)?)));
    }
    let usual = match usual {
        Some(Cuts::Clocked(every)) => Some(every),
        _ => None,
    };
    Ok((Cuts::Clocked(table.given("cut_interval", usual)?), None))
}

fn params(table: &mut Reader<'_>, p: Option<&Params>, cuts: Cuts) -> Result<Params, Diagnostic> {
    let counter = |bytes: u64| Off((bytes != u64::MAX).then_some(Bytes(bytes)));
    let byte_counter = table.given("byte_counter", p.map(|p| counter(p.byte_counter)))?;
    Ok(Params {
        gain: table.given("gain", p.map(|p| p.gain))?,
        cuts,
        alpha_timer: table.given("alpha_timer", p.map(|p| p.alpha_timer))?,
        rate_timer: table.given("rate_timer", p.map(|p| p.rate_timer))?,
        byte_counter: byte_counter.0.map_or(u64::MAX, |bytes| bytes.0),
        stages: table.given("stages", p.map(|p| p.stages))?,
        increase: table.given("increase", p.map(|p| p.increase))?,
        hyper_increase: table.given("hyper_increase", p.map(|p| Off(p.hyper_increase)))?.0,
        min_rate: table.given("min_rate", p.map(|p| p.min_rate))?,
        clamp_target: table.given("clamp_target", p.map(|p| p.clamp_target))?,
        alpha_first: table.given("alpha_first", p.map(|p| p.alpha_first))?,
    })
}
