//! `backend = "rtl"`: NICs that are circuits, built once for a run by Verilator.

use std::hash::Hasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use endpoint::{Cx, Endpoint, Msg, MsgId, Packet, Submit, TimerId, Tx, TxPort};
use nic::nano::config::Config;
use nic::nano::ticking::Ticking;
use rtl::blocks::BLOCKS;
use rtl::machine::Circuit;
use rtl::nic::{Nic, build};
use rtl::sim::{Program, SimError};
use rtl::tools::Tools;
use rustc_hash::FxHasher;
use units::HostId;

use super::nic::model_of;
use crate::diagnostic::Checked;
use crate::p4::Compiled;
use crate::reader::Reader;

/// The circuit of a program's NIC, built.
pub(super) struct Circuits {
    program: Program,
    making: u32,
}

impl Circuits {
    /// Build it, in a folder named by what it is.
    pub(super) fn new(table: &Reader<'_>, compiled: &Compiled, config: &Config) -> Checked<Self> {
        let refuse = |why: String, hint: &str| {
            table.error("backend", why, "no circuit of this NIC").hint(hint.to_owned())
        };
        if !config.clocked {
            let why = "a circuit keeps to the clocked law".to_owned();
            return Err(refuse(why, "add `clocked = true`"));
        }
        let tools =
            Tools::find().map_err(|why| refuse(why.to_string(), "or use another back end"))?;
        let nic = build(&compiled.program, &compiled.state(), config)
            .map_err(|why| refuse(why.to_string(), "docs/nic.md says what circuits have"))?;
        let mut hash = FxHasher::default();
        hash.write(tools.version().as_bytes());
        BLOCKS.iter().for_each(|(_, text)| hash.write(text.as_bytes()));
        nic.files.iter().for_each(|(_, text)| hash.write(text.as_bytes()));
        let name = format!("{:016x}", hash.finish());
        let program = built(&tools, &nic, &name)
            .map_err(|why| refuse(why.to_string(), "or use another back end"))?;
        Ok(Self { program, making: nic.making })
    }

    /// The NIC of whatever host calls it first.
    pub(super) fn endpoint(self: &Arc<Self>, compiled: &Arc<Compiled>, config: &Config) -> Late {
        let (circuits, compiled, config) = (Arc::clone(self), Arc::clone(compiled), config.clone());
        let make = move |me: HostId| -> Box<dyn Endpoint> {
            if !compiled.rtl_hosts.is_empty() && !compiled.rtl_hosts.contains(&me.0) {
                return model_of(&compiled, &config).unwrap_or_else(|| Box::new(Broken));
            }
            match circuits.program.start() {
                Ok(started) => {
                    let circuit = Circuit::new(started, config.clone(), circuits.making);
                    Box::new(Ticking::new(circuit, &config))
                }
                Err(why) => {
                    eprintln!("the circuit of host {}: {why}", me.0);
                    Box::new(Broken)
                }
            }
        };
        Late { make: Box::new(make), made: None }
    }
}

/// Builds of this process: sweeps read scenarios side by side.
static BUILDS: AtomicU64 = AtomicU64::new(0);

/// The design of this name, built once for all runs. Several may build it at once: it appears
/// whole.
fn built(tools: &Tools, nic: &Nic, name: &str) -> Result<Program, SimError> {
    let all = std::env::temp_dir().join("trimline-rtl");
    let folder = all.join(name);
    if !folder.join("simulation").exists() {
        let nth = BUILDS.fetch_add(1, Ordering::Relaxed);
        let own = all.join(format!("{name}.{}.{nth}", std::process::id()));
        nic.design(&own)?.build(tools, &own)?;
        // Where somebody was quicker, theirs is the same.
        if std::fs::rename(&own, &folder).is_err() {
            std::fs::remove_dir_all(&own)?;
        }
    }
    Ok(nic.ports().program(&folder))
}

/// An endpoint that is made when its host is known.
pub(super) struct Late {
    make: Box<dyn Fn(HostId) -> Box<dyn Endpoint> + Send>,
    made: Option<Box<dyn Endpoint>>,
}

impl Late {
    fn of(&mut self, me: HostId) -> &mut dyn Endpoint {
        let make = &self.make;
        self.made.get_or_insert_with(|| make(me)).as_mut()
    }
}

impl Endpoint for Late {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.of(cx.me).on_submit(cx, msg)
    }
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.of(cx.me).on_packet(cx, pkt);
    }
    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        self.of(cx.me).on_timer(cx, id);
    }
    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        self.of(cx.me).poll_tx(cx, port, slot)
    }
    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.of(cx.me).on_cancel(cx, id);
    }
}

/// Where the process of a circuit cannot be started: the run ends, since a message that nobody has
/// sent is acknowledged.
struct Broken;

impl Endpoint for Broken {
    fn on_submit(&mut self, cx: &mut Cx<'_>, _: &Msg) -> Submit {
        cx.fx.acked(MsgId(u64::MAX));
        Submit::Taken
    }
    fn on_packet(&mut self, cx: &mut Cx<'_>, _: &Packet) {
        cx.fx.acked(MsgId(u64::MAX));
    }
    fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}
    fn poll_tx(&mut self, _: &mut Cx<'_>, _: TxPort, _: &mut Packet) -> Tx {
        Tx::Idle
    }
}
