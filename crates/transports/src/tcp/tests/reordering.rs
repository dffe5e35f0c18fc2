//! Packets that arrive late: what is spurious, and what is made of it.

use super::*;

/// A full segment on the wire.
const SERIALIZATION: Dur = Dur(832_000);

/// A message of `segments`, all in the first window, of which segment 0 is late by `depth`
/// segments, or lost.
fn late(config: Config, segments: u64, depth: Option<u64>) -> Net<Tcp> {
    let mut net = pair(Config { initial_window: segments as f64, ..config });
    net.fault(move |sent| match (sent.n, depth) {
        (0, Some(depth)) => Verdict::Delay(SERIALIZATION * depth + Dur(1)),
        (0, None) => Verdict::Drop,
        _ => Verdict::Pass,
    });
    let key = net.submit(A, B, segments * MSS);
    net.run_until_idle(Dur::from_ms(100));
    assert!(net.record(key).acked.is_some());
    net
}

/// Fast retransmits, those of them that the receiver finds spurious, duplicates.
fn counts(net: &Net<Tcp>) -> (u64, u64, u64) {
    let spurious = net.stat(B, Stat::SpuriousFastRetransmit);
    (net.stat(A, Stat::FastRetransmit), spurious, net.stat(B, Stat::Duplicate))
}

/// Depth 2 is below the threshold. At depth 5 the original comes before what is sent again, as at
/// any depth below the round trip of 10.832 us (13 segments) and the two segments after which that
/// is sent; beyond, after it. NewReno then takes the acknowledgements of what else was in flight
/// for partial ones, and sends that again too: none of it begins a recovery.
#[test]
fn a_fast_retransmit_is_spurious_if_its_original_arrives_before_or_after_it() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let config = Config { recovery, ..textbook() };
        let partial = if recovery == Recovery::NewReno { [11, 2] } else { [0, 0] };
        let counts = |depth| counts(&late(config, 60, depth));
        assert_eq!(counts(Some(2)), (0, 0, 0));
        assert_eq!(counts(Some(5)), (1, 1, 1 + partial[0]), "{recovery:?}");
        assert_eq!(counts(Some(14)), (1, 1, 1 + partial[1]), "{recovery:?}");
        assert_eq!(counts(Some(40)), (1, 1, 1), "{recovery:?}: after what is sent again");
        assert_eq!(counts(None), (1, 0, 0));
    }
}

/// The original of a message that is whole since it was sent again still proves it spurious. SACK
/// sends it yet once more, as the last thing missing (RFC 6675, NextSeg, rule 4): that copy proves
/// nothing.
#[test]
fn an_original_may_come_after_its_connection_is_over() {
    let late = |recovery, depth| counts(&late(Config { recovery, ..textbook() }, 5, depth));
    assert_eq!(late(Recovery::NewReno, Some(40)), (1, 1, 1));
    assert_eq!(late(Recovery::NewReno, None), (1, 0, 0));
    assert_eq!(late(Recovery::Sack, Some(40)), (1, 1, 2));
    assert_eq!(late(Recovery::Sack, None), (1, 0, 1));
}

/// Segments with these numbers, counted from 0 as they are first sent, are late by five, or `lost`.
fn reordered(config: Config, late: &'static [u64], lost: &'static [u64]) -> Net<Tcp> {
    let mut net = pair(Config { initial_window: 60.0, ..config });
    net.fault(move |sent| {
        let number = sent.pkt.span.offset / MSS;
        let first = sent.pkt.src == A
            && Retransmission::of(Repr::parse(sent.pkt.header()).unwrap().control)
                == Retransmission::No;
        match first {
            true if late.contains(&number) => Verdict::Delay(SERIALIZATION * 5 + Dur(1)),
            true if lost.contains(&number) => Verdict::Drop,
            _ => Verdict::Pass,
        }
    });
    let key = net.submit(A, B, 600 * MSS);
    net.run_until_idle(Dur::from_ms(100));
    assert!(net.record(key).acked.is_some());
    net
}

fn rr() -> Config {
    let (recovery, rr) = (Recovery::Sack, Some(rr::Params::PRESET));
    Config { recovery, rr, dsack: true, undo: Undo::Dsack, ..textbook() }
}

/// The first time it is mistaken for a loss; from the duplicate reported RR-TCP learns, and later
/// ones are not. A loss is repaired all the same, by fast retransmit.
#[test]
fn rr_mistakes_the_same_reordering_once() {
    let late = &[20, 200, 320, 400];
    let known = |config| counts(&reordered(config, late, &[]));
    assert_eq!(known(Config { rr: None, ..rr() }), (4, 4, 4));
    assert_eq!(known(rr()), (1, 1, 1));
    let net = reordered(rr(), &[20, 200], &[320, 400]);
    assert_eq!((counts(&net), timeouts(&net)), ((3, 1, 1), 0));
}

/// What all of this must not break: the suite, under each way to undo and to learn.
#[test]
fn conforms_whatever_is_undone() {
    let eifel = Config { undo: Undo::Eifel, timestamps: true, overhead: 52, ..textbook() };
    let both = Config { undo: Undo::Eifel, timestamps: true, overhead: 52, ack_bytes: 52, ..rr() };
    for config in [eifel, both, rr(), Config { rr: None, ..rr() }] {
        conformance::run(|_| Box::new(Tcp::new(config).unwrap()) as Box<dyn Endpoint>, suite());
    }
}
