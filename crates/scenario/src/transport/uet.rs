//! `[transport] kind = "uet"`: the keys of [`transports::uet::Config`].

use fabric::Routing;
use transports::entropy::{Rule, VALUES_MAX};
use transports::ndp::PathStrategy;
use transports::uet::{
    self, Config, CreditRule, Network, Paths, Profile, RTO_DOUBLINGS_MAX, WindowControl,
};

use super::{
    Around, Begun, Need, Presets, Signals, Transport, Wait, made, payload, refused, sections,
};
use crate::diagnostic::Checked;
use crate::key::{Section, keys};
use crate::reader::Reader;
use crate::routing::Mode;
use crate::value::{Derived, Longest, Or, PART_MAX, Size16, Size32, choices};

const PRESETS: &Presets<Config> =
    &[("htsim", Config::htsim), ("ue-1.0", Config::ue_1_0), ("eqds", Config::eqds)];

keys! { KEYS: Config {
    payload: Size16 [Size16(1)..=PART_MAX], "payload of a full packet".written();
    header: Size16 [Size16(40)..=PART_MAX], "bytes on the wire beside the payload";
    control_size: Size16 [Size16(40)..=PART_MAX],
        "bytes on the wire of acknowledgements and NACKs";
    control: WindowControl,
        "how a sender's window follows the network: `nscc` by delay, marks and trimmed packets, \
         `dctcp` and `smartt` as EQDS does, `constant` not at all; `none`: there is no window, and \
         `credit` has to be on";
    profile: Profile,
        "whose rules the window follows where they differ: `htsim` the public simulator's, `ue-1.0` \
         those of the text (docs/specs/uet.md, section 4.7). With `control = \"nscc\"` only";
    credit: bool,
        "receivers give credit (RCCC), at 0.99 of their link's rate; a sender needs credit beside \
         its window";
    credit_rule: CreditRule,
        "how senders ask for credit and receivers give it: `rccc`, or `eqds` in whole turns, first \
         to messages with refused packets, at 0.986 of their link's rate";
    hold_back: bool,
        "turns of credit are left out at random by the share of packets that were marked or trimmed \
         in the last 10us, beyond a tenth (EQDS, for oversubscribed fabrics)";
    credit_turn: Size32 [Size32(256)..=Size32(1_000_000)],
        "what a message is given in its turn, in whole units of 256 B";
    oversubscription: Or<Derived, f64>,
        "what hosts can send over what the fabric carries between switches. Above 1, and with \
         `control = \"none\"`, credit is given at a rate that follows marks and trimming; \
         `\"derived\"`: from the topology's rates".range("1 to 1000");
    base_rtt: Or<Longest, units::Dur>,
        "the round trip of a full packet on an empty path, from which windows, target delay and \
         timeout follow; `\"longest\"`: on the longest path of the fabric".range("above 0");
    max_window: Or<Derived, units::Bytes>,
        "the most that may be in flight, or sent before the first answer, headers included; \
         `\"derived\"`: one and a half bandwidth-delay products, which NSCC keeps to anyway"
            .range("at least 1 B");
    initial_window: Or<Derived, units::Bytes>,
        "the first window of a message, headers included, `max_window` at most; `\"derived\"`: that".range("at least 1 B");
    rto: Or<Derived, units::Dur>,
        "a packet that is not answered for this long is lost; `\"derived\"`: 15us and six times the \
         time in which a queue of a bandwidth-delay product drains".range("at least 100 ns");
    rto_doublings: u8 [0..=RTO_DOUBLINGS_MAX],
        "how often `rto` doubles at most while no bytes arrive (own; the public simulator: `0`, never)";
    trimming: bool,
        "switches trim. Where they do not, windows aim at a queueing delay of one base round trip, \
         not of three quarters, and a timeout does not freeze REPS";
    sleek: bool,
        "a sender finds losses by packets that arrive out of order, and by probes (SLEEK); for \
         switches that do not trim. With `control = \"nscc\"` only";
    keep_connections (maybe keep_connections): units::Dur,
        "messages of one channel share a connection, with its window, credit and entropy values; \
         it is kept for this long after the last of them was acknowledged"
            .range("up to `rx_idle_timeout`").default("each message is a connection of its own");
    spray: Rule,
        "how the entropy value of each packet is chosen, by which it takes its path. See \
         docs/specs/uet.md, section 3";
    entropies: u16 [1..=VALUES_MAX], "entropy values of a message"
        .range("a power of two, 1 to 32768");
    sack_threshold: Size32 [Size32(1)..=Size32(1_000_000)],
        "a receiver acknowledges after so many bytes on the wire; marked packets, the first, and \
         those that ask for it, at once";
    control_weight: u8,
        "control packets that a host sends for each one of data while both wait"
            .range("at least 1");
    class: u8, "traffic class of all packets".range("0 to 7");
    abort_after: units::Dur,
        "a message of which nothing is heard for this long while it sends fails (own)"
            .range("above 0, below `time_wait`");
    time_wait: units::Dur,
        "how long a receiver remembers a finished message (own)".range("above `abort_after`");
    rx_idle_timeout: units::Dur,
        "a receiver forgets a message silent for this long (own)"
            .range("at least `abort_after`");
}}

choices!(WindowControl,
    "nscc" => WindowControl::Nscc,
    "dctcp" => WindowControl::Dctcp,
    "smartt" => WindowControl::Smartt,
    "constant" => WindowControl::Constant,
    "none" => WindowControl::None);
choices!(Profile, "htsim" => Profile::Htsim, "ue-1.0" => Profile::Ue10);
choices!(CreditRule, "rccc" => CreditRule::Rccc, "eqds" => CreditRule::Eqds);
choices!(Rule,
    "oblivious" => Rule::Oblivious,
    "bitmap" => Rule::Bitmap,
    "skip" => Rule::Skip,
    "reps" => Rule::Reps,
    "mixed" => Rule::Mixed,
    "mrc" => Rule::Mrc);

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    sections("transport.uet", KEYS, PRESETS)
}

/// `kind = "uet"`.
pub(super) fn read(table: &mut Reader<'_>, around: &Around<'_>) -> Checked<Transport> {
    let begun = Begun::of(table, PRESETS, payload(table, "payload"))?;
    let mut config = begun.read(table, KEYS)?;
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    let network = network(&config, around);
    config.base_rtt = Some(network.rtt);
    config.rto = Some(config.rto.unwrap_or_else(|| network.rto()));
    let ratio = || around.topology.oversubscription();
    config.oversubscription = Some(config.oversubscription.unwrap_or_else(ratio));
    (config.paths, config.entropies) = paths(around.mode, config.entropies);
    reaches_planes(table, config.entropies, around.topology.plane_count())?;
    let derived = uet::Derived::new(&network, config.trimming).max_window;
    let most = config.max_window.map_or(derived, |bytes| bytes.0);
    let mtu = u64::from(config.mtu());
    let trims = if config.trimming { Need::Needs } else { Need::Ignores };
    let first = config.initial_window.map_or(most, |bytes| bytes.0).clamp(mtu, most);
    Ok(Transport {
        pauses: config.keep_connections.is_none(),
        mtu: config.mtu().max(config.control_size),
        classes: vec![config.class],
        first_window: first / mtu * u64::from(config.payload),
        window_grows: first < most && config.control == WindowControl::Nscc,
        timers: config.rto.map(|rto| ("rto", Wait::Time(rto))).into_iter().collect(),
        sprays: true,
        life_max: Some(config.life_max()),
        // Hashing switches see a flow in each value.
        scatters: config.paths == Paths::Hashed && config.entropies > 1,
        samples_rtt: true,
        signals: Signals { marks: Need::Uses, trims, ..Signals::NONE },
        ..Transport::new(
            config.framing(),
            wire::uet::PROTO,
            Box::new(move |_| made(uet::Uet::new(config))),
        )
    })
}

/// The network from which everything follows: that of the slowest host, over the longest path.
fn network(config: &Config, around: &Around<'_>) -> Network {
    let mtu = config.mtu().max(config.control_size);
    let topology = around.topology.clone().with_mtu(mtu);
    let hosts = &topology.links()[..topology.hosts() as usize];
    let rate = hosts.iter().map(|link| link.rate).min();
    Network {
        rtt: config.base_rtt.unwrap_or_else(|| topology.longest_rtt()),
        rate: rate.unwrap_or(units::Rate(1)),
        mtu: config.mtu(),
        payload: config.payload,
    }
}

/// A message that is sprayed needs an EV for each plane.
fn reaches_planes(table: &Reader<'_>, entropies: u16, planes: u32) -> Checked<()> {
    if entropies == 1 || u32::from(entropies) >= planes {
        return Ok(());
    }
    let message =
        format!("{entropies} entropy values reach {entropies} of {planes} planes at most");
    table.fail("entropies", message, "too few", "at least one for each plane, or 1: one path")
}

/// What EVs are where paths are chosen by `mode`, and how many. A message with one path has one.
fn paths(mode: Mode, entropies: u16) -> (Paths, u16) {
    match (mode.switches, mode.sender) {
        (Routing::FlowHash | Routing::PacketRandom | Routing::Listed, _) => {
            (Paths::Hashed, entropies)
        }
        (_, PathStrategy::Single) => (Paths::Index, 1),
        _ => (Paths::Index, entropies),
    }
}
