//! Captures of a testbed: what its switches see, with the names that the simulator gives the files.

use std::io;
use std::sync::{Mutex, PoisonError};

use fabric::{Link, Node};
use metrics::{FileError, OutputDir};
use switch::Seen;

use crate::Scenario;
use crate::captures::{Captures, End};

/// Shared by the threads of all switches. Frames of one switch are in the order of time.
pub(super) struct Capture {
    files: Mutex<Captures>,
    links: Vec<Link>,
}

impl Capture {
    pub(super) fn new(out: &OutputDir, scenario: &Scenario) -> Result<Self, FileError> {
        let links = scenario.topology.links().to_vec();
        Ok(Self { files: Mutex::new(Captures::new(out, &links, None)?), links })
    }

    /// A switch whose ports have these links, in and out, sees a frame. Links between switches are
    /// captured where they begin, so that a frame is there once for each link.
    pub(super) fn see(&self, ports: &[(u32, u32)], seen: Seen<'_>) -> io::Result<()> {
        let (back, out) = ports[seen.port];
        let link = if seen.came { back } else { out };
        if seen.came && !matches!(self.links[link as usize].from, Node::Host(_)) {
            return Ok(());
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let written =
            files.frame(seen.at, (link, End::Receiving), seen.frame, seen.frame.len() as u32);
        written.map_err(|e| io::Error::other(e.to_string()))
    }

    pub(super) fn finish(self) -> Result<(), FileError> {
        self.files.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
    }
}
