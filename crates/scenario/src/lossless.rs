//! `[queue] kind = "lossless"`: switches that pause their neighbours instead of losing packets.

use std::path::Path;

use fabric::{Pause, PfcSpec, Topology, Watchdog, WatchdogAction};
use queues::{
    Headroom, LosslessSpec, MarkAt, Marking, PfcBufferSpec, QueueSpec, Schedule, Threshold,
};
use units::{Bytes, Dur, Rate};

use crate::buffer::{ALPHA, SIZE_MAX};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::queue::{longest, ramp};
use crate::reader::Reader;
use crate::transport::Transport;
use crate::value::{Form, Refused, ScenarioValue};

/// Published memories (specs/rdma.md#2).
fn presets() -> [(&'static str, PfcBufferSpec); 3] {
    [
        ("hpcc", PfcBufferSpec::hpcc()),
        (SONIC, PfcBufferSpec::sonic(0)),
        ("legacy", PfcBufferSpec::legacy()),
    ]
}

/// Leaves to the operator what a class reserves.
const SONIC: &str = "sonic";
/// Rates of links, as in `[topology]`.
const RATES: std::ops::RangeInclusive<Rate> = Rate(1_000)..=Rate(100_000_000_000_000);

/// specs/rdma.md#9,I5.
const DEADLOCK_AFTER: Dur = Dur::from_ms(10);
/// How long a pause can be too long.
const PATIENCE: std::ops::RangeInclusive<Dur> = Dur::from_us(1)..=Dur::from_ms(1_000_000);
const WATCHDOG_ACTIONS: &[(&str, WatchdogAction)] =
    &[("drop", WatchdogAction::Drop), ("forward", WatchdogAction::Forward)];

/// Read the memory of the switches, and the queues of their ports.
pub(crate) fn read(
    table: &mut Reader<'_>,
    transports: &[&Transport],
    _: &Path,
) -> Result<QueueSpec, Diagnostic> {
    let mtu = longest(transports).1;
    let memory = memory(table, mtu)?;
    let schedule = schedule(table, mtu, table.has("preset"))?;
    let marking = markings(table, memory.control)?;
    Ok(QueueSpec::Lossless(Box::new(LosslessSpec { memory, schedule, marking })))
}

fn memory(table: &mut Reader<'_>, mtu: u16) -> Result<PfcBufferSpec, Diagnostic> {
    let preset = match table.has("preset") {
        true => Some(table.choose("preset", &presets(), |(name, _)| name)?.clone()),
        false => None,
    };
    let (name, preset) = preset.unzip();
    let of = |field: fn(&PfcBufferSpec) -> u32| {
        preset.as_ref().map(|preset| Bytes(u64::from(field(preset))))
    };
    let size = bytes(table, "buffer", of(|m| m.size), u64::from(mtu))?;
    let reserve = of(|m| m.reserve).filter(|_| name != Some(SONIC));
    let classes = preset.as_ref().map(|preset| (Classes(preset.lossless), Control(preset.control)));
    let headroom = table.given("headroom", preset.as_ref().map(|preset| Room(preset.headroom)))?.0;
    let (lossless, control) = classes_of(table, classes)?;
    Ok(PfcBufferSpec {
        size,
        reserve: bytes(table, "reserve", reserve, 0)?,
        headroom,
        headroom_beside: table
            .or("headroom_beside", preset.as_ref().is_some_and(|preset| preset.headroom_beside))?,
        threshold: threshold(table, preset.as_ref().map(|preset| preset.threshold))?,
        xon: bytes(table, "xon", of(|m| m.xon).or(Some(Bytes(0))), 0)?,
        resume_offset: bytes(table, "resume_offset", of(|m| m.resume_offset), 0)?,
        lossless,
        control,
    })
}

/// Read what ports do about flow control beside sending and obeying its frames; nothing if `queue`
/// has none.
pub(crate) fn read_pfc(
    table: &mut Reader<'_>,
    queue: &QueueSpec,
    topology: &Topology,
) -> Result<PfcSpec, Diagnostic> {
    if !matches!(queue, QueueSpec::Lossless(_)) {
        return Ok(PfcSpec::default());
    }
    let pause = table.or("pause", Stop(Pause::UntilResume))?.0;
    fabric::check_pause(topology, pause).map_err(|why| {
        let error = table.error("pause", why, "more than a frame can say");
        error.hint("make `pause` shorter: frames are sent again for as long as it takes")
    })?;
    let deadlock_after = table.or("deadlock_after", DEADLOCK_AFTER)?;
    table.within("deadlock_after", deadlock_after, PATIENCE)?;
    Ok(PfcSpec { pause, watchdog: watchdog(table)?, deadlock_after: Some(deadlock_after) })
}

/// Check that every switch of `topology` has memory for what `queue` reserves in it.
pub(crate) fn check_memory(
    table: &Reader<'_>,
    queue: &QueueSpec,
    topology: &Topology,
) -> Result<(), Diagnostic> {
    let QueueSpec::Lossless(spec) = queue else { return Ok(()) };
    fabric::check_memory(topology, &spec.memory).map_err(|why| {
        let key = table.likeliest(&["buffer", "headroom", "reserve", "preset"]).unwrap_or("kind");
        let error = table.error(key, why, "nothing is left to share");
        error.hint(
            "make `buffer` larger, `headroom` or `reserve` smaller, or fewer classes `lossless`",
        )
    })
}

fn watchdog(table: &mut Reader<'_>) -> Result<Option<Watchdog>, Diagnostic> {
    let Some(after) = table.maybe("watchdog")? else {
        if table.has("watchdog_action") {
            let message = "`watchdog_action` without a time after which it acts";
            let error = table.error("watchdog_action", message, "has no effect here");
            return Err(error.hint("add `watchdog = \"200ms\"`"));
        }
        return Ok(None);
    };
    table.within("watchdog", after, PATIENCE)?;
    let action = table.choose("watchdog_action", WATCHDOG_ACTIONS, |(name, _)| name)?.1;
    Ok(Some(Watchdog { after, action }))
}

/// A size of memory, `least` or more.
fn bytes(
    table: &mut Reader<'_>,
    key: &'static str,
    preset: Option<Bytes>,
    least: u64,
) -> Result<u32, Diagnostic> {
    let bytes = table.given(key, preset)?;
    // At most a gigabyte, so it fits.
    Ok(table.within(key, bytes, Bytes(least)..=SIZE_MAX)?.0 as u32)
}

/// `alpha` or `xoff`, which replace what a preset has of either.
fn threshold(table: &mut Reader<'_>, preset: Option<Threshold>) -> Result<Threshold, Diagnostic> {
    if table.has("alpha") && table.has("xoff") {
        let message = "`alpha` and `xoff`: a threshold is dynamic or static";
        return Err(table.error("xoff", message, "one of two").hint("leave one of them out"));
    }
    let (alpha, with_rate, xoff) = match preset {
        Some(Threshold::Dynamic { alpha, with_rate }) => (Some(alpha), with_rate, None),
        Some(Threshold::Static(xoff)) => (None, false, Some(xoff)),
        None => (None, false, None),
    };
    if table.has("xoff") || xoff.is_some() && !table.has("alpha") {
        let usual = xoff.map(|bytes| Bytes(u64::from(bytes)));
        return bytes(table, "xoff", usual, 1).map(Threshold::Static);
    }
    let alpha = table.given("alpha", alpha)?;
    let alpha = table.within("alpha", alpha, ALPHA)?;
    let with_rate = table.or("alpha_with_rate", with_rate)?;
    Ok(Threshold::Dynamic { alpha, with_rate })
}

/// Which classes are lossless, and which one is neither counted nor paused.
fn classes_of(
    table: &mut Reader<'_>,
    preset: Option<(Classes, Control)>,
) -> Result<(u8, u8), Diagnostic> {
    let lossless = table.given("lossless", preset.map(|(lossless, _)| lossless))?.0;
    let control = table.given("control_class", preset.map(|(_, control)| control))?.0;
    if lossless & control != 0 {
        let message = format!("class {} is lossless and control", control.trailing_zeros());
        let error = table.error("control_class", message, "in `lossless`, too");
        return Err(error.hint("what is not counted cannot be paused: name another class"));
    }
    Ok((lossless, control))
}

fn schedule(table: &mut Reader<'_>, mtu: u16, preset: bool) -> Result<Schedule, Diagnostic> {
    let weights = table.given("schedule", preset.then_some(Weights(None)))?.0;
    Ok(match weights {
        None => Schedule::Strict,
        Some(weights) => Schedule::InTurn(weights.map(|weight| weight * u32::from(mtu))),
    })
}

/// `ecn`: for all classes, for each a table of its own, or both. Classes in `control` are not
/// marked.
fn markings(table: &mut Reader<'_>, control: u8) -> Result<[Option<Marking>; 8], Diagnostic> {
    let mut tables = table.tables("ecn")?;
    let (mut own, mut others) = ([None; 8], None);
    for table in &mut tables {
        let class: Option<u8> = table.maybe("class")?;
        let marking = marking(table)?;
        let place = match class {
            None => &mut others,
            Some(class) => {
                table.within("class", class, 0..=7)?;
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

fn marking(table: &mut Reader<'_>) -> Result<Marking, Diagnostic> {
    let ramp = ramp(table, ["min", "max", "probability"])?;
    let mark_at: MarkAt = table.need("at")?;
    let per = table.maybe("per")?;
    if let Some(per) = per {
        table.within("per", per, RATES)?;
    }
    Ok(Marking { ramp, mark_at, per })
}

/// How long a frame stops a class.
struct Stop(Pause);

impl ScenarioValue for Stop {
    fn form() -> Form {
        Dur::form().or_word("until-resume")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "until-resume" => Ok(Self(Pause::UntilResume)),
            _ => match Dur::read(value)? {
                Dur::ZERO => Err("a pause of no time is none".to_owned().into()),
                time => Ok(Self(Pause::Timed(time))),
            },
        }
    }
    fn show(&self) -> toml::Value {
        match self.0 {
            Pause::UntilResume => "until-resume".to_owned().show(),
            Pause::Timed(time) => time.show(),
        }
    }
}

#[derive(Clone, Copy)]
struct Room(Headroom);

impl ScenarioValue for Room {
    fn form() -> Form {
        Form::new("size, `\"n delays\"` or `\"auto\"`", "\"auto\"` or `\"40KB\"", "string")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let Value::Text(text) = value else {
            return Err(format!("a size or \"auto\" is wanted, not {}", value.kind()).into());
        };
        if text == "auto" {
            return Ok(Self(Headroom::Auto));
        }
        if let Some(times) = text.strip_suffix("delays") {
            let times = times.trim().parse::<u8>().ok().filter(|&n| n > 0);
            let times = times.ok_or_else(|| format!("{text:?} is not like \"3 delays\""))?;
            return Ok(Self(Headroom::Delays(u32::from(times))));
        }
        let bytes = Bytes::read(value)?;
        if bytes > SIZE_MAX {
            return Err(format!("{bytes} is more than {SIZE_MAX}").into());
        }
        // At most a gigabyte, so it fits.
        Ok(Self(Headroom::Bytes(bytes.0 as u32)))
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(match self.0 {
            Headroom::Auto => "auto".to_owned(),
            Headroom::Delays(times) => format!("{times} delays"),
            Headroom::Bytes(bytes) => Bytes(u64::from(bytes)).to_string(),
        })
    }
}

/// A list of classes, as a mask.
#[derive(Clone, Copy)]
struct Classes(u8);

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

/// A class, as a mask, or none.
#[derive(Clone, Copy)]
struct Control(u8);

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
