//! `action = "slow"` and `"pause"`: GPUs whose work takes longer, or stands still, for some time.

use ai::{Rank, Slowdown};
use fabric::Topology;
use units::{HostId, Time};

use super::{Action, FAULT, Written};
use crate::diagnostic::Checked;
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::topology::{NAMED, OF_SWITCH};
use crate::traffic::Traffic;

/// The largest factor, as that of stragglers.
const FACTOR_MAX: f64 = 1e6;

/// Which GPUs.
#[derive(Default)]
struct Target {
    rank: Option<u32>,
    host: Option<u32>,
    job: Option<String>,
}

/// What a table says of GPUs.
struct Slow {
    target: Target,
    from: Time,
    until: Time,
    millionths: u64,
}

keys! { GPU: Target {
    rank (maybe rank): u32, "the rank whose work takes longer".range("a rank of the job")
        .default("this or `host`");
    host (maybe host): u32, "all ranks on this host do".range("a host of the fabric")
        .default("this or `rank`");
    job (maybe job): String, "whose ranks: the `name` of a `[[traffic]]` table"
        .default("all jobs");
}}

keys! { UNTIL: Written {
    until (maybe until): Time, "until when; work in progress then goes on at its own pace"
        .range("after `at`").default("for good; required for `pause`");
}}

/// The keys of such a table have no effect in another.
pub(super) fn without(table: &mut Reader<'_>) {
    table.without(GPU, "`action = \"slow\"` or `\"pause\"`");
}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    vec![section("fault.gpu", GPU, &[], None), section("fault.gpu.until", UNTIL, &[], None)]
}

/// The tables of the fault script that are about GPUs, by their number.
#[derive(Default)]
pub(crate) struct Slows(Vec<(usize, Slow)>);

/// Whether `table` is one of them.
pub(super) fn is_of_gpus(table: &Reader<'_>) -> bool {
    matches!(table.peek::<String>("action").as_deref(), Some("slow" | "pause"))
}

/// Read those tables. Whether there are such ranks, [`Slows::check`] says.
pub(crate) fn read(tables: &mut [Reader<'_>], topology: &Topology) -> Checked<Slows> {
    let mut slows = Slows::default();
    for (number, table) in tables.iter_mut().enumerate() {
        if is_of_gpus(table) {
            slows.0.push((number, one(table, topology)?));
        }
    }
    Ok(slows)
}

fn one(table: &mut Reader<'_>, topology: &Topology) -> Checked<Slow> {
    let (mut written, mut target) = (Written::default(), Target::default());
    table.all_keys(FAULT, &mut written)?;
    table.without(NAMED, "a fault of a link");
    table.without(OF_SWITCH, "a fault of a switch");
    table.all_keys(UNTIL, &mut written)?;
    table.one_of(&["rank", "host"], "add `rank = 0`, or `host = 0`: all ranks there")?;
    table.all_keys(GPU, &mut target)?;
    let Written { at, until, .. } = written;
    let millionths = millionths(table, &written)?;
    super::check_until(table, at, until)?;
    if let Some(host) = target.host.filter(|&host| host >= topology.hosts()) {
        let hint = format!("from 0 to {}", topology.hosts() - 1);
        return table.fail("host", format!("there is no host {host}"), "no such host", hint);
    }
    let until = until.unwrap_or(Time::NEVER);
    Ok(Slow { target, from: at, until, millionths })
}

/// How many times as long work takes, in millionths.
fn millionths(table: &mut Reader<'_>, written: &Written) -> Checked<u64> {
    if written.action == Action::Pause {
        return match written.until {
            Some(_) => Ok(Slowdown::PAUSED),
            None => Err(table.missing("until", "add `until = ...` (time): when it goes on")),
        };
    }
    let factor = written.factor;
    let millionths = (factor * 1e6).round();
    if !(1.0..=FACTOR_MAX * 1e6).contains(&millionths) {
        let message = format!("work cannot take {factor} times as long");
        let hint = format!("above 0 and at most {FACTOR_MAX}: 2 takes twice as long");
        return table.fail("factor", message, "out of range", hint);
    }
    if factor == 1.0 {
        let message = "work that takes once as long is no fault";
        table.warn(table.error("factor", message, "no effect").hint("a larger `factor`").warning());
    }
    Ok(millionths as u64)
}

impl Slow {
    /// The ranks of a job called `name` that it makes slow; none of another job.
    fn ranks(&self, name: Option<&str>, job: &ai::Placement) -> Vec<Rank> {
        if self.target.job.is_some() && self.target.job.as_deref() != name {
            return Vec::new();
        }
        let is_meant = |&rank: &Rank| match self.target.rank {
            Some(meant) => rank.0 == meant,
            None => self.target.host.map(HostId) == Some(job.host(rank)),
        };
        (0..job.len()).map(Rank).filter(is_meant).collect()
    }

    /// What is said of it where it begins.
    fn begins(&self) -> String {
        match self.millionths {
            Slowdown::PAUSED => format!("{self} stops computing"),
            millionths => {
                format!("{self} takes {} times as long to compute", millionths as f64 / 1e6)
            }
        }
    }

    /// The same where it ends.
    fn ends(&self) -> String {
        let what = match self.millionths {
            Slowdown::PAUSED => "computes again",
            _ => "is as fast as before",
        };
        format!("{self} {what}")
    }
}

/// What is slow.
impl std::fmt::Display for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Target { rank, host, job } = &self.target;
        match (rank, host) {
            (Some(rank), _) => write!(f, "rank {rank}")?,
            (None, host) => write!(f, "host {}", host.unwrap_or_default())?,
        }
        job.iter().try_for_each(|job| write!(f, " of {job}"))
    }
}

impl Slows {
    /// Those of the job in the traffic table `name`, whose ranks `placement` places.
    pub(crate) fn of_job(&self, name: Option<&str>, placement: &ai::Placement) -> Vec<Slowdown> {
        let of = |slow: &Slow| {
            let &Slow { from, until, millionths, .. } = slow;
            let ranks = slow.ranks(name, placement).into_iter();
            ranks.map(move |rank| Slowdown { rank, from, until, millionths }).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(|(_, slow)| of(slow)).collect()
    }

    /// Whether all that are said to be slow are there.
    pub(super) fn check(&self, tables: &[Reader<'_>], traffic: &Traffic) -> Checked<()> {
        self.0.iter().try_for_each(|(number, slow)| check(&tables[*number], slow, traffic))
    }

    /// If table `number` is one of them: when it begins and ends, and what is said then.
    pub(super) fn changes(&self, number: usize) -> Option<[(Time, String); 2]> {
        let (_, slow) = self.0.iter().find(|(n, _)| *n == number)?;
        Some([(slow.from, slow.begins()), (slow.until, slow.ends())])
    }
}

fn check(table: &Reader<'_>, slow: &Slow, traffic: &Traffic) -> Checked<()> {
    let named = traffic.names.iter().map(Option::as_deref).zip(&traffic.tables);
    let jobs: Vec<_> =
        named.filter_map(|(name, part)| Some((name, part.job.as_deref()?.placement()))).collect();
    if jobs.is_empty() {
        let message = "no traffic of this scenario is a job: nothing computes";
        let hint = "a `[[traffic]]` with `kind = \"job\"`, or a fault of a link";
        return table.fail("action", message, "no GPUs", hint);
    }
    let meant = slow.target.job.as_deref();
    if let Some(wanted) =
        meant.filter(|wanted| !jobs.iter().any(|(name, _)| name == &Some(*wanted)))
    {
        let names: Vec<&str> = jobs.iter().filter_map(|(name, _)| *name).collect();
        let hint = crate::diagnostic::did_you_mean(wanted, &names);
        return table.fail("job", format!("no job is called `{wanted}`"), "no such job", hint);
    }
    if jobs.iter().any(|(name, placement)| !slow.ranks(*name, placement).is_empty()) {
        return Ok(());
    }
    let of_job = jobs.iter().filter(|(name, _)| meant.is_none() || *name == meant);
    let most = of_job.map(|(_, placement)| placement.len()).max().unwrap_or(0);
    match slow.target.rank {
        Some(rank) => {
            let hint = format!("from 0 to {}", most.saturating_sub(1));
            table.fail("rank", format!("there is no rank {rank}"), "no such rank", hint)
        }
        None => {
            let message = format!("{slow} has no ranks");
            table.fail("host", message, "nothing computes there", "a host of the job, or a `rank`")
        }
    }
}
