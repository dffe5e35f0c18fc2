//! [`PerfettoWriter`]: a time line for Perfetto or `chrome://tracing` (`trace.perfetto.json`).
//!
//! Source of the format: "Trace Event Format" of the Chromium project, JSON object form. A track
//! (`tid`) per directed link with a slice per packet and instants for what befell it, and a counter
//! per queue. Times are microseconds with six decimals, that is, whole picoseconds.

use std::io::{self, Write};

use serde_json::json;
use units::{Dur, Time};

use crate::{FileError, StagedFile};

/// Writes events as they come. [`finish`](Self::finish) completes the file.
pub struct PerfettoWriter {
    file: StagedFile,
    names: Vec<String>,
    first: bool,
}

impl PerfettoWriter {
    /// A time line with one track per link, named; an event names its link by its index here.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(
        file: StagedFile,
        links: impl IntoIterator<Item = String>,
    ) -> Result<Self, FileError> {
        let names: Vec<String> = links.into_iter().collect();
        let mut trace = Self { file, names: names.clone(), first: true };
        let head = trace.file.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        trace.check(head)?;
        for (tid, name) in names.iter().enumerate() {
            let args = json!({ "name": name });
            let named =
                format!(r#"{{"ph":"M","name":"thread_name","pid":1,"tid":{tid},"args":{args}}}"#);
            trace.event(&named)?;
            let args = json!({ "sort_index": tid });
            let sorted = format!(
                r#"{{"ph":"M","name":"thread_sort_index","pid":1,"tid":{tid},"args":{args}}}"#
            );
            trace.event(&sorted)?;
        }
        Ok(trace)
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
        let (name, ts, dur) = (json!(name), micros(at.0), micros(length.0));
        self.event(&format!(
            r#"{{"ph":"X","name":{name},"pid":1,"tid":{link},"ts":{ts},"dur":{dur},"args":{{"bytes":{bytes}}}}}"#
        ))
    }

    /// Something that befell a packet at the queue of a link: `trimmed`, `dropped`, ...
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn instant(&mut self, at: Time, link: u32, name: &str) -> Result<(), FileError> {
        let (name, ts) = (json!(name), micros(at.0));
        self.event(&format!(r#"{{"ph":"i","s":"t","name":{name},"pid":1,"tid":{link},"ts":{ts}}}"#))
    }

    /// The length of a link's queue from `at` on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn queue(&mut self, at: Time, link: u32, bytes: u64) -> Result<(), FileError> {
        let link_name = usize::try_from(link).ok().and_then(|i| self.names.get(i));
        let name = json!(format!("queue {}", link_name.map_or("?", String::as_str)));
        let ts = micros(at.0);
        self.event(&format!(
            r#"{{"ph":"C","name":{name},"pid":1,"ts":{ts},"args":{{"bytes":{bytes}}}}}"#
        ))
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

    fn event(&mut self, json: &str) -> Result<(), FileError> {
        let separator = if self.first { "\n" } else { ",\n" };
        self.first = false;
        let written = write!(self.file, "{separator}{json}");
        self.check(written)
    }

    fn check(&self, written: io::Result<()>) -> Result<(), FileError> {
        written.map_err(|e| FileError::io("write", self.file.path(), &e))
    }
}

/// Picoseconds as microseconds, exactly.
fn micros(ps: u64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
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
        let links = ["a \"quoted\" link".to_owned()];
        let mut trace = PerfettoWriter::new(file, links).unwrap();
        trace.slice(Time(1_000_001), Dur(7_251_200), 0, "data 3:7", 9064).unwrap();
        trace.instant(Time(2_000_000), 0, "trimmed").unwrap();
        trace.queue(Time(3_000_000), 0, 72_000).unwrap();
        trace.finish().unwrap();
        let text = std::fs::read_to_string(out.staged().join("trace.perfetto.json")).unwrap();
        assert!(text.contains("\"ts\":1.000001,\"dur\":7.251200"), "exact picoseconds: {text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        let events = value["traceEvents"].as_array().unwrap();
        let phases: Vec<&str> = events.iter().map(|e| e["ph"].as_str().unwrap()).collect();
        assert_eq!(phases, ["M", "M", "X", "i", "C"]);
        assert_eq!(events[0]["args"]["name"], "a \"quoted\" link");
        assert_eq!(events[4]["name"], "queue a \"quoted\" link");
        assert_eq!(events[4]["args"]["bytes"], 72_000);
    }

    #[test]
    fn an_empty_trace_is_valid() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        PerfettoWriter::new(out.file("t").unwrap(), []).unwrap().finish().unwrap();
        let text = std::fs::read_to_string(out.staged().join("t")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["traceEvents"], Value::Array(Vec::new()));
    }
}
