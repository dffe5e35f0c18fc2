//! What packets cost the machine: processor time of each host's and switch's thread.

use std::fmt::Write;

use fabric::Node;
use rustix::time::{ClockId, clock_gettime};
use units::Dur;

/// What a host or a switch has done, and how long a processor worked for it.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Who.
    pub node: Node,
    /// Packets that it received and sent.
    pub packets: u64,
    /// Processor time of its thread. Of the kernel's work that is what it does in its calls: what
    /// a sender's call does for the receiver counts at the sender.
    pub cpu: Dur,
}

/// Processor time of this thread so far.
pub(super) fn so_far() -> Dur {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (s, ns) =
        (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    Dur(s.saturating_mul(1_000_000_000).saturating_add(ns).saturating_mul(1_000))
}

/// `cpu.csv`: a line for each host and switch.
pub(super) fn csv(costs: &[Cost]) -> String {
    let mut text = "node,packets,cpu_us,cpu_us_per_packet\n".to_owned();
    for Cost { node, packets, cpu } in costs {
        let us = cpu.as_us_f64();
        let each = us / (*packets).max(1) as f64;
        let _ = writeln!(text, "{node},{packets},{us:.1},{each:.2}");
    }
    text
}
