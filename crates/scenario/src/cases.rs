//! Lists of cases of the public Ultra Ethernet simulator (`validate_*.txt`), for that and for EQDS,
//! run as they are: each case is a connection matrix with flags of a command line and limits for
//! completion times (docs/peers-files.md).

mod eqds;
mod flags;
mod list;
mod ready;
mod verdict;

pub use list::{Case, CaseList};
pub use ready::Ready;
pub use verdict::{Flow, Verdict};
