//! Coupled rules and `mptcp/coupling.rs` together, where there are no packets: subflows whose
//! acknowledgements come as windows and round trips say, and whose losses do as the paths' loss
//! rates say. What they settle at is known in closed form.

use endpoint::{Draw, Purpose};
use units::{Dur, Time};

use crate::mptcp::coupling;
use crate::tcp::config::Increase;
use crate::tcp::rule::{Acked, RuleConfig, Standing, State, lia, seconds};

#[derive(Clone, Copy)]
struct Path {
    rtt: Dur,
    /// Share of segments lost.
    loss: f64,
}

impl Path {
    /// The rate of a TCP here, segments per second: sqrt(2/p) / rtt (RFC 6356, section 1, cites
    /// it).
    fn tcp(&self) -> f64 {
        (2.0 / self.loss).sqrt() / seconds(self.rtt)
    }
}

/// Where the windows of one connection by `config` settle, one subflow on each path.
///
/// A step is a round trip of the quickest path, in which all subflows are acknowledged what their
/// rates say. Each segment acknowledged also costs p times what a loss would.
fn settle(config: &RuleConfig, paths: &[Path], steps: u32) -> Vec<f64> {
    let mut rules: Vec<State> =
        paths.iter().map(|_| State::started(config, Increase::PerAck)).collect();
    let mut windows = vec![10.0; paths.len()];
    for _ in 0..steps {
        let standings: Vec<Standing> = windows
            .iter()
            .zip(paths)
            .map(|(&window, path)| Standing {
                window,
                srtt: Some(path.rtt),
                loss_interval: 1.0 / path.loss,
            })
            .collect();
        let quickest = paths.iter().map(|p| p.rtt.0).min().unwrap();
        let before = windows.clone();
        for (i, rule) in rules.iter_mut().map(State::get_mut).enumerate() {
            rule.on_group(&coupling::group(config, &standings, i));
            let (w, p) = (before[i], paths[i].loss);
            let grown = rule.increase(w, 1.0, &Acked::one(Time::ZERO));
            let kept = rule.after_loss(w, Time::ZERO).max(1.0);
            let acked = w * quickest as f64 / paths[i].rtt.0 as f64;
            windows[i] = (w + acked * (grown - p * (w - kept))).max(1.0);
        }
    }
    windows
}

fn rate(windows: &[f64], paths: &[Path]) -> f64 {
    windows.iter().zip(paths).map(|(w, path)| w / seconds(path.rtt)).sum()
}

fn path(us: u64, loss: f64) -> Path {
    Path { rtt: Dur::from_us(us), loss }
}

/// Round trips and loss rates of one to eight paths.
fn networks() -> Vec<Vec<Path>> {
    vec![
        vec![path(100, 0.001)],
        vec![path(100, 0.001); 2],
        vec![path(100, 0.002); 8],
        vec![path(100, 0.001), path(100, 0.004)],
        vec![path(100, 0.001), path(400, 0.001)],
        vec![path(100, 0.004), path(400, 0.000_5)],
        vec![path(100, 0.002), path(300, 0.001), path(1_000, 0.000_5)],
    ]
}

/// RFC 6356, section 1, goal 1, which LIA's alpha is solved for (NSDI 2011, appendix): the
/// connection's rate is that of a TCP on the best of its paths.
#[test]
fn lia_gets_what_a_tcp_gets_on_the_best_path() {
    for paths in networks() {
        let windows = settle(&RuleConfig::Lia(lia::Params::RFC), &paths, 60_000);
        let best = paths.iter().map(Path::tcp).fold(0.0, f64::max);
        let got = rate(&windows, &paths) / best;
        assert!((got - 1.0).abs() < 0.01, "{windows:?}: {got} of the best path's TCP");
        // Goal 2: on no path more than a TCP there.
        for (window, path) in windows.iter().zip(&paths) {
            assert!(window / seconds(path.rtt) <= 1.001 * path.tcp(), "{windows:?}");
        }
    }
}

/// ToN 2013, theorem 1: only the best paths are used (the others keep a segment), and together they
/// have the rate of a TCP there.
#[test]
fn olia_gets_what_a_tcp_gets_on_the_best_path_from_the_best_paths() {
    for paths in networks() {
        let windows = settle(&RuleConfig::Olia, &paths, 60_000);
        let best = paths.iter().map(Path::tcp).fold(0.0, f64::max);
        let (mut used, mut probes) = (0.0, 0.0);
        for (window, path) in windows.iter().zip(&paths) {
            let rate = window / seconds(path.rtt);
            let is_best = path.tcp() > 0.999 * best;
            *(if is_best { &mut used } else { &mut probes }) += rate;
            assert!(is_best || *window < 2.0, "{windows:?}");
        }
        let got = (used + probes) / best;
        assert!((0.97..1.1).contains(&got), "{windows:?}: {got}");
    }
}

/// Without coupling n subflows on equal paths take n times a TCP's rate; with EWTCP's weight 1/n^2
/// one TCP's, with 1/sqrt(n) n^(3/4) times that (windows go by the square root of the weight).
#[test]
fn uncoupled_subflows_get_as_many_tcps_and_weighted_ones_their_weight() {
    use crate::tcp::rule::ewtcp::Weight::{InverseRoot, InverseSquare};
    let paths = vec![path(100, 0.001); 4];
    for (config, tcps) in [
        (RuleConfig::NewReno, 4.0),
        (RuleConfig::Ewtcp(InverseSquare), 1.0),
        (RuleConfig::Ewtcp(InverseRoot), 8.0_f64.sqrt()),
        // A subflow cannot give more than it has: of four equal ones it gives w_tot/4 where w_tot/2
        // is due.
        (RuleConfig::FullyCoupled, 2.0_f64.sqrt()),
    ] {
        let got = rate(&settle(&config, &paths, 60_000), &paths) / paths[0].tcp();
        assert!((got / tcps - 1.0).abs() < 0.05, "{config:?}: {got}");
    }
}

/// specs/mptcp.md#3: with equal round trips, n equal subflows together grow by 1/n segment in
/// a round trip (+-5 %); uncoupled ones, by n.
#[test]
fn n_equal_subflows_together_grow_by_one_nth_of_a_segment_per_round_trip() {
    for n in [1, 2, 4, 8] {
        let standing =
            |&window: &f64| Standing { window, srtt: Some(Dur::from_us(100)), loss_interval: 0.0 };
        let grow = |config: &RuleConfig| {
            let mut windows = vec![20.0; n];
            let mut rules = vec![State::started(config, Increase::PerAck); n];
            for turn in 0..20 * 20 * n {
                // By turns; in 20 turns, a window is acknowledged.
                let standings: Vec<Standing> = windows.iter().map(standing).collect();
                let (me, segments) = (turn % n, windows[turn % n] / 20.0);
                let rule = rules[me].get_mut();
                rule.on_group(&coupling::group(config, &standings, me));
                windows[me] += rule.increase(windows[me], segments, &Acked::one(Time::ZERO));
            }
            (windows.iter().sum::<f64>() - 20.0 * n as f64) / 20.0
        };
        let linked = grow(&RuleConfig::Lia(lia::Params::RFC)) * n as f64;
        assert!((linked - 1.0).abs() < 0.05, "{n}: {linked}");
        let free = grow(&RuleConfig::NewReno) / n as f64;
        assert!((free - 1.0).abs() < 0.05, "{n}: {free}");
    }
}

/// The rate, segments per round trip, of a connection by `config` with `n` subflows of equal round
/// trips, where each segment is lost with probability `loss` by itself, and a window is halved once
/// per round trip at most.
fn rate_with_random_losses(config: &RuleConfig, n: usize, loss: f64) -> f64 {
    const PICK: Purpose = Purpose::new("equilibria: who is acknowledged");
    const LOSS: Purpose = Purpose::new("equilibria: lost");
    const SEGMENTS: u64 = 500_000;
    let draw = Draw::new(1, PICK, n as u64);
    let mut rules = vec![State::started(config, Increase::PerAck); n];
    let (mut windows, mut halved) = (vec![10.0_f64; n], vec![f64::NEG_INFINITY; n]);
    let mut round_trips = 0.0;
    for segment in 0..SEGMENTS {
        let total: f64 = windows.iter().sum();
        round_trips += 1.0 / total;
        // Whose it is: in proportion to the windows.
        let (mut me, mut left) = (0, draw.unit(PICK, segment) * total - windows[0]);
        while left >= 0.0 && me + 1 < n {
            me += 1;
            left -= windows[me];
        }
        let standings: Vec<Standing> = windows
            .iter()
            .zip(&rules)
            .map(|(&window, rule)| {
                let srtt = Some(Dur::from_us(100));
                Standing { window, srtt, loss_interval: rule.get().loss_interval() }
            })
            .collect();
        let rule = rules[me].get_mut();
        rule.on_group(&coupling::group(config, &standings, me));
        let ack = Acked::one(Time::ZERO);
        rule.on_ack(&ack);
        if draw.unit(LOSS, segment) < loss && round_trips >= halved[me] + 1.0 {
            windows[me] = rule.after_loss(windows[me], Time::ZERO).max(rule.least());
            halved[me] = round_trips;
        } else {
            windows[me] += rule.increase(windows[me], 1.0, &ack);
        }
    }
    SEGMENTS as f64 / round_trips
}

/// Where losses come at random, windows swing, and LIA's alpha, which takes the largest of them, is
/// more than 1/n on average: the connection is faster than a TCP with the same losses, the more so
/// the more subflows there are. OLIA has no maximum in its first part. (studies/mmptcp/lia shows
/// the same with packets.)
#[test]
fn lia_is_faster_than_a_tcp_where_windows_swing() {
    let rate = |config, n| rate_with_random_losses(config, n, 0.001);
    let tcp = rate(&RuleConfig::NewReno, 1);
    // Ott, Kemperman and Mathis 1996: 1.31 / sqrt(p) where losses are independent.
    assert!((tcp * 0.001_f64.sqrt() / 1.31 - 1.0).abs() < 0.07, "{tcp} segments per round trip");
    for (n, low, high) in [(1, 0.97, 1.03), (2, 1.03, 1.2), (4, 1.1, 1.32), (8, 1.2, 1.45)] {
        let lia = rate(&RuleConfig::Lia(lia::Params::RFC), n) / tcp;
        assert!((low..high).contains(&lia), "{n} subflows: {lia}");
        let olia = rate(&RuleConfig::Olia, n) / tcp;
        assert!((0.93..1.12).contains(&olia), "{n} subflows: {olia}");
    }
}
