//! Packets that arrive late: what is spurious, and what is made of it.

use super::*;

/// A full segment on the wire.
const SERIALIZATION: Dur = Dur(832_000);

/// A message of `segments`, all in the first window, of which segment 0 is late by `depth` segments, or lost.
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

/// Depth 2 is below the threshold. At depth 5 the original comes before what is sent again, as at any depth
/// below the round trip of 10.832 us (13 segments) and the two segments after which that is sent; beyond,
/// after it. NewReno then takes the acknowledgements of what else was in flight for partial ones, and sends
/// that again too: none of it begins a recovery.
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

/// The original of a message that is whole since it was sent again still proves it spurious. SACK sends it
/// yet once more, as the last thing missing (RFC 6675, NextSeg, rule 4): that copy proves nothing.
#[test]
fn an_original_may_come_after_its_connection_is_over() {
    let late = |recovery, depth| counts(&late(Config { recovery, ..textbook() }, 5, depth));
    assert_eq!(late(Recovery::NewReno, Some(40)), (1, 1, 1));
    assert_eq!(late(Recovery::NewReno, None), (1, 0, 0));
    assert_eq!(late(Recovery::Sack, Some(40)), (1, 1, 2));
    assert_eq!(late(Recovery::Sack, None), (1, 0, 1));
}
