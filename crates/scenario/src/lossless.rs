//! `[queue] kind = "lossless"`: switches that pause their neighbours instead of losing packets.

use std::ops::RangeInclusive;
use std::path::Path;

use fabric::{HostClock, Pause, PfcSpec, Topology, Watchdog, WatchdogAction};
use queues::{
    Capacity, Headroom, LosslessSpec, MarkAt, Marking, PfcBufferSpec, QueueSpec, Schedule,
    Threshold,
};
use units::{Bytes, Dur, Rate};

use crate::buffer::{ALPHA, SIZE_MAX};
use crate::diagnostic::Checked;
use crate::document::Value;
use crate::key::{Section, keys, section};
use crate::queue::{checked_ramp, longest};
use crate::reader::Reader;
use crate::topology::{RATE_MAX, RATE_MIN};
use crate::transport::Transport;
use crate::value::{Form, Refused, ScenarioValue, Size32, choices};

/// Published memories (specs/rdma.md#2). SONiC leaves to the operator what a class reserves.
fn presets() -> [(&'static str, Written); 3] {
    let sonic = Written { reserve: None, ..Written::of(PfcBufferSpec::sonic(0)) };
    let [hpcc, legacy] = [PfcBufferSpec::hpcc(), PfcBufferSpec::legacy()].map(Written::of);
    [("hpcc", hpcc), ("sonic", sonic), ("legacy", legacy)]
}

/// Rates of links, as in `[topology]`.
const RATES: RangeInclusive<Rate> = RATE_MIN..=RATE_MAX;
/// specs/rdma.md#9,I5.
const DEADLOCK_AFTER: Dur = Dur::from_ms(10);
/// How long a pause can be too long.
const PATIENCE: RangeInclusive<Dur> = Dur::from_us(1)..=Dur::from_ms(1_000_000);
/// The largest memory.
const LARGEST: Size32 = Size32(SIZE_MAX.0 as u32);

choices!(WatchdogAction, "drop" => WatchdogAction::Drop, "forward" => WatchdogAction::Forward);

/// What the table says of the memory and of the queues.
#[derive(Clone)]
struct Written {
    memory: PfcBufferSpec,
    reserve: Option<u32>,
    schedule: Weights,
}

impl Written {
    fn of(memory: PfcBufferSpec) -> Self {
        Self { reserve: Some(memory.reserve), memory, schedule: Weights(None) }
    }
}

keys! { LOSSLESS: Written {
    buffer (memory.size): Size32 [Size32(1)..=LARGEST],
        "memory of each switch, packets in service included".range("a full packet to 1 GB");
    reserve (maybe reserve): Size32 [Size32(0)..=LARGEST],
        "memory that each lossless class of each port has for itself".range("to 1 GB");
    headroom (memory.headroom): Headroom,
        "memory that each lossless class of each port has for what still comes after XOFF. `n \
         delays`: what the link carries in n times its delay. `auto`: the most that can come, 2 x \
         delay x rate + 3 full packets + the pause frame, if both directions are alike";
    headroom_beside (memory.headroom_beside): bool,
        "headroom is memory beside `buffer`, not part of it".default("");
    xon (memory.xon): Size32 [Size32(0)..=LARGEST],
        "XON also when the class of the port holds no more than this, whatever the threshold"
            .range("to 1 GB").default("");
    resume_offset (memory.resume_offset): Size32 [Size32(0)..=LARGEST],
        "XON when the class of the port holds this much less than its threshold".range("to 1 GB");
    lossless (memory.lossless): Classes,
        "classes that are paused. Others are lost at their threshold, and have no headroom"
            .range("0 to 7");
    control_class (memory.control): Control,
        "a class that is neither counted nor paused nor marked: acknowledgements".range("0 to 7");
    schedule: Weights,
        "the highest class first, or in turn, by weights of the classes 0 to 7".range("1 to 255");
}}

keys! { DYNAMIC: Written {
    alpha (memory.threshold: Threshold::Dynamic { alpha, .. } => *alpha): f64 [ALPHA],
        "threshold of a class of a port, as a multiple of the free shared memory"
            .range("1/1024 to 1024");
    alpha_with_rate (memory.threshold: Threshold::Dynamic { with_rate, .. } => *with_rate): bool,
        "`alpha` is twice as large, up to 1, for each doubling of a port's rate over a host's"
            .default("");
}}

keys! { STATIC: Written {
    xoff (memory.threshold: Threshold::Static(xoff) => *xoff): Size32 [Size32(1)..=LARGEST],
        "instead of `alpha`: a fixed threshold".range("1 B to 1 GB");
}}

keys! { PFC: PfcSpec {
    pause: Pause,
        "how long a frame stops a class, if none comes before; rounded up to quanta of 512 bit \
         times of the link, at most 65 535 of those of any link, and refreshed after half of it"
            .default("");
    watchdog (get |p| p.watchdog.map(|watchdog| watchdog.after),
              set |p, after| p.watchdog = Some(Watchdog { after, action: WatchdogAction::Drop })):
        Dur [PATIENCE],
        "what happens to a class at a port that has been paused for this long, until the pause ends:"
            .range("1 us to 1000 s").default("");
    watchdog_action (watchdog: Some(watchdog) => watchdog.action): WatchdogAction,
        "its packets are lost, or they are sent".written().only("`watchdog`");
    deadlock_after (maybe deadlock_after): Dur [PATIENCE],
        "links paused for this long that wait for one another in a circle are reported as a deadlock"
            .range("1 us to 1000 s").default("");
}}

/// Without a word about it.
const PFC_USUAL: PfcSpec =
    PfcSpec { pause: Pause::UntilResume, watchdog: None, deadlock_after: Some(DEADLOCK_AFTER) };

/// For the reference.
pub(crate) fn keys() -> Vec<Section> {
    vec![
        section("queue.lossless", LOSSLESS, &presets(), None),
        section("queue.lossless.alpha", DYNAMIC, &presets(), None),
        section("queue.lossless.xoff", STATIC, &presets(), None),
        section("queue.lossless.pauses", PFC, &[], Some(&PFC_USUAL)),
    ]
}

/// For the reference: the keys of `ecn`.
pub(crate) fn ecn_keys() -> Vec<Section> {
    vec![section("queue.lossless.ecn", ECN, &[], None)]
}

/// Read the memory of the switches, and the queues of their ports.
pub(crate) fn read(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    _: &Path,
) -> Checked<QueueSpec> {
    let mtu = longest(transports).1;
    let presets = presets();
    let preset = match table.has("preset") {
        true => Some(&table.choose("preset", &presets, |(name, _)| name)?.1),
        false => None,
    };
    let mut read = preset.cloned().unwrap_or_else(|| {
        Written::of(PfcBufferSpec { headroom_beside: false, xon: 0, ..PfcBufferSpec::hpcc() })
    });
    read.reserve = read.reserve.or(Some(0));
    table.keys(LOSSLESS, &mut read, preset)?;
    threshold(table, &mut read, preset)?;
    table.complete(&presets.map(|(name, _)| name))?;
    let Written { mut memory, reserve, schedule } = read;
    memory.reserve = reserve.unwrap_or(0);
    let (size, all) = (u64::from(memory.size), Bytes(mtu.into())..=SIZE_MAX);
    table.within("buffer", Bytes(size), all)?;
    let both = memory.lossless & memory.control;
    if both != 0 {
        let message = format!("class {} is lossless and control", both.trailing_zeros());
        let error = table.error("control_class", message, "in `lossless`, too");
        return Err(error.hint("what is not counted cannot be paused: name another class"));
    }
    let schedule = match schedule.0 {
        None => Schedule::Strict,
        Some(weights) => Schedule::InTurn(weights.map(|weight| weight * u32::from(mtu))),
    };
    let marking = markings(table, memory.control)?;
    Ok(QueueSpec::Lossless(Box::new(LosslessSpec { memory, schedule, marking })))
}

/// `alpha` or `xoff`, which replace what a preset has of either.
fn threshold(table: &mut Reader<'_>, read: &mut Written, preset: Option<&Written>) -> Checked<()> {
    if table.has("alpha") && table.has("xoff") {
        let message = "`alpha` and `xoff`: a threshold is dynamic or static";
        return table.fail("xoff", message, "one of two", "leave one of them out");
    }
    let usual = preset.map(|preset| preset.memory.threshold);
    read.memory.threshold = match usual {
        _ if table.has("xoff") => Threshold::Static(0),
        Some(threshold) if !table.has("alpha") => threshold,
        Some(dynamic @ Threshold::Dynamic { .. }) => dynamic,
        _ => Threshold::Dynamic { alpha: 1.0, with_rate: false },
    };
    if matches!(read.memory.threshold, Threshold::Static(_)) {
        table.without(DYNAMIC, "a threshold that is not fixed by `xoff`");
        return table.keys(STATIC, read, preset);
    }
    table.keys(DYNAMIC, read, preset)
}

/// Read what ports do about flow control beside sending and obeying its frames; nothing if `queue`
/// has none.
pub(crate) fn read_pfc(
    table: &mut Reader<'_>,
    queue: &QueueSpec,
    topology: &Topology,
) -> Checked<PfcSpec> {
    if !matches!(queue, QueueSpec::Lossless(_)) {
        return Ok(PfcSpec::default());
    }
    let mut pfc = PFC_USUAL;
    table.all_keys(PFC, &mut pfc)?;
    fabric::check_pause(topology, pfc.pause).map_err(|why| {
        let error = table.error("pause", why, "more than a frame can say");
        error.hint("make `pause` shorter: frames are sent again for as long as it takes")
    })?;
    Ok(pfc)
}

/// Check that every switch of `topology` has memory for what `queue` reserves in it.
pub(crate) fn check_memory(
    table: &Reader<'_>,
    queue: &QueueSpec,
    topology: &Topology,
    clock: HostClock,
) -> Checked<()> {
    let QueueSpec::Lossless(spec) = queue else { return Ok(()) };
    fabric::check_memory(topology, &spec.memory, clock).map_err(|why| {
        let key = table.likeliest(&["buffer", "headroom", "reserve", "preset"]).unwrap_or("kind");
        let error = table.error(key, why, "nothing is left to share");
        error.hint(
            "make `buffer` larger, `headroom` or `reserve` smaller, or fewer classes `lossless`",
        )
    })
}

/// The ramp of one table `ecn`.
struct Ecn {
    min: Capacity,
    max: Capacity,
    probability: f64,
    at: MarkAt,
    per: Option<Rate>,
    class: Option<u8>,
}

keys! { ECN: Ecn {
    min: Capacity, "no packet is marked that finds this or less of its class at the port"
        .range("up to `max`, same unit").written();
    max: Capacity, "every packet is marked that finds more".written();
    probability: f64 [1e-9..=1.0], "the probability at `max`".range("above 0, to 1").written();
    at: MarkAt, "as `mark_at` of `drop-tail`".written();
    per (maybe per): Rate [RATES],
        "`min` and `max` are those of a port of this rate, and grow with the port's".default("");
    class (maybe class): u8 [0..=7],
        "the table is for this class alone; one without it for all that have none".default("");
}}

/// `ecn`: for all classes, for each a table of its own, or both. Classes in `control` are not
/// marked.
fn markings(table: &mut Reader<'_>, control: u8) -> Checked<[Option<Marking>; 8]> {
    let mut tables = table.tables("ecn")?;
    let (mut own, mut others) = ([None; 8], None);
    for table in &mut tables {
        let (class, marking) = marking(table)?;
        let place = match class {
            None => &mut others,
            Some(class) => {
                if control & 1 << class != 0 {
                    let message = format!("class {class} is the control class");
                    let error = table.error("class", message, "never marked");
                    return Err(error.hint("mark another class, or change `control_class`"));
                }
                &mut own[usize::from(class)]
            }
        };
        if place.replace(marking).is_some() {
            let error = table.error("class", "two ramps for the same packets", "again");
            return Err(error.hint("a table for each `class`, and one without for the others"));
        }
    }
    table.finish_tables("ecn", tables)?;
    let of = |class: usize| own[class].or(others).filter(|_| control & 1 << class == 0);
    Ok(std::array::from_fn(of))
}

fn marking(table: &mut Reader<'_>) -> Checked<(Option<u8>, Marking)> {
    let (any, at) = (Capacity::Packets(1), MarkAt::Arrival);
    let mut read = Ecn { min: any, max: any, probability: 1.0, at, per: None, class: None };
    table.all_keys(ECN, &mut read)?;
    let bounds = (read.min, read.max);
    let ramp = checked_ramp(table, ["min", "max"], bounds, read.probability)?;
    Ok((read.class, Marking { ramp, mark_at: read.at, per: read.per }))
}

/// How long a frame stops a class.
impl ScenarioValue for Pause {
    fn form() -> Form {
        Dur::form().or_word("until-resume")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "until-resume" => Ok(Self::UntilResume),
            _ => match Dur::read(value)? {
                Dur::ZERO => Err("a pause of no time is none".to_owned().into()),
                time => Ok(Self::Timed(time)),
            },
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::UntilResume => "until-resume".to_owned().show(),
            Self::Timed(time) => time.show(),
        }
    }
}

impl ScenarioValue for Headroom {
    fn form() -> Form {
        Form::new("size, `\"n delays\"` or `\"auto\"`", "\"auto\"` or `\"40KB\"", "string")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let Value::Text(text) = value else {
            return Err(format!("a size or \"auto\" is wanted, not {}", value.kind()).into());
        };
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if let Some(times) = text.strip_suffix("delays") {
            let times = times.trim().parse::<u8>().ok().filter(|&n| n > 0);
            let times = times.ok_or_else(|| format!("{text:?} is not like \"3 delays\""))?;
            return Ok(Self::Delays(u32::from(times)));
        }
        let bytes = Bytes::read(value)?;
        if bytes > SIZE_MAX {
            return Err(format!("{bytes} is more than {SIZE_MAX}").into());
        }
        // At most a gigabyte, so it fits.
        Ok(Self::Bytes(bytes.0 as u32))
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(match self {
            Self::Auto => "auto".to_owned(),
            Self::Delays(times) => format!("{times} delays"),
            Self::Bytes(bytes) => Bytes(u64::from(*bytes)).to_string(),
        })
    }
}

/// A type of masks.
macro_rules! mask {
    ($type:ident, $about:literal) => {
        #[doc = $about]
        struct $type(u8);

        impl From<u8> for $type {
            fn from(mask: u8) -> Self {
                Self(mask)
            }
        }

        impl From<$type> for u8 {
            fn from(mask: $type) -> Self {
                mask.0
            }
        }
    };
}

mask!(Classes, "A list of classes, as a mask.");
mask!(Control, "A class, as a mask, or none.");

impl ScenarioValue for Classes {
    fn form() -> Form {
        Form::new("list of integers", "[0]", "array")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        Vec::<u8>::read(value)?
            .into_iter()
            .try_fold(Self(0), |Self(mask), class| Ok(Self(mask | bit(class)?)))
    }
    fn show(&self) -> toml::Value {
        let classes: Vec<u8> = (0..8).filter(|class| self.0 & 1 << class != 0).collect();
        classes.show()
    }
}

impl ScenarioValue for Control {
    fn form() -> Form {
        u8::form().or_word("none")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "none" => Ok(Self(0)),
            _ => Ok(Self(bit(u8::read(value)?)?)),
        }
    }
    fn show(&self) -> toml::Value {
        match self.0 {
            0 => "none".to_owned().show(),
            mask => mask.trailing_zeros().show(),
        }
    }
}

fn bit(class: u8) -> Result<u8, String> {
    1u8.checked_shl(class.into()).ok_or_else(|| format!("{class} is no class: from 0 to 7"))
}

/// The weight of each class, or the highest class first.
#[derive(Clone, Copy)]
struct Weights(Option<[u32; 8]>);

impl ScenarioValue for Weights {
    fn form() -> Form {
        Form {
            json: vec!["string", "array"],
            ..Form::new(
                "`\"strict\"` or list of 8 integers",
                "\"strict\"` or `[1, 1, 1, 1, 1, 1, 1, 8]",
                "",
            )
        }
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "strict" => return Ok(Self(None)),
            Value::Array(_) => {}
            other => {
                return Err(
                    format!("\"strict\" or weights are wanted, not {}", other.kind()).into()
                );
            }
        }
        let weights = Vec::<u8>::read(value)?;
        if weights.contains(&0) {
            return Err("a class with a weight of 0 would never be served".to_owned().into());
        }
        let count = weights.len();
        let weights = <[u8; 8]>::try_from(weights);
        let weights = weights.map_err(|_| format!("{count} weights for the classes 0 to 7"))?;
        Ok(Self(Some(weights.map(u32::from))))
    }
    fn show(&self) -> toml::Value {
        match self.0 {
            None => "strict".to_owned().show(),
            Some(weights) => weights.to_vec().show(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use queues::{Ramp, Unit};

    use super::*;
    use crate::Scenario;

    fn scenario(queue: &str) -> Result<Scenario, String> {
        let text = format!(
            r#"name = "lossless"
            seed = 1
            topology = {{ kind = "star", hosts = 4, link_rate = "40Gbps", link_delay = "1us" }}
            queue = {{ kind = "lossless", {queue} }}
            routing.mode = "ecmp"
            transport = {{ kind = "cbr", payload = "950B", header = "50B", rate = "10Gbps" }}
            traffic = {{ kind = "permutation", size = "unbounded" }}
            measure.to = "1ms""#
        );
        let read = Scenario::parse("lossless.toml", &text, Path::new("."), &[]);
        read.map_err(|why| why.render(false))
    }

    fn spec(queue: &str) -> LosslessSpec {
        match scenario(queue).unwrap_or_else(|why| panic!("{why}")).config.queue {
            QueueSpec::Lossless(spec) => *spec,
            other => panic!("{other:?}"),
        }
    }

    const ALL: [&str; 8] = [
        "buffer = \"9MB\"",
        "reserve = \"4KB\"",
        "headroom = \"40KB\"",
        "xoff = \"96KB\"",
        "resume_offset = \"3KB\"",
        "lossless = [0, 3]",
        "control_class = 7",
        "schedule = \"strict\"",
    ];

    fn all() -> String {
        ALL.join(", ")
    }

    /// The marking of classes 0 to 7, as the `min` of each.
    fn marked_from(ecn: &str) -> [Option<u32>; 8] {
        spec(&format!("{}, ecn = {ecn}", all())).marking.map(|m| m.map(|m| m.ramp.min))
    }

    #[test]
    fn classes_can_be_marked_each_in_its_own_way() {
        let ramp = |min, class| {
            format!(
                "{{ min = \"{min}B\", max = \"9KB\", probability = 1.0, at = \"arrival\"{class} }}"
            )
        };
        let (all_of, third) = (ramp(1000, ""), ramp(3000, ", class = 3"));
        let mut expected = [Some(1000); 8];
        expected[7] = None;
        assert_eq!(marked_from(&all_of), expected);
        expected[3] = Some(3000);
        assert_eq!(marked_from(&format!("[{third}, {all_of}]")), expected);
        let mut alone = [None; 8];
        alone[3] = Some(3000);
        assert_eq!(marked_from(&third), alone);
        for (ecn, why) in [
            (format!("[{third}, {third}]"), "two ramps"),
            (format!("[{all_of}, {all_of}]"), "two ramps"),
            (ramp(1000, ", class = 7"), "control class"),
            (ramp(1000, ", class = 8"), "out of range"),
        ] {
            let refused = scenario(&format!("{}, ecn = {ecn}", all())).err().unwrap();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn every_key_is_read() {
        let more = r#"headroom_beside = true, xon = "1KB",
            ecn = { min = "5KB", max = "200KB", probability = 0.01, at = "arrival", per = "40Gbps" }"#;
        let ramp = Ramp { unit: Unit::Bytes, min: 5_000, max: 200_000, probability: 0.01 };
        let per = Some(Rate(40_000_000_000));
        let mut marking = [Some(Marking { ramp, mark_at: MarkAt::Arrival, per }); 8];
        marking[7] = None;
        let memory = PfcBufferSpec {
            size: 9_000_000,
            reserve: 4_000,
            headroom: Headroom::Bytes(40_000),
            headroom_beside: true,
            threshold: Threshold::Static(96_000),
            xon: 1_000,
            resume_offset: 3_000,
            lossless: 0b1001,
            control: 0x80,
        };
        let expected = LosslessSpec { memory, schedule: Schedule::Strict, marking };
        assert_eq!(spec(&format!("{}, {more}", all())), expected);
        let weights = spec(&all().replace("\"strict\"", "[1, 1, 1, 2, 1, 1, 1, 8]")).schedule;
        let mtu = 1_000;
        let quanta = [1, 1, 1, 2, 1, 1, 1, 8].map(|weight| weight * mtu);
        assert_eq!(weights, Schedule::InTurn(quanta));
    }

    #[test]
    fn presets_are_those_of_the_queues_and_give_way_to_keys() {
        assert_eq!(spec("preset = \"hpcc\"").memory, PfcBufferSpec::hpcc());
        assert_eq!(spec("preset = \"legacy\"").memory, PfcBufferSpec::legacy());
        let sonic = "preset = \"sonic\", reserve = \"2KB\"";
        assert_eq!(spec(sonic).memory, PfcBufferSpec::sonic(2_000));
        let why = scenario("preset = \"sonic\"").err().unwrap();
        assert!(why.contains("`reserve` is missing"), "{why}");

        let changed = spec("preset = \"hpcc\", xoff = \"50KB\", buffer = \"2MB\", lossless = [2]");
        let threshold = Threshold::Static(50_000);
        let expected =
            PfcBufferSpec { threshold, size: 2_000_000, lossless: 4, ..PfcBufferSpec::hpcc() };
        assert_eq!(changed.memory, expected);
        let dynamic = spec("preset = \"legacy\", alpha = 2, control_class = \"none\"").memory;
        let threshold = Threshold::Dynamic { alpha: 2.0, with_rate: false };
        assert_eq!(dynamic, PfcBufferSpec { threshold, control: 0, ..PfcBufferSpec::legacy() });
    }

    #[test]
    fn the_resolved_scenario_says_the_same() {
        for queue in ["preset = \"hpcc\"", "preset = \"legacy\", headroom = \"auto\"", &all()] {
            let scenario = scenario(queue).unwrap();
            let text = toml::to_string(scenario.resolved()).unwrap();
            let again = Scenario::parse("resolved.toml", &text, Path::new("."), &[]);
            let again = again.unwrap_or_else(|e| panic!("{}\n{text}", e.render(false)));
            assert_eq!(again.config.queue, scenario.config.queue, "{text}");
        }
    }

    #[test]
    fn what_ports_do_about_pauses_is_read() {
        let pfc = |keys: &str| {
            let scenario = scenario(&format!("preset = \"hpcc\", {keys}"));
            scenario.map(|scenario| scenario.config.pfc)
        };
        let usual = PfcSpec { deadlock_after: Some(Dur::from_ms(10)), ..PfcSpec::default() };
        assert_eq!(pfc("pause = \"until-resume\"").unwrap(), usual);
        let keys = "pause = \"5us\", watchdog = \"2ms\", watchdog_action = \"forward\", deadlock_after = \"1ms\"";
        let after = Dur::from_ms(2);
        let watchdog = Some(Watchdog { after, action: WatchdogAction::Forward });
        let pause = Pause::Timed(Dur::from_us(5));
        let deadlock_after = Some(Dur::from_ms(1));
        assert_eq!(pfc(keys).unwrap(), PfcSpec { pause, watchdog, deadlock_after });
        let why = pfc("watchdog_action = \"drop\"").unwrap_err();
        assert!(why.contains("has no effect here"), "{why}");
        let why = pfc("pause = \"10ms\"").unwrap_err();
        assert!(why.contains("65535 quanta") && why.contains("more than a frame"), "{why}");
    }

    #[test]
    fn what_changes_the_science_has_no_default() {
        for line in ALL {
            let key = line.split(' ').next().unwrap();
            let without: Vec<&str> = ALL.into_iter().filter(|&other| other != line).collect();
            let why = scenario(&without.join(", ")).err().unwrap_or_else(|| panic!("no {key}"));
            let missing = if key == "xoff" { "alpha" } else { key };
            assert!(why.contains(&format!("`{missing}` is missing")), "{why}");
        }
    }
}
