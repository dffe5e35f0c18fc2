//! The same endpoints on a real clock and real packets.
