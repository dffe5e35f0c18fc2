//! [`PerfettoWriter`]: a time line for Perfetto or `chrome://tracing` (`trace.perfetto.json`).
//!
//! Source of the format: "Trace Event Format" of the Chromium project, JSON object form. A process
//! (`pid`) per host and switch. In it a thread (`tid`) per port, with a slice per packet and
//! instants for what befell it, and a counter per queue; at hosts an asynchronous track per message
//! that they send. Times are microseconds with three decimals: Perfetto counts whole nanoseconds,
//! and drops a slice that begins before the last one has ended, so beginnings and ends are rounded
//! alike.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use units::{Dur, Time};

use crate::{FileError, StagedFile};

/// A directed link, as the port that it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The host or switch.
    pub node: String,
    /// Where it leads.
    pub to: String,
}

/// A message on the time line, or what a rank of a training job does.
#[derive(Clone, Debug)]
pub struct MessageSlice<'a> {
    /// Which of these: `message`, `rank`.
    pub category: &'static str,
    /// What tells it from all others: `3:0`.
    pub id: &'a str,
    /// What its slice is called.
    pub name: &'a str,
    /// The sending host, as [`Port::node`] calls it.
    pub node: &'a str,
    /// When it was submitted.
    pub from: Time,
    /// When it was over; `None`: not before the run was.
    pub to: Option<Time>,
    /// More about it: an object.
    pub args: Value,
    /// Its parts, which follow each other.
    pub parts: Vec<Part>,
}

/// A part of a message's time.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is called.
    pub name: String,
    /// When it begins.
    pub from: Time,
    /// How long it takes.
    pub length: Dur,
    /// More about it: an object.
    pub args: Value,
}

/// Writes events as they come. [`finish`](Self::finish) completes the file.
pub struct PerfettoWriter {
    file: StagedFile,
    /// Of each link the process, the thread and the name of its queue; `None`: it is not shown.
    ports: Vec<Option<(u32, u32, String)>>,
    processes: BTreeMap<String, u32>,
    first: bool,
}

/// Numbers of threads are above those of processes: one with the number of its process would be
/// taken for its first.
const FIRST_THREAD: u32 = 1 << 24;

impl PerfettoWriter {
    /// A time line with these ports; an event names its link by its index here. Of links that are
    /// `None` nothing is shown.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(
        file: StagedFile,
        links: impl IntoIterator<Item = Option<Port>>,
    ) -> Result<Self, FileError> {
        let (ports, processes) = (Vec::new(), BTreeMap::new());
        let mut trace = Self { file, ports, processes, first: true };
        let head = trace.file.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        trace.check(head)?;
        for (tid, port) in (FIRST_THREAD..).zip(links) {
            let port = port.map(|port| trace.port(tid, &port)).transpose()?;
            trace.ports.push(port);
        }
        Ok(trace)
    }

    fn port(&mut self, tid: u32, port: &Port) -> Result<(u32, u32, String), FileError> {
        let pid = self.process(&port.node)?;
        let ids = json!({ "ph": "M", "pid": pid, "tid": tid });
        self.named("thread", &ids, tid, &format!("to {}", port.to))?;
        Ok((pid, tid, format!("queue to {}", port.to)))
    }

    /// The number of a host or switch.
    fn process(&mut self, node: &str) -> Result<u32, FileError> {
        if let Some(&pid) = self.processes.get(node) {
            return Ok(pid);
        }
        // From one: zero stands for the idle processor.
        let pid = self.processes.len() as u32 + 1;
        self.processes.insert(node.to_owned(), pid);
        self.named("process", &json!({ "ph": "M", "pid": pid }), pid, node)?;
        Ok(pid)
    }

    /// A name, and a place in the order.
    fn named(&mut self, what: &str, ids: &Value, place: u32, name: &str) -> Result<(), FileError> {
        let name = json!({ "name": format!("{what}_name"), "args": { "name": name } });
        let order =
            json!({ "name": format!("{what}_sort_index"), "args": { "sort_index": place } });
        self.event(&[ids, &name])?;
        self.event(&[ids, &order])
    }

    fn shown(&self, link: u32) -> Option<&(u32, u32, String)> {
        self.ports.get(link as usize)?.as_ref()
    }

    /// A packet on a link, from the start of its transmission to its end.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn slice(
        &mut self,
        at: Time,
        length: Dur,
        link: u32,
        name: &str,
        bytes: u64,
    ) -> Result<(), FileError> {
        let Some((pid, tid, _)) = self.shown(link) else { return Ok(()) };
        let (name, ts, dur) = (json!(name), micros(at), lasting(at, length));
        self.text(&format!(
            r#"{{"ph":"X","name":{name},"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{{"bytes":{bytes}}}}}"#
        ))
    }

    /// Something that befell a packet at the queue of a link: `trimmed`, `dropped`, ...
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn instant(&mut self, at: Time, link: u32, name: &str) -> Result<(), FileError> {
        let Some((pid, tid, _)) = self.shown(link) else { return Ok(()) };
        let (name, ts) = (json!(name), micros(at));
        self.text(&format!(
            r#"{{"ph":"i","s":"t","name":{name},"pid":{pid},"tid":{tid},"ts":{ts}}}"#
        ))
    }

    /// The length of a link's queue from `at` on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn queue(&mut self, at: Time, link: u32, bytes: u64) -> Result<(), FileError> {
        let Some((pid, _, name)) = self.shown(link) else { return Ok(()) };
        let (name, ts) = (json!(name), micros(at));
        self.text(&format!(
            r#"{{"ph":"C","name":{name},"pid":{pid},"ts":{ts},"args":{{"bytes":{bytes}}}}}"#
        ))
    }

    /// A message, with its parts inside.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn message(&mut self, message: &MessageSlice<'_>) -> Result<(), FileError> {
        let MessageSlice { category, id, name, node, from, to, args, parts } = message;
        let pid = self.process(node)?;
        let mut edge = |phase: &str, name: &str, at: Time, args: &Value| {
            let (name, id, ts) = (json!(name), json!(id), micros(at));
            self.text(&format!(
                r#"{{"ph":"{phase}","cat":"{category}","id2":{{"local":{id}}},"name":{name},"pid":{pid},"ts":{ts},"args":{args}}}"#
            ))
        };
        edge("b", name, *from, args)?;
        for Part { name, from, length, args } in parts {
            edge("b", name, *from, args)?;
            edge("e", name, *from + *length, &json!({}))?;
        }
        to.map_or(Ok(()), |to| edge("e", name, to, &json!({})))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<(), FileError> {
        let tail = self.file.write_all(b"\n]}\n");
        self.check(tail)?;
        self.file.finish()
    }

    fn text(&mut self, json: &str) -> Result<(), FileError> {
        let separator = if self.first { "\n" } else { ",\n" };
        self.first = false;
        let written = write!(self.file, "{separator}{json}");
        self.check(written)
    }

    /// An event with the keys of all `objects`.
    fn event(&mut self, objects: &[&Value]) -> Result<(), FileError> {
        let keys = objects.iter().filter_map(|object| object.as_object()).flatten();
        let keys = keys.map(|(key, value)| (key.clone(), value.clone()));
        self.text(&Value::Object(keys.collect()).to_string())
    }

    fn check(&self, written: io::Result<()>) -> Result<(), FileError> {
        written.map_err(|e| FileError::io("write", self.file.path(), &e))
    }
}

/// Microseconds, to the nanosecond below.
fn micros(at: Time) -> String {
    nanos(at.0 / 1_000)
}

/// From the nanosecond of the beginning to that of the end.
fn lasting(at: Time, length: Dur) -> String {
    nanos((at + length).0 / 1_000 - at.0 / 1_000)
}

fn nanos(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::OutputDir;

    #[test]
    fn reads_back_as_json() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let file = out.file("trace.perfetto.json").unwrap();
        let port = |to: &str| Some(Port { node: "tor 0".to_owned(), to: to.to_owned() });
        let links = [port("a \"quoted\" host"), None];
        let mut trace = PerfettoWriter::new(file, links).unwrap();
        trace.slice(Time(1_000_900), Dur(7_251_200), 0, "data 3:7", 9064).unwrap();
        trace.instant(Time(2_000_000), 0, "trimmed").unwrap();
        trace.queue(Time(3_000_000), 0, 72_000).unwrap();
        trace.instant(Time(3_000_000), 1, "not shown").unwrap();
        let (name, from, length) = ("queue".to_owned(), Time(1), Dur(5));
        trace
            .message(&MessageSlice {
                category: "message",
                id: "3:0",
                name: "message",
                node: "host 3",
                from: Time(1),
                to: Some(Time(6)),
                args: json!({ "bytes": 9 }),
                parts: vec![Part { name, from, length, args: json!({}) }],
            })
            .unwrap();
        trace.finish().unwrap();
        let text = std::fs::read_to_string(out.staged().join("trace.perfetto.json")).unwrap();
        assert!(text.contains("\"ts\":1.000,\"dur\":7.252"), "ends where the next begins: {text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        let events = value["traceEvents"].as_array().unwrap();
        let phases: Vec<&str> = events.iter().map(|e| e["ph"].as_str().unwrap()).collect();
        assert_eq!(phases.concat(), "MMMMXiCMMbbee");
        assert_eq!(events[0]["args"]["name"], "tor 0");
        assert_eq!(events[2]["args"]["name"], "to a \"quoted\" host");
        assert_eq!(events[6]["name"], "queue to a \"quoted\" host");
        assert_eq!(events[6]["args"]["bytes"], 72_000);
        assert_eq!(events[9]["args"]["bytes"], 9);
    }

    #[test]
    fn an_empty_trace_is_valid() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        PerfettoWriter::new(out.file("trace.perfetto.json").unwrap(), [])
            .unwrap()
            .finish()
            .unwrap();
        let text = std::fs::read_to_string(out.staged().join("trace.perfetto.json")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["traceEvents"], Value::Array(Vec::new()));
    }
}
