//! AF_XDP: whole frames between one queue of an interface and a program, past the kernel's stack.
//!
//! A [`Socket`] attaches an XDP program that hands it the frames of its [`Filter`]; the others go
//! the usual way. Frames lie in memory that program and kernel share (the UMEM). Four rings say
//! who may touch which part of it. Terms and rules are those of the kernel's documentation
//! (networking/af_xdp). Frames are copied once by the kernel in each direction (copy mode), which
//! any interface can do.
//!
//! | file | what |
//! |---|---|
//! | `socket` | [`Socket`]: frames in and out |
//! | `program` | the XDP program, and attaching it |
//! | `ring` | the rings |
//! | `memory` | memory shared with the kernel |
//! | `interface` | what the kernel says of an interface |
//! | `kernel` | two system calls for which there is no library |
//!
//! `unsafe` stands in `memory` and `kernel` alone. Deliberately absent: what frames
//! mean.

mod error;
mod interface;
mod kernel;
mod memory;
mod program;
mod ring;
mod socket;

pub use error::OpenError;
pub use program::Filter;
pub use socket::{BATCH, Mode, Socket};
