//! `[transport] kind = "pfabric"`: the keys of [`transports::pfabric::Config`].

use endpoint::Packet;
use transports::pfabric::{self, Config, WINDOW_MAX};
use wire::pfabric::{Kind, Repr};

use super::{Around, Begun, Presets, Transport, Wait, made, payload, refused, sections};
use crate::diagnostic::Checked;
use crate::key::{Section, keys};
use crate::reader::Reader;
use crate::value::{PART_MAX, Size16};

const PRESETS: &Presets<Config> = &[("paper", Config::paper), ("homa-paper", Config::homa_paper)];

keys! { KEYS: Config {
    payload: Size16 [Size16(1)..=PART_MAX], "payload of a full packet".written();
    header: Size16 [Size16(40)..=PART_MAX], "bytes on the wire beside the payload";
    control: Size16 [Size16(40)..=PART_MAX],
        "bytes on the wire of acknowledgements and probes, which have no payload";
    initial_window: u32 [1..=WINDOW_MAX],
        "packets that a message sends before anything of it is acknowledged, at line rate";
    max_window: u32 [1..=WINDOW_MAX],
        "packets beyond the first unacknowledged one at most".range("`initial_window` to 4096");
    rto: units::Dur,
        "so long after the last progress everything in flight counts as lost, and the window is \
         one packet; always the same".range("at least 100 ns");
    probe_after: u32, "timeouts in a row after which a message sends probes instead of packets"
        .range("at least 1");
    class: u8, "traffic class of all packets".range("0 to 7");
    abort_after: units::Dur,
        "a message of which nothing is acknowledged for this long while it sends fails (own)"
            .range("above 0, below `time_wait`");
    time_wait: units::Dur,
        "how long a receiver remembers a finished message (own)".range("above `abort_after`");
    rx_idle_timeout: units::Dur,
        "a receiver forgets a message silent for this long (own)"
            .range("at least `abort_after`");
}}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    sections("transport.pfabric", KEYS, PRESETS)
}

/// `kind = "pfabric"`.
pub(super) fn read(table: &mut Reader<'_>, around: &Around<'_>) -> Checked<Transport> {
    let mut begun = Begun::of(table, PRESETS, payload(table, "payload"))?;
    begun.config.paths = around.mode.sender;
    let config = begun.read(table, KEYS)?;
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    Ok(Transport {
        pauses: true,
        mtu: (config.payload + config.header).max(config.control),
        classes: vec![config.class],
        first_window: u64::from(config.initial_window) * u64::from(config.payload),
        window_grows: config.max_window > config.initial_window,
        timers: vec![("rto", Wait::Time(config.rto))],
        sprays: true,
        life_max: Some(config.life_max()),
        acknowledges: Some(acknowledges),
        ..Transport::new(
            config.framing(),
            wire::pfabric::PROTO,
            Box::new(move |_| made(pfabric::PFabric::new(config))),
        )
    })
}

/// An answer to a packet with payload, not to a probe.
fn acknowledges(pkt: &Packet) -> bool {
    let header = Repr::parse(pkt.header());
    matches!(header, Ok(Repr { kind: Kind::Ack { seq, missing }, .. }) if seq != missing)
}
