//! `trimline validate`: the cases of lists of the public Ultra Ethernet simulator, with verdicts.

use std::io::IsTerminal;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use scenario::cases::{Case, CaseList, Verdict};
use scenario::{Diagnostic, Error, Options, simulate};
use serde::Serialize;

use crate::progress::Bar;
use crate::table::{number, printable, right};
use crate::{Ended, args, say, say_json, tell};

/// A case. The keys are part of the command-line contract.
#[derive(Serialize)]
struct Judged {
    /// The file.
    list: String,
    case: String,
    verdict: &'static str,
    /// Microseconds from time zero, at the sender.
    limit_us: Option<u64>,
    tail_us: Option<f64>,
    messages: Option<usize>,
    complete: Option<usize>,
    /// Messages with limits of their own.
    flows: Vec<JudgedFlow>,
    /// Why it was refused, or its run broke.
    refused: Option<String>,
}

#[derive(Serialize)]
struct JudgedFlow {
    flow: String,
    limit_us: u64,
    tail_us: Option<f64>,
}

/// `trimline validate`. A case that is refused, or whose run breaks, does not keep
/// the others from running.
pub(crate) fn validate(args: &args::Validate, progress: args::Progress) -> Ended {
    let lists: Vec<CaseList> =
        args.files.iter().map(|file| CaseList::load(file)).collect::<Result<_, _>>()?;
    let wanted = |case: &Case| args.only.as_ref().is_none_or(|only| case.name().contains(only));
    if !lists.iter().flat_map(CaseList::cases).any(wanted) {
        let files: Vec<_> = args.files.iter().map(|file| file.display().to_string()).collect();
        let error = format!("no case of {} has this text in its name", files.join(", "));
        let names: Vec<&str> = lists.iter().flat_map(CaseList::cases).map(Case::name).collect();
        return Err(Diagnostic::new(error).hint(format!("there are: {}", names.join("; "))).into());
    }
    let (mut all, mut tables) = (Vec::new(), 0);
    for (list, file) in lists.iter().zip(&args.files) {
        let file = file.display().to_string();
        let cases = list.cases().iter().filter(|case| wanted(case));
        let judged = cases.map(|case| run(&file, case, args, progress));
        let judged = judged.collect::<Result<Vec<_>, _>>()?;
        if !judged.is_empty() && !args.json {
            if lists.len() > 1 {
                say(file)?;
            }
            say(table(&judged))?;
            tables += 1;
        }
        all.extend(judged);
    }
    if args.json {
        say_json(&all)?;
    } else {
        say(sums(&all, tables))?;
    }
    ended(&all)
}

fn run(
    list: &str,
    case: &Case,
    args: &args::Validate,
    progress: args::Progress,
) -> Result<Judged, Error> {
    let mut bar = Bar::reading(progress, case.name());
    let ready = match case.ready(args.seed) {
        Ok(ready) => ready,
        Err(why) => return not_run(list, case, "refused", bar, &why.into()),
    };
    let options = Options { threads: args.threads.number(), ..Options::default() };
    bar.running(&ready.scenario);
    match simulate(&ready.scenario, &options, &mut |p| bar.update(&ready.scenario, p)) {
        Ok(simulated) => Ok(Judged::of(list, case, Verdict::of(case, &ready, &simulated.flows))),
        Err(Error::Stopped) => Err(Error::Stopped),
        Err(why) => not_run(list, case, "broken", bar, &why),
    }
}

/// Say why a case has no result.
fn not_run(
    list: &str,
    case: &Case,
    verdict: &'static str,
    bar: Bar,
    why: &Error,
) -> Result<Judged, Error> {
    drop(bar);
    tell(why.render(std::io::stderr().is_terminal()));
    Ok(Judged::without(list, case, verdict, why))
}

impl Judged {
    fn of(list: &str, case: &Case, verdict: Verdict) -> Self {
        let flow = |flow: scenario::cases::Flow| JudgedFlow {
            flow: flow.name,
            limit_us: flow.limit,
            tail_us: flow.tail_us,
        };
        Self {
            list: list.to_owned(),
            case: case.name().to_owned(),
            verdict: if verdict.passed { "pass" } else { "fail" },
            limit_us: case.limit(),
            tail_us: verdict.tail_us,
            messages: Some(verdict.messages),
            complete: Some(verdict.complete),
            flows: verdict.flows.into_iter().map(flow).collect(),
            refused: None,
        }
    }

    fn without(list: &str, case: &Case, verdict: &'static str, why: &Error) -> Self {
        Self {
            list: list.to_owned(),
            case: case.name().to_owned(),
            verdict,
            limit_us: case.limit(),
            tail_us: None,
            messages: None,
            complete: None,
            flows: Vec::new(),
            refused: Some(why.to_string()),
        }
    }
}

/// A row per case, and one for each flow with a limit of its own below it.
fn table(all: &[Judged]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["case", "complete", "limit (µs)", "tail (µs)", "verdict"]);
    let limit = |us: Option<u64>| us.map_or("-".to_owned(), |us| us.to_string());
    for case in all {
        let complete = case.complete.zip(case.messages);
        table.add_row([
            printable(&case.case),
            complete.map_or("-".to_owned(), |(some, all)| format!("{some} of {all}")),
            limit(case.limit_us),
            number(case.tail_us),
            case.verdict.to_owned(),
        ]);
        for flow in &case.flows {
            let name = format!("  {}", printable(&flow.flow));
            let (most, tail) = (limit(Some(flow.limit_us)), number(flow.tail_us));
            table.add_row([name, String::new(), most, tail, String::new()]);
        }
    }
    right(table)
}

fn count(all: &[Judged], verdict: &str) -> usize {
    all.iter().filter(|case| case.verdict == verdict).count()
}

/// How many cases of so many lists have each verdict that any has.
fn sums(all: &[Judged], lists: usize) -> String {
    let counted = |of: &str| (count(all, of), of.to_owned());
    let verdicts = ["pass", "fail", "refused", "broken"].map(counted);
    let verdicts = verdicts.into_iter().filter(|(n, _)| *n > 0);
    let verdicts: Vec<_> = verdicts.map(|(n, verdict)| format!("{n} {verdict}")).collect();
    let some = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (cases, lists) = (some(all.len(), "case"), some(lists, "list"));
    format!("{cases} of {lists}: {}", verdicts.join(", "))
}

/// The command fails unless all cases passed.
fn ended(all: &[Judged]) -> Ended {
    let count = |verdict| count(all, verdict);
    let (failed, refused, broken) = (count("fail"), count("refused"), count("broken"));
    if failed + refused + broken == 0 {
        return Ok(());
    }
    let mut what = format!("of {} cases {failed} failed and {refused} were refused", all.len());
    if broken > 0 {
        what += &format!("; the runs of {broken} broke");
    }
    let hint = match refused + broken {
        0 => "a limit is of one run: --seed N draws other paths",
        _ => "why a case has no result stands above",
    };
    Err(Error::Run { what, hint: hint.to_owned() })
}
