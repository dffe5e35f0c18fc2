//! [`PcapngWriter`]: packets as a capture that Wireshark and tshark open (`packets.pcapng`).
//!
//! Source of the format: IETF draft-ietf-opsawg-pcapng. One interface per directed link, with
//! Ethernet frames and times in nanoseconds (`if_tsresol` = 9), rounded down from picoseconds.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use units::{Rate, Time};

use crate::{FileError, StagedFile};

/// `if_tsresol` for nanoseconds: ten to the minus nine.
const NANOSECONDS: u8 = 9;

/// A directed link as a capture interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Shown as the interface's name.
    pub name: String,
    /// Shown as the interface's speed.
    pub rate: Rate,
}

/// Writes captured frames. [`finish`](Self::finish) completes the file.
pub struct PcapngWriter {
    path: PathBuf,
    capture: PcapNgWriter<StagedFile>,
}

impl PcapngWriter {
    /// A capture with these interfaces; a packet names one by its index here.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(
        file: StagedFile,
        interfaces: impl IntoIterator<Item = Interface>,
    ) -> Result<Self, FileError> {
        let path = file.path().to_owned();
        let failed = |e| FileError::pcapng(&path, &e);
        let mut capture = PcapNgWriter::new(file).map_err(failed)?;
        for Interface { name, rate } in interfaces {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                InterfaceDescriptionOption::IfSpeed(rate.0),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let linktype = DataLink::ETHERNET;
            // Snap length 0: no limit.
            let block = InterfaceDescriptionBlock { linktype, snaplen: 0, options };
            capture.write_pcapng_block(block).map_err(failed)?;
        }
        Ok(Self { path, capture })
    }

    /// Appends a frame seen at `at` on an interface. `frame` may be cut short: `wire_len` is its
    /// length on the wire, from the Ethernet header on.
    ///
    /// # Errors
    /// The file cannot be written, or there is no such interface.
    pub fn packet(
        &mut self,
        at: Time,
        interface: u32,
        frame: &[u8],
        wire_len: u32,
    ) -> Result<(), FileError> {
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(at.0 / 1000),
            original_len: wire_len,
            data: Cow::Borrowed(frame),
            options: Vec::new(),
        };
        let written = self.capture.write_pcapng_block(block);
        written.map(|_| ()).map_err(|e| FileError::pcapng(&self.path, &e))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        self.capture.into_inner().finish()
    }
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;
    use crate::OutputDir;

    #[test]
    fn reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let link = |name: &str| Interface { name: name.to_owned(), rate: Rate(10_000_000_000) };
        let links = [link("host 0 -> tor 0"), link("tor 0 -> host 1")];
        let mut capture = PcapngWriter::new(out.file("packets.pcapng").unwrap(), links).unwrap();
        // Later than 2^32 ns, an odd length, and cut short.
        let at = Time(5_000_000_001_999);
        capture.packet(at, 1, &[0xab; 65], 9064).unwrap();
        assert!(capture.packet(at, 2, &[], 0).is_err(), "no such interface");
        capture.finish().unwrap();
        let file = std::fs::File::open(out.staged().join("packets.pcapng")).unwrap();
        let mut reader = PcapNgReader::new(file).unwrap();
        let mut packets = 0;
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap() {
                assert_eq!(packet.timestamp, Duration::from_nanos(5_000_000_001));
                assert_eq!((packet.interface_id, packet.original_len), (1, 9064));
                assert_eq!(packet.data.as_ref(), [0xab; 65]);
                packets += 1;
            }
        }
        assert_eq!(packets, 1);
        let [_, link] = reader.interfaces() else { panic!("two interfaces") };
        assert_eq!(link.linktype, DataLink::ETHERNET);
        let options = &link.options;
        assert!(options.contains(&InterfaceDescriptionOption::IfName("tor 0 -> host 1".into())));
        assert!(options.contains(&InterfaceDescriptionOption::IfTsResol(NANOSECONDS)));
        assert!(options.contains(&InterfaceDescriptionOption::IfSpeed(10_000_000_000)));
    }
}
