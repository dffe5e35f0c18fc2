//! Queues of every kind.

use std::fmt::Write;

use crate::drawn::{self, Dice};

/// A queue of `kind`, for packets of `classes`.
pub(super) fn queue(dice: &mut Dice, kind: &str, payload: u16, classes: &[u8]) -> String {
    match kind {
        "ndp" => drawn::ndp_queue(dice, payload),
        "drop-tail" => {
            let queue = drawn::drop_tail_queue(dice, payload);
            hotspot(dice, queue)
        }
        "cut-payload" => format!("\n[queue]\nkind = \"cut-payload\"\ncapacity = {}\n", large(dice)),
        "fair" => format!("\n[queue]\nkind = \"fair\"\n{}", by_class(dice, classes)),
        "priority" => priority(dice, classes),
        "pfabric" => format!("\n[queue]\nkind = \"pfabric\"\ncapacity = {}\n", large(dice)),
        "p4" => p4(dice),
        "lossless" => lossless(dice),
        other => panic!("the swarm does not draw the queue `{other}`"),
    }
}

/// Room for two full packets at least, so that half of it holds one.
fn large(dice: &mut Dice) -> &'static str {
    dice.pick(&["\"2 packets\"", "\"8 packets\"", "\"100 packets\""])
}

/// A queue of its own for each class.
fn by_class(dice: &mut Dice, classes: &[u8]) -> String {
    let mut text = String::new();
    for class in classes.iter().rev() {
        let kind = dice.pick(&["drop-tail", "drop-tail", "ndp", "cut-payload"]);
        let capacity = large(dice);
        writeln!(text, "[[queue.class]]\nclass = {class}\nkind = \"{kind}\"").unwrap();
        writeln!(text, "capacity = {capacity}").unwrap();
    }
    text
}

fn priority(dice: &mut Dice, classes: &[u8]) -> String {
    let capacity = large(dice);
    let plain = |n: &u8| {
        format!("[[queue.class]]\nclass = {n}\nkind = \"drop-tail\"\ncapacity = {capacity}\n")
    };
    let each: String = classes.iter().rev().map(plain).collect();
    let header = "\n[queue]\nkind = \"priority\"\n";
    let trim = "full = \"trim\"\ntrim_to = \"72B\"\n";
    match dice.below(4) {
        0 => {
            let mut limits = String::new();
            dice.maybe(&mut limits, 40, "capacity", &["\"4 packets\"", "\"40KB\""]);
            dice.maybe(&mut limits, 40, "ecn_threshold", &["\"1 packets\"", "\"20KB\""]);
            format!("{header}full = \"drop\"\n{limits}{}", by_class(dice, classes))
        }
        1 => format!("{header}{trim}sort_by = \"class\"\nheader_class = \"next\"\n{each}"),
        2 => format!("{header}{trim}header_class = \"highest\"\n{each}"),
        _ => {
            let two: String = [7, 0].iter().map(plain).collect();
            format!("{header}{trim}sort_by = \"payload\"\n{two}")
        }
    }
}

/// NDP's switch in P4, as it is or with less room.
fn p4(dice: &mut Dice) -> String {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/ndp_switch.p4");
    let backend = dice.pick(&[
        "\"rust\"",
        "\"interpreter\"",
        "\"interpreter\"\nconstants = { DATA_CAPACITY = 20000, HEADER_CAPACITY = 640 }",
    ]);
    let (weights, memory) = (dice.pick(&["[10, 1]", "[1, 1]"]), dice.pick(&["40KB", "144KB"]));
    format!(
        "\n[queue]\nkind = \"p4\"\nprogram = '{program}'\nbackend = {backend}\nweights = {weights}\n\
         memory = \"{memory}\"\n"
    )
}

/// Flow control, sometimes with a watchdog.
fn lossless(dice: &mut Dice) -> String {
    let mut text = drawn::lossless_queue(dice);
    if dice.percent(30) {
        let action = dice.pick(&["drop", "forward"]);
        writeln!(text, "watchdog = \"100us\"\nwatchdog_action = \"{action}\"").unwrap();
    }
    text
}

/// Sometimes one switch has less room than the others.
fn hotspot(dice: &mut Dice, queue: String) -> String {
    match dice.percent(15) {
        true => queue + "\n[[queue.switch]]\nswitch = \"tor 0\"\ncapacity = \"2 packets\"\n",
        false => queue,
    }
}
