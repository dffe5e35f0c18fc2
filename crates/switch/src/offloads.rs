//! What a kernel does to frames of an interface on its behalf, switched off: checksums that nobody
//! has filled in, and frames of 64 KB that a card is to cut. A switch in software would forward
//! both as they are. By ethtool's netlink messages (kernel documentation, ethtool-netlink).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// The names of what is switched off.
const OFFLOADS: [&str; 8] = [
    "tx-checksum-ipv4",
    "tx-checksum-ip-generic",
    "tx-scatter-gather",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-udp-segmentation",
    "rx-gro",
    "rx-udp-gro-forwarding",
];

/// Of netlink: an error or, with 0, the answer to `ACK`.
const NLMSG_ERROR: u16 = 2;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
/// Of generic netlink: its controller, which knows the numbers of the others.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Of ethtool.
const ETHTOOL_MSG_FEATURES_SET: u8 = 12;
const FEATURES_HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const NESTED: u16 = 1 << 15;
/// Before the attributes: the headers of netlink and of generic netlink.
const HEADERS: usize = 16 + 4;

/// Switch off what a kernel would do to frames of `interface`, which is in this network namespace.
///
/// # Errors
/// There is no such interface, or it is not the caller's to change.
pub fn disable_offloads(interface: &str) -> io::Result<()> {
    let kind = (AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC);
    let socket = socket(kind.0, kind.1, kind.2, SockProtocol::NetlinkGeneric)?;
    let name = attribute(CTRL_ATTR_FAMILY_NAME, &text("ethtool"));
    let answer = ask(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name)?;
    let family = find(answer.get(HEADERS..).unwrap_or(&[]), CTRL_ATTR_FAMILY_ID)
        .and_then(|id| Some(u16::from_ne_bytes(*id.first_chunk()?)))
        .ok_or_else(|| io::Error::other("this kernel has no ethtool over netlink"))?;
    // A bit that is named without a value is to be zero.
    let off = |name: &&str| attribute(BITS_BIT | NESTED, &attribute(BIT_NAME, &text(name)));
    let bits: Vec<u8> = OFFLOADS.iter().flat_map(off).collect();
    let device = attribute(HEADER_DEV_NAME, &text(interface));
    let mut wanted = attribute(FEATURES_HEADER | NESTED, &device);
    let bits = attribute(BITSET_BITS | NESTED, &bits);
    wanted.extend(attribute(FEATURES_WANTED | NESTED, &bits));
    ask(&socket, family, ETHTOOL_MSG_FEATURES_SET, &wanted)?;
    Ok(())
}

/// Send a request and take what comes back first; an error if that is one.
fn ask(socket: &OwnedFd, family: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    message.extend(((HEADERS + attributes.len()) as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((REQUEST | ACK).to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    send(socket.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut answer = vec![0; 8_192];
    let len = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    answer.truncate(len);
    let is_error = answer.get(4..6) == Some(&NLMSG_ERROR.to_ne_bytes());
    let code = answer.get(16..20).and_then(|code| Some(i32::from_ne_bytes(*code.first_chunk()?)));
    match code.filter(|code| is_error && *code != 0) {
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Ok(answer),
    }
}

fn text(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

/// An attribute: its length, its type, its value, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut attribute = Vec::new();
    attribute.extend((4 + value.len() as u16).to_ne_bytes());
    attribute.extend(kind.to_ne_bytes());
    attribute.extend(value);
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}

/// The value of the first attribute of `kind`.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let (len, of) = (attributes.get(..2)?, attributes.get(2..4)?);
        let len = usize::from(u16::from_ne_bytes(*len.first_chunk()?));
        if u16::from_ne_bytes(*of.first_chunk()?) == kind {
            return attributes.get(4..len);
        }
        attributes = attributes.get(len.max(4).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_found() {
        let mut all = attribute(1, &text("abc"));
        assert_eq!(all, [8, 0, 1, 0, b'a', b'b', b'c', 0]);
        all.extend(attribute(2, &[7]));
        assert_eq!((all.len(), find(&all, 2), find(&all, 3)), (16, Some(&[7][..]), None));
        assert_eq!(find(&[0, 0, 9, 0], 2), None, "a length of nothing does not go round");
    }
}
