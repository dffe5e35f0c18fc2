//! Where packets live while they are in the fabric.

use std::ops::{Index, IndexMut};

use endpoint::Packet;

/// Packets by handle; freed ones are used again, so nothing is allocated after warm-up.
#[derive(Default)]
pub(crate) struct Slab {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Slab {
    /// A cleared packet.
    pub(crate) fn alloc(&mut self) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.packets[handle as usize] = Packet::EMPTY;
            return handle;
        }
        self.packets.push(Packet::EMPTY);
        self.packets.len() as u32 - 1
    }

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
