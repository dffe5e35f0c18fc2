//! [`Ready`]: a case whose files have been read.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use workload::{ConnectionMatrix, StartUnit};

use super::flags::{Flags, Program};
use super::list::Case;
use crate::diagnostic::{Checked, Diagnostic, Source, did_you_mean};
use crate::{Scenario, files};

/// The programs whose flags are known, and what their messages are called in lists.
const PROGRAMS: [(Program, &str, &str); 2] =
    [(Program::Uec, "htsim_uec", "Uec"), (Program::Eqds, USUAL_BINARY, "Eqds")];
/// What is run if a list does not say.
const USUAL_BINARY: &str = "htsim_eqds";

/// The scenario that a case is, but for its flags: 100 Gb/s, 1 us a link, packets of 4150 B.
const BASE: &str = include_str!("../../../../scenarios/uet/permutation_16.toml");

/// A case that can be run.
pub struct Ready {
    /// What is run.
    pub scenario: Scenario,
    /// The messages of its matrix, those that wait for others included.
    pub messages: usize,
    /// What lists call its messages: this and both ends.
    pub(super) of: &'static str,
}

/// The keys that flags mean.
const FLAG_OF: &[(&str, &str)] = &[
    ("seed", "-seed"),
    ("measure.limit", "-end"),
    ("queue", "-q"),
    ("queue.capacity", "-q"),
    ("queue.header_capacity", "-q"),
    ("queue.ecn_low", "-ecn"),
    ("queue.ecn_high", "-ecn"),
    ("fault", "-failed"),
    ("queue.link", "-failed"),
    ("topology", "-topo"),
    ("transport.entropies", "-paths"),
    ("transport.initial_window", "-cwnd"),
    ("transport.max_window", "-cwnd"),
    ("transport.rto", "-q"),
    ("transport.sack_threshold", "-sack_threshold"),
    ("transport.spray", "-load_balancing_algo"),
];

impl Case {
    /// Read its matrix and its topology. `seed` is for cases that have none of their own.
    ///
    /// # Errors
    /// It is another program's, has a flag that is not supported, or a file of it is wrong.
    pub fn ready(&self, seed: u64) -> Checked<Ready> {
        let (program, _, of) = self.program()?;
        let flags = Flags::of(self, program)?;
        let matrix = self.connections()?;
        self.flows_are_in(&matrix, of)?;
        if !flags.reuse && matrix.flows.iter().any(|flow| flow.msg.is_some()) {
            let error = self.error("the matrix has messages (`msg`) of one flow", &self.matrix);
            return Err(error.hint("they share a connection with `!Param -conn_reuse`"));
        }
        let topology = self.topology(&flags, &matrix)?;
        // What is wrong with an edit stands in the list.
        let wrong = |error: Diagnostic| match error.edit() {
            Some(edit) => {
                let span = self.meant_by(edit);
                error.moved_to(&crate::At { source: Arc::clone(&self.list), span }, "here")
            }
            None => error,
        };
        let parse = |edits: &[String]| {
            Scenario::parse(&self.name, BASE, Path::new(""), edits).map_err(wrong)
        };
        let around = parse(std::slice::from_ref(&topology))?;
        let mut edits = flags.edits(&around, seed);
        edits.push(topology);
        edits.push(format!("name={}", text(&self.name)));
        let file = text(&absolute(&self.dir.join(&self.matrix.text)));
        edits.push(format!("traffic={{kind=\"file\",start_unit=\"us\",file={file}}}"));
        Ok(Ready { scenario: parse(&edits)?, messages: matrix.flows.len(), of })
    }

    /// The flag that an edit stands for, with its values; the matrix if the case has none.
    fn meant_by(&self, edit: &str) -> Range<usize> {
        let key = edit.split(['=', ' ']).next().unwrap_or_default();
        let flag = FLAG_OF.iter().find(|(of, _)| *of == key).map(|(_, flag)| *flag);
        let at = flag.and_then(|flag| self.flags.iter().rposition(|word| word.text == flag));
        let Some(words) = at.map(|at| &self.flags[at..]) else { return self.matrix.span.clone() };
        // Values do not begin as flags do.
        let values = words[1..].iter().take_while(|word| !word.text.starts_with('-')).count();
        words[0].span.start..words[values].span.end
    }

    fn program(&self) -> Checked<(Program, &'static str, &'static str)> {
        let (binary, at) = match &self.binary {
            Some(word) => (word.text.as_str(), word),
            None => (USUAL_BINARY, &self.matrix),
        };
        let name = Path::new(binary).file_name();
        if let Some(known) =
            PROGRAMS.into_iter().find(|(_, known, _)| name.is_some_and(|n| n == *known))
        {
            return Ok(known);
        }
        let error = self.error(format!("a case for `{binary}`"), at);
        Err(error.hint(format!(
            "cases for htsim_uec and {USUAL_BINARY} are run; one without `!Binary` is for the latter"
        )))
    }

    fn connections(&self) -> Checked<ConnectionMatrix> {
        let path = self.dir.join(&self.matrix.text);
        let matrix = files::read_text(&path).map_err(|why| {
            let error = self.error(format!("cannot read {}: {why}", path.display()), &self.matrix);
            error.hint("paths are relative to the list")
        })?;
        let source = Source { name: path.display().to_string(), text: matrix };
        let matrix = workload::read_cm_in(&source.text, &source.name, StartUnit::Microseconds);
        matrix.map_err(|error| files::located(&Arc::new(source), &error))
    }

    /// That each message with a limit of its own is one of the matrix.
    fn flows_are_in(&self, matrix: &ConnectionMatrix, of: &str) -> Checked<()> {
        let names: Vec<String> =
            matrix.flows.iter().map(|flow| of_flow(of, flow.src.0, flow.dst.0)).collect();
        match self.flows.iter().find(|(name, _)| !names.contains(&name.text)) {
            None => Ok(()),
            Some((name, _)) => {
                let error =
                    self.error(format!("no message of the matrix is `{}`", name.text), name);
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Err(error.hint(did_you_mean(&name.text, &names)))
            }
        }
    }

    /// The topology, as an edit of [`BASE`].
    fn topology(&self, flags: &Flags, matrix: &ConnectionMatrix) -> Checked<String> {
        if let Some(file) = &flags.topology {
            let file = text(&absolute(&self.dir.join(&file.text)));
            return Ok(format!("topology={{kind=\"file\",file={file}}}"));
        }
        let hosts = matrix.nodes;
        let k = (2..=64).step_by(2).find(|k: &u32| k.pow(3) / 4 == hosts).ok_or_else(|| {
            let error = format!("no fat-tree of three tiers has {hosts} hosts");
            let error = self.error(error, &self.matrix);
            error.hint("16, 128, 1024 or 8192; other fabrics have a file: -topo FILE")
        })?;
        Ok(format!("topology.k={k}"))
    }
}

/// What lists call the messages from one host to another.
pub(super) fn of_flow(of: &str, src: u32, dst: u32) -> String {
    format!("{of}_{src}_{dst}")
}

/// As TOML writes it.
pub(super) fn text(text: &str) -> toml::Value {
    toml::Value::String(text.to_owned())
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
