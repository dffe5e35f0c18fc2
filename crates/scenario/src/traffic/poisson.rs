//! `kind = "poisson"`: messages at random instants, whatever is under way.

use std::sync::Arc;

use units::{Rate, Time};
use workload::{Destinations, PoissonSpec, SizeDist, arrivals};

use super::sizes::drawn_sizes;
use super::{Context, Part, Sender, pairs, until};
use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// `kind = "poisson"`. Open loop, under way from time zero, so that what is measured is drained
/// under continuing load unless `until` is written.
pub(super) fn poisson(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    let senders = who(table, context)?;
    let prio = table.or("priority", 0)?;
    let sizes = drawn_sizes(table, context)?;
    let mean_gap_ps = mean_gap_ps(table, context, &sizes, senders.len())?;
    let until = until(table, Time::ZERO)?;
    Ok(Part::Poisson(Arc::new(PoissonSpec { mean_gap_ps, sizes, until, prio }), senders))
}

/// Who sends, each to destinations drawn for each message, or to its own of a permutation.
fn who(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Vec<Sender>, Diagnostic> {
    let kinds = [("random", false), ("permutation", true)];
    let paired = pairs::are_shared(table) || table.choose_or_first("matrix", &kinds, |k| k.0)?.1;
    if !paired {
        return super::senders(table, context);
    }
    let share = pairs::read(table, context)?;
    let to = |dst| Destinations::among(vec![dst]);
    Ok(share.pairs().iter().map(|&(src, dst)| (src, to(dst))).collect())
}

/// The mean time between two pieces of work of a host, each of which has `bytes` bytes of payload
/// on average, that offer `load`: relative to a host's own link, that of host 0, whose number is
/// also its link's.
pub(super) fn gap_of_load(
    table: &Reader<'_>,
    context: &Context<'_>,
    load: f64,
    bytes: f64,
) -> Result<f64, Diagnostic> {
    table.within("load", load, 0.0001..=10.0)?;
    let rate = context.topology.links().first().map_or(Rate(0), |link| link.rate);
    arrivals::mean_gap_ps(load, rate, bytes)
        .ok_or_else(|| table.error("load", "this load cannot be offered", "here"))
}

/// The mean time between two messages of one of `senders` hosts, from exactly one of `load` and
/// `message_rate`.
///
/// A Poisson process of which each arrival is at a host drawn anew is the same as an independent
/// process at each host, of a rate that is its share (superposition). So the rate of the whole
/// network is divided, and no host has to know of the others.
fn mean_gap_ps(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    sizes: &SizeDist,
    senders: usize,
) -> Result<f64, Diagnostic> {
    match (table.maybe::<f64>("load")?, table.maybe::<f64>("message_rate")?) {
        (Some(load), None) => gap_of_load(table, context, load, sizes.mean()),
        (None, Some(rate)) => {
            table.within("message_rate", rate, 0.001..=1e12)?;
            Ok(senders as f64 * 1e12 / rate)
        }
        (Some(_), Some(_)) => {
            let message = "`load` and `message_rate` exclude each other";
            Err(table.error("message_rate", message, "one too many").hint("remove one of them"))
        }
        (None, None) => {
            let hint = "add `load = 0.6`, of each host's link, or `message_rate = 256`, messages per \
                        second of all sources together";
            Err(table.missing("load", hint))
        }
    }
}
