//! Where packets live while they are in the fabric.

use std::ops::{Index, IndexMut, Range};

use endpoint::{Packet, prefetch};

/// Packets by handle; freed ones are used again, so nothing is allocated after warm-up.
pub(crate) struct Slab {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Slab {
    /// With room for `packets` packets. It is not touched before it is needed, so it costs nothing;
    /// making room later would mean to have everything twice for a moment.
    pub(crate) fn with_capacity(packets: usize) -> Self {
        Self { packets: Vec::with_capacity(packets), free: Vec::new() }
    }

    /// A cleared packet.
    #[inline(always)]
    pub(crate) fn alloc(&mut self) -> u32 {
        self.insert(&Packet::EMPTY)
    }

    /// How many packets there are.
    pub(crate) fn live(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Take in a packet.
    #[inline(always)]
    pub(crate) fn insert(&mut self, packet: &Packet) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.packets[handle as usize] = *packet;
            return handle;
        }
        self.packets.push(*packet);
        self.packets.len() as u32 - 1
    }

    /// A packet, if there ever was one of this number.
    #[inline(always)]
    pub(crate) fn get(&self, handle: u32) -> Option<&Packet> {
        self.packets.get(handle as usize)
    }

    /// Have at hand what switches look at of a packet, if there is one of this number.
    #[inline(always)]
    pub(crate) fn prefetch(&self, handle: u32) {
        prefetch_lines(&self.packets, handle, 0..1);
    }

    /// The same of its header, which switches do not look at.
    #[inline(always)]
    pub(crate) fn prefetch_header(&self, handle: u32) {
        prefetch_lines(&self.packets, handle, 1..2);
    }

    #[inline(always)]
    pub(crate) fn free(&mut self, handle: u32) {
        self.free.push(handle);
    }
}

impl Index<u32> for Slab {
    type Output = Packet;
    fn index(&self, handle: u32) -> &Packet {
        &self.packets[handle as usize]
    }
}

impl IndexMut<u32> for Slab {
    fn index_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.packets[handle as usize]
    }
}

/// Ask the processor to have the first `LINES` cache lines of `item` at hand soon. Changes nothing
/// but the time it takes.
#[inline(always)]
pub(crate) fn prefetch<T: ?Sized, const LINES: usize>(item: &T) {
    prefetch::lines(std::ptr::from_ref(item).cast(), 0..LINES);
}

/// The same of some lines of an item of a list. It need not be there.
#[inline(always)]
pub(crate) fn prefetch_lines<T>(items: &[T], item: u32, lines: Range<usize>) {
    prefetch::lines(items.as_ptr().wrapping_add(item as usize).cast(), lines);
}
