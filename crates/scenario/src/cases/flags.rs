//! The flags of a case, and the edits that they mean.

use std::collections::BTreeMap;

use fabric::{Node, Tier, Topology};
use transports::uet;
use units::{Bytes, Rate};

use super::eqds;
use super::list::{Case, Word};
use super::ready::text;
use crate::Scenario;
use crate::diagnostic::{Checked, Diagnostic, did_you_mean};

/// The flags that have a meaning here, with values and without.
const WITH_VALUE: &[&str] = &[
    "-cwnd",
    "-end",
    "-failed",
    "-load_balancing_algo",
    "-paths",
    "-q",
    "-sack_threshold",
    "-seed",
    "-sender_cc_algo",
    "-topo",
];
const ALONE: &[&str] = &[
    "-conn_reuse",
    "-disable_trim",
    "-receiver_cc",
    "-receiver_cc_only",
    "-sender_cc",
    "-sender_cc_only",
    "-sleek",
];
/// This one has two.
const ECN: &str = "-ecn";

/// The program whose flags these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// `htsim_uec`: Ultra Ethernet.
    Uec,
    /// `htsim_eqds`.
    Eqds,
}

/// The flags of `htsim_eqds` that have a meaning here.
const EQDS: &[&str] = &[
    "-cwnd",
    ECN,
    "-end",
    "-paths",
    "-q",
    "-recv_oversub_cc",
    "-seed",
    "-sender_cc",
    "-sender_cc_algo",
    "-sender_cc_only",
    "-topo",
];

pub(super) const RATE: Rate = Rate(100_000_000_000);
pub(super) const PAYLOAD: u16 = 4086;
/// Ports that do not trim hold so many bandwidth-delay products (specs/uet.md#2).
const UNTRIMMED: u64 = 5;
/// A degraded link has this share of its rate, and its ports this share of their queues (uet-htsim,
/// `FatTreeTopologyCfg::_failed_link_ratio`).
const DEGRADED: f64 = 0.25;

/// What the flags of a case say. The program's defaults.
#[derive(Debug)]
pub(super) struct Flags {
    pub(super) program: Program,
    pub(super) sender: bool,
    pub(super) receiver: bool,
    /// DCTCP in place of the program's usual window.
    pub(super) dctcp: bool,
    /// Receivers leave turns out.
    pub(super) hold_back: bool,
    trimming: bool,
    sleek: bool,
    pub(super) reuse: bool,
    pub(super) end_us: u64,
    pub(super) entropies: u64,
    pub(super) seed: Option<u64>,
    spray: Option<String>,
    sack_threshold: Option<u64>,
    /// Packets; 0: as if it were not there.
    pub(super) window: u64,
    pub(super) queue: Option<u64>,
    pub(super) ecn: Option<(u64, u64)>,
    /// Links that are degraded.
    failed: u64,
    pub(super) topology: Option<Word>,
}

impl Flags {
    const USUAL: Self = Self {
        program: Program::Uec,
        sender: true,
        receiver: false,
        dctcp: false,
        hold_back: false,
        trimming: true,
        sleek: false,
        reuse: false,
        end_us: 1000,
        entropies: 64,
        seed: None,
        spray: None,
        sack_threshold: None,
        window: 0,
        queue: None,
        ecn: None,
        failed: 0,
        topology: None,
    };

    /// What `program` does without any.
    fn usual(program: Program) -> Self {
        match program {
            Program::Uec => Self::USUAL,
            Program::Eqds => Self { program, sender: false, receiver: true, ..Self::USUAL },
        }
    }

    /// Those of `case`, as its program reads them: one after the other.
    pub(super) fn of(case: &Case, program: Program) -> Checked<Self> {
        let mut flags = Self::usual(program);
        let eqds = program == Program::Eqds;
        let mut words = case.flags.iter();
        while let Some(flag) = words.next() {
            if eqds && !EQDS.contains(&flag.text.as_str()) {
                return Err(unknown(case, flag, EQDS));
            }
            let mut value = || {
                let missing = || case.error(format!("`{}` without a value", flag.text), flag);
                words.next().ok_or_else(|| missing().hint("the value stands after the flag"))
            };
            match flag.text.as_str() {
                "-sender_cc" => flags.sender = true,
                "-sender_cc_algo" => flags.algorithm(case, value()?)?,
                "-recv_oversub_cc" if eqds => flags.hold_back = true,
                "-receiver_cc" => flags.receiver = true,
                "-sender_cc_only" => (flags.sender, flags.receiver) = (true, false),
                "-receiver_cc_only" => (flags.sender, flags.receiver) = (false, true),
                "-conn_reuse" => flags.reuse = true,
                "-disable_trim" => flags.trimming = false,
                "-sleek" => flags.sleek = true,
                "-end" => flags.end_us = case.number(value()?)?,
                "-failed" => flags.failed = case.number(value()?)?,
                "-paths" => flags.entropies = case.number(value()?)?,
                "-seed" => flags.seed = Some(case.number(value()?)?),
                "-cwnd" => flags.window = case.number(value()?)?,
                "-q" => flags.queue = Some(case.number(value()?)?),
                "-sack_threshold" => flags.sack_threshold = Some(case.number(value()?)?),
                "-load_balancing_algo" => flags.spray = Some(value()?.text.clone()),
                "-topo" => flags.topology = Some(value()?.clone()),
                ECN => flags.ecn = Some((case.number(value()?)?, case.number(value()?)?)),
                _ => return Err(unknown(case, flag, &[WITH_VALUE, ALONE, &[ECN]].concat())),
            }
        }
        Ok(flags)
    }

    /// `-sender_cc_algo` with this word.
    fn algorithm(&mut self, case: &Case, word: &Word) -> Checked<()> {
        let known: &[&str] = match self.program {
            Program::Uec => &["nscc"],
            Program::Eqds => &["dctcp"],
        };
        if !known.contains(&word.text.as_str()) {
            let error = case.error(format!("`{}` is not supported", word.text), word);
            return Err(error.hint(did_you_mean(&word.text, known)));
        }
        (self.sender, self.dctcp) = (true, word.text == "dctcp");
        Ok(())
    }
}

fn unknown(case: &Case, at: &Word, known: &[&str]) -> Diagnostic {
    let flag = at.text.as_str();
    case.error(format!("`{flag}` is not supported"), at).hint(did_you_mean(flag, known))
}

impl Flags {
    /// The edits of the base that they are, in the fabric of `around`.
    pub(super) fn edits(&self, around: &Scenario, seed: u64) -> Vec<String> {
        match self.program {
            Program::Uec => self.uec(around, seed),
            Program::Eqds => eqds::edits(self, seed),
        }
    }

    fn uec(&self, around: &Scenario, seed: u64) -> Vec<String> {
        let config = uet::Config::htsim(PAYLOAD);
        let mtu = config.mtu();
        let rtt = around.topology().clone().with_mtu(mtu).longest_rtt();
        let network = uet::Network { rtt, rate: RATE, mtu, payload: PAYLOAD };
        let packets = |count: u64| Bytes(count.saturating_mul(u64::from(mtu)));
        let share = |fifths: u64| (network.bdp_packets() * fifths).div_ceil(5);
        let usual = if self.trimming { 1 } else { UNTRIMMED };
        let queue = self.queue.map_or(Bytes(network.queue() * usual), packets);
        let (low, high) = self.ecn.unwrap_or((share(1), share(4)));
        let mut edits = vec![
            format!("seed={}", self.seed.unwrap_or(seed)),
            format!("measure.limit=\"{}us\"", self.end_us),
            // The program has none, and fixed timeouts.
            "host.send_jitter=0".to_owned(),
            "transport.rto_doublings=0".to_owned(),
            format!("queue.capacity=\"{queue}\""),
            format!("queue.header_capacity=\"{}\"", Bytes(queue.0.saturating_mul(2))),
            format!("queue.ecn_low=\"{}\"", packets(low)),
            format!("queue.ecn_high=\"{}\"", packets(high)),
            // Credit has the links to hosts to itself.
            format!("queue.ecn_last_hop={}", !self.receiver),
            format!("transport.entropies={}", self.entropies),
            format!("transport.credit={}", self.receiver),
            // Without a window there is nothing to recover by.
            format!("transport.sleek={}", self.sleek && self.sender),
        ];
        if !self.trimming {
            edits.extend(["queue.trim=false", "transport.trimming=false"].map(str::to_owned));
        }
        if !self.sender {
            edits.push("transport.control=\"none\"".to_owned());
        }
        if self.reuse {
            // To the end of the run, that is.
            edits.push("transport.keep_connections=\"10s\"".to_owned());
        }
        if self.queue.is_some() || !self.trimming {
            edits.push(format!(
                "transport.rto=\"{}\"",
                uet::Network::rto_of(RATE, queue.0, uet::RTO_BASE)
            ));
        }
        if self.window > 0 {
            edits.push(format!("transport.initial_window=\"{}\"", packets(self.window)));
        }
        edits.extend(degraded(around.topology(), self.failed));
        let spray = self.spray.iter().map(|spray| format!("transport.spray={}", text(spray)));
        let sack = self.sack_threshold.iter().map(|n| format!("transport.sack_threshold=\"{n}B\""));
        edits.extend(spray.chain(sack));
        edits
    }
}

/// The edits by which `failed` links are slower from the start, and the queues at their ports
/// shorter. Nobody hears of it, and what windows follow from is as without.
fn degraded(topology: &Topology, failed: u64) -> Vec<String> {
    let links = degraded_links(topology, failed);
    if links.is_empty() {
        return Vec::new();
    }
    let (mut faults, mut queues) = (Vec::new(), Vec::new());
    for link in links.into_iter().map(|link| &topology.links()[link]) {
        let name = text(&link.to_string());
        let rate = Rate((link.rate.0 as f64 * DEGRADED) as u64);
        faults.push(format!(
            "{{at=\"0us\",link={name},one_way=true,action=\"rate\",rate=\"{rate}\"}}"
        ));
        queues.push(format!("{{link={name},one_way=true,share={DEGRADED}}}"));
    }
    vec![
        format!("fault=[{}]", faults.join(",")),
        format!("queue.link=[{}]", queues.join(",")),
        // Asked for wherever there are faults.
        "routing.reroute_after=\"1ms\"".to_owned(),
    ]
}

/// Which links these are in the program. With three tiers the ways down from the cores to the first
/// aggregation switches, with two those between all leaves and the first spines, both ways.
fn degraded_links(topology: &Topology, failed: u64) -> Vec<usize> {
    let tier = |node: Node| match node {
        Node::Switch(tier, n) => Some((tier, u64::from(n))),
        Node::Host(_) | Node::Plane(..) => None,
    };
    let ends = |n: usize| (tier(topology.links()[n].from), tier(topology.links()[n].to));
    let all = 0..topology.links().len();
    if topology.switches_of(Tier::Core) == 0 {
        let first = |end| matches!(end, Some((Tier::Agg, n)) if n < failed);
        let leaf = |end| matches!(end, Some((Tier::Tor, _)));
        let slow = |n: &usize| {
            let (from, to) = ends(*n);
            first(from) && leaf(to) || leaf(from) && first(to)
        };
        return all.filter(slow).collect();
    }
    let aggs_of_a_pod =
        all.clone().filter(|&n| matches!(ends(n), (Some((Tier::Tor, 0)), Some((Tier::Agg, _)))));
    let aggs_of_a_pod = aggs_of_a_pod.count() as u64;
    // The uplinks of each aggregation switch are numbered from zero.
    let mut uplinks = BTreeMap::new();
    let mut slow = Vec::new();
    for n in all {
        let (Some((Tier::Agg, agg)), Some((Tier::Core, _))) = ends(n) else { continue };
        let uplink = uplinks.entry(agg).or_insert(0);
        if *uplink + agg * aggs_of_a_pod < failed {
            let link = &topology.links()[n];
            slow.extend(topology.find_link(link.to, link.from).map(|n| n as usize));
        }
        *uplink += 1;
    }
    slow
}

#[cfg(test)]
mod tests {
    use queues::Capacity;

    use super::*;
    use crate::cases::CaseList;

    const MATRIX: &str = "Nodes 16\nConnections 1\n0->13 id 1 start 3 size 100000\n";

    /// The only case of a list with these lines below the matrix.
    fn scenario(lines: &str) -> Checked<Scenario> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("one.cm"), MATRIX).unwrap();
        let list = dir.path().join("list.txt");
        std::fs::write(&list, format!("one.cm\n!Binary ./htsim_uec\n{lines}")).unwrap();
        Ok(CaseList::load(&list).unwrap().cases()[0].ready(5)?.scenario)
    }

    fn resolved(lines: &str, table: &str, key: &str) -> String {
        scenario(lines).unwrap().resolved()[table][key].to_string()
    }

    /// The worked example of specs/uet.md#2, and what flags change of it.
    #[test]
    fn flags_mean_what_they_mean_to_the_program() {
        let cases = [
            ("", "topology", "k", "4"),
            ("", "host", "send_jitter", "\"0ps\""),
            ("", "transport", "rto_doublings", "0"),
            ("", "queue", "capacity", "\"178450B\""),
            ("", "queue", "ecn_low", "\"37350B\""),
            ("", "queue", "ecn_high", "\"145250B\""),
            ("", "transport", "entropies", "64"),
            ("", "measure", "limit", "\"1ms\""),
            ("!Param -end 3000\n", "measure", "limit", "\"3ms\""),
            ("!Param -paths 128", "transport", "entropies", "128"),
            ("!Param -cwnd 50", "transport", "initial_window", "\"207500B\""),
            ("!Param -q 190", "queue", "capacity", "\"788500B\""),
            ("!Param -q 190", "queue", "header_capacity", "\"1577000B\""),
            ("!Param -q 190", "transport", "rto", "\"393480ns\""),
            ("!Param -disable_trim", "queue", "capacity", "\"892250B\""),
            ("!Param -disable_trim", "queue", "trim", "false"),
            ("!Param -disable_trim", "transport", "trimming", "false"),
            ("!Param -disable_trim", "transport", "rto", "\"443280ns\""),
            ("!Param -conn_reuse", "transport", "keep_connections", "\"10s\""),
            ("!Param -sleek", "transport", "sleek", "true"),
            ("!Param -ecn 10 25", "queue", "ecn_high", "\"103750B\""),
            ("!Param -load_balancing_algo reps", "transport", "spray", "\"reps\""),
            ("!Param -sack_threshold 4000", "transport", "sack_threshold", "\"4000B\""),
            ("!Param -sender_cc_only", "transport", "credit", "false"),
            ("!Param -receiver_cc_only", "transport", "control", "\"none\""),
            ("!Param -receiver_cc_only", "queue", "ecn_last_hop", "false"),
            ("!Param -sender_cc\n!Param -receiver_cc", "transport", "control", "\"nscc\""),
            ("!Param -sender_cc\n!Param -receiver_cc", "transport", "credit", "true"),
        ];
        let found =
            cases.map(|(lines, table, key, _)| (lines, table, key, resolved(lines, table, key)));
        assert_eq!(
            found.each_ref().map(|(lines, table, key, value)| (
                *lines,
                *table,
                *key,
                value.as_str()
            )),
            cases
        );
        assert_eq!(scenario("").unwrap().seed(), 5);
        assert_eq!(scenario("!Param -seed 7").unwrap().seed(), 7);
    }

    /// `FatTreeTopology` of uet-htsim: core to aggregation, one way, to a quarter, with the queues.
    #[test]
    fn degraded_links_lead_down_to_the_first_aggregation_switches() {
        let named = |failed: u64| {
            let lines = format!("!Param -failed {failed}\n");
            let scenario = scenario(&lines).unwrap();
            let topology = scenario.topology().clone();
            let name = |link: u32| topology.links()[link as usize].to_string();
            let slow: Vec<_> = scenario.config.faults.iter().map(|f| name(f.link)).collect();
            let is_slow = |link: &u32| slow.contains(&name(*link));
            let queues = scenario.config.queues_at.iter().filter(|(link, _)| is_slow(link));
            let queues: Vec<_> = queues.map(|(_, queue)| queue.spec().capacities()).collect();
            assert!(
                queues.iter().all(|q| *q == [44_612, 89_225].map(Capacity::Bytes)),
                "{queues:?}"
            );
            assert_eq!(queues.len(), slow.len());
            slow
        };
        assert_eq!(named(0), [""; 0]);
        assert_eq!(named(1), ["core 0 -> agg 0"]);
        let three = ["core 0 -> agg 0", "core 1 -> agg 0", "core 2 -> agg 1"];
        assert_eq!(named(3), three);
        assert_eq!(named(1000).len(), 16, "there are no more");
    }

    #[test]
    fn in_two_tiers_both_ways_of_each_leaf_to_the_first_spines_are_degraded() {
        let link = fabric::LinkSpec { rate: RATE, delay: units::Dur::from_us(1) };
        let topology = Topology::leaf_spine(3, 2, 2, link, link).unwrap();
        let links = degraded_links(&topology, 1);
        let names: Vec<_> = links.iter().map(|&n| topology.links()[n].to_string()).collect();
        assert!(names.iter().all(|name| name.contains("agg 0")) && names.len() == 6, "{names:?}");
        let edits = degraded(&topology, 1);
        assert!(edits[0].contains("25Gbps"), "{edits:?}");
    }

    #[test]
    fn what_is_not_supported_is_refused_where_it_stands() {
        let refused = |lines: &str| {
            let Err(error) = scenario(lines) else { panic!("{lines} is not refused") };
            let (_, line, column) = error.location().unwrap();
            format!("{line}:{column} {}", error.to_string().split_once(": ").unwrap().1)
        };
        let cases = [
            ("!Param -pahts 1\n", "3:8 `-pahts` is not supported; did you mean `-paths`?"),
            ("!Param -paths\n", "3:8 `-paths` without a value"),
            ("!Param -q 5000000000\n", "3:11 `5000000000` is not a whole number"),
            ("!Param -paths many\n", "3:15 `many` is not a whole number"),
            ("!Param -paths 100\n", "3:8 Ultra Ethernet: entropies 100 must be"),
            ("!Param -ecn 25 10\n", "3:8 `ecn_high` is 41500B, less than `ecn_low`"),
        ];
        let wrong: Vec<String> = cases
            .iter()
            .map(|(lines, error)| (refused(lines), error))
            .filter(|(found, error)| !found.starts_with(*error))
            .map(|(found, error)| format!("{found}, not {error}"))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
