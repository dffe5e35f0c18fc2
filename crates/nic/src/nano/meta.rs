//! Metadata between the blocks and the pipelines (specs/nanotransport.md#3.1), and where each value
//! stands among those of a program ([`p4::ir::Pipeline::meta`]).

use units::{HostId, MsgId};

use super::buffers::Buffer;

/// The address of a host, as `wire::frame` has it: 10.x.y.z.
#[must_use]
pub const fn ip_of(host: HostId) -> u32 {
    10 << 24 | host.0 & 0x00ff_ffff
}

/// The host that has an address.
#[must_use]
pub const fn host_of(ip: u32) -> HostId {
    HostId(ip & 0x00ff_ffff)
}

/// What the ingress pipeline says of a packet's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ingress {
    /// The message's id here.
    pub rx_msg_id: u16,
    /// The message is whole with it.
    pub is_last_pkt: bool,
    /// There is no payload for reassembly.
    pub drop: bool,
    /// Who gets the payload.
    pub to: To,
}

/// Who gets the payload of a packet (`TO_HOST` and so on in `nano.p4`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum To {
    /// The host, in a message that reassembly has made whole.
    #[default]
    Host,
    /// Software on the host: the packet as it is.
    Software,
    /// Nobody: the program is whom the message was for.
    Nobody,
}

impl To {
    /// The value of `ingress_metadata_t.to`; one that has no meaning is the host.
    #[must_use]
    pub const fn from_number(n: u128) -> Self {
        match n {
            1 => Self::Software,
            2 => Self::Nobody,
            _ => Self::Host,
        }
    }
}

/// What the header of a packet says of its message's id: the context, which is the low half, and
/// what is above the bits of the number that choose one of `tx_ids` cells (rule 7).
#[must_use]
pub fn carried_id(tx_msg_id: u16, src_context: u16, tx_ids: u16) -> MsgId {
    let high = tx_msg_id / tx_ids.max(1);
    MsgId(u64::from(high) << 16 | u64::from(src_context))
}

/// A packet that the egress pipeline is to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Egress {
    /// IP protocol.
    pub protocol: u8,
    /// The receiving host.
    pub dst_ip: u32,
    /// The context there.
    pub dst_context: u16,
    /// Bytes of the message.
    pub msg_len: u16,
    /// Index of the packet, or the ackNo.
    pub pkt_offset: u8,
    /// The context that sends.
    pub src_context: u16,
    /// The data sender's number of the message.
    pub tx_msg_id: u16,
    /// Its buffer there.
    pub buffer: Buffer,
    /// Packets below it may be sent.
    pub credit: u16,
    /// Priority in the network.
    pub rank: u8,
    /// What the packet is.
    pub flags: u8,
    /// Nothing of the message has been sent before.
    pub is_new_msg: bool,
    /// It is sent again.
    pub is_rtx: bool,
    /// What a program says to its egress control beside; zero in data.
    pub notes: [u128; 3],
}

impl Egress {
    /// The values in the order of `egress_metadata_t` in `nano.p4`.
    #[must_use]
    pub fn to_values(&self) -> [u128; 17] {
        let [note0, note1, note2] = self.notes;
        [
            self.protocol.into(),
            self.dst_ip.into(),
            self.dst_context.into(),
            self.msg_len.into(),
            self.pkt_offset.into(),
            self.src_context.into(),
            self.tx_msg_id.into(),
            self.buffer.ptr.into(),
            self.buffer.class.into(),
            self.credit.into(),
            self.rank.into(),
            self.flags.into(),
            self.is_new_msg.into(),
            self.is_rtx.into(),
            note0,
            note1,
            note2,
        ]
    }

    /// From values in that order; what is missing is zero.
    #[must_use]
    pub fn from_values(values: &[u128]) -> Self {
        let at = |i: usize| values.get(i).copied().unwrap_or(0);
        Self {
            protocol: at(0) as u8,
            dst_ip: at(1) as u32,
            dst_context: at(2) as u16,
            msg_len: at(3) as u16,
            pkt_offset: at(4) as u8,
            src_context: at(5) as u16,
            tx_msg_id: at(6) as u16,
            buffer: Buffer { ptr: at(7) as u16, class: at(8) as u8 },
            credit: at(9) as u16,
            rank: at(10) as u8,
            flags: at(11) as u8,
            is_new_msg: at(12) != 0,
            is_rtx: at(13) != 0,
            notes: [at(14), at(15), at(16)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_those_of_frames() {
        assert_eq!(ip_of(HostId(0x01_0203)), 0x0a01_0203);
        assert_eq!(host_of(0x0a01_0203), HostId(0x01_0203));
    }

    proptest! {
        #[test]
        fn values_read_back(values: [u16; 17]) {
            const WIDTHS: [u32; 17] = [8, 32, 16, 16, 8, 16, 16, 16, 8, 16, 8, 8, 1, 1, 127, 127, 127];
            let mut masked = [0; 17];
            for ((to, from), width) in masked.iter_mut().zip(values).zip(WIDTHS) {
                *to = u128::from(from) & ((1 << width) - 1);
            }
            prop_assert_eq!(Egress::from_values(&masked).to_values(), masked);
        }
    }
}
