//! What the pipelines ask of the blocks, and when.

use nic::nano::blocks::clocked::LOOKUP;
use p4::ir::{self, ExternId};

use super::top::Top;
use super::{EGRESS, INGRESS, NicError};
use crate::emit::{Module, Request};
use crate::record::Port;

/// Where a request of a pipeline leads.
pub(super) struct Asked {
    pub(super) valid: String,
    pub(super) args: Vec<String>,
    pub(super) results: Vec<String>,
    /// Cycles from the packet to the request.
    pub(super) cycle: u64,
}

impl<'a> Top<'a> {
    fn module_of(&self, at: usize) -> &'a Module {
        [self.ingress, self.egress][at]
    }

    pub(super) fn width(&self, at: usize, output: &str) -> u32 {
        let module = self.module_of(at);
        let port = module.outputs().iter().find(|port| port.name() == output);
        port.map_or(1, Port::bits)
    }

    pub(super) fn requests(
        &self,
        at: usize,
    ) -> impl Iterator<Item = (ExternId, &'a Request)> + use<'a> {
        self.module_of(at).requests().iter().filter_map(|request| match request.port {
            ir::Port::Call(which) => Some((which, request)),
            _ => None,
        })
    }

    /// Everything that the program calls has a block.
    pub(super) fn check(&self) -> Result<(), NicError> {
        const KNOWN: [&str; 7] = [
            "get_rx_msg_info",
            "delivered",
            "credit_to_btx",
            "ctrl_pkt",
            "ack_pkt",
            "nack_pkt",
            "grant_pkt",
        ];
        const KINDS: [&str; 4] = ["IfElseRaw", "DualPortRaw", "TxMsgPrio", "SrptScheduler"];
        for (which, _) in self.requests(INGRESS).chain(self.requests(EGRESS)) {
            let kind = self.program.externs[which.index()].kind.as_str();
            if !KNOWN.contains(&kind) && !KINDS.contains(&kind) {
                return Err(NicError::Extern(ir::called(&self.program.externs[which.index()])));
            }
        }
        let shared = |module: &Module| {
            module.requests().iter().find(|r| !matches!(r.port, ir::Port::Call(_))).map(|r| r.port)
        };
        match shared(self.ingress).or_else(|| shared(self.egress)) {
            Some(port) => Err(NicError::Extern(port.name(self.program))),
            None => Ok(()),
        }
    }

    /// The request of a kind and a method, of the instance that `instance` is the first extern of.
    pub(super) fn asked(
        &self,
        at: usize,
        kind: &str,
        method: &str,
        instance: Option<ExternId>,
    ) -> Result<Option<Asked>, NicError> {
        let is_it = |which: ExternId| {
            let called = &self.program.externs[which.index()];
            let same = instance.is_none_or(|known| self.program.instance(which) == known);
            called.kind == kind && called.method == method && same
        };
        let mut found = self.requests(at).filter(|(which, _)| is_it(*which));
        let Some((which, request)) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(NicError::Twice(ir::called(&self.program.externs[which.index()])));
        }
        let prefix = ["in", "out"][at];
        let wait = if at == INGRESS { self.wait } else { 0 };
        Ok(Some(Asked {
            valid: format!("{prefix}_{}", request.valid),
            args: request.args.iter().map(|arg| format!("{prefix}_{arg}")).collect(),
            results: request.results.clone(),
            cycle: wait + u64::from(request.cycle),
        }))
    }

    /// A request of the ingress pipeline to the sending side, when it takes effect: valid, and its
    /// arguments.
    pub(super) fn effect(
        &mut self,
        kind: &str,
        method: &str,
    ) -> Result<Option<Vec<String>>, NicError> {
        let Some(asked) = self.asked(INGRESS, kind, method, None)? else { return Ok(None) };
        let by = in_time(kind, asked.cycle, u64::from(self.config.ingress_cycles))?;
        let mut values = vec![(asked.valid, 1)];
        for arg in asked.args {
            let width = self.width(INGRESS, arg.strip_prefix("in_").unwrap_or(&arg));
            values.push((arg, width));
        }
        Ok(Some(self.all_later(&values, by)))
    }

    /// How long a packet waits, so that its lookup comes when the law says.
    pub(super) fn waits(&self) -> Result<u64, NicError> {
        let lookup = self.asked(INGRESS, "get_rx_msg_info", "", None)?;
        let cycle = lookup.map_or(0, |asked| asked.cycle);
        in_time("get_rx_msg_info", cycle, LOOKUP)
    }

    /// Instances of a kind that a pipeline calls, each by its first extern.
    pub(super) fn instances(&self, kinds: &[&str]) -> Vec<ExternId> {
        let called = self.requests(INGRESS).chain(self.requests(EGRESS));
        let called = called.filter(|(which, _)| {
            kinds.contains(&self.program.externs[which.index()].kind.as_str())
        });
        let mut found: Vec<ExternId> =
            called.map(|(which, _)| self.program.instance(which)).collect();
        found.sort();
        found.dedup();
        found
    }
}

/// Cycles from `cycle` to `limit`, or by how much it is late and which key would make room.
pub(super) fn spare(
    what: &str,
    cycle: u64,
    limit: u64,
    key: &'static str,
) -> Result<u64, NicError> {
    let late = || NicError::Late { what: what.to_owned(), late: cycle - limit, key };
    limit.checked_sub(cycle).ok_or_else(late)
}

/// The same on the way in.
pub(super) fn in_time(what: &str, cycle: u64, limit: u64) -> Result<u64, NicError> {
    spare(what, cycle, limit, "ingress_cycles")
}
