//! The header parsers: no bytes make them panic, and what parses is emitted as it was read.
#![no_main]

use wire::{cbr, frame, homa, ndp, pfabric, pfc, phost, roce, shim, tcp, uet};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = ndp::Header::new(bytes) {
        let _ = ndp::Repr::parse(&header);
    }
    if let Ok(repr) = tcp::Repr::parse(bytes) {
        let mut copy = [0; 60];
        if repr.emit(&mut copy).is_ok() {
            assert_eq!(tcp::Repr::parse(&copy), Ok(repr));
        }
    }
    if let Ok(repr) = phost::Repr::parse(bytes) {
        assert_eq!(phost::Repr::parse(&repr.to_bytes()), Ok(repr));
    }
    if let Ok(repr) = pfabric::Repr::parse(bytes) {
        assert_eq!(pfabric::Repr::parse(&repr.to_bytes()), Ok(repr));
    }
    if let Ok(repr) = uet::Repr::parse(bytes) {
        assert_eq!(uet::Repr::parse(&repr.to_bytes()), Ok(repr));
    }
    if let Ok(repr) = homa::Repr::parse(bytes) {
        assert_eq!(homa::Repr::parse(repr.to_bytes().as_slice()), Ok(repr));
    }
    if let Ok(repr) = cbr::Repr::parse(bytes) {
        assert_eq!(cbr::Repr::parse(&repr.to_bytes()), Ok(repr));
    }
    if let Ok(repr) = roce::Repr::parse(bytes) {
        assert_eq!(roce::Repr::parse(repr.to_bytes().as_slice()), Ok(repr));
    }
    if let Ok(frame) = pfc::Frame::new_checked(bytes)
        && let Ok(repr) = pfc::Repr::parse(&frame)
    {
        let copy = repr.to_bytes();
        assert_eq!(pfc::Frame::new_checked(&copy).and_then(|frame| pfc::Repr::parse(&frame)), Ok(repr));
    }
    if let Ok(datagram) = shim::Datagram::new_checked(bytes) {
        let _ = (shim::ShimRepr::parse(&datagram), datagram.header(), datagram.payload());
    }
    if let Ok(frame) = frame::Frame::new_checked(bytes) {
        let _ = (frame::FrameRepr::parse(&frame), frame.body(), frame.udp(), frame.ipv4());
    }
});
