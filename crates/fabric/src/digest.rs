//! The digest: a chain per entity, so that it does not depend on how entities interleave.

use endpoint::Packet;

/// What happened to a packet or message, as the digest and nothing else numbers it.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Outcome {
    Sent = 1,
    Arrived,
    Trimmed,
    Bounced,
    Marked,
    Dropped,
    Delivered,
    Acked,
    Failed,
}

const K1: u64 = 0x9fb2_1c65_1e98_df25;
const K2: u64 = 0xd6e8_feb8_6659_fd93;

/// One more link of a chain: (time, packet key, outcome).
pub(crate) const fn chain(chain: u64, time: u64, key: u64, outcome: Outcome) -> u64 {
    let mixed = (chain ^ time).wrapping_mul(K1) ^ key.wrapping_add(outcome as u64);
    (mixed ^ (mixed >> 29)).wrapping_mul(K2)
}

/// The identity of a packet: who sends what to whom. Its header counts, so that two packets about
/// the same bytes differ if they say different things.
pub(crate) fn packet_key(pkt: &Packet) -> u64 {
    let fold = |hash: u64, word: u64| (hash ^ word).wrapping_mul(K1).rotate_left(29);
    let mut key = fold(u64::from(pkt.src.0) << 32 | u64::from(pkt.dst.0), pkt.span.msg.0);
    key = fold(key, pkt.span.offset ^ u64::from(pkt.span.len) << 40);
    key = fold(key, u64::from(pkt.path) << 32 | u64::from(pkt.wire_len));
    // Word by word, the last one cut to what is in use.
    let (words, _) = pkt.hdr.as_chunks::<8>();
    let mut left = u32::from(pkt.hdr_len) * 8;
    for word in words {
        if left == 0 {
            break;
        }
        let unused = u64::BITS - left.min(u64::BITS);
        key = fold(key, u64::from_le_bytes(*word) << unused >> unused);
        left = left.saturating_sub(u64::BITS);
    }
    key
}

/// The digest of several chains, in the order of their owners' ids.
pub(crate) fn combine(chains: impl Iterator<Item = u64>) -> u64 {
    chains.fold(0, |all, one| (all ^ one).wrapping_mul(K1).rotate_left(31) ^ (one >> 7))
}
