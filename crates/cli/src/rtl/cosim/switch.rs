//! A switch's port beside its program and a model of its queues.

use rtl::cosim::switch::{Compared, PortError, run as compare};
use rtl::switch::{Sizes, SwitchPort};
use scenario::Diagnostic;

use super::{Run, failed};
use crate::Ended;

/// With drawn packets.
pub(super) fn beside(run: &Run<'_>, port: (&SwitchPort, &Sizes)) -> Ended {
    let args = run.args;
    for (is_given, option) in [(args.replay.is_some(), "--replay"), (args.spaced, "--spaced")] {
        if is_given {
            let error = format!("{option} is nothing for a switch's port");
            let hint = "leave it out: packets come as --seed draws them; --pipelines compares the \
                        pipelines alone";
            return Err(Diagnostic::new(error).hint(hint).into());
        }
    }
    let (_, built, mut bar) = run.built()?;
    let mut circuit = built.start().map_err(|why| failed(&why.into()))?;
    let mut progress = |done| bar.update(done, args.packets, "packets");
    let draws = (args.seed, args.packets);
    let compared = compare(&mut circuit, port, &run.made.state, draws, &mut progress);
    drop(bar);
    let Compared { cycles, packets, trims, bounces, drops, losses } =
        compared.map_err(|why| match &why {
            PortError::Mismatch { located, .. } if !located.place.is_empty() => {
                run.differs(&format!("{why} ({})", located.place))
            }
            _ => run.differs(&why.to_string()),
        })?;
    let packets = format!(
        "  packets: {packets} in, {trims} trimmed, {bounces} sent back, {drops} dropped, {losses} \
         without a place"
    );
    run.say_agrees(Some(cycles), &[packets])
}
