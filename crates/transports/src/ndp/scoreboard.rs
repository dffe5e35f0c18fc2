//! The scoreboard of one message: which paths are so much worse than the others that they sit out
//! (specs/ndp.md#6).
//!
//! Two rules find outliers. By NACKs, as in the authors' code (R): a path of more than 100 samples
//! that has over 30 NACKs per 100 ACKs and over 1.25 times the ratio of all paths together. By
//! losses, which the paper asks for without a number (S, P): a path that has lost at least three
//! packets and more than twice the mean of the others. The numbers of the second rule are ours.
//!
//! What an outlier is charged is in rounds of the permutation. By NACKs it is one per feedback that
//! still finds the path bad, and every feedback that does not takes one back (R). By losses it is
//! as many rounds as the path has lost packets, so that a dead path, of which only timeouts tell,
//! is tried less and less often.

use super::config::ScoreboardRule;

/// Samples of a path, bounces threefold, above which it is judged (R).
const SAMPLES_MIN: u32 = 100;
/// ACKs above which a path has a ratio at all (R).
const ACKS_MIN: u32 = 10;
/// NACKs per 100 ACKs above which a path can be bad (R).
const RATIO_MIN: u32 = 30;
/// A bounce counts as so many NACKs (R).
const BOUNCE_NACKS: u16 = 3;
/// Losses from which on a path can be bad (ours).
const LOSSES_MIN: u16 = 3;

/// What became of a packet on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was received.
    Ack,
    /// Its payload was cut off.
    Nack,
    /// Its header came back.
    Bounce,
    /// Its timeout has passed.
    Loss,
}

/// One path. Eight bytes: there are 256 of them to a message in a fabric of 8192 hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    acks: u16,
    nacks: u16,
    losses: u16,
    /// How many rounds it has to sit out.
    avoid: u16,
}

/// The paths of one message.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    paths: Vec<Path>,
    /// The sums over all paths.
    acks: u64,
    nacks: u64,
    losses: u64,
    /// How many paths have rounds to sit out.
    avoided: usize,
    /// Whether sitting out a round counts.
    decays: bool,
}

impl Scoreboard {
    pub(crate) fn new(paths: usize, rule: ScoreboardRule) -> Self {
        let decays = rule == ScoreboardRule::Decaying;
        let paths = vec![Path::default(); paths];
        Self { paths, acks: 0, nacks: 0, losses: 0, avoided: 0, decays }
    }

    /// Count what became of a packet on `path`, and judge the path.
    #[inline]
    pub(crate) fn note(&mut self, path: u16, outcome: Outcome) {
        let Some(p) = self.paths.get_mut(usize::from(path)) else { return };
        match outcome {
            Outcome::Ack => {
                p.acks += 1;
                self.acks += 1;
            }
            Outcome::Nack => {
                p.nacks += 1;
                self.nacks += 1;
            }
            Outcome::Bounce => {
                p.nacks += BOUNCE_NACKS;
                self.nacks += u64::from(BOUNCE_NACKS);
            }
            Outcome::Loss => return self.note_loss(path),
        }
        let (acks, nacks) = (u32::from(p.acks), u32::from(p.nacks));
        // 31 per 100 and more: R compares whole percents.
        let suspect = acks + nacks > SAMPLES_MIN && 100 * nacks >= (RATIO_MIN + 1) * acks;
        if suspect || self.avoided > 0 {
            self.judge(path);
        }
        if acks.max(nacks) > u32::from(u16::MAX - BOUNCE_NACKS) {
            self.age();
        }
    }

    /// The rule of NACKs, in the whole numbers of R.
    #[cold]
    fn judge(&mut self, path: u16) {
        let n = self.paths.len() as u64;
        let p = &mut self.paths[usize::from(path)];
        let (acks, nacks) = (u32::from(p.acks), u32::from(p.nacks));
        let ratio = if acks > ACKS_MIN { 100 * nacks / acks } else { 0 };
        let mean = (100 * (self.nacks / n)).checked_div(self.acks / n).unwrap_or(100);
        let bad =
            acks + nacks > SAMPLES_MIN && ratio > RATIO_MIN && 4 * u64::from(ratio) > 5 * mean;
        let avoid = if bad { p.avoid.saturating_add(1) } else { p.avoid.saturating_sub(1) };
        self.set_avoid(path, avoid);
    }

    /// The rule of losses. R has none.
    #[cold]
    fn note_loss(&mut self, path: u16) {
        if !self.decays {
            return;
        }
        let others = self.paths.len() as u64 - 1;
        let p = &mut self.paths[usize::from(path)];
        p.losses = p.losses.saturating_add(1);
        self.losses += 1;
        let (losses, avoid) = (p.losses, p.avoid);
        let lost = u64::from(losses);
        if losses >= LOSSES_MIN && lost * others > 2 * self.losses.saturating_sub(lost) {
            self.set_avoid(path, avoid.saturating_add(losses));
        }
    }

    fn set_avoid(&mut self, path: u16, avoid: u16) {
        let p = &mut self.paths[usize::from(path)];
        self.avoided -= usize::from(p.avoid > 0);
        self.avoided += usize::from(avoid > 0);
        p.avoid = avoid;
    }

    /// Whether `path`, whose turn it is, sits out this round. With every path an outlier, none is.
    #[inline]
    pub(crate) fn sits_out(&mut self, path: u16) -> bool {
        self.avoided > 0 && self.avoided < self.paths.len() && self.passes(path)
    }

    #[cold]
    fn passes(&mut self, path: u16) -> bool {
        let avoid = self.paths[usize::from(path)].avoid;
        if self.decays && avoid > 0 {
            self.set_avoid(path, avoid - 1);
        }
        avoid > 0
    }

    /// Halve all counts, which changes no ratio: one of them is about to overflow.
    #[cold]
    fn age(&mut self) {
        (self.acks, self.nacks, self.losses) = (0, 0, 0);
        for p in &mut self.paths {
            *p = Path { acks: p.acks / 2, nacks: p.nacks / 2, losses: p.losses / 2, ..*p };
            self.acks += u64::from(p.acks);
            self.nacks += u64::from(p.nacks);
            self.losses += u64::from(p.losses);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(paths: usize, rule: ScoreboardRule) -> Scoreboard {
        Scoreboard::new(paths, rule)
    }

    /// `rounds` packets on each path; those on path 0 are NACKed `per_cent` times in a hundred.
    fn feed(board: &mut Scoreboard, rounds: u32, per_cent: u32) {
        for round in 0..rounds {
            for path in 0..board.paths.len() as u16 {
                let nacked = path == 0 && round % 100 < per_cent;
                board.note(path, if nacked { Outcome::Nack } else { Outcome::Ack });
            }
        }
    }

    /// How many rounds path 0 sits out before its next turn.
    fn sentence(board: &mut Scoreboard) -> u32 {
        (0..1000).take_while(|_| board.sits_out(0)).count() as u32
    }

    #[test]
    fn a_path_is_judged_by_more_than_100_samples_and_more_than_30_percent() {
        let mut b = board(4, ScoreboardRule::Decaying);
        feed(&mut b, 100, 60);
        assert_eq!(b.avoided, 0, "100 samples are not more than 100");
        b.note(0, Outcome::Nack);
        assert_eq!(sentence(&mut b), 1);
        assert_eq!(b.avoided, 0, "it has been sat out");

        let mut b = board(4, ScoreboardRule::Decaying);
        feed(&mut b, 100, 23);
        b.note(0, Outcome::Nack);
        assert_eq!(b.avoided, 1, "24 to 77 is 31 %");
        let mut b = board(4, ScoreboardRule::Decaying);
        feed(&mut b, 100, 23);
        b.note(0, Outcome::Ack);
        assert_eq!(b.avoided, 0, "23 to 78 is 29 %");
    }

    /// What all paths have in common is no path's fault: 4 / 3 of the mean is bad, 8 / 7 is not.
    #[test]
    fn the_reference_is_the_mean_of_all_paths() {
        let ratio = |of_others: u32| {
            let mut b = board(2, ScoreboardRule::Decaying);
            for round in 0..300 {
                for path in 0..2 {
                    let bad = if path == 0 { 50 } else { of_others };
                    let nacked = round % 100 < bad;
                    b.note(path, if nacked { Outcome::Nack } else { Outcome::Ack });
                }
            }
            b.paths[0].avoid > 0
        };
        assert!(ratio(25), "100 % against 60 %");
        assert!(!ratio(43), "100 % against 87 %");
    }

    #[test]
    fn the_literal_rule_forgives_only_by_feedback() {
        let mut b = board(4, ScoreboardRule::Literal);
        feed(&mut b, 100, 60);
        b.note(0, Outcome::Nack);
        b.note(0, Outcome::Nack);
        assert_eq!(sentence(&mut b), 1000, "for ever");
        b.note(1, Outcome::Ack);
        assert_eq!(b.paths[0].avoid, 2, "another path's feedback does not help");
        // ACKs of packets that were on their way do, once the ratio is good again.
        (0..1000).for_each(|_| b.note(0, Outcome::Ack));
        assert!(!b.sits_out(0));
    }

    #[test]
    fn bounces_weigh_three_nacks() {
        let mut b = board(4, ScoreboardRule::Decaying);
        feed(&mut b, 80, 0);
        (0..8).for_each(|_| b.note(0, Outcome::Bounce));
        assert_eq!(b.avoided, 0, "24 to 80: 30 %");
        b.note(0, Outcome::Bounce);
        assert_eq!(b.avoided, 1, "27 to 80, 107 samples");
    }

    #[test]
    fn losses_keep_a_path_out_for_longer_each_time() {
        let mut b = board(2, ScoreboardRule::Decaying);
        b.note(0, Outcome::Loss);
        b.note(0, Outcome::Loss);
        assert_eq!(sentence(&mut b), 0);
        b.note(0, Outcome::Loss);
        assert_eq!(sentence(&mut b), 3);
        b.note(0, Outcome::Loss);
        assert_eq!(sentence(&mut b), 4);
        (0..2).for_each(|_| b.note(1, Outcome::Loss));
        b.note(0, Outcome::Loss);
        assert_eq!(sentence(&mut b), 5, "five against two");
        b.note(1, Outcome::Loss);
        assert!(!b.sits_out(1), "three against five");
        let mut literal = board(2, ScoreboardRule::Literal);
        (0..9).for_each(|_| literal.note(0, Outcome::Loss));
        assert_eq!(sentence(&mut literal), 0, "R has no such rule");
    }

    #[test]
    fn never_all_paths_sit_out() {
        let mut b = board(3, ScoreboardRule::Decaying);
        for path in 0..3 {
            b.set_avoid(path, 5);
        }
        assert!((0..3).all(|path| !b.sits_out(path)));
        b.set_avoid(1, 0);
        assert!(b.sits_out(0) && !b.sits_out(1) && b.sits_out(2));
    }

    #[test]
    fn counts_age_instead_of_overflowing() {
        let mut b = board(2, ScoreboardRule::Decaying);
        for _ in 0..200_000 {
            b.note(0, Outcome::Bounce);
            b.note(0, Outcome::Ack);
            b.note(1, Outcome::Ack);
        }
        let Path { acks, nacks, .. } = b.paths[0];
        assert!((2.9..3.1).contains(&(f64::from(nacks) / f64::from(acks))), "{nacks} to {acks}");
        assert_eq!(b.nacks, u64::from(nacks));
        assert_eq!(b.acks, u64::from(acks) + u64::from(b.paths[1].acks));
    }

    #[test]
    fn a_path_is_eight_bytes() {
        assert_eq!(size_of::<Path>(), 8);
    }
}
