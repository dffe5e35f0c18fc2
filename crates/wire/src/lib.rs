//! Every header that crosses a link. Each has two types: a zero-copy view over bytes and a plain
//! `Repr` that holds only legal values, with `parse` and `emit`. No state, no sockets, no policy.

pub mod cbr;
pub mod frame;
pub mod homa;
pub mod int;
mod key;
pub mod mptcp;
pub mod nano;
pub mod ndp;
pub mod pfabric;
pub mod pfc;
pub mod phost;
mod plain;
pub mod rewrite;
pub mod roce;
pub mod shim;
pub mod tcp;
pub mod uet;
