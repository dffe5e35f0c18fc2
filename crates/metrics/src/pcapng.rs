//! [`PcapngWriter`]: packets as a capture that Wireshark and tshark open (`packets.pcapng`).
//!
//! Source of the format: IETF draft-ietf-opsawg-pcapng, sections 3 and 4. One interface per
//! directed link, with Ethernet frames and times in nanoseconds (`if_tsresol` = 9). Written here
//! rather than by a library: it takes three kinds of blocks, which the tests read with one.

use std::io::{self, Write};

use units::Rate;

/// Types of blocks.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// Tells readers the order of bytes, which is little-endian here.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// The link type of Ethernet.
const ETHERNET: u16 = 1;
/// Options of an interface.
const IF_NAME: u16 = 2;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
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

/// Writes captured frames.
pub struct PcapngWriter<W> {
    to: W,
    interfaces: u32,
    /// The block that is being made.
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// A capture with these interfaces; a packet names one by its index here.
    ///
    /// # Errors
    /// `to` cannot be written.
    pub fn new(to: W, interfaces: impl IntoIterator<Item = Interface>) -> io::Result<Self> {
        let mut capture = Self { to, interfaces: 0, block: Vec::new() };
        capture.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        // Version 1.0, of a length that is not stated.
        capture.put(&[1, 0, 0, 0]);
        capture.put(&u64::MAX.to_le_bytes());
        capture.end_block(SECTION_HEADER)?;
        for Interface { name, rate } in interfaces {
            capture.put(&ETHERNET.to_le_bytes());
            // Reserved, and no limit to the length of frames.
            capture.put(&[0; 6]);
            capture.option(IF_NAME, name.as_bytes());
            capture.option(IF_SPEED, &rate.0.to_le_bytes());
            capture.option(IF_TSRESOL, &[NANOSECONDS]);
            // The end of the options.
            capture.put(&[0; 4]);
            capture.end_block(INTERFACE_DESCRIPTION)?;
            capture.interfaces += 1;
        }
        Ok(capture)
    }

    /// Appends a frame seen on an interface, at so many nanoseconds. `frame` may be cut short:
    /// `wire_len` is its length on the wire, from the Ethernet header on.
    ///
    /// # Errors
    /// It cannot be written, or there is no such interface.
    pub fn packet(
        &mut self,
        at_ns: u64,
        interface: u32,
        frame: &[u8],
        wire_len: u32,
    ) -> io::Result<()> {
        if interface >= self.interfaces {
            return Err(io::Error::other(format!("the capture has no interface {interface}")));
        }
        let captured = frame.len() as u32;
        for word in [interface, (at_ns >> 32) as u32, at_ns as u32, captured, wire_len] {
            self.put(&word.to_le_bytes());
        }
        self.put(frame);
        self.end_block(ENHANCED_PACKET)
    }

    /// What it is written to.
    pub const fn get_ref(&self) -> &W {
        &self.to
    }

    /// What it was written to.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.to
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // Names of links are short.
        let length = value.len() as u16;
        self.put(&code.to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// Everything begins at a multiple of four bytes.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes the block that has been made: its type, its length, itself, its length again.
    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        self.pad();
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        let parts = [&kind.to_le_bytes()[..], &length, &self.block, &length];
        let written = parts.into_iter().try_for_each(|part| self.to.write_all(part));
        self.block.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pcap_file::DataLink;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    #[test]
    fn reads_back() {
        let link = |name: &str| Interface { name: name.to_owned(), rate: Rate(10_000_000_000) };
        let links = [link("host 0 -> tor 0"), link("tor 0 -> host 1")];
        let mut capture = PcapngWriter::new(Vec::new(), links).unwrap();
        // Later than 2^32 ns, an odd length, and cut short.
        capture.packet(5_000_000_001, 1, &[0xab; 65], 9064).unwrap();
        assert!(capture.packet(0, 2, &[], 0).is_err(), "no such interface");
        let file = capture.into_inner();
        let mut reader = PcapNgReader::new(file.as_slice()).unwrap();
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
