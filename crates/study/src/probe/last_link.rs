//! The probe `last-link`: what arrives at the switch in front of the receiver of an incast, and
//! what leaves it on the receiver's link. For figure 3 of the NDP paper (SIGCOMM 2017).

use std::ops::Range;

use endpoint::{Observer, Packet, PacketEvent, Span};
use fabric::{Link, Node};
use metrics::Timeline;
use scenario::{Diagnostic, Error, Options, Scenario};
use units::{Dur, HostId, Time};

use super::{Probe, Probed};

/// Its entry in the registry.
pub(super) const PROBE: Probe = Probe {
    name: "last-link",
    metrics: &[
        "last_link.trimmed",
        "last_link.ahead_of_header",
        "last_link.sending_at_return",
        "last_link.idle_us",
    ],
    over_time: false,
    measure,
};

/// A packet of data on its way to the receiver, as it passed a place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Passing {
    /// From its first bit to its last.
    time: Range<Time>,
    /// The sender and the span: what it carries, or carried.
    what: (HostId, Span),
    /// Whether the payload is there.
    whole: bool,
}

/// Keeps what happens to packets of data on links to the last switch and to the receiver.
struct Watch {
    links: Vec<Link>,
    /// What has reached the last switch, by arrival of the last bit.
    arrived: Vec<(u32, Passing)>,
}

impl Observer for Watch {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        use endpoint::Flags;
        if event != PacketEvent::Arrived || pkt.flags.has(Flags::CONTROL) {
            return;
        }
        let Some(Link { rate, delay, .. }) = self.links.get(link as usize) else { return };
        // When it left the other end: first bit and last.
        let sent = Time(at.0.saturating_sub(delay.0));
        let began = Time(sent.0.saturating_sub(rate.serialise(u64::from(pkt.wire_len)).0));
        let whole = pkt.carries_payload();
        let passing = Passing { time: began..sent, what: (pkt.src, pkt.span), whole };
        self.arrived.push((link, passing));
    }
}

fn measure(scenario: &Scenario) -> Result<Probed, Error> {
    let links = scenario.topology().links().to_vec();
    let options = Options { threads: Some(1), ..Options::default() };
    let watch = Watch { links: links.clone(), arrived: Vec::new() };
    let (_, watch) = scenario::observe(scenario, &options, watch)?;
    let no_incast = || {
        let error = Diagnostic::new("the probe last-link saw no packet reach a host");
        Error::from(error.hint("it needs an incast: several senders, one receiver"))
    };
    let to_host = |(link, _): &&(u32, Passing)| {
        links.get(*link as usize).is_some_and(|link| matches!(link.to, Node::Host(_)))
    };
    let (last, _) = watch.arrived.iter().find(to_host).ok_or_else(no_incast)?;
    let switch = links.get(*last as usize).map(|link| link.from);
    let of = |keep: &dyn Fn(u32, &Link) -> bool| -> Vec<(u32, Passing)> {
        let kept =
            |(link, _): &&(u32, Passing)| links.get(*link as usize).is_some_and(|l| keep(*link, l));
        watch.arrived.iter().filter(kept).cloned().collect()
    };
    let left = of(&|link, _| link == *last).into_iter().map(|(_, passing)| passing).collect();
    let delay = |link: u32| links.get(link as usize).map_or(Dur::ZERO, |link| link.delay);
    let reached = of(&|_, link| Some(link.to) == switch);
    let reached = reached.into_iter().map(|(link, p)| (p.time.end + delay(link), p)).collect();
    Ok(Story::of(left, reached).probed())
}

/// What happened at the last switch.
struct Story {
    /// What left on the receiver's link, in order.
    left: Vec<Passing>,
    /// What reached the switch, in order.
    reached: Vec<(Time, Passing)>,
    /// What is which packet: its number is its place. First what left whole the first time, in
    /// order, then what was trimmed.
    numbers: Vec<(HostId, Span)>,
}

impl Story {
    fn of(left: Vec<Passing>, reached: Vec<(Time, Passing)>) -> Self {
        let headers = || left.iter().filter(|p| !p.whole).map(|p| p.what);
        let was_trimmed = |what| headers().any(|header| header == what);
        let at_once = left.iter().map(|p| p.what).filter(|what| !was_trimmed(*what));
        let mut numbers: Vec<(HostId, Span)> = Vec::new();
        for what in at_once.chain(headers()) {
            if !numbers.contains(&what) {
                numbers.push(what);
            }
        }
        Self { left, reached, numbers }
    }

    fn number(&self, what: (HostId, Span)) -> usize {
        self.numbers.iter().position(|other| *other == what).map_or(0, |i| i + 1)
    }

    /// The headers that left.
    fn headers(&self) -> impl Iterator<Item = &Passing> {
        self.left.iter().filter(|p| !p.whole)
    }

    /// When each trimmed packet reached the switch again, whole.
    fn returns(&self) -> impl Iterator<Item = (Time, &Passing)> {
        let again = |(at, p): &&(Time, Passing)| {
            p.whole && self.headers().any(|h| h.what == p.what && h.time.start < *at)
        };
        self.reached.iter().filter(again).map(|(at, p)| (*at, p))
    }

    /// How long the link stood still between its first bit and its last.
    fn idle(&self) -> Dur {
        let gaps = self.left.windows(2).map(|pair| match pair {
            [a, b] => b.time.start.0.saturating_sub(a.time.end.0),
            _ => 0,
        });
        Dur(gaps.sum())
    }

    fn probed(&self) -> Probed {
        let ahead = self.headers().next().map(|header| {
            let before = self.left.iter().filter(|p| p.whole && p.time.end <= header.time.start);
            before.count() as f64
        });
        let first = self.returns().next();
        let sending = first.and_then(|(at, back)| {
            // Itself, if it found nobody before it.
            let mut others = self.left.iter().filter(|p| p.whole && p.what != back.what);
            let now = others.find(|p| p.time.contains(&at))?;
            Some(self.number(now.what) as f64)
        });
        let values = vec![
            Some(self.headers().count() as f64),
            ahead,
            sending,
            Some(self.idle().as_us_f64()),
        ];
        Probed { timeline: Some(self.timeline()), ..Probed::values(values) }
    }

    fn timeline(&self) -> Timeline {
        let span = |time: &Range<Time>, what, accent| metrics::Span {
            from_us: time.start.as_us_f64(),
            to_us: time.end.as_us_f64(),
            label: self.number(what).to_string(),
            accent,
        };
        let trimmed = |what| self.headers().any(|h| h.what == what);
        let link = self.left.iter().map(|p| span(&p.time, p.what, trimmed(p.what))).collect();
        let back = self.returns().map(|(at, p)| span(&(at..at), p.what, true)).collect();
        let about = "What the receiver's link carries: whole packets by number, trimmed ones in \
                     colour, first as a header, then whole. Below, when they reach the switch again.";
        Timeline {
            title: String::new(),
            about: about.to_owned(),
            lanes: vec![("receiver's link".to_owned(), link), ("back at switch".to_owned(), back)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(from_us: u64, to_us: u64, sender: u32, whole: bool) -> Passing {
        let time = Time(from_us * 1_000_000)..Time(to_us * 1_000_000);
        Passing { time, what: (HostId(sender), Span::default()), whole }
    }

    /// Three packets by hand: sender 2's is trimmed, overtakes packet 2 as a header, and is back at
    /// the switch at `back_us`.
    fn story(back_us: u64, last: Range<u64>) -> Probed {
        let left = vec![
            passing(0, 7, 1, true),
            passing(7, 8, 2, false),
            passing(8, 15, 3, true),
            passing(last.start, last.end, 2, true),
        ];
        let at = Time(back_us * 1_000_000);
        let first = Time(0);
        let reached = vec![(first, passing(0, 0, 2, true)), (at, passing(0, 0, 2, true))];
        Story::of(left, reached).probed()
    }

    #[test]
    fn a_return_in_time_by_hand() {
        let probed = story(10, 15..22);
        assert_eq!(probed.values, [Some(1.0), Some(1.0), Some(2.0), Some(0.0)]);
        let labels: Vec<&str> = probed.timeline.as_ref().unwrap().lanes[0]
            .1
            .iter()
            .map(|span| span.label.as_str())
            .collect();
        assert_eq!(labels, ["1", "3", "2", "3"], "the trimmed packet is the last number");
        assert_eq!(probed.timeline.as_ref().unwrap().lanes[1].1[0].from_us, 10.0);
    }

    #[test]
    fn a_return_too_late_leaves_the_link_idle() {
        let probed = story(16, 16..23);
        assert_eq!(probed.values, [Some(1.0), Some(1.0), None, Some(1.0)]);
    }
}
