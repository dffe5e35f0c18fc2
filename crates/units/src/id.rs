//! Ids. Each is dense from zero within its owner, so that it can index a table.

use std::fmt;

/// A host of the fabric, numbered from zero in the topology's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// A message of one source host: a counter that never repeats during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MsgId(pub u64);

/// A message anywhere: its source host and that host's counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MsgKey {
    /// The host that submitted the message.
    pub src: HostId,
    /// The submitting host's counter.
    pub id: MsgId,
}

/// A timer of one endpoint or application. Dense and reused: an endpoint with one timer uses id 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub u32);

impl HostId {
    /// The id as a table index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.0)
    }
}

impl fmt::Display for MsgKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} of {}", self.id.0, self.src)
    }
}
