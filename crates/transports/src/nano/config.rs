//! Parameters of the NIC and of its programs.

use endpoint::Framing;
use units::{Dur, Time};
use wire::nano::{self, PAYLOAD};

use super::clock::{cycles, in_cycles, look, look_in_cycles};
use super::clocked::LOOKUP;
use super::reassembly::REMEMBERED_MAX;
use crate::config::ConfigError;

/// Which program the two pipelines run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Every packet is acknowledged or refused on its own, with a PULL, paced, for one more.
    Ndp,
    /// Grants for the message with the fewest packets left; what is lost, timeouts repair.
    Homa,
    /// The same, and what a switch has trimmed is refused at once.
    HomaTr,
}

impl Program {
    /// The header of its packets.
    #[must_use]
    pub const fn protocol(self) -> nano::Protocol {
        match self {
            Self::Ndp => nano::Protocol::Ndp,
            Self::Homa | Self::HomaTr => nano::Protocol::Homa,
        }
    }
}

/// Buffers of one size, of which a message takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// Bytes of each; a multiple of 64, the width of the NIC's memory.
    pub bytes: u16,
    /// How many there are, for messages to send and again for messages to receive.
    pub count: u16,
}

/// Parameters of [`super::Nano`]. In parentheses the values of specs/nanotransport.md#1,8,12,15.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What runs on it.
    pub program: Program,
    /// Packets that a message sends before it hears anything (9).
    pub rtt_packets: u16,
    /// Messages in flight to others: a power of two, at most 1024 (16).
    pub tx_messages: u16,
    /// Messages being reassembled, at most 1024 (16).
    pub rx_messages: u16,
    /// The buffers, smallest first (16 of 38 912 B).
    pub buffers: Vec<SizeClass>,
    /// After so long without completion, packets sent so far and not acknowledged are sent again (7
    /// us). It takes up to two cycles longer for each of `tx_messages`.
    pub timeout: Dur,
    /// A message is given up at the so-manieth timeout in a row without progress (5). `None`:
    /// never, as in the prototype.
    pub max_timeouts: Option<u32>,
    /// A message of which nothing arrives for so many timeouts is forgotten by its receiver (2).
    pub ingress_timeouts: u32,
    /// Messages that are over and whose packets a receiver still knows: `None`, all of which a
    /// packet may come ([`Config::time_wait`]), so that each is delivered at most once. `Some(n)`:
    /// the last n delivered and the last n ended, as a table in hardware holds them (1024); one
    /// that is forgotten too soon is delivered twice, which [`endpoint::Stat::DeliveredTwice`]
    /// counts.
    pub remember: Option<u32>,
    /// The longest time that a packet can be in flight in the network; [`Dur::MAX`] where nobody
    /// knows.
    pub packet_life: Dur,
    /// Cycles from one PULL to the next (140: 1088 B at 200 Gb/s; the prototype's constant: 122).
    pub pull_cycles: u32,
    /// So many messages may be granted at a time, each with a priority of its own (3).
    pub overcommitment: u8,
    /// As published: a refused packet waits for the next GRANT even if none will come
    /// (specs/homa-tr.md#E2), and duplicates of a message in flight are not answered, so that a
    /// lost GRANT is not repeated. Not for NDP.
    pub strict_paper: bool,
    /// A timeout that finds nothing to repeat sends one packet beyond the credit: it asks for a
    /// GRANT or PULL that may have been lost. Not as published.
    pub probe: bool,
    /// A trimmed packet makes room for another, as one that has come whole does
    /// (specs/homa-tr.md#E3; no).
    pub count_chops: bool,
    /// Cycles from a packet's last bit to what it causes, at least 1 (23).
    pub ingress_cycles: u32,
    /// Cycles from the arbiter to the first bit on the wire (12).
    pub egress_cycles: u32,
    /// Everything happens in cycles of the host's own clock, and tables have the sizes that a
    /// circuit's have (docs/nic.md, "The clocked law"): for [`super::Clocked`].
    pub clocked: bool,
}

/// Bytes of Ethernet, IPv4 and transport header.
pub(super) const HEADERS: u16 = 64;
/// Length of control packets: one byte of payload that means nothing.
pub(super) const CONTROL: u16 = HEADERS + 1;
/// Packets of a message at most: 16 bits hold no more, and a bitmap has as many.
const PACKETS_MAX: u16 = 64;
/// Ids of each direction of a clocked NIC.
const CLOCKED_IDS_MAX: u16 = 128;
/// Bytes of a word of the NIC's memory.
pub(super) const WORD: u16 = 64;

impl Config {
    /// The NIC of the hardware experiment (specs/nanotransport.md#15.2) with `program`, and with
    /// what only the publication and its other model have: messages are given up, and receivers
    /// forget.
    #[must_use]
    pub fn firesim(program: Program) -> Self {
        Self {
            program,
            rtt_packets: 9,
            tx_messages: 16,
            rx_messages: 16,
            buffers: vec![SizeClass { bytes: 38_912, count: 16 }],
            timeout: Dur::from_us(7),
            max_timeouts: Some(5),
            ingress_timeouts: 2,
            remember: None,
            packet_life: Dur::MAX,
            pull_cycles: 140,
            overcommitment: 3,
            strict_paper: false,
            probe: true,
            count_chops: false,
            ingress_cycles: 23,
            egress_cycles: 12,
            clocked: false,
        }
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// The first field that does not.
    pub fn check(&self) -> Result<(), ConfigError> {
        let positive = [
            ("rtt_packets", u64::from(self.rtt_packets)),
            ("tx_messages", u64::from(self.tx_messages)),
            ("rx_messages", u64::from(self.rx_messages)),
            ("timeout", self.timeout.0),
            ("max_timeouts", u64::from(self.max_timeouts.unwrap_or(1))),
            ("ingress_timeouts", u64::from(self.ingress_timeouts)),
            ("pull_cycles", u64::from(self.pull_cycles)),
            ("overcommitment", u64::from(self.overcommitment)),
            ("ingress_cycles", u64::from(self.ingress_cycles)),
        ];
        if let Some((name, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(ConfigError::new([name], format!("{name} must be at least 1")));
        }
        // Classes are 7 down to 7 - overcommitment: control and first packets have the highest.
        let bounded = [
            ("rtt_packets", u64::from(self.rtt_packets), 1 << 15),
            ("tx_messages", u64::from(self.tx_messages), 1024),
            ("rx_messages", u64::from(self.rx_messages), 1024),
            ("timeout", self.timeout.0, Dur::from_us(1_000_000).0),
            ("ingress_timeouts", u64::from(self.ingress_timeouts), 1_000_000),
            ("pull_cycles", u64::from(self.pull_cycles), 1 << 20),
            ("overcommitment", u64::from(self.overcommitment), 7),
            ("ingress_cycles", u64::from(self.ingress_cycles), 1 << 20),
            ("egress_cycles", u64::from(self.egress_cycles), 1 << 20),
        ];
        if let Some((name, _, most)) = bounded.into_iter().find(|(_, value, most)| value > most) {
            return Err(ConfigError::new([name], format!("{name} is at most {most}")));
        }
        if !self.tx_messages.is_power_of_two() {
            return Err(ConfigError::new(["tx_messages"], "tx_messages must be a power of two"));
        }
        self.check_buffers()?;
        if self.clocked { self.check_clocked() } else { Ok(()) }
    }

    /// What a circuit cannot have.
    fn check_clocked(&self) -> Result<(), ConfigError> {
        for (name, ids) in [("tx_messages", self.tx_messages), ("rx_messages", self.rx_messages)] {
            if ids > CLOCKED_IDS_MAX || !ids.is_power_of_two() {
                let what = format!(
                    "`{name}` is {ids}: a clocked NIC has a power of two of them, \
                     {CLOCKED_IDS_MAX} at most, whose keys it compares in one cycle"
                );
                return Err(ConfigError::new([name], what));
            }
        }
        if u64::from(self.ingress_cycles) <= LOOKUP {
            let what = format!(
                "`ingress_cycles` is {}: a clocked NIC looks a packet up in its cycle {LOOKUP}, so \
                 it is {} at least",
                self.ingress_cycles,
                LOOKUP + 1
            );
            return Err(ConfigError::new(["ingress_cycles"], what));
        }
        let what = match self.remember {
            Some(n) if n.is_power_of_two() && n <= REMEMBERED_MAX => return Ok(()),
            Some(n) => format!("`remember` is {n}"),
            None => "`remember` is \"lifetime\"".to_owned(),
        };
        let must = format!(
            "{what}: a clocked NIC has tables of a power of two of places, at most \
             {REMEMBERED_MAX}; write 1024, or leave it out"
        );
        Err(ConfigError::new(["remember"], must))
    }

    fn check_buffers(&self) -> Result<(), ConfigError> {
        // 16 bits hold no more than 64 packets, which is what a bitmap has here (the prototype's:
        // 38).
        let holds = |class: &SizeClass| {
            class.bytes.is_multiple_of(WORD) && class.bytes >= PAYLOAD && class.count > 0
        };
        let grows = self.buffers.windows(2).all(|pair| pair[0].bytes < pair[1].bytes);
        let words: u64 =
            self.buffers.iter().map(|c| u64::from(c.bytes / WORD) * u64::from(c.count)).sum();
        let named = words <= u64::from(u16::MAX) + 1 && self.buffers.len() <= 256;
        let good = !self.buffers.is_empty() && grows && named && self.buffers.iter().all(holds);
        let what = "buffers are multiples of 64 B from 1024 B on, smallest first, 4 MiB in all";
        if good { Ok(()) } else { Err(ConfigError::new(["buffer"], what)) }
    }

    /// How messages are cut into packets.
    #[must_use]
    pub const fn framing(&self) -> Framing {
        Framing { payload: PAYLOAD, overhead: HEADERS }
    }

    /// The longest message that it carries, bytes.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.buffers.last().map_or(0, |class| u64::from(class.bytes))
    }

    /// The traffic classes of its packets (7 less the ToS).
    #[must_use]
    pub fn classes(&self) -> Vec<u8> {
        match self.program {
            Program::Ndp => vec![7],
            Program::Homa | Program::HomaTr => (7 - self.overcommitment..=7).rev().collect(),
        }
    }

    /// How long after the last packet of a message another one may come. Its sender gives it up
    /// after `max_timeouts` timeouts without progress, and progress is an answer, which is no older
    /// than a packet's life, or a packet sent for the first time, of which there are 64. A repeated
    /// packet waits at its host for less than a timeout. [`Dur::MAX`] where senders never give up.
    #[must_use]
    pub fn time_wait(&self) -> Dur {
        let Some(timeouts) = self.max_timeouts else { return Dur::MAX };
        // A timer is found due one turn through all of them late.
        let each = self.timeout.0 + cycles(2 * u64::from(self.tx_messages) + 2).0;
        let gives_up = (u64::from(timeouts) + u64::from(PACKETS_MAX) + 1).saturating_mul(each);
        let lives = self.packet_life.0.saturating_mul(2);
        Dur(lives.saturating_add(gives_up)) + self.ingress() + self.egress()
    }

    /// When the timer of `id` fires that is started at `now` for `wait`: instants, or cycles where
    /// it is clocked.
    pub(super) fn fires(&self, now: Time, wait: Dur, id: usize, entries: u16) -> Time {
        if self.clocked {
            look_in_cycles(now, in_cycles(wait), id, entries)
        } else {
            look(now + wait, id, entries)
        }
    }

    /// [`Config::time_wait`] in what times are counted in.
    pub(super) fn wait(&self) -> Dur {
        if self.clocked { in_cycles(self.time_wait()) } else { self.time_wait() }
    }

    /// From one PULL to the next, likewise.
    pub(super) fn pull_time(&self) -> Dur {
        let n = u64::from(self.pull_cycles);
        if self.clocked { Dur(n) } else { cycles(n) }
    }

    pub(super) fn ingress(&self) -> Dur {
        cycles(u64::from(self.ingress_cycles))
    }

    pub(super) fn egress(&self) -> Dur {
        cycles(u64::from(self.egress_cycles))
    }
}
