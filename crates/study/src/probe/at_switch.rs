//! When packets reached the switch where they are and when they left it, for probes of queues.

use endpoint::{Packet, PacketEvent};
use fabric::{Link, Topology};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::Time;

/// When each packet, by its key, reached the switch where it is. Packets of one key (multicast
/// copies) are not told apart.
#[derive(Default)]
pub(super) struct AtSwitch {
    reached: HashMap<u64, Time, FxBuildHasher>,
}

/// A packet's crossing of the link behind a switch.
pub(super) struct Left<'a> {
    /// The link.
    pub(super) link: &'a Link,
    /// When the packet reached the switch.
    pub(super) from: Time,
    /// When its last bit had left the switch.
    pub(super) to: Time,
}

impl AtSwitch {
    /// A packet's event on a link of `topology`, as an observer sees it: its way through the switch
    /// before this link, if it came from one.
    pub(super) fn left<'a>(
        &mut self,
        topology: &'a Topology,
        at: Time,
        link: u32,
        event: PacketEvent,
        pkt: &Packet,
    ) -> Option<Left<'a>> {
        match event {
            PacketEvent::Arrived => {}
            PacketEvent::Dropped(_) => {
                self.reached.remove(&pkt.key);
                return None;
            }
            _ => return None,
        }
        let link = topology.links().get(link as usize)?;
        let mut delay = link.delay;
        let reached = if link.to.is_switch() {
            delay += topology.switch_latency();
            self.reached.insert(pkt.key, at)
        } else {
            self.reached.remove(&pkt.key)
        };
        Some(Left { link, from: reached?, to: Time(at.0.saturating_sub(delay.0)) })
    }
}
