//! The sizes and times of a NIC, and what is not allowed.

use thiserror::Error;
use units::{Bytes, Dur};

use super::bits::PACKETS_MAX;
use super::blocks::clocked::LOOKUP;
use super::buffers::{SizeClass, words};
use super::clock::{Tick, cycles};
use super::past::REMEMBERED_MAX;

/// Who chooses the paths of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChoice {
    /// The NIC, one for each message.
    Messages,
    /// The NIC, one for each packet, or the program.
    Packets,
    /// Switches hash what the program calls the entropy value, or else one value for each message.
    Hashed,
}

/// Sizes and times of a NIC. All NICs of a network have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Buffers for messages, of each direction.
    pub classes: Vec<SizeClass>,
    /// Messages that can be sent at once; a power of two, at most 4096.
    pub tx_messages: u16,
    /// Messages that can be received at once; a power of two, at most 4096.
    pub rx_messages: u16,
    /// Packets that a message may send unasked (`rtt_pkts` of the programs), at least 1.
    pub rtt_packets: u16,
    /// From a message's start, or from its last timeout, to its next timeout.
    pub timeout: Dur,
    /// A message of which no packet has come for so many timeouts is forgotten by its receiver.
    pub ingress_timeouts: u32,
    /// Timeouts in a row without progress after which a message fails; `None`: it never does.
    pub max_timeouts: Option<u32>,
    /// Whether a timeout that has nothing to repeat sends a packet beyond the credit instead.
    pub probe: bool,
    /// Cycles between two PULLs.
    pub pull_cycles: u32,
    /// PULLs that may wait for the pacer.
    pub max_pulls: u32,
    /// Messages that are over and whose packets a receiver still knows: `None`, all of which a
    /// packet may come ([`Config::time_wait`]), so that each is delivered at most once. `Some(n)`:
    /// the last n delivered and the last n ended, as a table in hardware holds them (1024); one
    /// that is forgotten too soon is delivered twice, which [`endpoint::Stat::DeliveredTwice`]
    /// counts.
    pub remember: Option<u32>,
    /// The longest time that a packet can be in flight in the network; [`Dur::MAX`] where nobody
    /// knows.
    pub packet_life: Dur,
    /// Cycles from a packet's last bit to all that it does, at least 1.
    pub ingress_cycles: u32,
    /// Cycles from a packet's entry into the arbiter to its first bit.
    pub egress_cycles: u32,
    /// IP protocols of the messages, by the number of their transport; the first is that of all
    /// others.
    pub protocols: Vec<u8>,
    /// Priorities that switches have for the packets, 1 to 8; a type of service beyond counts as
    /// the last.
    pub priorities: u8,
    /// Who chooses the paths of packets.
    pub choice: PathChoice,
    /// Whether everything happens in cycles of the host's own clock, and in tables of the sizes
    /// that a circuit has: docs/nic.md, "The clocked law".
    pub clocked: bool,
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
    /// Traffic classes have three bits.
    #[error("{0} priorities: there are eight classes")]
    Priorities(u8),
    /// No size class.
    #[error("no buffer can hold any message")]
    NoClass,
    /// The header's size class has 8 bits.
    #[error("{0} size classes: the header can name 256")]
    Classes(usize),
    /// Too large for the header.
    #[error("a message of {0} does not fit the 16 bits of its length")]
    TooLong(Bytes),
    /// The header's pointers have 16 bits.
    #[error("buffers of {0} per direction: pointers of 16 bits reach 4 MiB in words of 64 bytes")]
    Memory(Bytes),
    /// No table holds that many.
    #[error(
        "`remember` is \"lifetime\": a clocked NIC has tables of a fixed size; write 1024, or \
         leave it out"
    )]
    Lifetime,
    /// Not a power of two.
    #[error(
        "`remember` is {0}: the tables of a clocked NIC have a power of two of places, at most \
         {REMEMBERED_MAX}; write 1024, or leave it out"
    )]
    Remember(u32),
    /// Keys of live messages are compared all at once.
    #[error(
        "`{0}` is {1}: a clocked NIC compares them all in one cycle, {CLOCKED_IDS_MAX} at most"
    )]
    ClockedIds(&'static str, u16),
    /// Nothing follows from a packet before it has been looked up.
    #[error(
        "`ingress_cycles` is {0}: a clocked NIC looks a packet up in its cycle {LOOKUP}, so it is \
         {least} at least", least = LOOKUP + 1
    )]
    BeforeLookup(u32),
}

const IDS_MAX: u16 = 4096;
/// Ids of each direction of a clocked NIC (C9).
const CLOCKED_IDS_MAX: u16 = 128;
const PRIORITIES_MAX: u8 = 8;
/// What a size class of 8 bits can name.
const CLASSES_MAX: usize = 256;
/// What a buffer pointer of 16 bits can name.
const WORDS_MAX: u64 = 1 << 16;

impl Config {
    /// The prototype of the paper (specs/nanotransport.md#12): 16 messages of 38 packets each
    /// way; the worst paths of specs/nanotransport.md#1 in and out. PULLs at the rate of full
    /// packets of 1088 bytes at 200 Gb/s.
    #[must_use]
    pub fn prototype(rtt_packets: u16, timeout: Dur) -> Self {
        Self {
            classes: vec![SizeClass { bytes: 38_912, buffers: 16 }],
            tx_messages: 16,
            rx_messages: 16,
            rtt_packets,
            timeout,
            ingress_timeouts: 2,
            max_timeouts: Some(5),
            probe: true,
            pull_cycles: 140,
            max_pulls: 256,
            remember: None,
            packet_life: Dur::MAX,
            ingress_cycles: 23,
            egress_cycles: 12,
            protocols: Vec::new(),
            priorities: 8,
            choice: PathChoice::Messages,
            clocked: false,
        }
    }

    /// Whether a NIC can be built so.
    ///
    /// # Errors
    /// The first contradiction that is found.
    pub fn check(&self) -> Result<(), ConfigError> {
        let timeout = u64::from(self.timeout.0 > 0);
        let counts = [
            ("timeout", timeout),
            ("rtt_packets", self.rtt_packets.into()),
            ("ingress_timeouts", self.ingress_timeouts.into()),
            ("pull_cycles", self.pull_cycles.into()),
            ("ingress_cycles", self.ingress_cycles.into()),
            ("priorities", self.priorities.into()),
        ];
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(ConfigError::Zero(key));
        }
        if self.priorities > PRIORITIES_MAX {
            return Err(ConfigError::Priorities(self.priorities));
        }
        for (key, ids) in [("tx_messages", self.tx_messages), ("rx_messages", self.rx_messages)] {
            if !ids.is_power_of_two() || ids > IDS_MAX {
                return Err(ConfigError::Ids(key, ids));
            }
        }
        self.check_classes()?;
        if self.clocked { self.check_clocked() } else { Ok(()) }
    }

    fn check_clocked(&self) -> Result<(), ConfigError> {
        for (key, ids) in [("tx_messages", self.tx_messages), ("rx_messages", self.rx_messages)] {
            if ids > CLOCKED_IDS_MAX {
                return Err(ConfigError::ClockedIds(key, ids));
            }
        }
        if u64::from(self.ingress_cycles) <= LOOKUP {
            return Err(ConfigError::BeforeLookup(self.ingress_cycles));
        }
        match self.remember {
            None => Err(ConfigError::Lifetime),
            Some(n) if n.is_power_of_two() && n <= REMEMBERED_MAX => Ok(()),
            Some(n) => Err(ConfigError::Remember(n)),
        }
    }

    fn check_classes(&self) -> Result<(), ConfigError> {
        if !self.classes.iter().any(|c| c.bytes > 0 && c.buffers > 0) {
            return Err(ConfigError::NoClass);
        }
        if self.classes.len() > CLASSES_MAX {
            return Err(ConfigError::Classes(self.classes.len()));
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

    /// How long a message may be silent before its receiver forgets it.
    #[must_use]
    pub const fn silence(&self) -> Dur {
        Dur(self.timeout.0.saturating_mul(self.ingress_timeouts as u64))
    }

    /// How long after the last packet of a message another one may come. Its sender gives it up
    /// after `max_timeouts` timeouts without progress, and progress is an answer, which is no older
    /// than a packet's life, or a packet sent for the first time, of which there are 64. A repeated
    /// packet waits at its host for less than a timeout. [`Dur::MAX`] where senders never give up.
    #[must_use]
    pub fn time_wait(&self) -> Dur {
        let Some(timeouts) = self.max_timeouts else { return Dur::MAX };
        // A timer is found due one turn through all of them late.
        let each = self.timeout + cycles(2 * u64::from(self.tx_messages) + 2);
        let timeouts = u64::from(timeouts) + u64::from(PACKETS_MAX) + 1;
        let gives_up = Dur(each.0.saturating_mul(timeouts));
        Dur(self.packet_life.0.saturating_mul(2)) + gives_up + self.ingress() + self.egress()
    }

    /// What the blocks count in.
    #[must_use]
    pub const fn tick(&self) -> Tick {
        if self.clocked { Tick::Cycle } else { Tick::Picosecond }
    }

    /// The way in.
    #[must_use]
    pub const fn ingress(&self) -> Dur {
        cycles(self.ingress_cycles as u64)
    }

    /// The way out.
    #[must_use]
    pub const fn egress(&self) -> Dur {
        cycles(self.egress_cycles as u64)
    }

    /// The time between two PULLs, in ticks.
    #[must_use]
    pub const fn pull_time(&self) -> Dur {
        self.tick().cycles(self.pull_cycles as u64)
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
        assert_eq!(error(|c| c.rtt_packets = 0), "`rtt_packets` is zero");
        assert!(error(|c| c.tx_messages = 12).starts_with("`tx_messages` is 12: message"));
        assert!(error(|c| c.rx_messages = 8192).contains("8192"));
        assert_eq!(error(|c| c.classes.clear()), "no buffer can hold any message");
        assert!(error(|c| c.classes = vec![c.classes[0]; 257]).starts_with("257 size classes"));
        assert!(error(|c| c.classes[0].bytes = 65_536).contains("16 bits of its length"));
        assert!(error(|c| c.classes[0].buffers = 128).contains("4 MiB"), "128 of 38 KB do not fit");
    }

    #[test]
    fn the_paths_of_the_paper() {
        let config = Config::prototype(9, Dur::from_us(7));
        assert_eq!((config.ingress(), config.egress()), (Dur(7_188), Dur(3_750)));
    }

    /// specs/nanotransport.md#8: 1088 bytes at 200 Gb/s are 43.52 ns, 139.3 cycles.
    #[test]
    fn pulls_are_as_far_apart_as_full_packets() {
        let wire = units::Rate(200_000_000_000).serialise(1088);
        let apart = Config::prototype(9, Dur::from_us(7)).pull_time();
        assert!(apart >= wire && apart.0 < wire.0 + 313, "{apart:?} {wire:?}");
    }
}
