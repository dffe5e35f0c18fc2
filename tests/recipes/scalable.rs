//! Scalable TCP (T. Kelly, CCR 33(2), 2003): a hundredth of a segment for each acknowledged, an eighth
//! less after a loss.

use units::Time;

use super::{Acked, Rule};

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Scalable;

impl Scalable {
    pub(super) fn new() -> Self {
        Self
    }
}

impl Rule for Scalable {
    fn increase(&mut self, _: f64, n: f64, _: &Acked) -> f64 {
        0.01 * n
    }

    fn after_loss(&mut self, used: f64, _: Time) -> f64 {
        0.875 * used
    }
}
