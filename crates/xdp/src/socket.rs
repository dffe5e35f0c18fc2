//! [`Socket`]: frames of one interface, in and out.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg, xdp_mmap_offsets, xdp_statistics,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDescOptions, XdpMmapOffsets,
    XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with};

use crate::OpenError;
use crate::interface::Interface;
use crate::memory::Memory;
use crate::program::{Attached, Filter, Program};
use crate::ring::{Consumer, Producer};

/// Bytes of a chunk of the UMEM: a page, the most without huge pages.
const CHUNK: usize = 4096;
/// Chunks in each direction: a thousand frames of 1500 bytes, 340 of 9000.
const CHUNKS: u32 = 1024;
/// Ethernet before an IP packet.
const ETHERNET: usize = 14;
/// Frames that one look gives at most.
pub const BATCH: usize = 64;
/// How often binding is tried again. After its former socket is closed, the kernel takes some 10 ms
/// to let go of a queue, and most of a second on a busy machine.
const PATIENCE: (u32, Duration) = (2_500, Duration::from_millis(2));

/// How often attaching the program is tried again. A process that this one is just starting has its
/// files until it runs another program, so that a former program stays attached for as long.
const ATTACHING: (u32, Duration) = (500, Duration::from_millis(2));

/// Where the XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the interface's driver.
    Native,
    /// Before the stack, after the kernel has made a packet of its own of the frame: slower, with
    /// any driver.
    Generic,
}

/// As many frames of several chunks have room at first in what joins them.
const JOINED: usize = 8;

/// Memory that the kernel has given already, so that the first frames do not wait for it. (It gives
/// zeros when they are written to.)
fn given(len: usize) -> Vec<u8> {
    vec![1; len]
}

/// The same, empty.
fn room(len: usize) -> Vec<u8> {
    let mut room = given(len);
    room.clear();
    room
}

/// Where a frame is: in one chunk of the UMEM, or, made of several, in `Socket::joined`.
#[derive(Clone, Copy)]
enum Place {
    Chunk { at: usize, len: usize },
    Joined { at: usize, len: usize },
}

/// Frames of one interface. While it lives, those of its filter do not reach the kernel's stack.
pub struct Socket {
    // Dropped first: nothing is to arrive while the rest goes.
    _attached: Attached,
    _program: Program,
    fd: OwnedFd,
    mode: Mode,
    frame_max: usize,
    /// Chunks of the longest frame.
    parts: usize,
    fill: Producer,
    arrived: Consumer,
    send: Producer,
    sent: Consumer,
    /// What the last look gave.
    frames: Vec<Place>,
    /// The chunks of that, which go back to the kernel at the next look.
    chunks: Vec<u64>,
    /// Frames of several chunks, one behind the other.
    joined: Vec<u8>,
    /// Chunks for frames to be sent that are not on the way.
    free: Vec<u64>,
    /// The next frame to be sent where it may take several chunks.
    long: Vec<u8>,
    /// By chunk, what the last of a frame's chunks gives back when it is free again; or zero.
    tokens: Vec<u32>,
    /// How many of them are not zero.
    awaited: usize,
    /// The tokens of frames that have left since they were last asked for.
    left: Vec<u32>,
    umem: Memory,
}

impl Socket {
    /// Take the frames of `filter` that arrive at `interface`, in this network namespace.
    ///
    /// # Errors
    /// There is no such interface, it is somebody else's, or the kernel refuses.
    pub fn open(interface: &str, filter: Filter) -> Result<Self, OpenError> {
        let found = Interface::find(interface)?;
        let error = |what| move |error: io::Error| OpenError::of(interface, what, error);
        let program = Program::load(filter).map_err(error("its XDP program"))?;
        let (attached, mode) = attach(&program, found.index).map_err(error("attaching"))?;
        let (fd, umem, rings) = prepare(found.index).map_err(error("its socket"))?;
        program.serve(fd.as_fd()).map_err(error("its map"))?;
        let frame_max = found.mtu + ETHERNET;
        let [mut fill, send] = rings.producers;
        (0..CHUNKS).for_each(|n| fill.put(&[address(n)]));
        fill.show();
        let [arrived, sent] = rings.consumers;
        Ok(Self {
            _attached: attached,
            _program: program,
            fd,
            mode,
            frame_max,
            parts: frame_max.div_ceil(CHUNK),
            fill,
            arrived,
            send,
            sent,
            frames: Vec::with_capacity(BATCH),
            chunks: Vec::with_capacity(CHUNKS as usize),
            joined: room(if frame_max > CHUNK { JOINED * frame_max } else { 0 }),
            free: (CHUNKS..2 * CHUNKS).map(address).collect(),
            long: given(if frame_max > CHUNK { frame_max } else { 0 }),
            tokens: vec![0; 2 * CHUNKS as usize],
            awaited: 0,
            left: Vec::new(),
            umem,
        })
    }

    /// Where the XDP program runs.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The longest frame that can be sent, bytes, without its check sequence.
    #[must_use]
    pub fn frame_max(&self) -> usize {
        self.frame_max
    }

    /// Frames that the kernel has lost because they were not taken in time.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn lost(&self) -> io::Result<u64> {
        let counts = xdp_statistics(&self.fd)?;
        Ok(counts.rx_dropped + counts.rx_ring_full.unwrap_or(0))
    }

    /// Look for frames that have arrived. How many there are; those of the last look are over.
    pub fn receive(&mut self) -> usize {
        self.frames.clear();
        self.joined.clear();
        if !self.chunks.is_empty() {
            self.chunks.drain(..).for_each(|chunk| self.fill.put(&[chunk]));
            self.fill.show();
        }
        // The kernel shows all parts of a frame at once.
        let (mut waiting, mut begun) = (self.arrived.waiting(), false);
        while waiting > 0 && (begun || self.frames.len() < BATCH) {
            let [at, rest] = self.arrived.take();
            waiting -= 1;
            self.chunks.push(at / CHUNK as u64 * CHUNK as u64);
            let (at, len, goes_on) = (at as usize, length(rest), goes_on(rest));
            match begun || goes_on {
                true => self.join(!begun, at, len),
                false => self.frames.push(Place::Chunk { at, len }),
            }
            begun = goes_on;
        }
        self.arrived.release();
        self.frames.len()
    }

    /// Add a part to the frame that is being joined, or begin one.
    fn join(&mut self, first: bool, at: usize, len: usize) {
        let start = self.joined.len();
        self.joined.extend_from_slice(self.umem.bytes(at..at + len));
        match self.frames.last_mut() {
            Some(Place::Joined { len: before, .. }) if !first => *before += len,
            _ => self.frames.push(Place::Joined { at: start, len }),
        }
    }

    /// The `n`-th frame that the last look gave.
    #[must_use]
    pub fn frame(&self, n: usize) -> &[u8] {
        match self.frames[n] {
            Place::Chunk { at, len } => self.umem.bytes(at..at + len),
            Place::Joined { at, len } => &self.joined[at..at + len],
        }
    }

    /// How many of the longest frames can be written before some have left.
    #[must_use]
    pub fn room(&mut self) -> usize {
        self.reclaim();
        self.free.len().min(self.send.room() as usize) / self.parts
    }

    /// Whether `frames` of the longest frames can be written before some have left.
    #[must_use]
    pub fn has_room(&mut self, frames: usize) -> bool {
        let chunks = frames * self.parts;
        if self.free.len() < chunks {
            self.reclaim();
        }
        self.free.len() >= chunks && self.send.room() as usize >= chunks
    }

    /// Where the next frame is to be written, [`Socket::frame_max`] bytes; `None` without room.
    pub fn slot(&mut self) -> Option<&mut [u8]> {
        if !self.has_room(1) {
            return None;
        }
        if !self.long.is_empty() {
            return Some(&mut self.long);
        }
        let at = *self.free.last()? as usize;
        Some(self.umem.bytes_mut(at..at + self.frame_max))
    }

    /// The first `len` bytes of the slot are a frame. It leaves at the next `flush`. When it has,
    /// [`Socket::take_left`] gives `token`, unless that is zero.
    ///
    /// # Panics
    /// There was no slot, or it has fewer bytes.
    pub fn push(&mut self, len: usize, token: u32) {
        assert!(len <= self.frame_max, "a frame of {len} bytes, the most is {}", self.frame_max);
        let mut written = 0;
        loop {
            let chunk = self.free.pop().expect("a slot was given");
            let part = (len - written).min(CHUNK);
            if !self.long.is_empty() {
                let at = chunk as usize;
                let bytes = &self.long[written..written + part];
                self.umem.bytes_mut(at..at + part).copy_from_slice(bytes);
            }
            written += part;
            self.send.put(&[chunk, descriptor(part, written < len)]);
            if written >= len {
                self.tokens[chunk as usize / CHUNK] = token;
                self.awaited += usize::from(token != 0);
                return;
            }
        }
    }

    /// Frames wait that the kernel has not taken.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.send.pending() > 0
    }

    /// Let the kernel send. Whether it has taken everything.
    ///
    /// # Errors
    /// The interface does not work any more.
    pub fn flush(&mut self) -> io::Result<bool> {
        self.send.show();
        // One call takes a bounded number of frames.
        while self.is_loaded() {
            let before = self.send.pending();
            match send(&self.fd, &[], SendFlags::DONTWAIT) {
                Ok(_) => {}
                Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR)
                    if self.send.pending() == before =>
                {
                    return Ok(false);
                }
                Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        // Now, as it keeps nobody waiting.
        self.reclaim();
        Ok(true)
    }

    /// Whether frames with a token have not left, or their tokens have not been taken.
    #[must_use]
    pub fn awaits(&self) -> bool {
        self.awaited > 0
    }

    /// The tokens of frames that the kernel has given back since the last call: it has handed them
    /// to the interface and needs them no more.
    pub fn take_left(&mut self) -> std::vec::Drain<'_, u32> {
        if self.awaited > 0 {
            self.reclaim();
        }
        self.awaited -= self.left.len();
        self.left.drain(..)
    }

    /// Chunks of frames that have left are free again.
    fn reclaim(&mut self) {
        let waiting = self.sent.waiting();
        for _ in 0..waiting {
            let [chunk] = self.sent.take();
            self.free.push(chunk);
            let token = std::mem::take(&mut self.tokens[chunk as usize / CHUNK]);
            self.left.extend((token != 0).then_some(token));
        }
        if waiting > 0 {
            self.sent.release();
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Where chunk `n` of the UMEM begins.
fn address(n: u32) -> u64 {
    u64::from(n) * CHUNK as u64
}

/// The second word of `struct xdp_desc`: length and options of a part of a frame.
fn descriptor(len: usize, goes_on: bool) -> u64 {
    let options = if goes_on { XdpDescOptions::XDP_PKT_CONTD.bits() } else { 0 };
    let (len, options) = (len as u64, u64::from(options));
    if cfg!(target_endian = "little") { len | options << 32 } else { len << 32 | options }
}

/// Bytes of the part of a frame with this second word.
fn length(word: u64) -> usize {
    (if cfg!(target_endian = "little") { word } else { word >> 32 }) as u32 as usize
}

/// Whether another part follows.
fn goes_on(word: u64) -> bool {
    let options = if cfg!(target_endian = "little") { word >> 32 } else { word };
    options as u32 & XdpDescOptions::XDP_PKT_CONTD.bits() != 0
}

/// In the driver if that can be.
fn attach(program: &Program, index: u32) -> io::Result<(Attached, Mode)> {
    let (mut tries, pause) = ATTACHING;
    loop {
        match program.attach(index, true) {
            Ok(attached) => return Ok((attached, Mode::Native)),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                tries -= 1;
                if tries == 0 {
                    return Err(error);
                }
                std::thread::sleep(pause);
            }
            Err(_) => return Ok((program.attach(index, false)?, Mode::Generic)),
        }
    }
}

struct Rings {
    /// To be filled, to be sent.
    producers: [Producer; 2],
    /// Arrived, sent.
    consumers: [Consumer; 2],
}

/// A socket on queue 0 of the interface with this index.
fn prepare(index: u32) -> io::Result<(OwnedFd, Memory, Rings)> {
    let fd = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let umem = Memory::new(2 * CHUNKS as usize * CHUNK)?;
    set_xdp_umem_reg(
        &fd,
        XdpUmemReg {
            addr: umem.address(),
            len: umem.len() as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        },
    )?;
    set_xdp_umem_fill_ring_size(&fd, CHUNKS)?;
    set_xdp_umem_completion_ring_size(&fd, CHUNKS)?;
    set_xdp_rx_ring_size(&fd, CHUNKS)?;
    set_xdp_tx_ring_size(&fd, CHUNKS)?;
    let XdpMmapOffsets { rx, tx, fr, cr } = xdp_mmap_offsets(&fd)?;
    let socket = fd.as_fd();
    let rings = Rings {
        producers: [
            Producer::new(socket, XDP_UMEM_PGOFF_FILL_RING, fr, (CHUNKS, 1))?,
            Producer::new(socket, XDP_PGOFF_TX_RING, tx, (CHUNKS, 2))?,
        ],
        consumers: [
            Consumer::new(socket, XDP_PGOFF_RX_RING, rx, (CHUNKS, 2))?,
            Consumer::new(socket, XDP_UMEM_PGOFF_COMPLETION_RING, cr, (CHUNKS, 1))?,
        ],
    };
    let flags = SocketAddrXdpFlags::XDP_COPY | SocketAddrXdpFlags::XDP_USE_SG;
    let address = SocketAddrXdp::new(flags, index, 0);
    let (mut tries, pause) = PATIENCE;
    while let Err(errno) = bind(&fd, &address) {
        tries -= 1;
        if errno != Errno::BUSY || tries == 0 {
            return Err(errno.into());
        }
        std::thread::sleep(pause);
    }
    Ok((fd, umem, rings))
}
