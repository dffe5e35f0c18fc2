//! What the flags of `htsim_eqds` mean (specs/uet.md#13).

use transports::uet;
use units::Bytes;

use super::flags::{Flags, PAYLOAD, RATE};

/// Packets that a port holds, and that a window may be (`DEFAULT_QUEUE_SIZE`, `DEFAULT_CWND`).
const QUEUE: u64 = 35;
const WINDOW: u64 = 64;
/// With a window receivers acknowledge after so many bytes: each packet.
const SACK_THRESHOLD: u64 = 4000;

/// The edits of the base that they are.
pub(super) fn edits(flags: &Flags, seed: u64) -> Vec<String> {
    let config = uet::Config::eqds(PAYLOAD);
    let packets = |count: u64| Bytes(count.saturating_mul(u64::from(config.mtu())));
    let queue = packets(flags.queue.unwrap_or(QUEUE));
    let headers = Bytes(queue.0.saturating_mul(2));
    let window = packets(if flags.window > 0 { flags.window } else { WINDOW });
    let rto = uet::Network::rto_of(RATE, queue.0, uet::EQDS_RTO_BASE);
    let mut edits = vec![
        format!("seed={}", flags.seed.unwrap_or(seed)),
        format!("measure.limit=\"{}us\"", flags.end_us),
        // The program has none, and fixed timeouts.
        "host.send_jitter=0".to_owned(),
        format!(
            "queue={{kind=\"ndp\",capacity=\"{queue}\",header_capacity=\"{headers}\",\
             header_weight=255,bounce=false}}"
        ),
        format!("transport={{kind=\"uet\",preset=\"eqds\",payload=\"{PAYLOAD}B\"}}"),
        "transport.rto_doublings=0".to_owned(),
        format!("transport.entropies={}", flags.entropies),
        format!("transport.max_window=\"{window}\""),
        format!("transport.rto=\"{rto}\""),
        format!("transport.credit={}", flags.receiver),
        format!("transport.hold_back={}", flags.hold_back && flags.receiver),
    ];
    if let Some((low, high)) = flags.ecn {
        edits.push(format!("queue.ecn_low=\"{}\"", packets(low)));
        edits.push(format!("queue.ecn_high=\"{}\"", packets(high)));
        // Links to hosts are the pacer's.
        edits.push("queue.ecn_last_hop=false".to_owned());
    }
    if flags.sender {
        let control = if flags.dctcp { "dctcp" } else { "smartt" };
        edits.push(format!("transport.control=\"{control}\""));
        edits.push(format!("transport.sack_threshold=\"{SACK_THRESHOLD}B\""));
    }
    edits
}

#[cfg(test)]
mod tests {
    use crate::cases::CaseList;

    const MATRIX: &str = "Nodes 16\nConnections 1\n0->13 id 1 start 3 size 100000\n";

    /// A key of the only case of a list with these lines below the matrix.
    fn resolved(lines: &str, table: &str, key: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("one.cm"), MATRIX).unwrap();
        let list = dir.path().join("list.txt");
        std::fs::write(&list, format!("one.cm\n{lines}")).unwrap();
        let list = CaseList::load(&list).unwrap();
        let ready = list.cases()[0].ready(5).map_err(|error| error.to_string())?;
        Ok(ready.scenario.resolved()[table].get(key).map_or("none".into(), ToString::to_string))
    }

    /// `main_eqds.cpp` of uet-htsim, 40ccb05.
    #[test]
    fn flags_mean_what_they_mean_to_htsim_eqds() {
        let smartt = "!Param -sender_cc\n!Param -sender_cc_only\n";
        let dctcp = "!Param -sender_cc\n!Param -sender_cc_algo dctcp\n";
        let cases = [
            ("", "queue", "capacity", "\"145250B\""),
            ("", "queue", "ecn_low", "none"),
            ("", "transport", "entropies", "64"),
            ("", "transport", "credit_turn", "\"4096B\""),
            ("", "transport", "max_window", "\"265600B\""),
            ("", "transport", "rto", "\"219720ns\""),
            ("", "transport", "rto_doublings", "0"),
            ("", "transport", "control", "\"none\""),
            ("", "transport", "hold_back", "false"),
            ("!Param -q 100", "transport", "rto", "\"349200ns\""),
            ("!Param -cwnd 50", "transport", "max_window", "\"207500B\""),
            ("!Param -ecn 10 25", "queue", "ecn_high", "\"103750B\""),
            ("!Param -ecn 10 25", "queue", "ecn_last_hop", "false"),
            ("!Param -recv_oversub_cc", "transport", "hold_back", "true"),
            (smartt, "transport", "control", "\"smartt\""),
            (smartt, "transport", "credit", "false"),
            (smartt, "transport", "sack_threshold", "\"4000B\""),
            (dctcp, "transport", "control", "\"dctcp\""),
            (dctcp, "transport", "credit", "true"),
        ];
        for binary in ["", "!Binary ./htsim_eqds\n"] {
            for (lines, table, key, expected) in cases {
                let found = resolved(&format!("{binary}{lines}"), table, key).unwrap();
                assert_eq!(found, expected, "{lines}: {table}.{key}");
            }
        }
    }

    #[test]
    fn flags_of_the_other_program_are_refused() {
        let refused = |lines: &str| resolved(lines, "queue", "capacity").unwrap_err();
        for (lines, error) in [
            ("!Param -failed 1\n", "list.txt:2:8: `-failed` is not supported"),
            ("!Param -sender_cc_algo swift\n", "list.txt:2:24: `swift` is not supported"),
            ("!Binary ./htsim_uec\n!Param -recv_oversub_cc\n", "list.txt:3:8: `-recv_oversub_cc`"),
            ("!Binary ./htsim_ndp\n", "list.txt:2:9: a case for `./htsim_ndp`"),
            ("!FCT Uec_0_13 100\n", "list.txt:2:6: no message of the matrix is `Uec_0_13`"),
        ] {
            assert!(refused(lines).contains(error), "{}", refused(lines));
        }
    }
}
