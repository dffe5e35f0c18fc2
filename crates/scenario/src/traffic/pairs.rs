//! Between which pairs of hosts a table of traffic sends, where it is those of a permutation: its
//! own, or one that it shares with other tables.

use workload::matrix;
use workload::{HostSet, Share, ShareError};

use super::ends::possible;
use super::{Context, Written};
use crate::diagnostic::{Checked, did_you_mean};
use crate::key::keys;

keys! { "traffic.pairs" PAIRS: Written {
    rest_of (maybe rest_of): String,
        "instead of `hosts`: what that table and those before it left of their permutation. See \
         below".range("the `name` of a table before").default("none");
    pairs_of (maybe pairs_of): String, "instead of `hosts`: the very pairs of that table"
        .range("the `name` of a table before").default("none");
    hosts (hosts when |w| !w.shared): HostSet, "among whom"
        .range("at least 2").default("").only("a permutation of its own");
    share (maybe share when |w| w.pairs_of.is_none()): f64 [1e-6..=1.0],
        "only this share of the pairs send, drawn; of a fraction of a pair, nothing. See below"
            .default("all").only("pairs that are not those of another table");
}}

/// The pairs of a table whose matrix is a permutation: with `rest_of` or `pairs_of` that of another
/// table, otherwise one among `hosts`; of it the `share`, if that is written.
pub(super) fn share(cx: &Context<'_, '_>) -> Checked<Share> {
    cx.table.at_most_one(&["rest_of", "pairs_of"])?;
    if let Some(name) = &cx.written.pairs_of {
        return of(cx, "pairs_of", name).cloned();
    }
    if let Some(name) = &cx.written.rest_of {
        let rest = of(cx, "rest_of", name)?.rest(cx.written.share);
        let key = if cx.written.share.is_some() { "share" } else { "rest_of" };
        let rest = taken(cx, key, rest)?;
        check_left(cx, &rest)?;
        return Ok(rest);
    }
    let hosts = cx.members("hosts", &cx.written.hosts)?;
    let pairs = possible(cx, "hosts", matrix::permutation(&hosts, cx.draw))?;
    match cx.written.share {
        None => Ok(Share::whole(pairs)),
        Some(share) => taken(cx, "share", Share::drawn(pairs, share, cx.draw)),
    }
}

/// The tables before this one that have pairs, with their names.
fn before<'c>(
    cx: &Context<'c, '_>,
) -> impl DoubleEndedIterator<Item = (Option<&'c str>, &'c Share)> {
    let all = cx.before.iter().zip(cx.names);
    all.filter_map(|(part, name)| Some((name.as_deref(), part.share.as_ref()?)))
}

/// The pairs of the table that is called `wanted`, the value of `key`.
fn of<'c>(cx: &Context<'c, '_>, key: &str, wanted: &str) -> Checked<&'c Share> {
    if let Some((_, share)) = before(cx).find(|(name, _)| *name == Some(wanted)) {
        return Ok(share);
    }
    let message = format!("no table before this one has a permutation and the name `{wanted}`");
    let error = cx.table.error(key, message, "no such table");
    let names: Vec<&str> = before(cx).filter_map(|(name, _)| name).collect();
    Err(match names.is_empty() {
        true => {
            error.hint("give the table with the permutation a `name`, and put it before this one")
        }
        false => error.hint(did_you_mean(wanted, &names)),
    })
}

/// Check that no table before this one has taken any pair of `rest`, what this one takes by
/// `rest_of`: two tables that take the rest of one table would have the same pairs, which only
/// `pairs_of` may ask for.
fn check_left(cx: &Context<'_, '_>, rest: &Share) -> Checked<()> {
    // The last of them is the one that left what is left.
    let Some((last, _)) = before(cx).rfind(|(_, share)| share.overlaps(rest)) else {
        return Ok(());
    };
    let message = "a table before this one has already taken these pairs";
    let error = cx.table.error("rest_of", message, "not left any more");
    Err(match last {
        Some(name) => error.hint(format!("`rest_of = \"{name}\"` takes what that one left")),
        None => error.hint("give that table a `name`, and write it here"),
    })
}

fn taken(
    cx: &Context<'_, '_>,
    key: &'static str,
    share: Result<Share, ShareError>,
) -> Checked<Share> {
    share.map_err(|why| {
        let error = cx.table.error(key, format!("impossible traffic: {why}"), "here");
        error.hint("shares are of the whole permutation; those that share it come to 1 at most")
    })
}
