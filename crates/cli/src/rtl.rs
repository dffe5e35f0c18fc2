//! `trimline rtl`: hardware of P4 programs. What all of its commands begin with.

mod build;
mod cosim;
mod report;

use std::sync::Arc;

use nic::nano::config::Config;
use p4::ir::{Program, Spacing};
use p4::state::State;
use rtl::nic::{Nic, NicError};
use rtl::pipelines::Pipelines;
use rtl::sim::Design;
use rtl::switch::{APART, Sizes, SwitchError, SwitchPort};
use scenario::{Diagnostic, Error, check_rate, nic_config, port_sizes, protocols};

use crate::args::Hardware;
use crate::p4::{apart, compile, enter, hardware_of};

pub(crate) use build::build;
pub(crate) use cosim::cosim;
pub(crate) use report::report;

/// A program as hardware.
struct Made {
    state: State,
    /// The least spacing of each pipeline.
    spacings: Vec<Spacing>,
    what: What,
}

enum What {
    /// A whole NIC, or its control path.
    Nic(Box<(Nic, Config)>),
    /// The port of a switch.
    Port(Box<(SwitchPort, Sizes)>),
    /// The pipelines alone.
    Pipelines(Pipelines),
}

/// The architectures of NICs and of switches' ports.
const NANO_NIC: &str = "NanoNic";
const SWITCH_PORT: &str = "SwitchPort";

impl Made {
    /// With its bytes, if it is a NIC's and they are wanted.
    fn new(args: &Hardware, with_bytes: bool) -> Result<Self, Error> {
        let mut state = compile(&args.program)?;
        if let Some(entries) = &args.program.entries {
            enter(entries, &mut state)?;
        }
        let program = Arc::clone(state.program());
        let spacings = hardware_of(&program)?.spacings(&[]);
        for spacing in &spacings {
            check_rate(args.rate, spacing.cycles.into()).map_err(|error| {
                let name = &program.pipelines[spacing.pipeline.index()].name;
                let why = apart(&program, spacing);
                error.hint(format!("{name}: packets {why}; shorten that, or say a lower --rate"))
            })?;
        }
        let what = match program.architecture.as_str() {
            NANO_NIC if !args.pipelines => nic_of(args, &program, &state, with_bytes)?,
            SWITCH_PORT if !args.pipelines => {
                refuse(with_bytes.then_some("--bytes"), &program)?;
                port_of(args, &program, &state)?
            }
            _ => {
                refuse(with_bytes.then_some("--bytes"), &program)?;
                refuse(args.sets.first().map(|_| "--set"), &program)?;
                let pipelines = Pipelines::new(&program, &state);
                What::Pipelines(pipelines.map_err(|why| unsupported(&why))?)
            }
        };
        Ok(Self { state, spacings, what })
    }

    fn program(&self) -> &Arc<Program> {
        self.state.program()
    }

    /// Fewest cycles between two packets that come.
    fn spacing(&self) -> u64 {
        self.spacings.first().map_or(1, |ingress| ingress.cycles.into())
    }

    /// IP protocols of the packets that it is sent. A program that is for no NIC takes any.
    fn protocols(&self) -> Vec<u8> {
        match &self.what {
            What::Nic(made) => made.1.protocols.clone(),
            What::Port(_) | What::Pipelines(_) => protocols(self.program()).unwrap_or_default(),
        }
    }

    /// Names and texts of the sources.
    fn texts(&self) -> Vec<(String, String)> {
        match &self.what {
            What::Nic(made) => made.0.texts(),
            What::Port(made) => made.0.texts(),
            What::Pipelines(pipelines) => pipelines.texts(),
        }
    }

    /// The ports of the top.
    fn ports(&self) -> Design {
        match &self.what {
            What::Nic(made) => made.0.ports(),
            What::Port(made) => made.0.ports(),
            What::Pipelines(pipelines) => pipelines.ports(),
        }
    }
}

/// An option of designs that this program is none of.
fn refuse(option: Option<&str>, program: &Program) -> Result<(), Error> {
    let Some(option) = option else { return Ok(()) };
    let what = &program.architecture;
    let error = format!("{option}: a program for `{what}` has no NIC around its pipelines");
    Err(Diagnostic::new(error).hint("leave it out; --constant changes the program").into())
}

fn nic_of(
    args: &Hardware,
    program: &Arc<Program>,
    state: &State,
    with_bytes: bool,
) -> Result<What, Error> {
    let config = nic_config(program, &args.sets)
        .map_err(|error| if calls_flows(program) { error.hint(ALONE) } else { error })?;
    let build = if with_bytes { rtl::nic::data::build } else { rtl::nic::build };
    let nic = build(program, state, &config).map_err(|why| no_nic(&why))?;
    Ok(What::Nic(Box::new((nic, config))))
}

fn port_of(args: &Hardware, program: &Program, state: &State) -> Result<What, Error> {
    check_rate(args.rate, APART.into())?;
    let sizes = port_sizes(&args.sets)?;
    let port = rtl::switch::build(program, state, &sizes).map_err(|why| match why {
        SwitchError::Unsupported(why) => unsupported(&why),
        _ => Diagnostic::new(why.to_string()).hint(ALONE).into(),
    })?;
    Ok(What::Port(Box::new((port, sizes))))
}

/// What to do where a whole NIC is not possible.
const ALONE: &str = "--pipelines makes its pipelines as modules, without anything around them";

/// Windows and paces by flow have no block.
fn calls_flows(program: &Program) -> bool {
    program.externs.iter().any(|known| known.kind == "set_flow")
}

fn unsupported(why: &rtl::emit::Unsupported) -> Error {
    Diagnostic::new(why.to_string()).hint("docs/rtl.md says what hardware is made of").into()
}

fn no_nic(why: &NicError) -> Error {
    let hint = match why {
        NicError::Pipeline(_) => "docs/rtl.md says what hardware is made of",
        NicError::Extern(_) | NicError::Twice(_) | NicError::Architecture(_) => ALONE,
        NicError::Late { .. } => "--set changes it, such as --set ingress_cycles=30",
        _ => "--set changes it, such as --set rx_messages=16",
    };
    Diagnostic::new(why.to_string()).hint(hint).into()
}

/// A program that is not here, or refuses something: no simulation.
fn no_tools(why: &rtl::tools::ToolError) -> Error {
    Diagnostic::new(why.to_string())
        .hint("`trimline rtl build` needs no tools; docs/rtl.md lists what the others need")
        .into()
}
