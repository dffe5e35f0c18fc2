//! The switch against the simulator, and between real hosts.

mod receive;
mod replayed;
mod star;
