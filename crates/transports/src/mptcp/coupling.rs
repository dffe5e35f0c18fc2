//! What coupled congestion-control rules need to know of a whole connection (RFC 6356; OLIA:
//! Khalili et al., ToN 2013; specs/mptcp.md#3), worked out from where its established subflows
//! stand. The rules themselves are in `tcp/rule/`.

use crate::tcp::rule::{Group, RuleConfig, Standing};

/// What `rule`, that of subflow `me`, is to know; `subflows` are all that count, `me` among them.
/// What the rule does not ask for is as in [`Group::ALONE`]: this is work for every
/// acknowledgement.
///
/// A subflow whose round-trip time has not been measured counts in the total, but has no part in
/// what is reckoned with times (Linux, `mptcp_ccc_sk_can_send`). Where none has been measured, all
/// are taken to be equally long.
pub(crate) fn group(rule: &RuleConfig, subflows: &[Standing], me: usize) -> Group {
    let paths = Paths::new(subflows);
    let total = paths.total();
    let seen = Group { subflows: subflows.len() as u32, total, ..Group::ALONE };
    match rule {
        RuleConfig::Lia(_) => Group { alpha: paths.alpha(), ..seen },
        RuleConfig::Olia => {
            Group { rate_share: paths.rate_share(me), shift: paths.shift(me), ..seen }
        }
        _ => seen,
    }
}

/// Subflows and the unit that their round-trip times are measured in.
struct Paths<'a> {
    subflows: &'a [Standing],
    /// Whether any round-trip time has been measured.
    measured: bool,
}

impl<'a> Paths<'a> {
    fn new(subflows: &'a [Standing]) -> Self {
        Self { subflows, measured: subflows.iter().any(|s| s.srtt.is_some()) }
    }

    /// All windows together.
    fn total(&self) -> f64 {
        self.subflows.iter().map(|s| s.window).sum()
    }

    /// The round-trip time to reckon with, ps; `None`: this subflow has no part in it.
    fn rtt(&self, subflow: &Standing) -> Option<f64> {
        if !self.measured {
            return Some(1.0);
        }
        subflow.srtt.map(|srtt| srtt.0.max(1) as f64)
    }

    /// The subflows that have a part, by index, with their round-trip times.
    fn timed(&self) -> impl Iterator<Item = (usize, &'a Standing, f64)> {
        let rtt = |(i, s): (usize, &'a Standing)| self.rtt(s).map(|rtt| (i, s, rtt));
        self.subflows.iter().enumerate().filter_map(rtt)
    }

    /// LIA's alpha: w_tot max(w/rtt^2) / (sum of w/rtt)^2 (RFC 6356, equation 2). With the
    /// round-trip times divided by that of the path of the maximum, a single subflow has exactly 1.
    fn alpha(&self) -> f64 {
        let mut best = (0.0, 1.0);
        for (_, s, rtt) in self.timed() {
            let (window, least): (f64, f64) = best;
            if s.window / (rtt * rtt) > window / (least * least) {
                best = (s.window, rtt);
            }
        }
        let (window, least) = best;
        let rate: f64 = self.timed().map(|(_, s, rtt)| s.window * (least / rtt)).sum();
        self.total() * window / (rate * rate)
    }

    /// The part of the connection's rate that is subflow `me`'s.
    fn rate_share(&self, me: usize) -> f64 {
        let rate: f64 = self.timed().map(|(_, s, rtt)| s.window / rtt).sum();
        let mine = self.timed().find(|&(i, ..)| i == me);
        mine.map_or(0.0, |(_, s, rtt)| s.window / rtt / rate)
    }

    /// OLIA's alpha_i (ToN 2013, equation 6): the best paths are presumably those whose l/rtt^2 is
    /// largest, as 1/l estimates the loss rate and a TCP's rate is sqrt(2/p)/rtt. Those of them
    /// whose window is not the largest get 1/n together, at the cost of those whose window is.
    fn shift(&self, me: usize) -> f64 {
        let quality = |s: &Standing, rtt: f64| s.loss_interval / (rtt * rtt);
        let best = self.timed().map(|(_, s, rtt)| quality(s, rtt)).fold(0.0, f64::max);
        let largest = self.timed().map(|(_, s, _)| s.window).fold(0.0, f64::max);
        let (mut has_most, mut deserves) = (0, 0);
        let mut mine = (false, false);
        for (i, s, rtt) in self.timed() {
            let most = s.window == largest;
            let more = !most && quality(s, rtt) == best;
            has_most += u32::from(most);
            deserves += u32::from(more);
            if i == me {
                mine = (most, more);
            }
        }
        let n = self.subflows.len() as f64;
        match mine {
            _ if deserves == 0 => 0.0,
            (_, true) => 1.0 / (n * f64::from(deserves)),
            (true, _) => -1.0 / (n * f64::from(has_most)),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use endpoint::{Draw, Purpose};
    use units::Dur;

    use super::*;
    use crate::tcp::rule::lia;

    const LIA: RuleConfig = RuleConfig::Lia(lia::Params::RFC);
    const OLIA: RuleConfig = RuleConfig::Olia;

    fn subflow(window: f64, us: u64, loss_interval: f64) -> Standing {
        Standing { window, srtt: Some(Dur::from_us(us)), loss_interval }
    }

    fn alpha(subflows: &[Standing]) -> f64 {
        group(&LIA, subflows, 0).alpha
    }

    /// By hand, RFC 6356, equation 2.
    #[test]
    fn alpha_is_that_of_the_rfc() {
        for (window, us) in [(1.0, 7), (7.0 / 3.0, 333), (1e6 / 7.0, 1_000)] {
            assert_eq!(alpha(&[subflow(window, us, 0.0)]), 1.0, "I2: one subflow");
        }
        for n in 1..=9 {
            let alpha = alpha(&vec![subflow(12.5, 130, 0.0); n]);
            assert!((alpha * n as f64 - 1.0).abs() < 1e-12, "{n} equal ones: {alpha}");
        }
        // 30 * max(10/1, 20/16) / (10/1 + 20/4)^2
        let unequal = alpha(&[subflow(10.0, 100, 0.0), subflow(20.0, 400, 0.0)]);
        assert!((unequal - 30.0 * 10.0 / 225.0).abs() < 1e-12, "{unequal}");
    }

    #[test]
    fn what_has_not_been_measured_counts_in_the_total_only() {
        let new = Standing { window: 4.0, srtt: None, loss_interval: 0.0 };
        let old = subflow(16.0, 100, 0.0);
        let seen = group(&LIA, &[old, new], 0);
        // The increase that all get, alpha / w_tot, is as if the new one were not there.
        assert!((seen.alpha / seen.total - 1.0 / 16.0).abs() < 1e-12, "{seen:?}");
        assert_eq!((seen.total, seen.subflows), (20.0, 2));
        let share = |subflows: &[Standing], me| group(&OLIA, subflows, me).rate_share;
        assert_eq!([share(&[old, new], 0), share(&[old, new], 1)], [1.0, 0.0]);
        let none = group(&LIA, &[new; 4], 0);
        assert!((none.alpha - 0.25).abs() < 1e-12 && share(&[new; 4], 0) == 0.25, "{none:?}");
    }

    /// By hand: windows 20 and 10 at equal round trips; then the second path four times as long.
    #[test]
    fn rates_are_windows_over_round_trips() {
        let share =
            |us| group(&OLIA, &[subflow(20.0, 100, 0.0), subflow(10.0, us, 0.0)], 1).rate_share;
        assert!((share(100) - 1.0 / 3.0).abs() < 1e-12);
        assert!((share(400) - 2.5 / 22.5).abs() < 1e-12);
    }

    fn shifts(subflows: &[Standing]) -> Vec<f64> {
        (0..subflows.len()).map(|me| group(&OLIA, subflows, me).shift).collect()
    }

    /// ToN 2013, equation 6, by hand.
    #[test]
    fn olia_moves_window_to_the_best_paths_that_have_less() {
        let [small, large] = [10.0, 30.0].map(|window| move |l| subflow(window, 100, l));
        assert_eq!(shifts(&[large(9.0), small(5.0)]), [0.0, 0.0], "the best has most");
        assert_eq!(shifts(&[large(5.0), small(9.0)]), [-0.5, 0.5]);
        let four = [large(5.0), small(9.0), large(5.0), small(1.0)];
        assert_eq!(shifts(&four), [-0.125, 0.25, -0.125, 0.0]);
        // Both are best, only one of them has less.
        assert_eq!(
            shifts(&[large(9.0), small(9.0), small(9.0)]),
            [-1.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0]
        );
        // Losses four times as rare on a path twice as long: equally good; less rare: worse.
        let long = |l| subflow(10.0, 200, l);
        assert_eq!(shifts(&[large(5.0), long(20.0)]), [-0.5, 0.5]);
        assert_eq!(shifts(&[large(5.0), long(19.0)]), [0.0, 0.0]);
    }

    /// specs/mptcp.md#3: the sum of alpha_i is 0, always.
    #[test]
    fn olia_gives_what_it_takes() {
        const STATE: Purpose = Purpose::new("coupling test");
        let draw = Draw::new(6, STATE, 0);
        let mut number = 0;
        let mut below = |n: u64| {
            number += 1;
            draw.bits(STATE, number) % n
        };
        let mut moved = 0;
        for _ in 0..20_000 {
            let n = 1 + below(9) as usize;
            // Few values, so that ties are usual.
            let state: Vec<Standing> = (0..n)
                .map(|_| Standing {
                    window: (1 + below(3)) as f64,
                    srtt: (below(5) > 0).then(|| Dur::from_us(100 * (1 + below(2)))),
                    loss_interval: below(4) as f64,
                })
                .collect();
            let shifts = shifts(&state);
            assert!(shifts.iter().sum::<f64>().abs() < 1e-12, "{state:?}: {shifts:?}");
            assert!(shifts.iter().all(|s| s.abs() <= 1.0 / n as f64), "{state:?}: {shifts:?}");
            moved += usize::from(shifts.iter().any(|&s| s != 0.0));
        }
        assert!(moved > 2_000, "{moved}");
    }
}
