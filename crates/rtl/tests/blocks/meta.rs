//! Egress metadata without its notes: `egress_meta_t` of `rtl/nano_pkg`.

use crate::bench::Rng;

/// Its bits.
pub(crate) const BITS: u32 = 170;

/// The fields that the blocks read, and all others as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) protocol: u8,
    pub(crate) dst_ip: u32,
    pub(crate) dst_context: u16,
    pub(crate) msg_len: u16,
    pub(crate) pkt_offset: u8,
    pub(crate) src_context: u16,
    pub(crate) tx_msg_id: u16,
    pub(crate) buf_ptr: u16,
    pub(crate) size_class: u8,
    pub(crate) credit: u16,
    pub(crate) rank: u8,
    pub(crate) flags: u8,
    pub(crate) is_new_msg: bool,
    pub(crate) is_rtx: bool,
}

impl Meta {
    /// Any packet.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let [a, b, c] = [rng.next(), rng.next(), rng.next()];
        Self {
            protocol: a as u8,
            dst_ip: (a >> 8) as u32,
            dst_context: (a >> 40) as u16,
            pkt_offset: (a >> 56) as u8,
            msg_len: b as u16,
            src_context: (b >> 16) as u16,
            tx_msg_id: (b >> 32) as u16,
            buf_ptr: (b >> 48) as u16,
            size_class: c as u8,
            credit: (c >> 8) as u16,
            rank: (c >> 24) as u8,
            flags: (c >> 32) as u8,
            is_new_msg: c >> 40 & 1 != 0,
            is_rtx: c >> 41 & 1 != 0,
        }
    }

    /// As the port has it: the first field in the highest bits.
    pub(crate) fn words(&self) -> [u32; 6] {
        let fields: [(u64, u32); 14] = [
            (self.is_rtx.into(), 1),
            (self.is_new_msg.into(), 1),
            (self.flags.into(), 8),
            (self.rank.into(), 8),
            (self.credit.into(), 16),
            (self.size_class.into(), 8),
            (self.buf_ptr.into(), 16),
            (self.tx_msg_id.into(), 16),
            (self.src_context.into(), 16),
            (self.pkt_offset.into(), 8),
            (self.msg_len.into(), 16),
            (self.dst_context.into(), 16),
            (self.dst_ip.into(), 32),
            (self.protocol.into(), 8),
        ];
        let (mut words, mut at) = ([0; 6], 0);
        for (value, bits) in fields {
            for bit in 0..bits {
                words[at / 32] |= ((value >> bit & 1) as u32) << (at % 32);
                at += 1;
            }
        }
        words
    }
}
