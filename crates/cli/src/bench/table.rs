//! The tables of `trimline bench`.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use super::Measured;
use super::old::Old;
use crate::table::{number, right};

/// Speed, memory and scaling with threads.
pub(super) fn speed(all: &[Measured]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header([
        "case",
        "threads",
        "packet-hops",
        "M hops/s",
        "CPU s",
        "ns/hop",
        "instr./hop",
        "peak MB",
        "wall s",
        "speed-up",
    ]);
    for m in all {
        table.add_row([
            m.name.clone(),
            m.threads.to_string(),
            m.packet_hops.to_string(),
            number(Some(m.packet_hops_per_s / 1e6)),
            number(Some(m.cpu_s)),
            number(Some(m.ns_per_packet_hop)),
            number(m.instructions_per_packet_hop),
            number(Some(m.peak_rss_mb)),
            number(Some(m.wall_s)),
            speed_up(m, all),
        ]);
    }
    right(table)
}

/// Wall time of one thread over that of `m`, if one thread was measured.
fn speed_up(m: &Measured, all: &[Measured]) -> String {
    let one = all.iter().find(|one| one.name == m.name && one.threads == 1);
    one.map_or_else(|| "-".to_owned(), |one| format!("{:.2}", one.wall_s / m.wall_s))
}

/// New over old of what both have: below 1 is better now.
pub(super) fn ratios(all: &[Measured], old: &[Old]) -> String {
    let mut table = Table::new();
    let header = ["new / old", "threads", "ns/hop", "wall", "instr./hop", "peak MB", "result"];
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    for new in all {
        let same = |old: &&Old| old.name == new.name && old.threads == new.threads;
        let Some(old) = old.iter().find(same) else { continue };
        let instructions = new.instructions_per_packet_hop.zip(old.instructions_per_packet_hop);
        table.add_row([
            new.name.clone(),
            new.threads.to_string(),
            ratio(Some((new.ns_per_packet_hop, old.ns_per_packet_hop))),
            ratio(Some((new.wall_s, old.wall_s))),
            ratio(instructions),
            ratio(Some((new.peak_rss_mb, old.peak_rss_mb))),
            result(new, old).to_owned(),
        ]);
    }
    right(table)
}

/// Whether both simulated the same: if not, the scenario or the engine's rules have changed.
fn result(new: &Measured, old: &Old) -> &'static str {
    match &old.digest {
        None => "-",
        Some(digest) if *digest == new.digest => "same",
        Some(_) => "differs",
    }
}

fn ratio(new_and_old: Option<(f64, f64)>) -> String {
    let known = new_and_old.filter(|(_, old)| *old > 0.0);
    known.map_or_else(|| "-".to_owned(), |(new, old)| format!("{:.3}", new / old))
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    fn row(table: &str, threads: &str) -> Vec<String> {
        let cells = |line: &str| line.split(['│', '┆']).map(|c| c.trim().to_owned()).collect();
        let rows = table.lines().map(cells);
        rows.into_iter().find(|row: &Vec<_>| row.get(2).is_some_and(|c| c == threads)).unwrap()
    }

    #[test]
    fn threads_are_compared_with_one_thread() {
        let all = [measured(1, 3.4), measured(2, 2.0)];
        assert_eq!(row(&speed(&all), "1")[10], "1.00");
        assert_eq!(row(&speed(&all), "2")[10], "1.70");
        assert_eq!(row(&speed(&all[1..]), "2")[10], "-", "one thread was not measured");
    }

    #[test]
    fn ratios_are_of_what_both_have() {
        let old = |digest: Option<&str>| Old {
            name: "x".to_owned(),
            threads: 2,
            ns_per_packet_hop: 2000.0,
            wall_s: 4.0,
            instructions_per_packet_hop: None,
            peak_rss_mb: 40.0,
            digest: digest.map(str::to_owned),
        };
        let all = [measured(1, 3.0), measured(2, 2.0)];
        let table = ratios(&all, &[old(Some("96684b1b1896b801"))]);
        assert_eq!(row(&table, "2")[1..8], ["x", "2", "0.500", "0.500", "-", "1.250", "same"]);
        assert_eq!(table.matches('x').count(), 1, "one thread has no counterpart:\n{table}");
        assert_eq!(row(&ratios(&all, &[old(Some("0"))]), "2")[7], "differs");
        assert_eq!(row(&ratios(&all, &[old(None)]), "2")[7], "-");
    }
}
