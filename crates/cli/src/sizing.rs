//! `trimline nic size`: buffer size classes for a NIC, from how long messages are.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use nic::nano::buffers::SizeClass;
use nic::nano::sizing::{Demand, MEMORY_MAX, Usage, memory};
use scenario::{Diagnostic, size_distribution};
use serde::Serialize;
use units::Bytes;

use crate::args::NicSize;
use crate::table::right;
use crate::{Ended, say};

/// What is printed, in a table or as JSON.
#[derive(Serialize)]
struct Sizing {
    distribution: String,
    longest_bytes: u64,
    /// Of all messages; the other shares are of those that are not too long.
    too_long_share: f64,
    at_once: u32,
    chosen: Plan,
    /// One class in the same memory.
    single: Plan,
}

/// Size classes and what they are worth.
#[derive(Serialize)]
struct Plan {
    /// Of reassembly and packetization together.
    sram_bytes: u64,
    /// Ids of messages, each way: a power of two.
    messages: u32,
    classes: Vec<Class>,
    utilisation: f64,
    refused: Vec<Refused>,
}

#[derive(Serialize)]
struct Class {
    bytes: u32,
    buffers: u16,
    share: f64,
    utilisation: f64,
}

/// The share of so many messages at once that finds no buffer.
#[derive(Clone, Copy, Serialize)]
struct Refused {
    at_once: u32,
    share: f64,
}

/// `trimline nic size`.
pub(crate) fn size(args: &NicSize) -> Ended {
    let distribution = size_distribution(&args.sizes)?;
    let longest = u32::try_from(args.longest.0).unwrap_or(u32::MAX);
    let demand = Demand::new(&distribution.masses(), longest).ok_or_else(|| {
        let shortest = Bytes(distribution.range().0);
        let message = format!("no message is as short as {}", args.longest);
        Diagnostic::new(message).hint(format!("the shortest has {shortest}: raise --longest"))
    })?;
    let (at_once, classes) = choose(args, &demand)?;
    let direction = args.sram.map_or_else(|| memory(&classes), |sram| sram.0 / 2);
    let buffers = direction / args.longest.0.next_multiple_of(64);
    let single = SizeClass { bytes: longest, buffers: u16::try_from(buffers).unwrap_or(u16::MAX) };
    let mut counts = vec![u32::from(single.buffers).max(1), at_once, 2 * at_once];
    counts.sort_unstable();
    counts.dedup();
    let sizing = Sizing {
        distribution: distribution.about().title.clone(),
        longest_bytes: args.longest.0,
        too_long_share: demand.too_long(),
        at_once,
        chosen: plan(&demand, &classes, &counts),
        single: plan(&demand, &[single], &counts),
    };
    if args.json {
        let json = serde_json::to_string_pretty(&sizing);
        return say(json.map_err(|why| Diagnostic::new(why.to_string()))?);
    }
    print(&sizing)
}

/// How many messages at once, and the classes for them.
fn choose(args: &NicSize, demand: &Demand) -> Result<(u32, Vec<SizeClass>), Diagnostic> {
    let (refused, classes) = (args.refused / 100.0, usize::from(args.classes));
    let too_small = |sram: Bytes| {
        let least = Bytes(2 * memory(&demand.classes(1, 0.0, classes)));
        let message = format!("{sram} cannot hold one message of every size each way");
        Diagnostic::new(message).hint(format!("{least} can; or lower --longest"))
    };
    if let Some(sram) = args.sram.filter(|sram| sram.0 > 2 * MEMORY_MAX) {
        let message = format!("{sram} is more than buffer pointers of 16 bits reach");
        return Err(Diagnostic::new(message).hint(format!("at most {}", Bytes(2 * MEMORY_MAX))));
    }
    match (args.messages, args.sram) {
        (None, None) => Err(Diagnostic::new("neither --sram nor --messages is given")
            .hint("say how much memory there is, for how many messages at once, or both")),
        (None, Some(sram)) => {
            demand.within(sram.0 / 2, refused, classes).ok_or_else(|| too_small(sram))
        }
        (Some(messages), Some(sram)) => demand
            .squeezed(messages, sram.0 / 2, refused, classes)
            .map(|classes| (messages, classes))
            .ok_or_else(|| too_small(sram)),
        (Some(messages), None) => {
            let classes = demand.classes(messages, refused, classes);
            let needed = memory(&classes);
            if needed <= MEMORY_MAX {
                return Ok((messages, classes));
            }
            let message = format!("{messages} messages at once need {} each way", Bytes(needed));
            let reach = Bytes(MEMORY_MAX);
            Err(Diagnostic::new(message).hint(format!(
                "buffer pointers of 16 bits reach {reach}: fewer messages, more --classes, a higher --refused"
            )))
        }
    }
}

fn plan(demand: &Demand, classes: &[SizeClass], counts: &[u32]) -> Plan {
    let usage = demand.usage(classes);
    let class = |(class, usage): (&SizeClass, &Usage)| Class {
        bytes: class.bytes,
        buffers: class.buffers,
        share: usage.share,
        utilisation: usage.utilisation(),
    };
    let buffers: u32 = classes.iter().map(|class| u32::from(class.buffers)).sum();
    let refused = |&at_once: &u32| Refused { at_once, share: demand.refused(classes, at_once) };
    Plan {
        sram_bytes: 2 * memory(classes),
        messages: buffers.next_power_of_two(),
        classes: classes.iter().zip(&usage).map(class).collect(),
        utilisation: usage.iter().copied().fold(Usage::default(), Usage::and).utilisation(),
        refused: counts.iter().map(refused).collect(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn print(sizing: &Sizing) -> Ended {
    let Sizing { distribution, longest_bytes, too_long_share, chosen, single, .. } = sizing;
    say(distribution)?;
    let (fit, longest) = (percent(1.0 - too_long_share), Bytes(*longest_bytes));
    say(format_args!(
        "{fit} of the messages have at most {longest}; the figures below cover only these"
    ))?;
    let mut table = Table::new();
    let header = ["buffers of", "how many", "messages", "utilisation"];
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    for class in &chosen.classes {
        let bytes = Bytes(class.bytes.into()).to_string();
        let (share, utilisation) = (percent(class.share), percent(class.utilisation));
        table.add_row([bytes, class.buffers.to_string(), share, utilisation]);
    }
    say(right(table))?;
    say(compared(chosen, single))?;
    say("For a scenario, in and below [transport] with kind = \"nic\":\n")?;
    say(keys(chosen))
}

fn compared(chosen: &Plan, single: &Plan) -> String {
    let mut table = Table::new();
    let one = single.classes.first().map_or(0, |class| class.bytes);
    let header = [
        "each way the same".to_owned(),
        format!("{} classes", chosen.classes.len()),
        format!("one of {}", Bytes(one.into())),
    ];
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    let buffers = |plan: &Plan| plan.classes.iter().map(|c| u32::from(c.buffers)).sum::<u32>();
    let mut row = |label: &str, cell: &dyn Fn(&Plan) -> String| {
        table.add_row([label.to_owned(), cell(chosen), cell(single)]);
    };
    row("SRAM, both ways", &|plan| Bytes(plan.sram_bytes).to_string());
    row("buffers each way", &|plan| buffers(plan).to_string());
    row("utilisation", &|plan| percent(plan.utilisation));
    for (i, refused) in chosen.refused.iter().enumerate() {
        let share = |plan: &Plan| plan.refused.get(i).map_or(0.0, |refused| refused.share);
        row(&format!("refused of {} at once", refused.at_once), &|plan| percent(share(plan)));
    }
    right(table)
}

/// The keys of `kind = "nic"` that make a NIC so.
fn keys(plan: &Plan) -> String {
    let ids = plan.messages;
    let mut text = format!("tx_messages = {ids}\nrx_messages = {ids}\n");
    for class in &plan.classes {
        let (size, count) = (Bytes(class.bytes.into()), class.buffers);
        text += &format!("\n[[transport.buffer]]\nsize = \"{size}\"\ncount = {count}\n");
    }
    text.trim_end().to_owned()
}
