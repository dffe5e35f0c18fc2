//! Where payload comes from and where whole messages go.

use endpoint::payload;
use units::MsgKey;

/// The application's bytes.
pub trait Content {
    /// Write the bytes of this host's message `key` from `offset` on into `buf`. Called again for
    /// the same bytes when they are retransmitted, until the message is acked or has failed.
    fn read(&mut self, key: MsgKey, offset: u64, buf: &mut [u8]);

    /// Take a whole message. Called once per message, just before the application is told.
    fn received(&mut self, key: MsgKey, bytes: Vec<u8>);

    /// Bytes that the application takes now. Endpoints are told when it grows.
    fn room(&self) -> u64 {
        u64::MAX
    }
}

/// Sends the fixed bytes of [`endpoint::payload`], and compares what arrives with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Messages that arrived as they were sent.
    pub intact: u64,
    /// Messages that did not.
    pub damaged: Vec<MsgKey>,
    /// Bytes of all messages that arrived.
    pub bytes: u64,
}

impl Content for Pattern {
    fn read(&mut self, key: MsgKey, offset: u64, buf: &mut [u8]) {
        payload::fill(key, offset, buf);
    }

    fn received(&mut self, key: MsgKey, bytes: Vec<u8>) {
        self.bytes += bytes.len() as u64;
        match payload::first_difference(key, 0, &bytes) {
            None => self.intact += 1,
            Some(_) => self.damaged.push(key),
        }
    }
}
