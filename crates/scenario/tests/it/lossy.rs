//! A star in which all hosts send to host 0, for as long as it is measured, and the link to host 1
//! loses packets.

/// What differs: numbers and quantities as in a scenario.
pub(crate) struct Lossy {
    pub(crate) hosts: u32,
    pub(crate) capacity: &'static str,
    pub(crate) connections: u32,
    pub(crate) size: &'static str,
    pub(crate) to: &'static str,
    /// That a packet to host 1 is lost.
    pub(crate) probability: f64,
}

impl Lossy {
    /// The scenario, but its transport.
    pub(crate) fn text(&self) -> String {
        let Self { hosts, capacity, connections, size, to, probability } = self;
        format!(
            "
name = \"many to one, one link that loses\"
seed = 1
[topology]
kind = \"star\"
hosts = {hosts}
link_rate = \"200Gbps\"
link_delay = \"131ns\"
[queue]
kind = \"drop-tail\"
capacity = \"{capacity}\"
[routing]
mode = \"single\"
reroute_after = \"1us\"
[traffic]
kind = \"closed-loop\"
sources = \"1-{}\"
destinations = \"0\"
connections = {connections}
size = \"{size}\"
gap = \"0\"
gap_kind = \"fixed\"
keep_destination = true
[measure]
to = \"{to}\"
[[fault]]
at = \"0\"
link = \"tor 0 -> host 1\"
one_way = true
action = \"loss\"
probability = {probability}
",
            hosts - 1
        )
    }
}
