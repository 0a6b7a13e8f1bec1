//! The queue of future events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event that happens at a given moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task continues.
    Resume(u32),
    /// A task's wait for a line or its sleep has timed out, or the task begins.
    Timeout(u32),
    /// A task looks at the word that it waits on.
    Look(u32),
    /// A line is taken from its holder.
    Grab(u32),
    /// A line arrives at its new owner.
    Done(u32),
    /// A line that was read becomes free for the next request.
    Free(u32),
    /// The switch to a task is complete.
    Arrive(u32),
    /// The timer interrupts a CPU that tasks wait for, or the task that has the CPU is to be
    /// preempted.
    Tick(u32),
}

/// Events ordered by time. Events at the same time are ordered as they were scheduled.
///
/// An event is one number: 64 bits of time, 40 of sequence, 3 of kind, 21 of task, line or CPU.
///
/// Most threads wait for a line and have no event, and scheduled events are due soon. Therefore the
/// earliest events are kept sorted in an array that is short enough for a linear search. Any
/// further events are in a heap.
#[derive(Debug)]
pub struct EventQueue {
    /// The first `len` elements are events, with the next event last. All of them precede those of
    /// `far`.
    near: [u128; NEAR],
    len: usize,
    far: BinaryHeap<Reverse<u128>>,
    scheduled: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { near: [0; NEAR], len: 0, far: BinaryHeap::new(), scheduled: 0 }
    }
}

/// The maximum number of events that are kept sorted.
const NEAR: usize = 32;

const ID_BITS: u32 = 21;
const KIND_BITS: u32 = 3;

impl EventQueue {
    /// The number of tasks or lines that an event can name.
    pub const IDS: usize = 1 << ID_BITS;

    #[inline(always)]
    pub fn schedule(&mut self, at_ps: u64, event: Event) {
        let (kind, id) = match event {
            Event::Resume(id) => (0, id),
            Event::Timeout(id) => (1, id),
            Event::Grab(id) => (2, id),
            Event::Done(id) => (3, id),
            Event::Free(id) => (4, id),
            Event::Look(id) => (5, id),
            Event::Arrive(id) => (6, id),
            Event::Tick(id) => (7, id),
        };
        self.scheduled += 1;
        let low = self.scheduled << (ID_BITS + KIND_BITS) | kind << ID_BITS | u64::from(id);
        let key = u128::from(at_ps) << 64 | u128::from(low);
        if !self.far.is_empty() || self.len == NEAR {
            return self.schedule_among_many(key);
        }
        self.insert(key);
    }

    /// Inserts the event that was scheduled last. Events of the same time precede it.
    #[inline(always)]
    fn insert(&mut self, key: u128) {
        let mut at = self.len;
        self.len += 1;
        let near = &mut self.near[..=at];
        while at > 0 && time_of(near[at - 1]) <= time_of(key) {
            near[at] = near[at - 1];
            at -= 1;
        }
        near[at] = key;
    }

    #[cold]
    fn schedule_among_many(&mut self, key: u128) {
        if self.far.peek().is_some_and(|Reverse(far)| *far < key) {
            return self.far.push(Reverse(key));
        }
        if self.len == NEAR {
            // Move the later half to the heap.
            self.far.extend(self.near[..NEAR / 2].iter().map(|key| Reverse(*key)));
            self.near.copy_within(NEAR / 2.., 0);
            self.len = NEAR / 2;
            return self.schedule_among_many(key);
        }
        self.insert(key);
    }

    /// Moves the first events of the heap into the array, which is empty.
    #[cold]
    fn draw_near(&mut self) {
        while self.len < NEAR / 2
            && let Some(Reverse(key)) = self.far.pop()
        {
            self.near[self.len] = key;
            self.len += 1;
        }
        self.near[..self.len].reverse();
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no event happens up to and including `until_ps`.
    pub fn is_quiet(&self, until_ps: u64) -> bool {
        self.len == 0 || time_of(self.near[self.len - 1]) > until_ps
    }

    /// Takes the next event, unless it happens after `horizon_ps`.
    pub fn pop(&mut self, horizon_ps: u64) -> Option<(u64, Event)> {
        if self.is_quiet(horizon_ps) {
            return None;
        }
        self.len -= 1;
        let key = self.near[self.len];
        if self.len == 0 && !self.far.is_empty() {
            self.draw_near();
        }
        let id = key as u32 & (Self::IDS as u32 - 1);
        let event = match key as u64 >> ID_BITS & ((1 << KIND_BITS) - 1) {
            0 => Event::Resume(id),
            1 => Event::Timeout(id),
            2 => Event::Grab(id),
            3 => Event::Done(id),
            4 => Event::Free(id),
            5 => Event::Look(id),
            6 => Event::Arrive(id),
            _ => Event::Tick(id),
        };
        Some((time_of(key), event))
    }
}

fn time_of(key: u128) -> u64 {
    (key >> 64) as u64
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
            (40, Event::Look(7)),
            (50, Event::Tick(8)),
            (50, Event::Arrive(9)),
            (u64::MAX, Event::Timeout(0)),
        ] {
            queue.schedule(at, event);
        }
        assert!(queue.is_quiet(9) && !queue.is_quiet(10));
        assert_eq!(queue.pop(9), None);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(u64::MAX)).collect();
        assert_eq!(
            order,
            [
                (10, Event::Resume(last)),
                (10, Event::Grab(2)),
                (20, Event::Done(3)),
                (30, Event::Free(1)),
                (40, Event::Look(7)),
                (50, Event::Tick(8)),
                (50, Event::Arrive(9)),
                (u64::MAX, Event::Timeout(0)),
            ]
        );
        assert!(queue.is_empty() && queue.is_quiet(u64::MAX));
    }

    #[test]
    fn many_events_come_in_order_however_they_were_scheduled() {
        let mut queue = EventQueue::default();
        let mut expected = Vec::new();
        for id in 0..101 {
            let at = u64::from(id * 37 % 101 / 2);
            queue.schedule(at, Event::Resume(id));
            expected.push((at, Event::Resume(id)));
            if id % 3 == 0 {
                // Some events are popped while others are still pushed.
                let first = expected.iter().map(|(at, _)| *at).min().unwrap();
                let place = expected.iter().position(|(at, _)| *at == first).unwrap();
                assert_eq!(queue.pop(u64::MAX), Some(expected.remove(place)));
            }
        }
        expected.sort_by_key(|(at, _)| *at);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(u64::MAX)).collect();
        assert_eq!(order, expected);
    }
}
