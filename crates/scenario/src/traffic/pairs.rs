//! Between which pairs of hosts a table of traffic sends, where it is those of a permutation: its
//! own, or one that it shares with other tables.

use workload::matrix;
use workload::{Share, ShareError};

use super::{Context, hosts, possible};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::reader::Reader;

/// The keys that name another table.
const SHARED: [&str; 2] = ["rest_of", "pairs_of"];

/// The pairs of a table, for others to share if it has a name.
#[derive(Debug)]
pub(super) struct Taken {
    name: Option<String>,
    share: Share,
}

impl Taken {
    /// `share` is what the table called `name` has.
    pub(super) fn new(name: Option<String>, share: Share) -> Self {
        Self { name, share }
    }
}

/// Whether the pairs are those of another table, or what it left.
pub(super) fn are_shared(table: &Reader<'_>) -> bool {
    SHARED.iter().any(|key| table.has(key))
}

/// The pairs of a table whose matrix is a permutation: with `rest_of` or `pairs_of` that of another
/// table, otherwise one among `hosts`; of it the `share`, if that is written.
pub(super) fn read(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Share, Diagnostic> {
    let share = match (of(table, "rest_of", context)?, of(table, "pairs_of", context)?) {
        (Some(_), Some(_)) => {
            let message = "`rest_of` and `pairs_of` exclude each other";
            return Err(table
                .error("pairs_of", message, "one too many")
                .hint("remove one of them"));
        }
        (None, Some(same)) => same,
        (Some(before), None) => {
            let share = share(table)?;
            let rest = before.rest(share);
            let rest = taken(table, if share.is_some() { "share" } else { "rest_of" }, rest)?;
            check_left(table, context.taken, &rest)?;
            rest
        }
        (None, None) => {
            let hosts = hosts(table, "hosts", context)?;
            let pairs = possible(table, "hosts", matrix::permutation(&hosts, context.draw))?;
            match share(table)? {
                None => Share::whole(pairs),
                Some(share) => taken(table, "share", Share::drawn(pairs, share, context.draw))?,
            }
        }
    };
    context.share = Some(share.clone());
    Ok(share)
}

/// The pairs of the table that `key` names, if it is written.
fn of(
    table: &mut Reader<'_>,
    key: &'static str,
    context: &Context<'_>,
) -> Result<Option<Share>, Diagnostic> {
    let Some(wanted) = table.maybe::<String>(key)? else { return Ok(None) };
    let of = |taken: &&Taken| taken.name.as_deref() == Some(&wanted);
    if let Some(taken) = context.taken.iter().find(of) {
        return Ok(Some(taken.share.clone()));
    }
    let message = format!("no table before this one has a permutation and the name `{wanted}`");
    let error = table.error(key, message, "no such table");
    let names: Vec<&str> = context.taken.iter().filter_map(|taken| taken.name.as_deref()).collect();
    Err(match names.is_empty() {
        true => {
            error.hint("give the table with the permutation a `name`, and put it before this one")
        }
        false => error.hint(did_you_mean(&wanted, &names)),
    })
}

/// Check that no table of `before` has taken any pair of `rest`, what this one takes by `rest_of`:
/// two tables that take the rest of one table would have the same pairs, which only `pairs_of` may
/// ask for.
fn check_left(table: &Reader<'_>, before: &[Taken], rest: &Share) -> Result<(), Diagnostic> {
    // The last of them is the one that left what is left.
    let Some(last) = before.iter().rfind(|taken| taken.share.overlaps(rest)) else {
        return Ok(());
    };
    let message = "a table before this one has already taken these pairs";
    let error = table.error("rest_of", message, "not left any more");
    Err(match &last.name {
        Some(name) => error.hint(format!("`rest_of = \"{name}\"` takes what that one left")),
        None => error.hint("give that table a `name`, and write it here"),
    })
}

/// The share of the pairs that a table takes.
fn share(table: &mut Reader<'_>) -> Result<Option<f64>, Diagnostic> {
    let Some(share) = table.maybe::<f64>("share")? else { return Ok(None) };
    table.within("share", share, 1e-6..=1.0).map(Some)
}

fn taken(
    table: &Reader<'_>,
    key: &'static str,
    share: Result<Share, ShareError>,
) -> Result<Share, Diagnostic> {
    share.map_err(|why| {
        let error = table.error(key, format!("impossible traffic: {why}"), "here");
        error.hint("shares are of the whole permutation; those that share it come to 1 at most")
    })
}
