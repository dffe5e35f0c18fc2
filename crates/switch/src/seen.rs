//! [`Seen`]: frames at the interfaces of a switch, for captures.

use std::io;

use units::Time;

/// A frame at an interface.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// When it came, by the kernel's stamp, or when it was handed to the kernel.
    pub at: Time,
    /// The number of the port.
    pub port: usize,
    /// Whether it came; otherwise it left.
    pub came: bool,
    /// All of it, from the Ethernet header on.
    pub frame: &'a [u8],
}

/// What is told of each frame.
pub type Watch<'a> = dyn FnMut(Seen<'_>) -> io::Result<()> + 'a;

/// Puts what is seen in the order of time before it is told.
pub(crate) struct Ordered<'a> {
    watch: Option<&'a mut Watch<'a>>,
    waiting: Vec<(Time, usize, bool, Vec<u8>)>,
}

impl<'a> Ordered<'a> {
    pub(crate) const fn new(watch: Option<&'a mut Watch<'a>>) -> Self {
        Self { watch, waiting: Vec::new() }
    }

    pub(crate) fn note(&mut self, Seen { at, port, came, frame }: Seen<'_>) {
        if self.watch.is_some() {
            self.waiting.push((at, port, came, frame.to_vec()));
        }
    }

    /// Tell of all frames up to `horizon`: nothing older will be noted.
    pub(crate) fn tell(&mut self, horizon: Time) -> io::Result<()> {
        let Some(watch) = self.watch.as_deref_mut() else { return Ok(()) };
        self.waiting.sort_by_key(|&(at, ..)| at);
        let ready = self.waiting.partition_point(|&(at, ..)| at <= horizon);
        let told = self.waiting.drain(..ready);
        told.into_iter()
            .try_for_each(|(at, port, came, frame)| watch(Seen { at, port, came, frame: &frame }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_in_the_order_of_time_and_not_too_soon() {
        let mut told = Vec::new();
        let mut watch = |seen: Seen<'_>| {
            told.push((seen.at.0, seen.frame.to_vec()));
            Ok(())
        };
        let mut ordered = Ordered::new(Some(&mut watch));
        let seen = |at, frame| Seen { at: Time(at), port: 0, came: true, frame };
        ordered.note(seen(7, b"left"));
        ordered.note(seen(5, b"came"));
        ordered.note(seen(9, b"later"));
        ordered.tell(Time(8)).unwrap();
        ordered.note(seen(8, b"at the horizon"));
        ordered.tell(Time::NEVER).unwrap();
        let expected = [(5, "came"), (7, "left"), (8, "at the horizon"), (9, "later")];
        assert_eq!(told, expected.map(|(at, text)| (at, text.as_bytes().to_vec())));
    }
}
