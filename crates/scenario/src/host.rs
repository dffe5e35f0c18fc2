//! The `[host]` table: what is between a host's transports and its link.

use endpoint::Endpoint;
use queues::Capacity;
use transports::device_queue::DeviceQueue;

use crate::diagnostic::Diagnostic;
use crate::reader::Reader;

/// What hosts have beside their transports. Without the table, nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Host {
    /// Packets that may wait before the link; `None`: the transport is asked when the link is free.
    pub(crate) queue: Option<u32>,
}

/// Read `[host]`.
pub(crate) fn read(table: &mut Reader<'_>) -> Result<Host, Diagnostic> {
    match table.need("queue")? {
        Capacity::Packets(packets) => Ok(Host { queue: Some(packets) }),
        Capacity::Bytes(_) => {
            let error = table.error("queue", "a device queue holds so many packets", "here");
            Err(error.hint("write it like `queue = \"100 packets\"`"))
        }
    }
}

impl Host {
    /// `endpoint` as it is on a host.
    pub(crate) fn endpoint(self, endpoint: Box<dyn Endpoint>) -> Box<dyn Endpoint> {
        match self.queue {
            Some(packets) => Box::new(DeviceQueue::new(endpoint, packets)),
            None => endpoint,
        }
    }
}
