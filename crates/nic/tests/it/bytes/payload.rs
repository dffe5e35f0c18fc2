//! A stage between the NIC's memories and the wire, through which the payload of every packet goes:
//! a cipher, a serializer (specs/nanotransport.md#14: "pluggable stages").
//!
//! Packets are lost, trimmed, repeated and overtake one another, so a stage works on one packet at
//! a time and knows of it only what its header says, too: its place.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use units::{HostId, MsgId};

/// Which bytes of which message a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The sending host.
    pub(crate) src: HostId,
    /// The message, as far as headers name it
    /// ([`carried_id`](trimline_nic::nano::meta::carried_id)).
    pub(crate) msg: MsgId,
    /// Index of the packet.
    pub(crate) pkt_offset: u8,
}

/// What is done to payload. A payload keeps its length.
pub(crate) trait PayloadStage: Send {
    /// Of a packet that leaves. The same bytes at the same place become the same bytes again: a
    /// packet may be sent twice.
    fn seal(&self, place: Place, bytes: &mut [u8]);

    /// Of a packet that has arrived: the opposite of [`PayloadStage::seal`].
    fn open(&self, place: Place, bytes: &mut [u8]);

    /// Cycles that a packet takes through it, on either way.
    fn cycles(&self) -> u32;
}

/// The cipher `ChaCha20` (RFC 8439), under one key for all hosts. The nonce is the packet's place,
/// so that no two packets share one until the message ids that headers carry come again, which is
/// after 2^28 messages of a host with 16 ids; the key must be replaced before that. It hides
/// payload and authenticates nothing.
pub(crate) struct Cipher {
    key: [u8; 32],
    cycles: u32,
}

impl Cipher {
    /// A cipher with this `key`, which takes `cycles`.
    #[must_use]
    pub(crate) const fn new(key: [u8; 32], cycles: u32) -> Self {
        Self { key, cycles }
    }

    /// The key stream is added modulo two, so that both ways are one.
    fn apply(&self, place: Place, bytes: &mut [u8]) {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&place.src.0.to_be_bytes());
        // Headers carry 32 bits at most of a message's id.
        nonce[4..8].copy_from_slice(&(place.msg.0 as u32).to_be_bytes());
        nonce[8] = place.pkt_offset;
        ChaCha20::new(&self.key.into(), &nonce.into()).apply_keystream(bytes);
    }
}

impl PayloadStage for Cipher {
    fn seal(&self, place: Place, bytes: &mut [u8]) {
        self.apply(place, bytes);
    }

    fn open(&self, place: Place, bytes: &mut [u8]) {
        self.apply(place, bytes);
    }

    fn cycles(&self) -> u32 {
        self.cycles
    }
}

/// A serializer: words of eight bytes in the other byte order, as the prototype's interface has
/// them (specs/nanotransport.md#3.3). A last word that is not whole stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByteOrder;

impl ByteOrder {
    fn swap(bytes: &mut [u8]) {
        bytes.chunks_exact_mut(8).for_each(<[u8]>::reverse);
    }
}

impl PayloadStage for ByteOrder {
    fn seal(&self, _: Place, bytes: &mut [u8]) {
        Self::swap(bytes);
    }

    fn open(&self, _: Place, bytes: &mut [u8]) {
        Self::swap(bytes);
    }

    fn cycles(&self) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { src: HostId(1), msg: MsgId(2), pkt_offset: 3 };

    /// RFC 8439, section 2.3.2 has the key stream of this key and nonce for block 1: a payload
    /// begins with block 0, so the block is its second.
    #[test]
    fn the_key_stream_is_that_of_the_standard() {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let cipher = Cipher::new(key, 0);
        let mut bytes = [0; 128];
        // Nonce 00:00:00:09:00:00:00:4a:00:00:00:00.
        let place = Place { src: HostId(9), msg: MsgId(0x4a), pkt_offset: 0 };
        cipher.seal(place, &mut bytes);
        let expected = [
            0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15, 0x50, 0x0f, 0xdd, 0x1f, 0xa3, 0x20,
            0x71, 0xc4,
        ];
        assert_eq!(bytes[64..80], expected);
    }

    #[test]
    fn what_is_sealed_opens_at_its_place_with_its_key_only() {
        let cipher = Cipher::new([7; 32], 20);
        let plain: Vec<u8> = (0..1024).map(|i| i as u8).collect();
        let mut sealed = plain.clone();
        cipher.seal(PLACE, &mut sealed);
        let mut again = plain.clone();
        cipher.seal(PLACE, &mut again);
        assert_eq!(sealed, again, "a packet that is repeated is the same");
        let opened = |cipher: &Cipher, place| {
            let mut bytes = sealed.clone();
            cipher.open(place, &mut bytes);
            bytes
        };
        assert_eq!(opened(&cipher, PLACE), plain);
        let others = [
            opened(&Cipher::new([8; 32], 20), PLACE),
            opened(&cipher, Place { src: HostId(2), ..PLACE }),
            opened(&cipher, Place { msg: MsgId(3), ..PLACE }),
            opened(&cipher, Place { pkt_offset: 4, ..PLACE }),
        ];
        for wrong in others {
            let equal = wrong.iter().zip(&plain).filter(|(a, b)| a == b).count();
            assert!(equal < 30, "{equal} bytes of 1024 came through; 4 are chance");
        }
    }

    #[test]
    fn words_change_their_byte_order_and_back() {
        let mut bytes: Vec<u8> = (0..11).collect();
        ByteOrder.seal(PLACE, &mut bytes);
        assert_eq!(bytes, [7, 6, 5, 4, 3, 2, 1, 0, 8, 9, 10]);
        ByteOrder.open(PLACE, &mut bytes);
        assert_eq!(bytes, (0..11).collect::<Vec<u8>>());
    }
}
