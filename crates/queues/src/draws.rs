//! The random choices at a port. They hang on the seed and the port alone, so that the simulator
//! and the software switch make the same ones.

use endpoint::{Draw, Purpose};

const PORT: Purpose = Purpose::new("port");
/// Whether the n-th packet that has arrived is lost.
const LOSS: Purpose = Purpose::new("link: loss");
const COIN: Purpose = Purpose::new("queue: coin");

/// The `n`-th random choice of the queue of port `port`, 64 uniform bits; `n` from 1.
#[must_use]
pub fn random(seed: u64, port: u32, n: u64) -> u64 {
    Draw::new(seed, PORT, u64::from(port)).bits(COIN, n)
}

/// Whether the `n`-th packet that has come over link `link` is lost where each is with probability
/// `loss`; `n` from 1.
#[must_use]
pub fn is_lost(seed: u64, link: u32, n: u64, loss: f64) -> bool {
    Draw::new(seed, PORT, u64::from(link)).unit(LOSS, n) < loss
}
