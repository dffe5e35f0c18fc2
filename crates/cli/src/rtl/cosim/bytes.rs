//! A NIC with its bytes beside the model of the clocked law.

use nic::nano::config::Config;
use rtl::cosim::bytes::{Bytes, Carried, Pace};
use scenario::Error;
use units::Bytes as Size;

use super::nic::traffic;
use super::{Run, failed};
use crate::Ended;

const PACES: [(Pace, &str); 3] = [
    (Pace::Beats, "a beat a cycle"),
    (Pace::Link, "at the pace of links"),
    (Pace::Stalls, "with stalls"),
];

/// A third of the packets at each pace.
pub(super) fn beside(run: &Run<'_>, config: &Config) -> Ended {
    let (_, built, mut bar) = run.built()?;
    let packets = run.args.packets.div_ceil(PACES.len() as u64);
    let (mut lines, mut cycles) = (Vec::new(), 0);
    for (done, (pace, how)) in (0..).zip(PACES) {
        bar.update(done, PACES.len() as u64, "paces");
        let circuit = built.start().map_err(|why| failed(&why.into()))?;
        let mut bytes = Bytes::new(circuit, traffic(run, config)?, config.clone(), pace);
        let carried = bytes.run(packets).and_then(|_| bytes.drain());
        let carried: Carried =
            carried.map_err(|why| -> Error { run.differs(&format!("{how}: {why}")) })?;
        cycles += carried.compared.cycles;
        let Carried { compared, messages, message_bytes, frame_bytes, .. } = carried;
        lines.push(format!(
            "  {how}: {} packets in, {} out ({}); {messages} messages read ({})",
            compared.packets,
            compared.sent,
            Size(frame_bytes),
            Size(message_bytes)
        ));
    }
    drop(bar);
    run.say_agrees(Some(cycles), &lines)
}
