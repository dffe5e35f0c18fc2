//! `trimline explain`: where the time of one message went.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use metrics::{CAUSES, LifeCause};
use report::{MessageLife, Part, message_page};
use scenario::{Explained, Options, Scenario, Step};
use serde::Serialize;
use units::{Dur, Time};

use crate::progress::Bar;
use crate::{Ended, args, html, own_command_line, say, say_json};

/// Of a longer life so many lines at either end are printed.
const ENDS: usize = 20;

/// `trimline explain`.
pub(crate) fn explain(args: &args::Explain, progress: args::Progress) -> Ended {
    args.page.as_deref().map_or(Ok(()), html::check_ours)?;
    let file = scenario_of(&args.file);
    let scenario = Scenario::load(&file, &args.edits.all())?;
    if scenario.is_calibrated() && scenario.without_packets().is_none() {
        crate::warn("packets are explained: `engine.level = \"auto\"` may have taken flow level");
    }
    let options = Options { command: own_command_line(), ..Options::default() };
    let mut bar = Bar::reading(progress, &file.display().to_string());
    bar.running(&scenario);
    let explained =
        scenario::explain(&scenario, &options, args.message, &mut |p| bar.update(&scenario, p));
    drop(bar);
    let explained = explained?;
    if let Some(path) = &args.page {
        html::publish(&message_page(&on_page(&explained)), path)?;
    }
    if args.json {
        return say_json(&Message::of(&explained));
    }
    say(head(&explained))?;
    say(timeline(&explained, args.all))?;
    say(sums(&explained))?;
    args.page.as_ref().map_or(Ok(()), |path| say(format_args!("page: {}", path.display())))
}

/// The life as its page has it.
fn on_page(of: &Explained) -> MessageLife {
    let part = |line: &Line<'_>| Part {
        after_us: line.first.after.as_us_f64(),
        for_us: line.length.as_us_f64(),
        cause: line.first.cause,
        place: line.first.place.clone(),
        packet: line.packets(),
    };
    MessageLife {
        name: format!("{}:{}", of.key.src.0, of.key.id.0),
        about: submitted(of),
        fct_us: of.fct.as_us_f64(),
        ideal_us: of.ideal.as_us_f64(),
        parts: lines(&of.steps).iter().map(part).collect(),
        command: own_command_line(),
    }
}

/// The life of a message as `--json` has it.
#[must_use]
pub fn life_json(of: &Explained) -> String {
    serde_json::to_string(&Message::of(of)).unwrap_or_default()
}

/// The life of a message, for `--json`. Times are picoseconds.
#[derive(Serialize)]
struct Message<'a> {
    src: u32,
    msg: u64,
    dst: u32,
    bytes: u64,
    submitted_ps: u64,
    fct_ps: u64,
    ideal_ps: u64,
    /// By cause; together the completion time.
    spent_ps: BTreeMap<&'a str, u64>,
    /// In the order of time, without gaps.
    steps: Vec<JsonPart<'a>>,
}

#[derive(Serialize)]
struct JsonPart<'a> {
    after_ps: u64,
    for_ps: u64,
    cause: &'a str,
    place: &'a str,
    packet: &'a str,
}

impl<'a> Message<'a> {
    fn of(of: &'a Explained) -> Self {
        let part = |step: &'a Step| JsonPart {
            after_ps: step.after.0,
            for_ps: step.length.0,
            cause: step.cause.name,
            place: &step.place,
            packet: &step.packet,
        };
        Self {
            src: of.key.src.0,
            msg: of.key.id.0,
            dst: of.dst.0,
            bytes: of.len,
            submitted_ps: of.submitted.0,
            fct_ps: of.fct.0,
            ideal_ps: of.ideal.0,
            spent_ps: CAUSES
                .iter()
                .zip(of.spent)
                .map(|(cause, time)| (cause.name, time.0))
                .collect(),
            steps: of.steps.iter().map(part).collect(),
        }
    }
}

/// A run's directory stands for what was run.
fn scenario_of(file: &Path) -> PathBuf {
    if file.is_dir() { file.join("manifest.json") } else { file.to_owned() }
}

/// Microseconds, to the picosecond.
fn us(time: Dur) -> String {
    format!("{}.{:06}", time.0 / 1_000_000, time.0 % 1_000_000)
}

/// From where to where, how much, when.
fn submitted(of: &Explained) -> String {
    let at = us(of.submitted.since(Time::ZERO));
    format!("{} bytes from {} to {}, submitted at {at} us", of.len, of.key.src, of.dst)
}

fn head(of: &Explained) -> String {
    let slowdown = of.fct.0 as f64 / of.ideal.0.max(1) as f64;
    format!(
        "message {}:{}: {}\n\
         completed after {} us; alone in the same fabric {} us; slowdown {slowdown:.2}\n",
        of.key.src.0,
        of.key.id.0,
        submitted(of),
        us(of.fct),
        us(of.ideal),
    )
}

/// Steps that follow each other with one cause at one place.
struct Line<'a> {
    first: &'a Step,
    length: Dur,
    steps: usize,
}

impl<'a> Line<'a> {
    fn of(steps: &'a [Step]) -> Self {
        let length = steps.iter().fold(Dur::ZERO, |sum, step| sum + step.length);
        Self { first: &steps[0], length, steps: steps.len() }
    }

    /// The packet, or how many there are.
    fn packets(&self) -> String {
        match self.steps {
            1 => self.first.packet.clone(),
            n => format!("{n} packets"),
        }
    }
}

fn lines(steps: &[Step]) -> Vec<Line<'_>> {
    let same = |a: &Step, b: &Step| (a.cause.name, &a.place) == (b.cause.name, &b.place);
    steps.chunk_by(same).map(Line::of).collect()
}

/// A line for each part of the life, those in the middle of a long one left out unless `all` are
/// wanted.
fn timeline(of: &Explained, all: bool) -> String {
    let lines = lines(&of.steps);
    let width = lines.iter().map(|line| line.first.place.len()).max().unwrap_or(0).max(5);
    let mut text =
        format!("{:>16} {:>16}  {:17}  {:width$}  packet", "after us", "for us", "cause", "where");
    let hidden = if all || lines.len() <= 2 * ENDS + 1 { 0 } else { lines.len() - 2 * ENDS };
    for (n, line) in lines.iter().enumerate() {
        if n == ENDS && hidden > 0 {
            text += &format!("\n{:>16} {hidden} lines left out (--all)", "...");
        }
        if hidden > 0 && (ENDS..ENDS + hidden).contains(&n) {
            continue;
        }
        let Step { cause, place, .. } = line.first;
        let (after, length, cause) = (us(line.first.after), us(line.length), cause.name);
        let packets = line.packets();
        let row = format!("{after:>16} {length:>16}  {cause:17}  {place:width$}  {packets}");
        text += &format!("\n{}", row.trim_end());
    }
    text + &format!("\n{:>16}\n", us(of.fct))
}

/// How long each cause took, the longest first.
fn sums(of: &Explained) -> String {
    let mut spent: Vec<(LifeCause, Dur)> =
        CAUSES.into_iter().zip(of.spent).filter(|(_, time)| *time > Dur::ZERO).collect();
    spent.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let row = |(cause, time): (LifeCause, Dur)| {
        let share = time.0 as f64 / of.fct.0 as f64 * 100.0;
        format!("{:17} {:>16} us {share:>6.2} %", cause.name, us(time))
    };
    let rows: Vec<String> = spent.into_iter().map(row).collect();
    format!("{}\n{:17} {:>16} us", rows.join("\n"), "completion time", us(of.fct))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_exact() {
        assert_eq!(us(Dur(1)), "0.000001");
        assert_eq!(us(Dur(7_251_200)), "7.251200");
        assert_eq!(us(Dur(1_234_000_000_001)), "1234000.000001");
    }
}
