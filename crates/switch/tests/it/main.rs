//! The switch against the simulator, and between real hosts.

mod replayed;
mod star;
