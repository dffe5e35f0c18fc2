//! Queues over time: a row per port, by how long its queue is.

use maud::{Markup, PreEscaped, html};
use metrics::{LinkRow, QueueRow};

use crate::heat::{LEVELS, key, level};
use crate::number::{bytes, percent, tick};
use crate::page::{scroll, table};

/// Columns of the picture.
const COLUMNS: usize = 200;

/// Ports in it: those whose queues were longest.
const PORTS: usize = 32;

/// Sizes in the picture's own units.
const LEFT: f64 = 170.0;
const CELL: f64 = 4.0;
const ROW: f64 = 16.0;

/// A queue, sampled.
struct Port<'a> {
    name: &'a str,
    /// The longest within each column.
    cells: Vec<u64>,
    max: u64,
}

/// The picture and its table; nothing without samples.
pub(crate) fn heat_map(links: &[LinkRow], rows: &[QueueRow], end_us: f64) -> Markup {
    let ports = longest(links, rows, end_us);
    let most = ports.iter().map(|port| port.max).max().unwrap_or_default();
    html! {
        h3 { "Queues over time" }
        @if most == 0 {
            p.empty { "No switch queue held anything when it was sampled." }
        } @else {
            (scroll("queues over time", &picture(&ports, most, end_us)))
            p.note {
                "The " (ports.len()) " ports whose queues were longest. A cell is the longest sample \
                 in a " (COLUMNS) "th of the run."
            }
            (numbers(&ports))
        }
    }
}

/// The ports with the longest queues, in the order of the topology.
fn longest<'a>(links: &'a [LinkRow], rows: &[QueueRow], end_us: f64) -> Vec<Port<'a>> {
    let mut of_link: Vec<Vec<&QueueRow>> = vec![Vec::new(); links.len()];
    for row in rows {
        if let Some(of) = of_link.get_mut(row.link as usize) {
            of.push(row);
        }
    }
    let port = |(link, samples): (&'a LinkRow, Vec<&QueueRow>)| Port {
        name: &link.name,
        max: samples.iter().map(|row| row.bytes).max().unwrap_or_default(),
        cells: cells(&samples, end_us),
    };
    let seen = links.iter().zip(of_link).filter(|(_, samples)| !samples.is_empty());
    let mut ports: Vec<(usize, Port<'a>)> = seen.map(port).enumerate().collect();
    ports.sort_by_key(|(i, port)| (std::cmp::Reverse(port.max), *i));
    ports.truncate(PORTS);
    ports.sort_by_key(|(i, _)| *i);
    ports.into_iter().map(|(_, port)| port).collect()
}

/// A sample holds until the next.
fn cells(samples: &[&QueueRow], end_us: f64) -> Vec<u64> {
    let column = |row: &QueueRow| {
        let share = row.at.0 as f64 / 1e6 / end_us.max(1e-6);
        ((share * COLUMNS as f64) as usize).min(COLUMNS - 1)
    };
    let mut cells = vec![0; COLUMNS];
    let mut samples = samples.iter().peekable();
    let mut held = 0;
    for (i, cell) in cells.iter_mut().enumerate() {
        *cell = held;
        while let Some(row) = samples.next_if(|row| column(row) == i) {
            held = row.bytes;
            *cell = held.max(*cell);
        }
    }
    cells
}

fn picture(ports: &[Port<'_>], most: u64, end_us: f64) -> Markup {
    let height = ROW * ports.len() as f64 + 24.0;
    let width = LEFT + CELL * COLUMNS as f64 + 30.0;
    html! {
        svg.map viewBox={ "0 0 " (width) " " (height) } role="img"
            aria-label="Queues over time, a row for each port" {
            @for step in 1..=LEVELS {
                path.{ "heat" (step) } stroke-width=(ROW - 3.0) d=(PreEscaped(strokes(ports, most, step))) {}
            }
            @for (i, port) in ports.iter().enumerate() {
                text x="0" y=(ROW * i as f64 + 12.0) { (port.name) }
                rect x=(LEFT) y=(ROW * i as f64 + 1.5) width=(CELL * COLUMNS as f64) height=(ROW - 3.0) {
                    title { (port.name) ": max " (bytes(port.max)) }
                }
            }
            @for quarter in 0..=4u32 {
                text.node x=(LEFT + CELL * COLUMNS as f64 * f64::from(quarter) / 4.0) y=(height - 6.0) {
                    (tick(libm::round(end_us * f64::from(quarter) * 2.5) / 10.0)) " µs"
                }
            }
        }
        (key(1, "0 B", &bytes(most)))
    }
}

/// The cells of one level, those next to each other as one stroke.
fn strokes(ports: &[Port<'_>], most: u64, step: usize) -> String {
    let mut path = String::new();
    for (i, port) in ports.iter().enumerate() {
        let y = ROW * i as f64 + ROW / 2.0;
        let mut at = 0;
        let of = |cell: &u64| level(*cell as f64, most as f64);
        for run in port.cells.chunk_by(|a, b| of(a) == of(b)) {
            if of(&run[0]) == step {
                let x = LEFT + CELL * f64::from(at);
                path += &format!("M{x} {y}h{}", CELL * run.len() as f64);
            }
            at += run.len() as u32;
        }
    }
    path
}

fn numbers(ports: &[Port<'_>]) -> Markup {
    let head = ["Port", "max queue", "time with a queue"].map(str::to_owned);
    let row = |port: &Port<'_>| {
        let busy = port.cells.iter().filter(|cell| **cell > 0).count();
        let share = percent(Some(busy as f64 / COLUMNS as f64));
        vec![port.name.to_owned(), bytes(port.max), share]
    };
    let rows: Vec<Vec<String>> = ports.iter().map(row).collect();
    html! { details { summary { "The picture in numbers" } (table(&head, &rows)) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Time;

    #[test]
    fn a_sample_holds_until_the_next() {
        let row = |us: u64, bytes| QueueRow { at: Time(us * 1_000_000), link: 0, bytes };
        let rows = [row(10, 500), row(11, 900), row(50, 0)];
        let cells = cells(&rows.iter().collect::<Vec<_>>(), 200.0);
        assert_eq!((cells[9], cells[10], cells[11], cells[49]), (0, 500, 900, 900));
        assert_eq!((cells[50], cells[51]), (900, 0), "the longest within the column");
    }

    #[test]
    fn the_longest_are_drawn_in_the_order_of_the_topology() {
        let link = |i: u32| LinkRow { name: format!("link {i}"), ..LinkRow::default() };
        let links: Vec<LinkRow> = (0..40).map(link).collect();
        let row = |link: u32| QueueRow { at: Time(1), link, bytes: u64::from(link + 1) };
        let rows: Vec<QueueRow> = (0..40).map(row).collect();
        let ports = longest(&links, &rows, 1.0);
        assert_eq!((ports.len(), ports[0].name, ports[31].name), (32, "link 8", "link 39"));
        let page = heat_map(&links, &rows, 1.0).into_string();
        assert!(page.contains("link 39: max 40 B"), "{page}");
        assert!(heat_map(&links, &[], 1.0).into_string().contains("held anything"));
    }
}
