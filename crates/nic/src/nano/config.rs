//! The sizes and times of a NIC, and what is not allowed.

use thiserror::Error;
use units::{Bytes, Dur};

use super::buffers::{SizeClass, words};
use super::clock::cycles;

/// Sizes and times of a NIC. All NICs of a network have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Buffers for messages, of each direction.
    pub classes: Vec<SizeClass>,
    /// Messages that can be sent at once; a power of two, at most 4096.
    pub tx_ids: u16,
    /// Messages that can be received at once; a power of two, at most 4096.
    pub rx_ids: u16,
    /// Packets that a message may send unasked (`rtt_pkts`), at least 1.
    pub rtt_pkts: u16,
    /// From a message's start, or from its last timeout, to its next timeout.
    pub timeout: Dur,
    /// A message of which no packet has come for so long is forgotten by its receiver.
    pub ingress_timeout: Dur,
    /// Timeouts in a row without progress after which a message fails; `None`: it never does.
    pub timeouts_max: Option<u32>,
    /// Whether a timeout that has nothing to repeat sends a packet beyond the credit instead.
    pub probe: bool,
    /// Cycles between two PULLs.
    pub pull_cycles: u32,
    /// PULLs that may wait for the pacer.
    pub pulls_max: u32,
    /// Completed messages that a receiver remembers, so as to know their duplicates.
    pub remember: u32,
    /// The IP protocol of each transport that the program runs: the messages of the i-th transport of the
    /// scenario get the i-th.
    pub protocols: Vec<u8>,
    /// Whether each packet draws a path of its own; otherwise each message does.
    pub spray: bool,
}

/// Why a configuration is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A key is zero.
    #[error("`{0}` is zero")]
    Zero(&'static str),
    /// Not a power of two up to 4096.
    #[error("`{0}` is {1}: message ids come in powers of two, at most 4096")]
    Ids(&'static str, u16),
    /// No size class.
    #[error("no buffer can hold any message")]
    NoClass,
    /// Too large for the header.
    #[error("a message of {0} does not fit the 16 bits of its length")]
    TooLong(Bytes),
    /// The header's pointers have 16 bits.
    #[error("buffers of {0} per direction: pointers of 16 bits reach 4 MiB in words of 64 bytes")]
    Memory(Bytes),
}

const IDS_MAX: u16 = 4096;
/// What a buffer pointer of 16 bits can name.
const WORDS_MAX: u64 = 1 << 16;

impl Config {
    /// The prototype of the paper (section 12 of the specification): 16 messages of 38 packets each
    /// way. PULLs at the rate of full packets of 1088 bytes at 200 Gb/s.
    #[must_use]
    pub fn prototype(rtt_pkts: u16, timeout: Dur) -> Self {
        Self {
            classes: vec![SizeClass { bytes: 38_912, buffers: 16 }],
            tx_ids: 16,
            rx_ids: 16,
            rtt_pkts,
            timeout,
            ingress_timeout: Dur(2 * timeout.0),
            timeouts_max: Some(5),
            probe: true,
            pull_cycles: 140,
            pulls_max: 256,
            remember: 1024,
            protocols: Vec::new(),
            spray: false,
        }
    }

    /// Whether a NIC can be built so.
    ///
    /// # Errors
    /// The first contradiction that is found.
    pub fn check(&self) -> Result<(), ConfigError> {
        let times = [("timeout", self.timeout), ("ingress_timeout", self.ingress_timeout)];
        if let Some((key, _)) = times.into_iter().find(|(_, time)| time.0 == 0) {
            return Err(ConfigError::Zero(key));
        }
        let counts = [("rtt_pkts", u32::from(self.rtt_pkts)), ("pull_cycles", self.pull_cycles)];
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(ConfigError::Zero(key));
        }
        for (key, ids) in [("tx_ids", self.tx_ids), ("rx_ids", self.rx_ids)] {
            if !ids.is_power_of_two() || ids > IDS_MAX {
                return Err(ConfigError::Ids(key, ids));
            }
        }
        self.check_classes()
    }

    fn check_classes(&self) -> Result<(), ConfigError> {
        if !self.classes.iter().any(|c| c.bytes > 0 && c.buffers > 0) {
            return Err(ConfigError::NoClass);
        }
        if let Some(class) = self.classes.iter().find(|c| c.bytes > u32::from(u16::MAX)) {
            return Err(ConfigError::TooLong(Bytes(u64::from(class.bytes))));
        }
        match words(&self.classes) {
            words if words > WORDS_MAX => Err(ConfigError::Memory(Bytes(words * 64))),
            _ => Ok(()),
        }
    }

    /// The longest message that a NIC takes, bytes.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.classes.iter().map(|c| c.bytes).max().unwrap_or(0)
    }

    /// The time between two PULLs.
    #[must_use]
    pub const fn pull_time(&self) -> Dur {
        cycles(self.pull_cycles as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::prototype(9, Dur::from_us(7));
        assert_eq!(config.check(), Ok(()));
        change(&mut config);
        config.check().unwrap_err().to_string()
    }

    #[test]
    fn contradictions_are_refused() {
        assert_eq!(error(|c| c.timeout = Dur::ZERO), "`timeout` is zero");
        assert_eq!(error(|c| c.rtt_pkts = 0), "`rtt_pkts` is zero");
        assert!(error(|c| c.tx_ids = 12).starts_with("`tx_ids` is 12: message ids come in powers"));
        assert!(error(|c| c.rx_ids = 8192).contains("8192"));
        assert_eq!(error(|c| c.classes.clear()), "no buffer can hold any message");
        assert!(error(|c| c.classes[0].bytes = 65_536).contains("16 bits of its length"));
        assert!(error(|c| c.classes[0].buffers = 128).contains("4 MiB"), "128 of 38 KB do not fit");
    }

    /// Section 8: 1088 bytes at 200 Gb/s are 43.52 ns, 139.3 cycles.
    #[test]
    fn pulls_are_as_far_apart_as_full_packets() {
        let wire = units::Rate(200_000_000_000).serialise(1088);
        let apart = Config::prototype(9, Dur::from_us(7)).pull_time();
        assert!(apart >= wire && apart.0 < wire.0 + 313, "{apart:?} {wire:?}");
    }
}
