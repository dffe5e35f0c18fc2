//! A NIC with its bytes ([`crate::nic::data`]) beside the model of the clocked law: the same
//! comparisons of control, and every byte of what it sends and delivers.
//!
//! The NIC takes frames and messages when it can, and the model is told when it has. So control is
//! compared cycle by cycle whatever stalls: the application that reads, the one that writes, the
//! MAC. Payload is a fixed function of message and offset ([`endpoint::payload`]).

use std::collections::{BTreeMap, VecDeque};

use endpoint::payload::fill;
use endpoint::{Draw, Msg, MsgId, MsgKey, Packet, Purpose};
use nic::nano::config::Config;
use nic::nano::meta::ip_of;

use super::traffic::{Done, Traffic, UNDER_TEST, headers};
use super::{Compared, CosimError, Mismatch};
use crate::nic::data::BEATS;
use crate::ports;
use crate::record::Record;
use crate::sim::Simulation;

/// Bytes of a beat.
const BEAT: usize = 64;

/// Half picoseconds of a byte on a link of 200 Gb/s, and of a cycle.
const BYTE: u64 = 80;
const CYCLE: u64 = 625;

/// Cycles that the last beats of a frame may wait for theirs.
const SKEW: u64 = 3;

/// What is in a frame where there is no payload.
const PADDING: u8 = 0xee;

/// Cycles in which all that is under way has to be out.
const DRAIN: u64 = 4_000;

/// Cycles after which a frame is never taken.
const PATIENCE: u64 = 20_000;

const DRAWS: Purpose = Purpose::new("rtl stalls");

/// How frames, words and messages come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A beat each cycle, and nobody waits.
    Beats,
    /// Frames at the pace of a link of 200 Gb/s, both ways; the application takes all at once.
    Link,
    /// Applications and MAC stop now and then.
    Stalls,
}

/// What has been compared, and what has waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Control.
    pub compared: Compared,
    /// Bytes of frames that were sent, headers and all.
    pub frame_bytes: u64,
    /// Bytes of frames that came.
    pub arrived_bytes: u64,
    /// Messages that the application has read, and their bytes.
    pub messages: u64,
    /// See above.
    pub message_bytes: u64,
    /// Messages of which the application has given more bytes or fewer than it had said, and frames
    /// that were longer.
    pub wrong_lengths: [u64; 2],
    /// Cycles in which a frame's beat was offered and not taken.
    pub refused: u64,
    /// Cycles in which a frame that was due, with nothing before it, did not begin.
    pub late: u64,
    /// Cycles within frames in which the MAC wanted a beat and there was none.
    pub gaps: u64,
    /// Cycles in which the arbiter might have chosen, and there was no room for a packet.
    pub shut: u64,
}

/// A frame that comes.
struct Arriving {
    /// Its packet, if it has not come.
    pkt: Option<Packet>,
    beats: VecDeque<[u32; 17]>,
    /// Beats that are gone.
    taken: u32,
}

/// A frame that the model has sent.
struct Frame {
    due: u64,
    bytes: Vec<u8>,
}

/// A circuit with its bytes beside traffic.
pub struct Bytes {
    circuit: Simulation,
    traffic: Traffic,
    config: Config,
    pace: Pace,
    /// Message of each slot.
    messages: Vec<MsgId>,
    /// What the application offers, and the beats of what it has submitted.
    offered: Option<Msg>,
    words: VecDeque<[u32; 17]>,
    /// How many bytes it has given of messages of which it has given fewer than it had said.
    short: BTreeMap<MsgId, u64>,
    /// Messages of another length that it has given, frames with something behind their payload.
    wrong: [u64; 2],
    /// The frame that comes, its beats, and when the link has brought all before the next.
    arriving: Option<Arriving>,
    link_in: u64,
    /// Frames that are to leave, what of the first has left, and since when it is the first.
    frames: VecDeque<Frame>,
    leaving: Vec<u8>,
    first_since: u64,
    link_out: u64,
    /// Messages that were read and that the model has delivered, each without the other.
    reading: Vec<u8>,
    read: VecDeque<(u32, u16, Vec<u8>)>,
    delivered: VecDeque<MsgKey>,
    /// Until when who stalls.
    stalls: [u64; 3],
    drawn: u64,
    carried: Carried,
}

/// Who may stall.
const READER: usize = 0;
const WRITER: usize = 1;
const MAC: usize = 2;

impl Bytes {
    /// A [NIC](crate::nic::data) of `config` that has been started, and its traffic.
    #[must_use]
    pub fn new(circuit: Simulation, traffic: Traffic, config: Config, pace: Pace) -> Self {
        let messages = vec![MsgId(0); usize::from(config.tx_messages)];
        Self {
            circuit,
            traffic,
            config,
            pace,
            messages,
            offered: None,
            words: VecDeque::new(),
            short: BTreeMap::new(),
            wrong: [0; 2],
            arriving: None,
            link_in: 0,
            frames: VecDeque::new(),
            leaving: Vec::new(),
            first_since: 0,
            link_out: 0,
            reading: Vec::new(),
            read: VecDeque::new(),
            delivered: VecDeque::new(),
            stalls: [0; 3],
            drawn: 0,
            carried: Carried::default(),
        }
    }

    /// Until the NIC has been given so many packets in all.
    ///
    /// # Errors
    /// See [`CosimError`].
    pub fn run(&mut self, packets: u64) -> Result<Carried, CosimError> {
        let mut moved = (self.carried.refused, self.now());
        while self.traffic.arrived() < packets {
            self.cycle(true)?;
            // A frame that is offered is taken at some time.
            if self.carried.refused == moved.0 {
                moved.1 = self.now();
            }
            moved.0 = self.carried.refused;
            self.same("a frame waits for ever", &(self.now() - moved.1 > PATIENCE), &false)?;
        }
        self.carried.compared.closest = self.traffic.closest();
        Ok(self.carried)
    }

    /// Until what is under way is out: nothing new comes.
    ///
    /// # Errors
    /// See [`CosimError`].
    pub fn drain(&mut self) -> Result<Carried, CosimError> {
        for _ in 0..DRAIN {
            self.cycle(false)?;
        }
        let left = (self.delivered.len(), self.read.len(), self.reading.len());
        self.same("messages not read, not delivered, half read", &left, &(0, 0, 0))?;
        let [app, frames] = self.carried.wrong_lengths;
        self.same("messages of a wrong length", &app, &self.wrong[0])?;
        // Duplicates are of no length.
        self.same("frames of a wrong length", &(frames <= self.wrong[1]), &true)?;
        let late = self.frames.iter().filter(|frame| frame.due + DRAIN / 2 < self.now()).count();
        self.same("frames that are not out", &late, &0)?;
        Ok(self.carried)
    }

    const fn now(&self) -> u64 {
        self.circuit.cycle()
    }

    /// One cycle; new frames and messages come if `more`.
    fn cycle(&mut self, more: bool) -> Result<(), CosimError> {
        if more {
            self.offer();
        }
        let cycle = self.now();
        let stalled = [READER, WRITER, MAC].map(|who| more && self.stalls(who));
        let inputs = self.inputs(stalled);
        let outputs = self.circuit.step(&inputs)?;
        let set = |port: &str| self.circuit.inputs().get_named(&inputs, port) == 1;
        let get = |port: &str| self.circuit.outputs().get_named(&outputs, port) == 1;
        let submits = set("submit_valid_i") && get("submit_ready_o");
        let (frame, frame_ready) = (set("rx_frame_valid_i"), get("rx_frame_ready_o"));
        let writes = set("words_valid_i") && get("words_ready_o");
        let (open, room) = (set("tx_open_i"), get("tx_room_o"));
        self.carried.refused += u64::from(frame && !frame_ready);
        self.carried.shut += u64::from(open && !room && get("waits_o"));
        self.carried.wrong_lengths[0] += u64::from(get("tx_wrong_length_o"));
        self.carried.wrong_lengths[1] += u64::from(get("rx_wrong_length_o"));
        if writes {
            self.words.pop_front();
        }
        let message = if submits { self.submitted(&outputs) } else { None };
        let packet = if frame && frame_ready { self.took_beat() } else { None };
        let done = self.traffic.follow(message.as_ref(), packet.as_ref(), open && room);
        self.same("submit_ready_o", &submits, &done.takes)?;
        self.chosen(cycle, &done);
        self.control(&outputs, &done)?;
        self.frame_leaves(cycle, &inputs, &outputs)?;
        self.message_is_read(&inputs, &outputs)?;
        self.carried.compared.cycles += 1;
        Ok(())
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        Draw::new(0, DRAWS, 0).below(DRAWS, self.drawn, bound)
    }

    /// Whether somebody does not move in this cycle.
    fn stalls(&mut self, who: usize) -> bool {
        if self.pace != Pace::Stalls {
            return false;
        }
        if self.below(400) == 0 {
            // Messages that are not read have to fill the NIC.
            let longest = if who == READER { 6000 } else { 2000 };
            let long = [20, 200, longest][self.below(3) as usize];
            self.stalls[who] = self.now() + self.below(long);
        }
        self.now() < self.stalls[who] || self.below(8) == 0
    }

    /// What comes next, where nothing does.
    fn offer(&mut self) {
        if self.offered.is_none() {
            self.offered = self.traffic.offers();
        }
        if self.arriving.is_none()
            && let Some(pkt) = self.traffic.arrives(self.pace == Pace::Link)
        {
            let mut frame = headers(&pkt);
            carry(&pkt, &mut frame, PADDING);
            self.lengthen(&pkt, &mut frame);
            // Its first bits came while the beats before it waited for their cycles.
            self.link_in = self.link_in.max(self.now().saturating_sub(SKEW) * CYCLE);
            self.carried.arrived_bytes += frame.len() as u64;
            self.arriving = Some(Arriving { pkt: Some(pkt), beats: beats(&frame), taken: 0 });
        }
    }

    fn inputs(&self, stalled: [bool; 3]) -> Record {
        let layout = self.circuit.inputs();
        let mut record = ports::idle(layout, UNDER_TEST);
        let mut set = |port: &str, words: &[u32]| {
            layout.set_words(&mut record, layout.port(port), words);
        };
        set("tx_open_i", &[self.traffic.is_open().into()]);
        set("rx_app_ready_i", &[(!stalled[READER]).into()]);
        // While a beat is on the wire the MAC has room for the next.
        let room = self.now() * CYCLE + BEAT as u64 * BYTE;
        let mac = self.pace != Pace::Link || self.link_out <= room;
        set("tx_frame_ready_i", &[(mac && !stalled[MAC]).into()]);
        if let Some(beat) = self.words.front().filter(|_| !stalled[WRITER]) {
            set("words_valid_i", &[1]);
            set("words_beat_i", beat);
        }
        if let Some(beat) = self.beat_that_is_there() {
            set("rx_frame_valid_i", &[1]);
            set("rx_frame_beat_i", &beat);
        }
        if let Some(message) = &self.offered {
            ports::submit(layout, &mut record, &self.config, message);
            layout.set_named(&mut record, "submit_msg_len_i", message.len.into());
        }
        record
    }

    /// The next beat of the frame that comes, if the link has brought it.
    fn beat_that_is_there(&self) -> Option<[u32; 17]> {
        let beat = *self.arriving.as_ref()?.beats.front()?;
        let there = self.link_in + u64::from(beat[16] & 0x7f) * BYTE;
        (self.pace != Pace::Link || there <= self.now() * CYCLE).then_some(beat)
    }

    /// A beat has been taken; the packet, with the last one that is let in.
    fn took_beat(&mut self) -> Option<Packet> {
        let Arriving { pkt, beats, taken } = self.arriving.as_mut()?;
        let beat = beats.pop_front()?;
        self.link_in += u64::from(beat[16] & 0x7f) * BYTE;
        *taken += 1;
        let ends = beats.is_empty();
        let packet = if ends || *taken == BEATS { pkt.take() } else { None };
        self.carried.compared.packets += u64::from(packet.is_some());
        if ends {
            self.arriving = None;
        }
        packet
    }

    /// The message that has been taken: its words come now.
    fn submitted(&mut self, outputs: &Record) -> Option<Msg> {
        let message = self.offered.take()?;
        let slot = self.circuit.outputs().get_named(outputs, "submit_id_o") as usize;
        self.messages[slot] = message.id;
        let given = self.given(message.len);
        if given < message.len {
            self.short.insert(message.id, given);
        }
        self.wrong[0] += u64::from(given != message.len);
        let mut bytes = vec![0; given as usize];
        fill(MsgKey { src: UNDER_TEST, id: message.id }, 0, &mut bytes);
        self.words.extend(beats(&bytes));
        Some(message)
    }

    /// How many bytes the application gives of a message of `len`: sometimes not as many.
    fn given(&mut self, len: u64) -> u64 {
        if self.pace != Pace::Stalls || len == 0 || self.below(8) != 0 {
            return len;
        }
        if self.below(2) == 0 { self.below(len) } else { len + 1 + self.below(200) }
    }

    /// Something behind the payload of a frame, sometimes more than a NIC lets in.
    fn lengthen(&mut self, pkt: &Packet, frame: &mut Vec<u8>) {
        if self.pace != Pace::Stalls || self.below(16) != 0 {
            return;
        }
        let longest = [100, 4000][self.below(2) as usize];
        let more = 1 + self.below(longest) as usize;
        frame.resize(frame.len() + more, PADDING);
        self.wrong[1] += u64::from(pkt.carries_payload());
    }

    /// The frame of what the model has chosen.
    fn chosen(&mut self, cycle: u64, done: &Done) {
        if let (Some(headers), Some(pkt)) = (&done.sends, self.traffic.sent()) {
            let mut bytes = headers.clone();
            carry(pkt, &mut bytes, 0);
            // What the application has not given is zero.
            if let Some(given) = self.short.get(&pkt.span.msg)
                && pkt.carries_payload()
            {
                let left = given.saturating_sub(pkt.span.offset) as usize;
                bytes.iter_mut().skip(headers.len() + left).for_each(|byte| *byte = 0);
            }
            self.frames
                .push_back(Frame { due: cycle + u64::from(self.config.egress_cycles), bytes });
        }
    }

    fn control(&mut self, outputs: &Record, done: &Done) -> Result<(), CosimError> {
        let layout = self.circuit.outputs();
        let slot = |name: &str| ports::slot(layout, outputs, name).map(|slot| self.messages[slot]);
        let delivered = ports::delivered(layout, outputs, &self.config);
        self.same("delivered", &delivered, &done.delivers)?;
        self.same("acked", &slot("acked"), &done.acked)?;
        self.same("gave_up", &slot("gave_up"), &done.gives_up)?;
        self.same("lost_o", &ports::lost(layout, outputs), &done.lost)?;
        self.delivered.extend(delivered);
        let compared = &mut self.carried.compared;
        compared.delivered += u64::from(done.delivers.is_some());
        compared.acked += u64::from(done.acked.is_some());
        compared.gave_up += u64::from(done.gives_up.is_some());
        Ok(())
    }

    /// A beat of a frame leaves, or should.
    fn frame_leaves(
        &mut self,
        cycle: u64,
        inputs: &Record,
        outputs: &Record,
    ) -> Result<(), CosimError> {
        let due = self.frames.front().map(|frame| frame.due.max(self.first_since));
        let is_due = due.is_some_and(|due| due <= cycle);
        let beat = beat(&self.circuit, outputs, "tx_frame");
        let ready = self.circuit.inputs().get_named(inputs, "tx_frame_ready_i") == 1;
        if beat.is_none() {
            self.carried.late += u64::from(is_due && self.leaving.is_empty());
            self.carried.gaps += u64::from(ready && !self.leaving.is_empty());
        }
        let Some((bytes, last)) = beat else { return Ok(()) };
        self.same("a frame begins in its cycle", &is_due, &true)?;
        if !ready {
            return Ok(());
        }
        self.link_out = self.link_out.max(cycle * CYCLE) + bytes.len() as u64 * BYTE;
        self.leaving.extend(bytes);
        if last {
            let expected = self.frames.pop_front().map(|frame| frame.bytes).unwrap_or_default();
            let found = std::mem::take(&mut self.leaving);
            self.same_bytes("a frame that leaves", &found, &expected)?;
            self.carried.frame_bytes += found.len() as u64;
            self.carried.compared.sent += 1;
            self.first_since = cycle + 1;
        }
        Ok(())
    }

    /// The application reads a beat, and perhaps has a whole message.
    fn message_is_read(&mut self, inputs: &Record, outputs: &Record) -> Result<(), CosimError> {
        let ready = self.circuit.inputs().get_named(inputs, "rx_app_ready_i") == 1;
        if let Some((bytes, last)) = beat(&self.circuit, outputs, "rx_app").filter(|_| ready) {
            self.reading.extend(bytes);
            if last {
                let get = |port| self.circuit.outputs().get_named(outputs, port);
                let from = (get("rx_app_src_ip_o") as u32, get("rx_app_src_context_o") as u16);
                self.read.push_back((from.0, from.1, std::mem::take(&mut self.reading)));
            }
        }
        // It begins before the message is announced.
        while let (Some(key), Some((src_ip, context, found))) =
            (self.delivered.front().copied(), self.read.front().cloned())
        {
            let from = (ip_of(key.src), key.id.0 as u16);
            self.same("whose message is read", &(src_ip, context), &from)?;
            let mut expected = vec![0; self.traffic.length(key) as usize];
            fill(key, 0, &mut expected);
            // A message of no bytes travels as one (rule 5).
            if expected.is_empty() {
                expected.push(PADDING);
            }
            self.same_bytes("a message that is read", &found, &expected)?;
            self.carried.messages += 1;
            self.carried.message_bytes += found.len() as u64;
            self.delivered.pop_front();
            self.read.pop_front();
        }
        Ok(())
    }

    fn same<T: PartialEq + std::fmt::Debug>(
        &self,
        what: &'static str,
        found: &T,
        expected: &T,
    ) -> Result<(), CosimError> {
        if found == expected {
            return Ok(());
        }
        Err(self.differs(what, format!("{found:?}"), format!("{expected:?}")))
    }

    /// Bytes: where they differ first, and how long they are.
    fn same_bytes(
        &self,
        what: &'static str,
        found: &[u8],
        expected: &[u8],
    ) -> Result<(), CosimError> {
        if found == expected {
            return Ok(());
        }
        let at = found.iter().zip(expected).take_while(|(one, other)| one == other).count();
        let text = |bytes: &[u8]| {
            let some = bytes.get(at..bytes.len().min(at + 16)).unwrap_or_default();
            format!("{} bytes, from {at} on {some:02x?}", bytes.len())
        };
        Err(self.differs(what, text(found), text(expected)))
    }

    fn differs(&self, what: &'static str, found: String, expected: String) -> CosimError {
        let compared = &self.carried.compared;
        let (cycle, packets) = (compared.cycles, compared.packets);
        let before = String::new();
        let byte = None;
        CosimError::Mismatch(Box::new(Mismatch {
            cycle,
            packets,
            what,
            byte,
            found,
            expected,
            before,
        }))
    }
}

/// What is behind the headers of a packet in `frame`: payload, or `padding` up to its length.
fn carry(pkt: &Packet, frame: &mut Vec<u8>, padding: u8) {
    let begin = frame.len();
    frame.resize(usize::from(pkt.wire_len).max(begin), padding);
    if pkt.carries_payload() {
        let end = (begin + pkt.span.len as usize).min(frame.len());
        fill(MsgKey { src: pkt.src, id: pkt.span.msg }, pkt.span.offset, &mut frame[begin..end]);
    }
}

/// Bytes as beats: data, and how many bytes with the last beat's mark above.
fn beats(bytes: &[u8]) -> VecDeque<[u32; 17]> {
    let count = bytes.len().div_ceil(BEAT).max(1);
    let one = |at: usize| {
        let part = &bytes[BEAT * at..bytes.len().min(BEAT * (at + 1))];
        let mut beat = [0; 17];
        for (at, byte) in part.iter().enumerate() {
            beat[at / 4] |= u32::from(*byte) << (8 * (at % 4));
        }
        beat[16] = part.len() as u32 | u32::from(at + 1 == count) << 7;
        beat
    };
    (0..count).map(one).collect()
}

/// The beat at port `NAME_beat_o`, if there is one, and whether it is the last.
fn beat(circuit: &Simulation, outputs: &Record, name: &str) -> Option<(Vec<u8>, bool)> {
    let layout = circuit.outputs();
    if layout.get_named(outputs, &format!("{name}_valid_o")) == 0 {
        return None;
    }
    let words = layout.get_words(outputs, layout.port(&format!("{name}_beat_o")));
    let (data, end) = words.split_at(16);
    let bytes = data.iter().flat_map(|word| word.to_le_bytes());
    let end = end.first().copied().unwrap_or(0);
    Some((bytes.take((end & 0x7f) as usize).collect(), end & 0x80 != 0))
}
