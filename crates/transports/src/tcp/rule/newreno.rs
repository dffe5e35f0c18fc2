//! NewReno's rule (RFC 5681, sections 3.1 and 3.2): a segment per round trip, half after a loss.

use units::Time;

use super::{Acked, Rule};

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct NewReno;

impl NewReno {
    pub(super) fn new() -> Self {
        Self
    }
}

impl Rule for NewReno {
    /// RFC 5681, equation 3.
    fn increase(&mut self, cwnd: f64, n: f64, _: &Acked) -> f64 {
        n / cwnd
    }

    /// RFC 5681, equation 4.
    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        used / 2.0
    }
}
