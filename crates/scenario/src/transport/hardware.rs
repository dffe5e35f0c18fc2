//! The NIC that hardware is made of, without a scenario: sizes and times by the keys of
//! `[transport] kind = "nic"`.

use std::sync::Arc;

use nic::nano::config::Config;
use nic::nano::endpoint::{Nano, ProgramError};
use p4::interp::Machine;
use p4::ir;
use rtl::switch::Sizes;
use rtl::tools::Tools;
use units::{Dur, Rate};

use super::nic::config_of;
use super::too_close;
use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::key::keys;
use crate::reader::Reader;
use crate::value::Size32;

/// What keys say where no `--set` does: the sizes and times of the prototype, by the clocked law.
const USUAL: &str = "preset = \"firesim\"\nclocked = true\npriorities = 8\n";

/// Protocols for experiments (RFC 3692): what a program that takes any is sent.
const ANY: u8 = 253;

/// A clocked NIC for `program`: the published one, but for what `sets` say (`rx_messages=128`, in
/// the words of scenarios). Without `protocol` among them messages are of each protocol that the
/// program writes into its packets.
///
/// # Errors
/// An unknown key or a value out of range; a program that does not run on such a NIC.
pub fn nic_config(program: &Arc<ir::Program>, sets: &[String]) -> Result<Config, Diagnostic> {
    runs_on(program, prototype(0, true)).map_err(|why| refused(&why))?;
    let protocols = protocols(program)?;
    let named: Vec<String> = protocols.iter().map(|n| format!("protocol{n} = {n}")).collect();
    let text = format!("{USUAL}protocol = {{ {} }}\n", named.join(", "));
    let mut document = Document::parse("the NIC", &text)?;
    sets.iter().try_for_each(|edit| document.set(edit))?;
    let mut table = Reader::new(&document.root, &document.root.at, "the NIC")?;
    let config = config_of(&mut table)?;
    if !config.clocked {
        let message = "`clocked` is false: a circuit keeps to the clocked law";
        return table.fail("clocked", message, "no circuit", "leave it out");
    }
    runs_on(program, config.clone()).and_then(Nano::try_egress).map_err(|why| {
        let error = table.error("protocol", why.to_string(), "this one");
        error.hint(format!("the program writes {}", listed(&protocols)))
    })?;
    table.finish()?;
    Ok(config)
}

/// The same of a switch's port: two queues, of which one is served ten times as often.
const USUAL_PORT: &str = "weights = [10, 1]\nmemory = \"144KB\"\nplaces = 1024\n";

/// The port of a switch that hardware is made of.
#[derive(Default)]
struct Port {
    weights: Vec<u8>,
    memory: u32,
    places: u32,
}

keys! { PORT: Port {
    weights: Vec<u8>, "a queue for each, and the packets of it that are served per round";
    memory: Size32 [Size32(1)..=Size32(1 << 30)], "bytes that a port holds";
    places: u32 [2..=1 << 16], "packets that each queue holds, a power of two";
}}

/// Sizes of a switch's port: the usual ones, but for what `sets` say (`memory=72KB`).
///
/// # Errors
/// An unknown key or a value that no port has.
pub fn port_sizes(sets: &[String]) -> Result<Sizes, Diagnostic> {
    let mut document = Document::parse("the port", USUAL_PORT)?;
    sets.iter().try_for_each(|edit| document.set(edit))?;
    let mut table = Reader::new(&document.root, &document.root.at, "the port")?;
    let mut port = Port::default();
    table.all_keys(PORT, &mut port)?;
    let Port { weights, memory, places } = port;
    if !places.is_power_of_two() {
        let message = format!("`places` is {places}: a queue of hardware has a power of two");
        return table.fail("places", message, "not this", "such as 1024");
    }
    if !(2..=8).contains(&weights.len()) || weights.contains(&0) {
        let error = table.error("weights", "a weight for each of the queues", "not these");
        return Err(error.hint("two to eight numbers from 1 to 255, such as [10, 1]"));
    }
    table.finish()?;
    Ok(Sizes { weights, places, memory })
}

/// The protocols that the program of a NIC writes into its packets.
///
/// # Errors
/// It is for something else, or makes no packets.
pub fn protocols(program: &Arc<ir::Program>) -> Result<Vec<u8>, Diagnostic> {
    let tried = |protocol| runs_on(program, prototype(protocol, false))?.try_egress();
    let found: Vec<u8> = (0..=u8::MAX).filter(|protocol| tried(*protocol).is_ok()).collect();
    match (found.len(), tried(ANY)) {
        (0, Err(why)) => Err(refused(&why)),
        (256, _) => Ok(vec![ANY]),
        _ => Ok(found),
    }
}

/// The smallest that is to be said of a NIC, to try a program on.
fn prototype(protocol: u8, clocked: bool) -> Config {
    let protocols = vec![protocol];
    let prototype = Config::prototype(1, Dur::from_us(1));
    Config { protocols, clocked, remember: Some(1024), ..prototype }
}

fn refused(why: &ProgramError) -> Diagnostic {
    Diagnostic::new(why.to_string()).hint("p4/include/nano.p4 declares what the NIC has")
}

fn runs_on(program: &Arc<ir::Program>, config: Config) -> Result<Nano, ProgramError> {
    Nano::new(program, Box::new(Machine::new(Arc::clone(program))), config)
}

/// "154 and 155".
fn listed(protocols: &[u8]) -> String {
    protocols.iter().map(u8::to_string).collect::<Vec<_>>().join(" and ")
}

/// Whether a circuit that takes a packet every `spacing` cycles of 3.2 GHz can be at the end of a
/// link of `rate`.
///
/// # Errors
/// The shortest frames come closer than that.
pub fn check_rate(rate: Rate, spacing: u64) -> Result<(), Diagnostic> {
    too_close(rate, spacing).map_or(Ok(()), |message| Err(Diagnostic::new(message)))
}

/// Why no circuit runs here: a tool is missing that `make rtl-setup` installs. `None` if they do.
#[must_use]
pub fn no_circuits() -> Option<String> {
    Tools::find().err().map(|why| why.to_string())
}
