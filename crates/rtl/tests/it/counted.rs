//! Circuits count what is rejected as their models do.

use std::sync::Arc;

use endpoint::{Effect, Effects, Msg, MsgId, Packet, Stat};
use nic::nano::blocks::clocked::Clocked;
use nic::nano::config::Config;
use nic::nano::endpoint::Runs;
use nic::nano::ticking::Machine;
use p4::interp;
use p4::ir::Program;
use trimline_rtl::machine::Circuit;
use trimline_rtl::sim::Program as Built;
use units::HostId;

const ME: HostId = HostId(1);
const PEER: HostId = HostId(2);

/// A message of so many bytes, three packets.
const LEN: u64 = 3000;

fn model(program: &Arc<Program>, config: &Config) -> Clocked {
    let runs = Box::new(interp::Machine::new(Arc::clone(program))) as Runs;
    Clocked::new(program, runs, config.clone()).unwrap()
}

/// What a peer answers to packets that another NIC of this address has sent.
fn answers(program: &Arc<Program>, config: &Config) -> Vec<Packet> {
    let (mut other, mut peer) = (model(program, config), model(program, config));
    let (mut fx, mut answers) = (Effects::new(), Vec::new());
    let _ = other.submit(5, ME, &message(), &mut fx);
    for cycle in 5..2000 {
        let mut packet = Packet::EMPTY;
        if other.step(cycle, cycle % 100 == 0, ME, &mut packet, &mut fx).is_some() {
            peer.receive(cycle, PEER, (&packet, 1), &mut fx);
        }
        let mut packet = Packet::EMPTY;
        if peer.step(cycle, cycle % 100 == 50, PEER, &mut packet, &mut fx).is_some() {
            answers.push(packet);
        }
    }
    answers
}

fn message() -> Msg {
    Msg { id: MsgId(0), ..Msg::new(PEER, LEN) }
}

/// What a NIC rejects that has sent nothing yet of its message and is given `packets`.
fn rejected(nic: &mut dyn Machine, packets: &[Packet]) -> usize {
    let (mut fx, mut rejected) = (Effects::new(), 0);
    let _ = nic.submit(10, ME, &message(), &mut fx);
    for cycle in 10..(100 + 40 * packets.len() as u64) {
        if cycle % 40 == 0
            && let Some(packet) = packets.get((cycle / 40) as usize)
        {
            nic.receive(cycle, ME, (packet, 1), &mut fx);
        }
        let mut slot = Packet::EMPTY;
        let _ = nic.step(cycle, false, ME, &mut slot, &mut fx);
        let counts = fx.as_slice().iter();
        rejected += counts.filter(|fx| **fx == Effect::Count(Stat::Rejected)).count();
        fx.clear();
    }
    rejected
}

/// Of packets that no program knows, and of acknowledgements of what was never sent.
pub(crate) fn rejections(program: &Arc<Program>, config: &Config, built: &Built, making: u32) {
    let answers = answers(program, config);
    assert!(!answers.is_empty());
    let mut packets = vec![answers[0]; 2];
    packets.extend(answers.iter().map(|packet| Packet { proto: 17, ..*packet }));
    packets.extend(answers);
    let wanted = rejected(&mut model(program, config), &packets);
    let mut circuit = Circuit::new(built.start().unwrap(), config.clone(), making);
    assert_eq!(rejected(&mut circuit, &packets), wanted);
    println!("{wanted} of {} packets are rejected", packets.len());
    assert!(wanted > packets.len() / 3, "{wanted}");
}
