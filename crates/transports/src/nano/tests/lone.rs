//! A message alone in the network, against the closed form: to the picosecond.

use units::{Dur, HostId, Time};

use super::{LINK, PROGRAMS, TO, net};
use crate::nano::{Config, Program};

/// 12 and 23 cycles, and 140: specs/nanotransport.md#1,8.
const OUT: u64 = 3_750;
const IN: u64 = 7_188;
const PULL: u64 = 43_750;

/// When the last of `n` full packets takes effect, nine of which need no credit. Each packet that
/// arrives brings one more back: a GRANT at once; a PULL when the pacer has a token, with the ACK
/// if it has one then, otherwise behind that and those before.
fn whole(program: Program, n: usize) -> Time {
    let (packet, control) = (LINK.rate.serialise(1088).0, LINK.rate.serialise(65).0);
    let there = LINK.delay.0 + IN;
    let (mut begins, mut credits) = (Vec::new(), Vec::new());
    let (mut token, mut wire, mut arrived) = (0, 0, 0);
    for i in 0..n {
        let free = begins.last().map_or(0, |last| last + packet);
        let credit = if i < 9 { 0 } else { credits[i - 9] };
        let begin: u64 = free.max(credit + OUT);
        begins.push(begin);
        arrived = begin + packet + there;
        // When it is given, and when that leaves.
        let mut given = arrived;
        if program == Program::Ndp {
            if token > arrived {
                wire = wire.max(arrived + OUT) + control;
                given = token;
            }
            token = given + PULL;
        }
        wire = wire.max(given + OUT) + control;
        credits.push(wire + there);
    }
    Time::ZERO + Dur(arrived)
}

#[test]
fn a_lone_message_takes_what_the_closed_form_says() {
    for program in PROGRAMS {
        for packets in [1, 2, 9, 10, 20, 38] {
            let mut net = net(&Config::firesim(program), 2);
            let key = net.submit(HostId(1), TO, packets * 1024);
            net.run_until_idle(Dur::from_ms(1));
            let expected = whole(program, packets as usize);
            assert_eq!(net.record(key).delivered, Some(expected), "{program:?}: {packets}");
        }
    }
    // By hand: one packet; nine, one after another; of ten the last waits for the credit that the
    // first brings.
    assert_eq!(whole(Program::Homa, 1), Time(3_750 + 43_520 + 200_000 + 7_188));
    assert_eq!(whole(Program::Homa, 9), Time(3_750 + 9 * 43_520 + 200_000 + 7_188));
    let round = 2 * (3_750 + 200_000 + 7_188) + 43_520 + 2_600;
    assert_eq!(whole(Program::Homa, 10), Time(round + 3_750 + 43_520 + 200_000 + 7_188));
}
