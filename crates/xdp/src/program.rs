//! The XDP program: which frames of an interface go to the socket. Numbers are those of
//! `linux/bpf.h` and of the instruction set (RFC 9669).

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::kernel::{Bpf, bpf};

/// Which frames go to a socket. The others go on to the kernel's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All.
    All,
    /// UDP datagrams to this address and these ports, in IPv4 packets without options, not
    /// fragments.
    Udp {
        /// The destination address.
        address: Ipv4Addr,
        /// The first destination port.
        port: u16,
        /// How many there are, at least one.
        ports: u16,
    },
}

/// A program on an interface, until it is dropped.
pub(crate) struct Attached {
    _link: OwnedFd,
}

/// `BPF_MAP_TYPE_XSKMAP`: sockets by receive queue.
const XSKMAP: u64 = 17;
/// `BPF_PROG_TYPE_XDP`, `BPF_F_XDP_HAS_FRAGS`, and as what it is attached.
const PROGRAM: u64 = 6;
const HAS_FRAGS: u64 = 1 << 5;
const ATTACH_XDP: u64 = 37;
/// `XDP_FLAGS_SKB_MODE`, `XDP_FLAGS_DRV_MODE`.
const GENERIC: u64 = 1 << 1;
const NATIVE: u64 = 1 << 2;

/// Two 32-bit attributes in a word.
fn pair(first: u64, second: u64) -> u64 {
    match cfg!(target_endian = "little") {
        true => first | second << 32,
        false => first << 32 | second,
    }
}

fn number(fd: &impl AsRawFd) -> u64 {
    fd.as_raw_fd() as u64
}

fn address<T>(of: &[T]) -> u64 {
    of.as_ptr().addr() as u64
}

fn made(fd: Option<OwnedFd>) -> io::Result<OwnedFd> {
    fd.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// A program for `filter` and the map from which it takes the socket of queue 0.
pub(crate) struct Program {
    program: OwnedFd,
    map: OwnedFd,
}

impl Program {
    pub(crate) fn load(filter: Filter) -> io::Result<Self> {
        let map = made(bpf(Bpf::MapCreate, &[pair(XSKMAP, 4), pair(4, 1)])?)?;
        let instructions = instructions(filter, map.as_raw_fd());
        let license = b"Dual MIT/GPL\0";
        let program = bpf(
            Bpf::ProgramLoad,
            &[
                pair(PROGRAM, instructions.len() as u64),
                address(&instructions),
                address(license),
                // No log; `kern_version`, `prog_flags`.
                0,
                0,
                pair(0, HAS_FRAGS),
            ],
        )?;
        Ok(Self { program: made(program)?, map })
    }

    /// Frames go to `socket`, which must be bound to queue 0.
    pub(crate) fn serve(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let (queue, value) = ([0_u32], [socket.as_raw_fd() as u32]);
        bpf(Bpf::MapUpdate, &[number(&self.map), address(&queue), address(&value), 0])?;
        Ok(())
    }

    /// On the interface with this index, in its driver or, if that is not to be, before the stack.
    pub(crate) fn attach(&self, index: u32, native: bool) -> io::Result<Attached> {
        let mode = if native { NATIVE } else { GENERIC };
        let attributes = [pair(number(&self.program), u64::from(index)), pair(ATTACH_XDP, mode)];
        Ok(Attached { _link: made(bpf(Bpf::LinkCreate, &attributes)?)? })
    }
}

/// `XDP_PASS`: the frame goes on to the stack.
const PASS: i32 = 2;
/// `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;

/// An instruction: operation, destination and source register, offset, immediate.
fn op(code: u8, dst: u8, src: u8, offset: i16, immediate: i32) -> u64 {
    let mut bytes = [0; 8];
    bytes[0] = code;
    bytes[1] = match cfg!(target_endian = "little") {
        true => src << 4 | dst,
        false => dst << 4 | src,
    };
    bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
    bytes[4..].copy_from_slice(&immediate.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// `if *(size at offset of the frame) & mask != value: pass`.
struct Check {
    load: u8,
    offset: i16,
    mask: Option<i32>,
    value: i32,
}

const LOAD_U8: u8 = 0x71;
const LOAD_U16: u8 = 0x69;
const LOAD_U32: u8 = 0x61;

/// What makes a frame a datagram to `address`: fields of Ethernet and IPv4 (RFC 791, 3.1) where
/// there are no VLAN tags and no options.
fn checks(address: Ipv4Addr) -> [Check; 5] {
    let u16_at = |offset, value: u16| Check {
        load: LOAD_U16,
        offset,
        mask: None,
        value: i32::from(u16::from_ne_bytes(value.to_be_bytes())),
    };
    let u8_at = |offset, value| Check { load: LOAD_U8, offset, mask: None, value };
    // More fragments, or an offset.
    let fragment = i32::from(u16::from_ne_bytes(0x3fff_u16.to_be_bytes()));
    [
        u16_at(12, 0x0800),
        u8_at(14, 0x45),
        Check { load: LOAD_U16, offset: 20, mask: Some(fragment), value: 0 },
        u8_at(23, 17),
        Check {
            load: LOAD_U32,
            offset: 30,
            mask: None,
            value: i32::from_ne_bytes(address.octets()),
        },
    ]
}

/// Where a datagram names its destination port (RFC 768).
const PORT_AT: i16 = 36;
/// Bytes before the payload of a UDP datagram.
const HEADERS: i32 = 14 + 20 + 8;

/// The program, for a map with this descriptor.
fn instructions(filter: Filter, map: i32) -> Vec<u64> {
    const MOVE: u8 = 0xbf;
    const MOVE_IMMEDIATE: u8 = 0xb7;
    const ADD_IMMEDIATE: u8 = 0x07;
    const AND_32: u8 = 0x54;
    const JUMP_IF_GREATER: u8 = 0x2d;
    const JUMP_UNLESS_EQUAL_32: u8 = 0x56;
    const TO_BIG_ENDIAN: u8 = 0xdc;
    const SUBTRACT_32: u8 = 0x14;
    const JUMP_UNLESS_BELOW_32: u8 = 0x36;
    const LOAD_MAP: u8 = 0x18;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    /// Where all that is not for the socket goes; filled in at the end.
    const TO_PASS: i16 = 0;

    // r1 is the frame's `struct xdp_md`: where it begins, where it ends, ..., queue at 16.
    let mut code = vec![op(LOAD_U32, 6, 1, 16, 0)];
    let mut jumps = Vec::new();
    if let Filter::Udp { address, port, ports } = filter {
        code.extend([op(LOAD_U32, 2, 1, 0, 0), op(LOAD_U32, 3, 1, 4, 0)]);
        code.extend([op(MOVE, 4, 2, 0, 0), op(ADD_IMMEDIATE, 4, 0, 0, HEADERS)]);
        jumps.push(code.len());
        code.push(op(JUMP_IF_GREATER, 4, 3, TO_PASS, 0));
        for Check { load, offset, mask, value } in checks(address) {
            code.push(op(load, 5, 2, offset, 0));
            code.extend(mask.map(|mask| op(AND_32, 5, 0, 0, mask)));
            jumps.push(code.len());
            code.push(op(JUMP_UNLESS_EQUAL_32, 5, 0, TO_PASS, value));
        }
        // How far behind the first port; below that it is a large number.
        code.extend([op(LOAD_U16, 5, 2, PORT_AT, 0), op(TO_BIG_ENDIAN, 5, 0, 0, 16)]);
        code.push(op(SUBTRACT_32, 5, 0, 0, port.into()));
        jumps.push(code.len());
        code.push(op(JUMP_UNLESS_BELOW_32, 5, 0, TO_PASS, ports.into()));
    }
    // An address of 64 bits takes two slots; source 1 says that it is a map's descriptor.
    code.extend([op(LOAD_MAP, 1, 1, 0, map), op(0, 0, 0, 0, 0)]);
    code.extend([op(MOVE, 2, 6, 0, 0), op(MOVE_IMMEDIATE, 3, 0, 0, PASS)]);
    code.extend([op(CALL, 0, 0, 0, REDIRECT_MAP), op(EXIT, 0, 0, 0, 0)]);
    let pass = code.len();
    // The kernel refuses instructions that nothing leads to.
    if !jumps.is_empty() {
        code.extend([op(MOVE_IMMEDIATE, 0, 0, 0, PASS), op(EXIT, 0, 0, 0, 0)]);
    }
    for jump in jumps {
        code[jump] = with_offset(code[jump], (pass - jump - 1) as i16);
    }
    code
}

fn with_offset(instruction: u64, offset: i16) -> u64 {
    let mut bytes = instruction.to_ne_bytes();
    bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}
