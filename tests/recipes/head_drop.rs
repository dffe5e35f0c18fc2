//! First in, first out; what does not fit takes the place of the oldest that wait.

use std::collections::VecDeque;

use crate::{Capacity, Desc, Discipline, DisciplineSpec, Disposition, Queue, Random, Told};

/// Parameters of [`HeadDrop`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadDropSpec {
    /// Bytes that fit, the packet in service included.
    pub bytes: u32,
}

impl DisciplineSpec for HeadDropSpec {
    fn build(&self) -> Queue {
        Queue::boxed(HeadDrop { most: self.bytes, held: 0, waiting: VecDeque::new() })
    }

    fn capacities(&self) -> Vec<Capacity> {
        vec![Capacity::Bytes(self.bytes)]
    }
}

/// See the module.
#[derive(Debug)]
struct HeadDrop {
    most: u32,
    held: u32,
    waiting: VecDeque<Desc>,
}

impl Discipline for HeadDrop {
    fn enqueue(&mut self, packet: Desc, _: &mut Random<'_>, told: &mut Told<'_>) {
        while self.held + u32::from(packet.len) > self.most {
            let Some(oldest) = self.waiting.pop_front() else { return told(Disposition::Drop, packet) };
            self.finish(oldest);
            told(Disposition::Drop, oldest);
        }
        self.held += u32::from(packet.len);
        self.waiting.push_back(packet);
    }

    fn dequeue(&mut self) -> Option<Desc> {
        self.waiting.pop_front()
    }

    fn finish(&mut self, sent: Desc) {
        self.held -= u32::from(sent.len);
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        Box::new(self.waiting.iter().copied())
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn bytes(&self) -> u32 {
        self.held
    }
}
