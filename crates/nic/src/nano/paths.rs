//! The path of each packet (docs/nic.md, rule 11).

use endpoint::{Cx, MsgId, Purpose};
use units::HostId;

use super::config::{Config, PathChoice};

const PATH: Purpose = Purpose::new("nano path");

/// Draws for the path of one packet before they are given up.
const TRIES: u64 = 16;

/// How a NIC chooses paths: by the entropy value that its program has given a packet, or a draw for
/// each packet, or one for each message, or one for each flow, since what a program knows of a flow
/// it knows of its path.
#[derive(Debug)]
pub(super) struct Paths {
    choice: PathChoice,
    by_flow: bool,
    departures: u64,
}

impl Paths {
    pub(super) const fn new(config: &Config, by_flow: bool) -> Self {
        Self { choice: config.choice, by_flow, departures: 0 }
    }

    /// That of the next packet, of message `msg` to `dst`.
    pub(super) fn next(
        &mut self,
        cx: &Cx<'_>,
        dst: HostId,
        msg: MsgId,
        entropy: Option<u16>,
    ) -> u32 {
        match (entropy, self.choice) {
            (Some(entropy), PathChoice::Hashed) => return entropy.into(),
            (Some(entropy), PathChoice::Packets) => {
                return cx.net.path_from(dst, u32::from(entropy) % cx.net.paths(dst));
            }
            _ => {}
        }
        let paths = cx.net.paths(dst);
        if paths <= 1 {
            return 0;
        }
        self.departures += 1;
        let spray = self.choice == PathChoice::Packets;
        let n = if spray { self.departures } else { 0 };
        let part = if self.by_flow { u64::from(dst.0) } else { msg.0 };
        let draws = if spray { cx.draw } else { cx.draw.part(part) }.stream(PATH);
        let drawn = |attempt| draws.below(n * TRIES + attempt, u64::from(paths)) as u32;
        let up = |&path: &u32| cx.net.path_up(dst, path);
        (0..TRIES).map(drawn).find(up).unwrap_or_else(|| cx.net.path_from(dst, 0))
    }
}
