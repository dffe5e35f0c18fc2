//! What a switch writes into a frame that it forwards: a mark, a shorter packet, the way back.
//!
//! Frames are those of [`crate::frame`]; of UDP datagrams, those of [`crate::shim`] can be trimmed.
//! Lengths and checksums are right afterwards.

use crate::frame::{
    ETHERNET_LEN, Ecn, Frame, FrameError, IP_OVERHEAD, UDP_LEN, checksum, get, put,
};
use crate::shim::{self, Datagram, ShimError};

/// Before the shim: Ethernet, IPv4, UDP.
const SHIM_AT: usize = IP_OVERHEAD + UDP_LEN;
const IP_LEN_AT: usize = ETHERNET_LEN + 2;
const IP_CHECKSUM_AT: usize = ETHERNET_LEN + 10;
const UDP_LEN_AT: usize = IP_OVERHEAD + 4;
const UDP_CHECKSUM_AT: usize = IP_OVERHEAD + 6;

/// Why a frame cannot be rewritten. It is then unchanged.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum RewriteError {
    /// Not a frame of [`crate::frame`].
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// No UDP datagram with a shim, whole.
    #[error("not a Trimline datagram: {0}")]
    Datagram(#[from] ShimError),
    /// The UDP checksum does not match: rewriting would make it right.
    #[error("wrong UDP checksum")]
    Checksum,
}

/// Mark congestion in the IPv4 header (RFC 3168, section 5).
///
/// # Errors
/// Not an IPv4 frame.
pub fn mark(frame: &mut [u8]) -> Result<(), FrameError> {
    Frame::new_checked(frame)?;
    frame[ETHERNET_LEN + 1] |= Ecn::Marked as u8;
    fix_ip_checksum(frame);
    Ok(())
}

/// Cut the payload off the datagram in `frame`, which counts `wire_len` bytes from now on.
///
/// # Errors
/// The frame has no such datagram, or a damaged one.
pub fn trim(frame: &mut Vec<u8>, wire_len: u16) -> Result<(), RewriteError> {
    rewrite(frame, |datagram| shim::trim(datagram, wire_len))
}

/// Send the datagram in `frame`, trimmed before, back to its sender: addresses and ports change
/// places.
///
/// # Errors
/// As [`trim`].
pub fn bounce(frame: &mut Vec<u8>) -> Result<(), RewriteError> {
    rewrite(frame, |datagram| {
        shim::bounce(datagram);
        datagram.len()
    })?;
    let mut swap = |a: usize, b: usize, len: usize| {
        let (low, high) = frame.split_at_mut(b);
        low[a..a + len].swap_with_slice(&mut high[..len]);
    };
    swap(0, 6, 6);
    swap(ETHERNET_LEN + 12, ETHERNET_LEN + 16, 4);
    swap(IP_OVERHEAD, IP_OVERHEAD + 2, 2);
    Ok(())
}

/// Let `change` work on the datagram in `frame`, of which it says how many bytes are left.
fn rewrite(
    frame: &mut Vec<u8>,
    change: impl FnOnce(&mut [u8]) -> usize,
) -> Result<(), RewriteError> {
    let view = Frame::new_checked(frame)?;
    if view.udp().is_none() {
        return Err(FrameError::Foreign("not UDP").into());
    }
    let body = view.body().len();
    Datagram::new_checked(view.body())?;
    let summed = get(frame, UDP_CHECKSUM_AT) != 0;
    if summed && udp_checksum(frame) != 0 {
        return Err(RewriteError::Checksum);
    }
    let len = change(&mut frame[SHIM_AT..SHIM_AT + body]);
    frame.truncate(SHIM_AT + len);
    put(frame, IP_LEN_AT, (SHIM_AT - ETHERNET_LEN + len) as u16);
    put(frame, UDP_LEN_AT, (UDP_LEN + len) as u16);
    fix_ip_checksum(frame);
    if summed {
        put(frame, UDP_CHECKSUM_AT, 0);
        let sum = udp_checksum(frame);
        // Zero would mean "none" (RFC 768).
        put(frame, UDP_CHECKSUM_AT, if sum == 0 { u16::MAX } else { sum });
    }
    Ok(())
}

fn fix_ip_checksum(frame: &mut [u8]) {
    put(frame, IP_CHECKSUM_AT, 0);
    let sum = checksum(&frame[ETHERNET_LEN..IP_OVERHEAD]);
    put(frame, IP_CHECKSUM_AT, sum);
}

/// That of the UDP datagram with its pseudo header (RFC 768): zero over one that contains its own.
fn udp_checksum(frame: &[u8]) -> u16 {
    let end = (ETHERNET_LEN + usize::from(get(frame, IP_LEN_AT))).min(frame.len());
    let datagram = &frame[IP_OVERHEAD..end];
    let mut pseudo = [0; 12];
    pseudo[..8].copy_from_slice(&frame[ETHERNET_LEN + 12..IP_OVERHEAD]);
    pseudo[9] = crate::frame::UDP;
    put(&mut pseudo, 10, datagram.len() as u16);
    // The pseudo header has an even length, so the sums of both can be added.
    let sum = u32::from(!checksum(&pseudo)) + u32::from(!checksum(datagram));
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use units::{HostId, MsgId};

    use super::*;
    use crate::frame::{Carrier, FrameRepr};
    use crate::shim::{SHIM_LEN, ShimRepr};

    const SHIM: ShimRepr = ShimRepr {
        src: HostId(1),
        dst: HostId(2),
        proto: 199,
        path: 3,
        class: 0,
        flags: 4,
        wire_len: 9064,
        msg: MsgId(7),
        offset: 18_000,
        span_len: 9_001,
        tag: 1,
        token: 2,
        src_life: 3,
        dst_life: 4,
        oldest: MsgId(5),
        tagged: false,
    };

    /// A frame as a kernel makes it, with its checksum if `summed`.
    fn frame(summed: bool) -> Vec<u8> {
        let mut body = vec![0xa5; 9_200];
        let len = SHIM.emit(b"header", 9_001, &mut body).unwrap();
        shim::seal(&mut body[..len], None);
        let repr = FrameRepr {
            src: SHIM.src,
            dst: SHIM.dst,
            carrier: Carrier::Udp { port: 9_999 },
            class: 0,
            ecn: Ecn::Capable,
            path: 3,
            body_len: len as u16,
        };
        let mut bytes = vec![0; 10_000];
        let len = repr.emit(&body[..len], &mut bytes).unwrap();
        bytes.truncate(len);
        if summed {
            let sum = udp_checksum(&bytes);
            put(&mut bytes, UDP_CHECKSUM_AT, sum);
            assert_eq!(udp_checksum(&bytes), 0);
        }
        bytes
    }

    fn trimmed() -> ShimRepr {
        ShimRepr { flags: 5, wire_len: 64, ..SHIM }
    }

    #[test]
    fn what_is_left_of_a_trimmed_frame_is_a_frame() {
        for summed in [false, true] {
            let whole = frame(summed);
            let mut cut = whole.clone();
            trim(&mut cut, 64).unwrap();
            assert_eq!(cut.len(), 14 + 20 + 8 + SHIM_LEN + 6);
            let view = Frame::new_checked(&cut).unwrap();
            let (repr, before) = (
                FrameRepr::parse(&view).unwrap(),
                FrameRepr::parse(&Frame::new_checked(&whole).unwrap()).unwrap(),
            );
            assert_eq!(repr, FrameRepr { body_len: SHIM_LEN as u16 + 6, ..before });
            let datagram = Datagram::new_checked(view.body()).unwrap();
            assert_eq!(ShimRepr::parse(&datagram), trimmed());
            assert_eq!(datagram.header(), b"header");
            let sum = get(&cut, UDP_CHECKSUM_AT);
            assert_eq!(
                (sum != 0, summed.then(|| udp_checksum(&cut))),
                (summed, summed.then_some(0))
            );
        }
    }

    #[test]
    fn a_bounced_frame_goes_back() {
        let mut back = frame(true);
        trim(&mut back, 64).unwrap();
        bounce(&mut back).unwrap();
        let view = Frame::new_checked(&back).unwrap();
        let shim = ShimRepr { src: SHIM.dst, dst: SHIM.src, flags: 7, ..trimmed() };
        assert_eq!(ShimRepr::parse(&Datagram::new_checked(view.body()).unwrap()), shim);
        let repr = FrameRepr::parse(&view).unwrap();
        assert_eq!((repr.src, repr.dst), (SHIM.dst, SHIM.src));
        assert_eq!(repr.carrier, Carrier::Udp { port: 0xc003 }, "whence it came");
        assert_eq!(udp_checksum(&back), 0);
        assert_eq!(back[..12], [2, 0, 10, 0, 0, 1, 2, 0, 10, 0, 0, 2]);
    }

    #[test]
    fn a_mark_changes_nothing_else() {
        let whole = frame(true);
        let mut marked = whole.clone();
        mark(&mut marked).unwrap();
        let view = Frame::new_checked(&marked).unwrap();
        assert_eq!(FrameRepr::parse(&view).unwrap().ecn, Ecn::Marked);
        assert_eq!(udp_checksum(&marked), 0);
        assert_eq!(marked[IP_OVERHEAD..], whole[IP_OVERHEAD..]);
    }

    /// A checksum made anew would hide the damage.
    #[test]
    fn what_is_damaged_is_not_made_good() {
        let mut damaged = frame(true);
        damaged[5_000] ^= 4;
        let before = damaged.clone();
        assert_eq!(trim(&mut damaged, 64), Err(ShimError::PayloadDamaged.into()));
        assert_eq!(damaged, before);
        // The ports are the UDP checksum's alone.
        let mut misled = frame(true);
        misled[IP_OVERHEAD] ^= 4;
        assert_eq!(trim(&mut misled, 64), Err(RewriteError::Checksum));
        let mut foreign = frame(true);
        foreign[SHIM_AT] = b'X';
        assert_eq!(trim(&mut foreign, 64), Err(ShimError::Magic.into()));
        assert!(mark(&mut [0; 60]).is_err() && trim(&mut vec![0; 60], 64).is_err());
    }
}
