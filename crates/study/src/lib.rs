//! Studies: published evaluations as data (`docs/studies.md`), run and judged.
//!
//! The way of a study through this crate: [`Study::load`] reads its files (`figure` with `run`,
//! `row` and `formula`), [`Plan`] says which runs that takes, [`run()`] runs them and judges
//! every row (`metric`, `probe`, `judge`, `reads`, `rounds`, `phases`), and [`Record`] knows what
//! was found before. A [`Sweep`] is a scenario's own sweep, a [`Comparison`] sets scenarios beside
//! each other, a [`Tune`] searches for the best values of keys (`space`, `halving`). All are run by
//! the same code, as [`Jobs`] in directories (`docs/sweeps.md`).
//!
//! Deliberately absent: numbers of any publication, which stand in `studies/`; terminals; HTML.

mod by_size;
mod comparison;
mod condition;
mod edits;
mod figure;
mod formula;
mod halving;
mod job;
mod judge;
mod metric;
mod phases;
mod plan;
mod probe;
mod reads;
mod record;
mod reproduce;
mod rounds;
mod row;
mod run;
mod runs;
mod seeds;
mod space;
mod study;
mod sweep;
mod tune;
mod tuned;
mod variant;

pub use comparison::{Comparison, What};
pub use job::{About, Finished, JobEnd, Jobs};
pub use plan::{Plan, PlannedPoint};
pub use record::{Left, Record};
pub use reproduce::{Engine, Options, Outcome, RunJobs, Seeding, Step, run};
pub use rounds::is_wide;
pub use seeds::Seeds;
pub use study::{Study, list};
pub use sweep::{Sweep, share};
pub use tune::{Instead, Tune};
pub use variant::check_variants;

/// What has been read and is right, or what is wrong with it.
type Checked<T> = Result<T, scenario::Diagnostic>;
