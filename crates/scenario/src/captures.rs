//! [`Captures`]: frames of a fabric's links, as Wireshark and tshark read them.

use fabric::{Link, Node, Topology};
use metrics::{FileError, Interface, OutputDir, PcapngWriter, StagedFile};
use units::Time;

use crate::Diagnostic;
use crate::place::Place;

/// At which end of a link a frame is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Where its transmission begins.
    Sending,
    /// When all of it has arrived.
    Receiving,
}

/// Where captures are taken: for each link, at which end, if at all.
#[derive(Debug)]
pub(crate) struct CapturePoints(Vec<Option<End>>);

impl CapturePoints {
    /// The points that `places` name, or `None` without any. At a host: all that it sends, and what
    /// arrives. At a switch: what arrives. On a link: what arrives at its end.
    pub(crate) fn new(places: &[String], topology: &Topology) -> Result<Option<Self>, Diagnostic> {
        if places.is_empty() {
            return Ok(None);
        }
        let mut ends = vec![None; topology.links().len()];
        for place in places {
            match Place::find(place, topology)? {
                Place::Link(link) => ends[link as usize] = Some(End::Receiving),
                Place::Node(node) => {
                    for (end, link) in ends.iter_mut().zip(topology.links()) {
                        if link.to == node {
                            *end = Some(End::Receiving);
                        } else if link.from == node && matches!(node, Node::Host(_)) {
                            // Who captures at both ends of a link would see its packets twice.
                            end.get_or_insert(End::Sending);
                        }
                    }
                }
            }
        }
        Ok(Some(Self(ends)))
    }

    /// What arrives at hosts.
    fn hosts(links: &[Link]) -> Self {
        let ends_at_host = |l: &Link| matches!(l.to, Node::Host(_)).then_some(End::Receiving);
        Self(links.iter().map(ends_at_host).collect())
    }

    /// Whether anything is captured of this link.
    pub(crate) fn has(&self, link: u32) -> bool {
        self.0.get(link as usize).is_some_and(Option::is_some)
    }
}

/// The captures `packets.pcapng` and `hops.pcapng`.
pub(crate) struct Captures {
    /// Each packet once, as a reader of connections needs it.
    packets: Capture,
    /// The interface there of each link, and where it is.
    at: Vec<Option<(u32, End)>>,
    /// What arrives at the end of each link: a packet as often as it has hops.
    hops: Option<Capture>,
}

impl Captures {
    /// What arrives at hosts, and all hops; with `points`, what is seen there, and no hops.
    pub(crate) fn new(
        out: &OutputDir,
        links: &[Link],
        points: Option<&CapturePoints>,
    ) -> Result<Self, FileError> {
        let hosts = CapturePoints::hosts(links);
        let CapturePoints(ends) = points.unwrap_or(&hosts);
        let chosen = links.iter().zip(ends).filter_map(|(link, end)| end.and(Some(link)));
        let packets = Capture::new(out.file("packets.pcapng")?, chosen)?;
        let mut next = 0..;
        let at = ends.iter().map(|end| (*end).and_then(|end| Some((next.next()?, end)))).collect();
        let all = || Capture::new(out.file("hops.pcapng")?, links.iter());
        let hops = if points.is_none() { Some(all()?) } else { None };
        Ok(Self { packets, at, hops })
    }

    /// A frame, or its first bytes, at this end of `link`; `len` is what it has on the wire.
    pub(crate) fn frame(
        &mut self,
        at: Time,
        (link, end): (u32, End),
        frame: &[u8],
        len: u32,
    ) -> Result<(), FileError> {
        if let Some(&Some((interface, seen))) = self.at.get(link as usize)
            && seen == end
        {
            self.packets.frame(at, interface, frame, len)?;
        }
        match &mut self.hops {
            Some(hops) if end == End::Receiving => hops.frame(at, link, frame, len),
            _ => Ok(()),
        }
    }

    pub(crate) fn finish(self) -> Result<(), FileError> {
        self.packets.0.into_inner().finish()?;
        self.hops.map_or(Ok(()), |hops| hops.0.into_inner().finish())
    }
}

/// One of them.
struct Capture(PcapngWriter<StagedFile>);

impl Capture {
    fn new<'a>(file: StagedFile, links: impl Iterator<Item = &'a Link>) -> Result<Self, FileError> {
        let path = file.path().to_owned();
        let interface = |l: &Link| Interface { name: l.to_string(), rate: l.rate };
        let writer = PcapngWriter::new(file, links.map(interface));
        Ok(Self(writer.map_err(|e| FileError::io("write", &path, &e))?))
    }

    /// Times are rounded down to nanoseconds.
    fn frame(&mut self, at: Time, on: u32, frame: &[u8], len: u32) -> Result<(), FileError> {
        let written = self.0.packet(at.0 / 1_000, on, frame, len);
        written.map_err(|e| FileError::io("write", self.0.get_ref().path(), &e))
    }
}
