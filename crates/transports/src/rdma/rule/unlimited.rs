//! No rate control: line rate, whatever happens. In a lossless fabric that is priority flow control
//! alone, the baseline of TIMELY and DCQCN ("PFC").

use units::{Rate, Time};

use super::{Ack, PathView, Rule};

/// The rule.
#[derive(Clone, Copy, Debug)]
pub struct Unlimited(Rate);

impl Unlimited {
    pub(super) fn new() -> Self {
        Self(Rate(1))
    }
}

impl Rule for Unlimited {
    fn start(&mut self, path: &PathView, _: Time) {
        self.0 = path.line_rate;
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn rate(&self) -> Rate {
        self.0
    }
}
