//! The arbiter: which packet is next. Packet by packet, never interrupted, control strictly before
//! data (specs/nanotransport.md#8).

use units::{Dur, Time};

use super::generator::Control;
use super::meta::Egress;
use super::packetization::{DataPacket, Packetization};

/// The next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// From the packet generator.
    Control(Egress),
    /// From packetization.
    Data(DataPacket),
}

/// The packet that begins on the wire at `now`, if one has had time for the way out, `egress`.
pub fn choose(
    control: &mut Control,
    data: &mut Packetization,
    egress: Dur,
    now: Time,
) -> Option<Chosen> {
    let since = Time(now.0.checked_sub(egress.0)?);
    match control.next(since) {
        Some(packet) => Some(Chosen::Control(packet)),
        None => data.next(since).map(Chosen::Data),
    }
}

/// When the next packet of those that wait may begin; `None` if none waits.
#[must_use]
pub fn next_start(control: &Control, data: &mut Packetization, egress: Dur) -> Option<Time> {
    let since = control.waiting_since().into_iter().chain(data.waiting_since()).min()?;
    Some(since + egress)
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::super::generator::Class;
    use super::super::packetization::Outgoing;
    use super::*;

    const EGRESS: Dur = Dur(3_750);

    fn data(packets: u16) -> Packetization {
        let mut data = Packetization::new(&Config::prototype(9, Dur::from_us(7)), false);
        let out = Outgoing { msg_len: packets * 1024, ..Outgoing::for_test(1) };
        assert!(data.submit(Time(0), out));
        data
    }

    fn queues() -> Control {
        Control::new(&Config::prototype(9, Dur::from_us(7)))
    }

    fn control(credit: u16) -> Egress {
        Egress { credit, ..Egress::from_values(&[]) }
    }

    /// N8: control waits for the packet on the wire and for nothing else.
    #[test]
    fn n8_control_waits_for_one_data_packet_at_most() {
        let (mut waiting, mut data) = (queues(), data(9));
        let mut now = Time(0) + EGRESS;
        assert!(matches!(choose(&mut waiting, &mut data, EGRESS, now), Some(Chosen::Data(_))));
        // It is asked for while that packet is on the wire.
        waiting.push(now + Dur(1), Class::Grant, control(5));
        now += Dur(43_520);
        assert_eq!(choose(&mut waiting, &mut data, EGRESS, now), Some(Chosen::Control(control(5))));
        assert!(matches!(choose(&mut waiting, &mut data, EGRESS, now), Some(Chosen::Data(_))));
    }

    #[test]
    fn nothing_leaves_before_its_way_out() {
        let (mut waiting, mut data) = (queues(), data(1));
        let start = next_start(&waiting, &mut data, EGRESS).unwrap();
        assert_eq!(start, Time(0) + EGRESS);
        assert_eq!(choose(&mut waiting, &mut data, EGRESS, Time(start.0 - 1)), None);
        assert!(choose(&mut waiting, &mut data, EGRESS, start).is_some());
        // Control that came too late for this choice does not hold data up.
        let mut data = self::data(1);
        waiting.push(Time(1), Class::Ack, control(5));
        assert!(matches!(choose(&mut waiting, &mut data, EGRESS, start), Some(Chosen::Data(_))));
        assert_eq!(next_start(&waiting, &mut data, EGRESS), Some(Time(1) + EGRESS));
    }
}
