//! [`Error`]: why a run has no results, and with which exit code the process says so.

use crate::diagnostic::Diagnostic;

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is wrong: scenario, option, a file it names, the output directory.
    #[error(transparent)]
    Input(#[from] Diagnostic),
    /// The run failed: an invariant was violated, the disk is full.
    #[error("{what}")]
    Run {
        /// What happened, a sentence.
        what: String,
        /// What to do about it, or how to see it again.
        hint: String,
    },
    /// It was stopped ([`crate::Options::stop`]).
    #[error("the run was stopped")]
    Stopped,
}

impl Error {
    /// The message for a terminal (`colour`) or anything else, several lines.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        match self {
            Self::Input(diagnostic) => diagnostic.render(colour),
            Self::Stopped => Diagnostic::new(self.to_string()).render(colour),
            Self::Run { what, hint } => Diagnostic::new(what).hint(hint).render(colour),
        }
    }

    /// 2 for a wrong input, 1 for a failed run, 130 for one that was stopped, as shells have it.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Run { .. } => 1,
            Self::Stopped => 130,
        }
    }
}
