//! How long bytes take through a NIC with nothing else to do, first beat to first beat.

use nic::nano::meta::ip_of;
use trimline_rtl::record::Record;
use trimline_rtl::sim::{Program, Simulation};
use units::HostId;

/// Cycles in which a message is through two NICs.
const ENOUGH: u64 = 400;

/// Bytes of a beat.
const BEAT: u64 = 64;

/// Cycles from the first beat of what goes in to the first beat of what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latency {
    /// From a message's first beat to that of its first frame, at the NIC that sends it.
    pub(crate) out: u64,
    /// From a frame's first beat to that of its message, at the NIC that it is for.
    pub(crate) into: u64,
    /// From the last beat of that frame.
    pub(crate) behind: u64,
}

/// Of a message of one packet of `len` bytes, from one NIC to another, a beat each cycle.
pub(crate) fn latency(built: &Program, protocol: u8, len: u64) -> Latency {
    let [sender, receiver] = [HostId(1), HostId(2)];
    let [mut from, mut to] = [(); 2].map(|()| built.start().unwrap());
    let (mut submitted, mut given) = (false, 0);
    let (mut word, mut sent, mut came, mut last, mut read) = (None, None, None, None, None);
    let mut wire = None;
    for cycle in 0..ENOUGH {
        let mut inputs = idle(&from, sender);
        if !submitted {
            for (port, value) in [
                ("submit_valid_i", 1),
                ("submit_protocol_i", protocol.into()),
                ("submit_dst_ip_i", ip_of(receiver).into()),
                ("submit_msg_len_i", u128::from(len)),
            ] {
                from.inputs().set_named(&mut inputs, port, value);
            }
        }
        if given < len {
            let bytes = (len - given).min(BEAT);
            let mut beat = [0x5a5a_5a5a; 17];
            beat[16] = bytes as u32 | u32::from(given + bytes == len) << 7;
            from.inputs().set_named(&mut inputs, "words_valid_i", 1);
            let port = from.inputs().port("words_beat_i");
            from.inputs().set_words(&mut inputs, port, &beat);
        }
        let outputs = from.step(&inputs).unwrap();
        let get = |port: &str| from.outputs().get_named(&outputs, port);
        submitted |= get("submit_ready_o") == 1;
        if given < len && get("words_ready_o") == 1 {
            given += BEAT;
            word.get_or_insert(cycle);
        }

        // What has left in the cycle before.
        let mut inputs = idle(&to, receiver);
        if let Some(beat) = wire.take() {
            let beat: Vec<u32> = beat;
            let port = to.inputs().port("rx_frame_beat_i");
            to.inputs().set_words(&mut inputs, port, &beat);
            to.inputs().set_named(&mut inputs, "rx_frame_valid_i", 1);
            came.get_or_insert(cycle);
            last = last.or_else(|| (beat[16] >> 7 == 1).then_some(cycle));
        }
        if get("tx_frame_valid_o") == 1 {
            let port = from.outputs().port("tx_frame_beat_o");
            wire = Some(from.outputs().get_words(&outputs, port).to_vec());
            sent.get_or_insert(cycle);
        }
        let taken = to.inputs().get_named(&inputs, "rx_frame_valid_i") == 1;
        let outputs = to.step(&inputs).unwrap();
        let get = |port: &str| to.outputs().get_named(&outputs, port);
        assert!(!taken || get("rx_frame_ready_o") == 1, "a beat is refused in cycle {cycle}");
        if get("rx_app_valid_o") == 1 {
            read.get_or_insert(cycle);
        }
    }
    let between = |from: Option<u64>, to: Option<u64>| to.unwrap() - from.unwrap();
    Latency { out: between(word, sent), into: between(came, read), behind: between(last, read) }
}

/// A cycle of host `me` in which everybody is ready and nothing comes.
fn idle(run: &Simulation, me: HostId) -> Record {
    let mut record = run.inputs().zero();
    let ready = ["tx_open_i", "tx_frame_ready_i", "rx_app_ready_i"].map(|port| (port, 1));
    let own =
        [("nic_ip_i", ip_of(me).into()), ("nic_mac_i", u128::from(me.0)), ("switch_mac_i", 9)];
    for (port, value) in ready.into_iter().chain(own) {
        run.inputs().set_named(&mut record, port, value);
    }
    record
}
