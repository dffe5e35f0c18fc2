//! How many processors a run may count on.

use std::thread::{available_parallelism, sleep};
use std::time::Duration;

/// The processor cores that this process may use.
fn allowed() -> u32 {
    available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

/// Those of them that have nothing to do but for this process: one at least. All, where the system
/// does not say.
pub(crate) fn idle() -> u32 {
    // What runs for a moment only is no reason to do without.
    let look = |n: u64| {
        sleep(Duration::from_millis(n));
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        idle_of(allowed(), &read("/sys/devices/system/cpu/online"), &read("/proc/loadavg"))
    };
    (0..3).map(look).max().unwrap_or(1)
}

/// Of `allowed` processors, when Linux says so of those there are and of what runs.
fn idle_of(allowed: u32, online: &str, loadavg: &str) -> u32 {
    let Some((there, running)) = processors(online).zip(running(loadavg)) else { return allowed };
    // Whoever reads this runs, too.
    let others = running.saturating_sub(1);
    there.saturating_sub(others).clamp(1, allowed.max(1))
}

/// How many "0-3,8" are.
fn processors(online: &str) -> Option<u32> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    online.trim().split(',').map(count).sum()
}

/// How many threads run or wait for a processor: the third word of `/proc/loadavg`, before the
/// stroke.
fn running(loadavg: &str) -> Option<u32> {
    loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_others_use_are_not_idle() {
        let of = |allowed, running: u32| {
            idle_of(allowed, "0-3,8-11\n", &format!("0.20 1.10 2.00 {running}/500 77\n"))
        };
        assert_eq!([0, 1, 2, 4, 8, 9, 100].map(|running| of(8, running)), [8, 8, 7, 5, 1, 1, 1]);
        assert_eq!(of(2, 4), 2, "two of the five that are idle");
    }

    #[test]
    fn a_system_that_does_not_say_gives_all() {
        let loadavg = "0.20 1.10 2.00 9/500 77\n";
        for (online, loadavg) in [("", loadavg), ("x", loadavg), ("0", ""), ("0", "1 2 3 4")] {
            assert_eq!(idle_of(8, online, loadavg), 8, "{online:?} {loadavg:?}");
        }
        assert_eq!(idle_of(8, "0", loadavg), 1);
        assert!(idle() >= 1);
    }
}
