//! The `[[fault]]` tables: links and switches that fail, flap, slow down or lose packets during the
//! run, GPUs that are slow (`gpu`), and the phases into which that divides it.

mod gpu;

use std::collections::BTreeMap;

use fabric::{Fault, FaultAction, Node, Topology};
use units::{Dur, Rate, Time};

use crate::diagnostic::{Checked, Diagnostic};
use crate::key::{Section, keys, section};
use crate::reader::Reader;
use crate::topology::{NAMED, OF_SWITCH, RATE_MAX, RATE_MIN, links_meant};
use crate::traffic::Traffic;
use crate::transport::Transports;
use crate::value::choices;

pub(crate) use gpu::{Slows, read as read_slow};

/// What the fault tables say.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// For the fabric.
    pub(crate) faults: Vec<Fault>,
    /// When something changes, and what: where phases of the run begin.
    pub(crate) changes: BTreeMap<Time, String>,
    /// When the fault of each table begins.
    pub(crate) begins: Vec<Time>,
}

/// More than this of a script nobody reads, and it would take the memory that packets need.
const FAULTS_MAX: usize = 1_000_000;

/// What a table may ask for.
#[derive(Clone, Copy, Default, PartialEq)]
enum Action {
    #[default]
    Down,
    Up,
    Flap,
    Rate,
    Loss,
    Slow,
    Pause,
}

choices!(Action,
    "down" => Action::Down,
    "up" => Action::Up,
    "flap" => Action::Flap,
    "rate" => Action::Rate,
    "loss" => Action::Loss,
    "slow" => Action::Slow,
    "pause" => Action::Pause);

/// What a table says.
#[derive(Default)]
struct Written {
    at: Time,
    action: Action,
    rate: Rate,
    probability: f64,
    factor: f64,
    period: Dur,
    down_share: f64,
    until: Option<Time>,
    announce: bool,
}

keys! { FAULT: Written {
    at: Time, "from when".written();
    action: Action, "what".written();
    period (period when |w| w.action == Action::Flap): Dur,
        "from one time down to the next".range("above 0").written().only("`action = \"flap\"`");
    down_share (down_share when |w| w.action == Action::Flap): f64,
        "share of each period, at its beginning, during which the link is down"
            .range("above 0, below 1").written().only("`action = \"flap\"`");
    rate (rate when |w| w.action == Action::Rate): Rate [RATE_MIN..=RATE_MAX],
        "the link's rate meanwhile".written().only("`action = \"rate\"`");
    probability (probability when |w| w.action == Action::Loss): f64 [0.0..=1.0],
        "of each packet, to be lost".written().only("`action = \"loss\"`");
    factor (factor when |w| w.action == Action::Slow): f64,
        "how many times as long the work of GPUs takes".range("above 0, at most 10^6").written()
            .only("`action = \"slow\"`");
}}

keys! { SPAN: Written {
    until (maybe until): Time, "until when; ends this fault and no other".range("after `at`")
            .default("for good; required for `flap`");
    announce: bool,
        "whether switches and hosts hear of its beginning and of its end, each \
         `routing.reroute_after` later; in between no path leads over the link"
            .default("`true` for `down` and `flap`, otherwise `false`");
}}

/// For the reference.
pub(crate) fn keys() -> Vec<Section> {
    let of_links = [
        section("fault", FAULT, &[], None),
        section("fault.span", SPAN, &[], None),
        section("fault.switch", OF_SWITCH, &[], None),
        section("topology.link.which", NAMED, &[], None),
    ];
    of_links.into_iter().chain(gpu::keys()).collect()
}

/// Whether some of `tables` are of links, of which news travels.
pub(crate) fn are_of_links(tables: &[Reader<'_>]) -> bool {
    tables.iter().any(|table| !gpu::is_of_gpus(table))
}

/// Read all `[[fault]]` but those of GPUs, which are `slows`. News of them takes `reroute_after`.
pub(crate) fn read(
    tables: &mut [Reader<'_>],
    (topology, transports): (&Topology, &Transports),
    (traffic, slows): (&Traffic, &Slows),
    reroute_after: Dur,
) -> Checked<Script> {
    let mut script = Script::default();
    slows.check(tables, traffic)?;
    for (number, table) in tables.iter_mut().enumerate() {
        if let Some([(begin, begins), (end, ends)]) = slows.changes(number) {
            script.begins.push(begin);
            script.change(begin, &begins);
            script.change(end, &ends);
            continue;
        }
        let mut written = Written::default();
        gpu::without(table);
        let (target, links) = links_meant(table, topology)?;
        table.all_keys(FAULT, &mut written)?;
        script.begins.push(written.at);
        let spans = spans(table, &mut written)?;
        check_rate(table, written.action, &links, written.rate, (topology, transports))?;
        script.note(written.action, &target, &spans, reroute_after);
        script.add(table, &spans, &links)?;
    }
    Ok(script)
}

/// A link may become faster than the NIC behind it can do with.
fn check_rate(
    table: &Reader<'_>,
    action: Action,
    links: &[u32],
    rate: Rate,
    (topology, transports): (&Topology, &Transports),
) -> Checked<()> {
    let ends_at_host = |link: &u32| matches!(topology.links()[*link as usize].to, Node::Host(_));
    if action != Action::Rate || !links.iter().any(ends_at_host) {
        return Ok(());
    }
    let Some(message) = transports.too_close(rate) else { return Ok(()) };
    table.fail("rate", message, "too fast for a circuit", "a slower link, or leave out `clocked`")
}

/// A fault of every link of a table.
#[derive(Clone, Copy)]
struct Span {
    from: Time,
    until: Time,
    action: FaultAction,
    announced: bool,
}

impl Span {
    fn up(at: Time) -> Self {
        Self { from: at, until: Time::NEVER, action: FaultAction::Up, announced: true }
    }
}

/// When each of the links of a table has a fault, and which.
fn spans(table: &mut Reader<'_>, written: &mut Written) -> Checked<Vec<Span>> {
    let (at, action) = (written.at, written.action);
    if action == Action::Up {
        table.without(SPAN, "an `action` other than `\"up\"`");
        return Ok(vec![Span::up(at)]);
    }
    written.announce = matches!(action, Action::Down | Action::Flap);
    table.keys(SPAN, written, None)?;
    check_until(table, at, written.until)?;
    let action = match action {
        Action::Flap => return flap(table, written),
        Action::Rate => FaultAction::Rate(written.rate),
        Action::Loss => FaultAction::Loss(written.probability),
        Action::Down | Action::Up | Action::Slow | Action::Pause => FaultAction::Down,
    };
    let until = written.until.unwrap_or(Time::NEVER);
    Ok(vec![Span { from: at, until, action, announced: written.announce }])
}

/// Check that a fault that begins at `at` is not over by then.
fn check_until(table: &Reader<'_>, at: Time, until: Option<Time>) -> Checked<()> {
    if until.is_none_or(|until| until > at) {
        return Ok(());
    }
    let message = "the fault is over before it begins";
    table.fail("until", message, "too early", format!("after \"{at}\""))
}

/// Down at the beginning of each period.
fn flap(table: &Reader<'_>, written: &Written) -> Checked<Vec<Span>> {
    let &Written { at, period, down_share: share, announce: announced, .. } = written;
    let Some(until) = written.until else {
        return Err(table.missing("until", "add `until = ...` (time): when it ends"));
    };
    let down = Dur((period.0 as f64 * share) as u64);
    if !(0.0..1.0).contains(&share) || down == Dur::ZERO {
        let message = format!("a share of {share} of {period} is no time down and time up");
        let error = table.error("down_share", message, "out of range");
        return Err(error.hint("above 0 and below 1, for example 0.1"));
    }
    let periods = until.since(at).0.div_ceil(period.0);
    if periods > FAULTS_MAX as u64 {
        return Err(too_many(table, "period"));
    }
    let span = |n: u64| {
        let from = at + period * n;
        let until = (from + down).min(until);
        Span { from, until, action: FaultAction::Down, announced }
    };
    Ok((0..periods).map(span).collect())
}

/// For people: 7, not 7.000000000000001.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

fn too_many(table: &Reader<'_>, key: &str) -> Diagnostic {
    let message = format!("the fault script has more than {FAULTS_MAX} steps");
    table.error(key, message, "too many").hint("a longer period, or a shorter time")
}

impl Script {
    fn add(&mut self, table: &Reader<'_>, spans: &[Span], links: &[u32]) -> Checked<()> {
        if self.faults.len() + spans.len().saturating_mul(links.len()) > FAULTS_MAX {
            return Err(too_many(table, "period"));
        }
        for &Span { from, until, action, announced } in spans {
            let fault = |&link| Fault { at: from, until, link, action, announced };
            self.faults.extend(links.iter().map(fault));
        }
        Ok(())
    }

    /// Write down what changes when.
    fn note(&mut self, action: Action, target: &str, spans: &[Span], reroute_after: Dur) {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return };
        let (begins, ends) = match first.action {
            FaultAction::Up => ("is up".to_owned(), "is up"),
            FaultAction::Down if matches!(action, Action::Flap) => ("flaps".to_owned(), "is up"),
            FaultAction::Down => ("is down".to_owned(), "is up"),
            FaultAction::Rate(rate) => (format!("falls to {rate}"), "has its rate back"),
            FaultAction::Loss(share) => (format!("loses {} %", percent(share)), "loses nothing"),
        };
        self.change(first.from, &format!("{target} {begins}"));
        self.change(last.until, &format!("{target} {ends}"));
        if first.announced {
            let (avoid, return_to) =
                (format!("paths avoid {target}"), format!("paths use {target} again"));
            match action {
                Action::Up => self.change(first.from + reroute_after, &return_to),
                // Of a flapping link, news comes all the time.
                Action::Flap => {}
                _ => self.change(first.from + reroute_after, &avoid),
            }
            self.change(last.until + reroute_after, &return_to);
        }
    }

    fn change(&mut self, at: Time, what: &str) {
        if at == Time::NEVER {
            return;
        }
        let all = self.changes.entry(at).or_default();
        if !all.is_empty() {
            all.push_str(", ");
        }
        all.push_str(what);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Scenario;

    fn scenario(faults: &str) -> Checked<Scenario> {
        let text = format!(
            r#"name = "faults"
            seed = 1
            topology = {{ kind = "fat-tree", k = 4, link_rate = "10Gbps", link_delay = "1us" }}
            queue = {{ kind = "ndp", capacity = "8 packets" }}
            routing = {{ mode = "permute", reroute_after = "10us" }}
            transport = {{ kind = "ndp", preset = "paper", payload = "9000B", initial_window = 30 }}
            traffic = {{ kind = "permutation", size = "9KB" }}
            {faults}"#
        );
        Scenario::parse("faults.toml", &text, Path::new("."), &[])
    }

    fn changes(faults: &str) -> Vec<(u64, String)> {
        let scenario = scenario(faults).unwrap();
        scenario.changes.iter().map(|(at, what)| (at.0 / 1_000_000, what.clone())).collect()
    }

    #[test]
    fn a_switch_is_all_of_its_links_and_a_link_both_directions() {
        let dead = r#"[[fault]]
            at = "1ms"
            switch = "core 3"
            action = "down""#;
        let faults = scenario(dead).unwrap().config.faults;
        let of_core = |link: u32| {
            let links = scenario(dead).unwrap().topology.links().to_vec();
            let link = links[link as usize].to_string();
            link.starts_with("core 3 ->") || link.ends_with("-> core 3")
        };
        assert_eq!(faults.len(), 8);
        assert!(faults.iter().all(|fault| of_core(fault.link) && fault.announced));
        let link = |more: &str| {
            let text = format!(
                r#"[[fault]]
                at = "1ms"
                link = "agg 0 -> core 0"
                action = "loss"
                probability = 0.5
                {more}"#
            );
            scenario(&text).unwrap().config.faults
        };
        assert_eq!((link("").len(), link("one_way = true").len()), (2, 1));
        assert_eq!((link("")[0].announced, link("announce = true")[0].announced), (false, true));
    }

    #[test]
    fn a_flap_is_down_at_the_beginning_of_each_period() {
        let flap = r#"[[fault]]
            at = "100us"
            until = "205us"
            link = "tor 0 -> agg 0"
            one_way = true
            action = "flap"
            period = "50us"
            down_share = 0.2"#;
        let faults = scenario(flap).unwrap().config.faults;
        let us = |time: Time| time.0 / 1_000_000;
        let downs: Vec<_> = faults.iter().map(|fault| (us(fault.at), us(fault.until))).collect();
        assert_eq!(downs, [(100, 110), (150, 160), (200, 205)]);
        let told = [
            (100, "tor 0 -> agg 0 flaps"),
            (205, "tor 0 -> agg 0 is up"),
            (215, "paths use tor 0 -> agg 0 again"),
        ];
        assert_eq!(changes(flap), told.map(|(at, what)| (at, what.to_owned())));
    }

    #[test]
    fn changes_at_one_instant_are_one() {
        let two = r#"[[fault]]
            at = "5us"
            until = "15us"
            switch = "core 0"
            action = "down"
            [[fault]]
            at = "15us"
            link = "host 1 -> tor 0"
            action = "rate"
            rate = "1Gbps""#;
        let told = [
            (5, "core 0 is down"),
            (15, "core 0 is up, paths avoid core 0, host 1 <-> tor 0 falls to 1Gbps"),
            (25, "paths use core 0 again"),
        ];
        assert_eq!(changes(two), told.map(|(at, what)| (at, what.to_owned())));
    }

    #[test]
    fn shares_are_for_people() {
        assert_eq!([0.07, 0.29, 1e-6].map(percent), [7.0, 29.0, 1e-4]);
    }

    #[test]
    fn what_cannot_be_is_refused_where_it_stands() {
        let refused = |keys: &str| {
            let text = format!("[[fault]]\nat = \"1ms\"\n{keys}");
            scenario(&text).err().unwrap().render(false)
        };
        let core = "switch = \"core 0\"\n";
        let flap = format!("{core}action = \"flap\"\nuntil = \"9s\"\n");
        for (keys, message) in [
            ("action = \"down\"".to_owned(), "`link` is missing"),
            (format!("{core}link = \"x\"\naction = \"down\""), "both `switch` and `link`"),
            ("switch = \"host 0\"\naction = \"down\"".to_owned(), "host 0 is no switch"),
            ("switch = \"core 4\"\naction = \"down\"".to_owned(), "there is no core 4"),
            (format!("{core}action = \"down\"\nuntil = \"1ms\""), "over before it begins"),
            (format!("{core}action = \"up\"\nuntil = \"2ms\""), "`until` has no effect here"),
            (format!("{core}action = \"loss\"\nprobability = 2"), "`probability`"),
            (format!("{core}action = \"rate\"\nrate = \"1bps\""), "`rate`"),
            (format!("{flap}period = \"1us\"\ndown_share = 1"), "no time down and time up"),
            (format!("{flap}period = \"0\"\ndown_share = 0.5"), "no time down and time up"),
            (format!("{flap}period = \"1us\"\ndown_share = 0.5"), "more than 1000000 steps"),
        ] {
            let said = refused(&keys);
            assert!(said.contains(message) && said.contains("faults.toml"), "{keys}\n{said}");
        }
    }
}
