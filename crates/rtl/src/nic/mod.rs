//! A whole NIC around the two pipelines of a program: blocks of `rtl/` wired to the ports of the
//! emitted modules, so that everything happens in the cycle that the clocked law says
//! (docs/nic.md, C1 to C11).
//!
//! A packet of cycle k goes into the ingress pipeline so late that its lookup comes in cycle k + 4;
//! what it asks of packetization and of the generator waits until k + `ingress_cycles`. What the
//! arbiter chooses in cycle k is out at k + `egress_cycles`.

pub mod data;
mod receive;
mod requests;
mod send;
mod top;

use std::io;
use std::path::Path;

use nic::nano::config::Config;
use p4::ir::{PipelineId, Program};
use p4::state::State;
use thiserror::Error;

use crate::blocks::BLOCKS;
use crate::emit::{Module, Unsupported, emit};
use crate::record::Port;
use crate::sim::Design;
use top::Top;

pub(crate) use receive::ANSWER;

/// The top module of the control path alone.
pub(crate) const TOP: &str = "nic";

/// Bytes of a beat: what frames go in and come out by.
const BEAT: u32 = 64;

/// The two pipelines of a program.
const INGRESS: usize = 0;
const EGRESS: usize = 1;

/// Packetization is told what a packet says so many cycles before it counts.
const EARLY: u64 = 1;

/// What a NIC cannot be made of.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NicError {
    /// A pipeline.
    #[error(transparent)]
    Pipeline(#[from] Unsupported),
    /// It is for another architecture.
    #[error("a program for `{0}` is no NIC: #include <nano.p4> and instantiate NanoNic")]
    Architecture(String),
    /// A block is missing.
    #[error(
        "`{0}`: no block of hardware does that; leave it out, or run the program in simulation"
    )]
    Extern(String),
    /// A port serves one access of a packet.
    #[error("`{0}` is accessed more than once by a packet: its block answers one request")]
    Twice(String),
    /// A size that blocks do not have.
    #[error("`{key}` is {value}: a circuit has {wanted}")]
    Size {
        /// The key.
        key: &'static str,
        /// What it is.
        value: u64,
        /// What it may be.
        wanted: &'static str,
    },
    /// Headers that the data path has no room for.
    #[error("a {what} of {bytes} bytes: the data path has room for {most}; use shorter headers")]
    Header {
        /// Which.
        what: &'static str,
        /// How long it is.
        bytes: u32,
        /// How long it may be.
        most: u32,
    },
    /// It is not ready in its cycle.
    #[error(
        "`{what}` comes {late} cycles too late: raise `{key}` by as many, or shorten what it waits for"
    )]
    Late {
        /// The access, or the results.
        what: String,
        /// By how much.
        late: u64,
        /// What would make room.
        key: &'static str,
    },
}

/// A NIC as SystemVerilog.
#[derive(Clone, Debug)]
pub struct Nic {
    /// The top module.
    pub top: &'static str,
    /// Blocks that it is made of: names and texts.
    pub blocks: Vec<&'static [(&'static str, &'static str)]>,
    /// Files beside them: names and texts, the top module last.
    pub files: Vec<(String, String)>,
    /// Inputs of the top module beside clock and reset.
    pub inputs: Vec<Port>,
    /// Its outputs.
    pub outputs: Vec<Port>,
    /// Cycles from the arbiter's choice of a packet to its headers at `made_frame_o`, which comes
    /// before `tx_frame_o`.
    pub making: u32,
}

/// The NIC of `config` with this program.
///
/// # Errors
/// See [`NicError`].
pub fn build(program: &Program, state: &State, config: &Config) -> Result<Nic, NicError> {
    let [ingress, egress] = pipelines(program, state, config)?;
    control(program, config, (&ingress, &egress), false)
}

/// The modules of a program's two pipelines, if blocks can have the sizes of `config`.
fn pipelines(program: &Program, state: &State, config: &Config) -> Result<[Module; 2], NicError> {
    if program.pipelines.len() != 2 || program.architecture != "NanoNic" {
        return Err(NicError::Architecture(program.architecture.clone()));
    }
    check_sizes(config)?;
    let ingress = emit(program, PipelineId(0), state, None, "ingress")?;
    Ok([ingress, emit(program, PipelineId(1), state, None, "egress")?])
}

/// The control path around two pipelines, perhaps with ports for a data path.
fn control(
    program: &Program,
    config: &Config,
    (ingress, egress): (&Module, &Module),
    is_joined: bool,
) -> Result<Nic, NicError> {
    let mut top = Top::new(program, config, ingress, egress, is_joined);
    top.all()?;
    let (text, inputs, outputs) = top.finish();
    let files = vec![
        ("ingress.sv".into(), ingress.text().into()),
        ("egress.sv".into(), egress.text().into()),
        ("nic.sv".into(), text),
    ];
    Ok(Nic { top: TOP, blocks: vec![BLOCKS], files, inputs, outputs, making: egress.latency() })
}

/// Whether the blocks can have these sizes.
fn check_sizes(config: &Config) -> Result<(), NicError> {
    // Deadlines are compared within 32 bits of cycles.
    const LONGEST: u64 = 1 << 30;
    let cycles = |time| config.tick().of(time).0;
    let pulls = u64::from(config.max_pulls);
    let timeouts = config.max_timeouts.map_or(1, u64::from);
    let (tx, rx) = (u64::from(config.tx_messages), u64::from(config.rx_messages));
    let sizes = [
        ("tx_messages", tx, tx >= 2, "2 or more"),
        ("rx_messages", rx, rx >= 2, "2 or more"),
        ("max_pulls", pulls, pulls >= 2 && pulls.is_power_of_two(), "a power of two from 2 on"),
        ("max_timeouts", timeouts, timeouts > 0, "1 or more"),
        (
            "timeout",
            cycles(config.timeout),
            (2..LONGEST).contains(&cycles(config.timeout)),
            "2 cycles or more, below 2^30",
        ),
        (
            "ingress_timeouts",
            config.ingress_timeouts.into(),
            cycles(config.silence()) < LONGEST,
            "timeouts of below 2^30 cycles in all",
        ),
    ];
    match sizes.into_iter().find(|(_, _, fits, _)| !fits) {
        Some((key, value, _, wanted)) => Err(NicError::Size { key, value, wanted }),
        None => Ok(()),
    }
}

impl Nic {
    /// Its files and those of the blocks: names and texts, the top module last.
    #[must_use]
    pub fn texts(&self) -> Vec<(String, String)> {
        let blocks = self.blocks.iter().copied().flatten();
        let blocks = blocks.map(|(name, text)| (format!("{name}.sv"), (*text).to_owned()));
        blocks.chain(self.files.iter().cloned()).collect()
    }

    /// The files in `folder`, and the design that they are.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn design(&self, folder: &Path) -> io::Result<Design> {
        self.ports().written(&self.texts(), folder)
    }

    /// The design without its files.
    #[must_use]
    pub fn ports(&self) -> Design {
        Design {
            top: self.top.into(),
            sources: Vec::new(),
            parameters: Vec::new(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
        }
    }
}
