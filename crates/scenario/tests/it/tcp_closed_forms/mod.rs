//! TCP over the simulated fabric against closed forms that others derived (specs/tcp.md#8.4,13,14).

mod dctcp;
mod square_root;

use units::{Dur, Time};

fn ms(n: u64) -> Time {
    Time::ZERO + Dur::from_ms(n)
}
