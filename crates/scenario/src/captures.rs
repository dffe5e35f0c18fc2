//! [`Captures`]: frames of a fabric's links, as Wireshark and tshark read them.

use fabric::{Link, Node};
use metrics::{FileError, Interface, OutputDir, PcapngWriter, StagedFile};
use units::Time;

/// The captures `packets.pcapng` and `hops.pcapng`.
pub(crate) struct Captures {
    /// What arrives at hosts: each packet once, as a reader of connections needs it.
    hosts: Capture,
    /// The interface there of each link, if it ends at a host.
    at_host: Vec<Option<u32>>,
    /// What arrives at the end of each link: a packet as often as it has hops.
    hops: Capture,
}

impl Captures {
    pub(crate) fn new(out: &OutputDir, links: &[Link]) -> Result<Self, FileError> {
        let ends_at_host = |l: &&Link| matches!(l.to, Node::Host(_));
        let mut next = 0..;
        let at_host = links.iter().map(|l| ends_at_host(&l).then(|| next.next())?).collect();
        let hosts = Capture::new(out.file("packets.pcapng")?, links.iter().filter(ends_at_host))?;
        Ok(Self { hosts, at_host, hops: Capture::new(out.file("hops.pcapng")?, links.iter())? })
    }

    /// A frame, or its first bytes, at the end of `link`; `len` is what it has on the wire.
    pub(crate) fn frame(
        &mut self,
        at: Time,
        link: u32,
        frame: &[u8],
        len: u32,
    ) -> Result<(), FileError> {
        if let Some(&Some(interface)) = self.at_host.get(link as usize) {
            self.hosts.frame(at, interface, frame, len)?;
        }
        self.hops.frame(at, link, frame, len)
    }

    pub(crate) fn finish(self) -> Result<(), FileError> {
        self.hosts.0.into_inner().finish()?;
        self.hops.0.into_inner().finish()
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
