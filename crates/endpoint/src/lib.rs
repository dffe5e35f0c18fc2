//! The contract between a transport, an application, and whatever runs them.
//!
//! A transport implements [`Endpoint`]: everything it does on one host, all flows together, without
//! I/O and without a clock of its own. An application implements [`App`]. An environment (the
//! simulated fabric, the host runtime, a NIC pipeline) calls both and carries packets.
//!
//! Deliberately absent: sockets, event queues, statistics, any named transport.

mod app;
mod draw;
mod effects;
mod life;
mod observer;
mod packet;
pub mod payload;
mod pipeline;
pub mod prefetch;
mod ranges;
mod transport;

pub use app::{App, AppCx, AppEffect, AppEvent, Job, Rounds, Work};
pub use draw::{Draw, Purpose, Stream};
pub use effects::{Effect, Effects, FailReason, Stat};
pub use life::{Carried, Cause, Life, Place, Segment};
pub use observer::{Drop, FlowRecord, JobRecord, MessageRecord, Observer, PacketEvent, RttRecord};
pub use packet::{Flags, HDR_MAX, Packet, Span};
pub use pipeline::{Action, Pipeline, Verdict};
pub use ranges::RangeSet;
pub use transport::{
    Cx, Endpoint, FlowState, Framing, Msg, NetView, Routes, Submit, Tx, TxPort, UNBOUNDED,
};
pub use units::{MsgId, MsgKey, TimerId};
