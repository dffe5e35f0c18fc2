//! [`Key`]: a pre-shared key of two hosts, and the tags that it makes.
//!
//! A tag is the first half of keyed BLAKE3, 128 bits: the least length that RFC 4868 (section
//! 2.1.1) allows.

use std::fmt;

/// Bytes of a tag.
pub(crate) const TAG_LEN: usize = 16;

/// A key that two hosts, or all of them, have and nobody else.
///
/// Headers and payload have keys of their own, derived from it, so that the tag of one is none of
/// the other.
#[derive(Clone)]
pub struct Key {
    headers: [u8; 32],
    payload: [u8; 32],
}

impl Key {
    /// Of 32 bytes that nobody can guess.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self {
            headers: blake3::derive_key("Trimline 2026 tag of headers", &bytes),
            payload: blake3::derive_key("Trimline 2026 tag of payload", &bytes),
        }
    }

    pub(crate) fn of_headers(&self, bytes: &[u8]) -> Tag {
        tag(&self.headers, bytes)
    }

    pub(crate) fn of_payload(&self, bytes: &[u8]) -> Tag {
        tag(&self.payload, bytes)
    }
}

/// A tag.
pub(crate) type Tag = [u8; TAG_LEN];

fn tag(key: &[u8; 32], bytes: &[u8]) -> Tag {
    let mut tag = [0; TAG_LEN];
    tag.copy_from_slice(&blake3::keyed_hash(key, bytes).as_bytes()[..TAG_LEN]);
    tag
}

/// Never shows the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Whether two tags are equal, in a time that does not say where they differ.
pub(crate) fn same(a: &Tag, b: &Tag) -> bool {
    blake3::Hash::from_bytes(padded(a)) == blake3::Hash::from_bytes(padded(b))
}

fn padded(tag: &Tag) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..TAG_LEN].copy_from_slice(tag);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BLAKE3's published test vectors: keyed, one byte of input, which is 0.
    #[test]
    fn tags_are_those_of_blake3() {
        let expected = [0x6d, 0x78, 0x78, 0xdf, 0xff, 0x2f, 0x48, 0x56];
        assert_eq!(tag(b"whats the Elvish word for friend", &[0])[..8], expected);
        let key = Key::new([7; 32]);
        assert_ne!(key.of_headers(b"bytes"), key.of_payload(b"bytes"));
        assert_ne!(key.of_headers(b"bytes"), Key::new([8; 32]).of_headers(b"bytes"));
        assert_eq!(format!("{key:?}"), "Key(..)");
    }

    #[test]
    fn one_other_bit_is_another_tag() {
        let tag = Key::new([7; 32]).of_headers(b"packet");
        assert!(same(&tag, &tag));
        for bit in 0..8 * TAG_LEN {
            let mut other = tag;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!same(&tag, &other));
        }
    }
}
