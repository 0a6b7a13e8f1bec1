//! The queue of what happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task goes on.
    Resume(u32),
    /// A task has waited for a line long enough.
    Timeout(u32),
    /// A line is taken from its holder.
    Grab(u32),
    /// A line arrives at its new owner.
    Done(u32),
    /// A line that was read is free for the next request.
    Free(u32),
}

/// Events by time; those of the same time in the order in which they were scheduled.
///
/// An event is one number: 64 bits of time, 40 of sequence, 3 of kind, 21 of task or line.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<u128>>,
    scheduled: u64,
}

const ID_BITS: u32 = 21;
const KIND_BITS: u32 = 3;

impl EventQueue {
    /// Tasks and lines that can be named.
    pub const IDS: usize = 1 << ID_BITS;

    pub fn schedule(&mut self, at_ps: u64, event: Event) {
        let (kind, id) = match event {
            Event::Resume(id) => (0, id),
            Event::Timeout(id) => (1, id),
            Event::Grab(id) => (2, id),
            Event::Done(id) => (3, id),
            Event::Free(id) => (4, id),
        };
        self.scheduled += 1;
        let low = self.scheduled << (ID_BITS + KIND_BITS) | kind << ID_BITS | u64::from(id);
        self.heap.push(Reverse(u128::from(at_ps) << 64 | u128::from(low)));
    }

    /// When the next event happens, if any does.
    pub fn next_ps(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(key)| (key >> 64) as u64)
    }

    pub fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse(key) = self.heap.pop()?;
        let id = key as u32 & (Self::IDS as u32 - 1);
        let event = match key as u64 >> ID_BITS & ((1 << KIND_BITS) - 1) {
            0 => Event::Resume(id),
            1 => Event::Timeout(id),
            2 => Event::Grab(id),
            3 => Event::Done(id),
            _ => Event::Free(id),
        };
        Some(((key >> 64) as u64, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_in_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        let last = EventQueue::IDS as u32 - 1;
        for (at, event) in [
            (30, Event::Free(1)),
            (10, Event::Resume(last)),
            (20, Event::Done(3)),
            (10, Event::Grab(2)),
            (u64::MAX, Event::Timeout(0)),
        ] {
            queue.schedule(at, event);
        }
        assert_eq!(queue.next_ps(), Some(10));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(
            order,
            [
                (10, Event::Resume(last)),
                (10, Event::Grab(2)),
                (20, Event::Done(3)),
                (30, Event::Free(1)),
                (u64::MAX, Event::Timeout(0)),
            ]
        );
    }
}
