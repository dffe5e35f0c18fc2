//! One run of one case, measured.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use scenario::{Error, Options, Scenario};

use super::cases::Case;
use super::{Measured, failed};
use crate::peak_rss;

/// Run `case` here. Time counts from building the fabric on; instructions only over the event loop.
pub(super) fn run(case: &Case, threads: u32) -> Result<Measured, Error> {
    let scenario = Scenario::parse(case.name, case.text, std::path::Path::new("."), &[])?;
    let options = Options { threads: Some(threads), ..Options::default() };
    let mut instructions = Instructions::new();
    let mut built = false;
    let (cpu, wall) = (cpu_s()?, Instant::now());
    let simulated = scenario::simulate(&scenario, &options, &mut |_| {
        if !std::mem::replace(&mut built, true) {
            instructions.start();
        }
    })?;
    let instructions = instructions.stop();
    let wall_s = wall.elapsed().as_secs_f64();
    let cpu_s = cpu_s()? - cpu;
    let outcome = simulated.outcome;
    let hops = outcome.packet_hops.max(1) as f64;
    Ok(Measured {
        name: case.name.to_owned(),
        threads,
        packet_hops: outcome.packet_hops,
        events: outcome.events,
        cpu_s,
        wall_s,
        ns_per_packet_hop: cpu_s * 1e9 / hops,
        instructions_per_packet_hop: instructions.map(|n| n / hops),
        peak_rss_mb: peak_rss().unwrap_or(0.0) / 1e6,
        packet_hops_per_s: hops / wall_s,
        digest: format!("{:016x}", outcome.digest),
    })
}

/// User and system time of this process so far, seconds.
fn cpu_s() -> Result<f64, Error> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(failed)?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Instructions in user mode, of this thread and of those that it starts, by the processor's
/// counter. `None` where the machine or its rules do not allow it (virtual machines, containers).
struct Instructions(Option<perf_event::Counter>);

impl Instructions {
    fn new() -> Self {
        let kind = perf_event::events::Hardware::INSTRUCTIONS;
        let mut builder = perf_event::Builder::new().kind(kind);
        builder.inherit(true);
        Self(builder.build().ok())
    }

    fn start(&mut self) {
        self.0.take_if(|counter| counter.enable().is_err());
    }

    fn stop(self) -> Option<f64> {
        let mut counter = self.0?;
        counter.disable().ok()?;
        // A counter that exists and counts nothing is the virtual machine's way to say no.
        counter.read().ok().filter(|&n| n > 0).map(|n| n as f64)
    }
}
