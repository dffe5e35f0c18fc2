//! One packet through the ingress pipeline of a program whose senders decide how fast they send:
//! what it makes of its registers and of its flow's window and pace, or what it answers. For the
//! tests of `hpcc.p4`, `swift.p4`, `dcqcn.p4` and `nscc.p4`.
#![allow(dead_code, reason = "every test uses a part of it")]

use std::sync::Arc;

use p4::interp::Machine;
use p4::ir::{self, ExternId, PipelineId, RegisterId};
use p4::program::{Externs, Program};
use trimline_nic::nano::flows::Pace;

/// An ACK as the receiver sends it, from host 5; its flow is 5, too.
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    pub(crate) protocol: u8,
    pub(crate) flags: u8,
    pub(crate) sent_at: u32,
    pub(crate) remark: u32,
    /// What follows the common header.
    pub(crate) rest: Vec<u8>,
}

/// The flow that [`Ack`]s are of.
pub(crate) const FLOW: u128 = 5;

/// A program that runs alone.
pub(crate) struct Step {
    program: Arc<ir::Program>,
    machine: Machine,
}

/// Hears what the program says of its flow.
struct Said<'a> {
    program: &'a ir::Program,
    pace: Option<Pace>,
    /// The flags of its ACK.
    answer: Option<u8>,
    /// The entropy value of a packet that leaves.
    path: Option<u16>,
}

impl Externs for Said<'_> {
    fn call(&mut self, which: ExternId, args: &[u128], _: &mut [u128]) {
        match self.program.externs[which.index()].kind.as_str() {
            "set_flow" => {
                assert_eq!(args[0], FLOW);
                self.pace = Some(Pace { window: args[1] as u16, gap: args[2] as u32 });
            }
            // The twelfth member of `egress_metadata_t`.
            "ack_pkt" => self.answer = Some(args[11] as u8),
            "set_path" => self.path = Some(args[0] as u16),
            _ => {}
        }
    }
}

impl Step {
    pub(crate) fn new(program: Arc<ir::Program>) -> Self {
        Self { machine: Machine::new(Arc::clone(&program)), program }
    }

    fn register(&self, name: &str) -> RegisterId {
        let is_it = |r: &ir::Register| r.name == name || r.name.ends_with(&format!(".{name}"));
        let at = self.program.registers.iter().position(is_it);
        RegisterId(at.unwrap_or_else(|| panic!("no register {name}")) as u32)
    }

    /// What the flow has in a register.
    pub(crate) fn get(&mut self, name: &str) -> u128 {
        let register = self.register(name);
        Program::<Said<'_>>::state(&mut self.machine).register(register, FLOW)
    }

    pub(crate) fn set(&mut self, name: &str, value: u128) {
        let register = self.register(name);
        Program::<Said<'_>>::state(&mut self.machine).set_register(register, FLOW, value);
    }

    /// The ACK comes at cycle `now`.
    pub(crate) fn ack(&mut self, now: u32, ack: &Ack) -> Option<Pace> {
        self.packet(now, 0, ack).pace
    }

    /// A DATA packet with that type of service comes at cycle `now`: the flags of what answers it.
    pub(crate) fn data(&mut self, now: u32, tos: u8, protocol: u8) -> Option<u8> {
        let data = Ack { protocol, flags: 1, sent_at: 0, remark: 0, rest: vec![0; 8] };
        self.packet(now, tos, &data).answer
    }

    fn packet(&mut self, now: u32, tos: u8, ack: &Ack) -> Said<'_> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, tos, 0, 0, 0, 1, 0, 0, 62, ack.protocol, 0, 0]);
        frame.extend([10, 0, 0, FLOW as u8, 10, 0, 0, 1, ack.flags]);
        // Contexts, length, packet, ackNo, number, buffer, class.
        frame.extend([0, 0, 0, 7, 4, 0, 0, 1, 0, 3, 0, 0, 0]);
        frame.extend(ack.sent_at.to_be_bytes());
        frame.extend(ack.remark.to_be_bytes());
        frame.extend(&ack.rest);
        let mut meta = vec![0; self.program.pipelines[0].meta.len()];
        meta[4] = u128::from(now);
        let mut said = Said { program: &self.program, pace: None, answer: None, path: None };
        let mut out = Vec::new();
        let ran = self.machine.run(PipelineId(0), &frame, &mut meta, &mut out, &mut said);
        ran.unwrap_or_else(|error| panic!("rejected: {error:?}"));
        said
    }

    /// A full DATA packet of the flow leaves at cycle `now`: its entropy value.
    pub(crate) fn leave(&mut self, now: u32, protocol: u8) -> Option<u16> {
        let mut meta = vec![0; self.program.pipelines[1].meta.len()];
        meta[4] = u128::from(now);
        // Protocol, address, context, length, of `egress_metadata_t`; its flags are the twelfth.
        meta[5..9].copy_from_slice(&[protocol.into(), 0x0a00_0000 | FLOW, 0, 1024]);
        meta[16] = 1;
        let mut said = Said { program: &self.program, pace: None, answer: None, path: None };
        let mut out = Vec::new();
        let ran = self.machine.run(PipelineId(1), &[], &mut meta, &mut out, &mut said);
        ran.unwrap_or_else(|error| panic!("rejected: {error:?}"));
        said.path
    }
}

/// Numbers that differ from one another, the same in every run.
pub(crate) struct Drawn(pub(crate) u64);

impl Drawn {
    /// From 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        // SplitMix64 (Steele and others, OOPSLA 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        (self.share() * n as f64) as u64
    }

    /// From `low` to `high`, small ones as often as large ones.
    pub(crate) fn scaled(&mut self, low: f64, high: f64) -> f64 {
        let halvings = self.below(32);
        let large = low + (high - low) * self.share();
        (large / (1u64 << halvings) as f64).max(low)
    }
}
