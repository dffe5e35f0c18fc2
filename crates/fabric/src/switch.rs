//! Switches, and links to other partitions, by the numbers of a partition.

/// A switch by the numbers of its partition.
#[derive(Clone, Copy)]
pub(crate) struct Switch {
    /// Its index among all switches.
    pub(crate) number: u32,
    /// Which digit of a host's home says whether it is below; in a graph always the first.
    pub(crate) tier: usize,
    /// What `Home::below` holds of the hosts below it.
    pub(crate) below: u32,
    /// Its first down port, its first up port, and one past the last.
    pub(crate) down: u32,
    pub(crate) up: u32,
    pub(crate) end: u32,
}

/// The far end of a link to another partition.
#[derive(Clone, Copy)]
pub(crate) struct Elsewhere {
    pub(crate) part: u32,
    /// The link's number there.
    pub(crate) link: u32,
}
