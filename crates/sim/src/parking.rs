//! Sleeping on a word: the futex of the simulated machine.
//!
//! A task that is about to sleep announces itself, then compares the word (which takes its time), then sleeps. A
//! wake-up in between finds it announced, so that none is lost.

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::events::Event;
use crate::spec::ModelParameters;
use crate::task::State;

/// Who sleeps, and what sleeping costs.
pub struct Parking {
    /// Tasks that sleep on a word, or are about to, by its offset; oldest first.
    sleepers: BTreeMap<u32, Vec<u32>>,
    wake_latency_ps: u64,
    /// What a call costs the caller.
    pub call_ps: u64,
}

impl Parking {
    pub fn new(model: &ModelParameters) -> Self {
        let ps = |ns: f64| (ns * 1000.0) as u64;
        Self {
            sleepers: BTreeMap::new(),
            wake_latency_ps: ps(model.wake_latency_ns),
            call_ps: ps(model.futex_call_ns),
        }
    }
}

impl Engine {
    /// The current task is about to sleep on the word at `offset`: wake-ups count from now on.
    pub fn announce_park(&mut self, offset: u32) {
        let task = self.current;
        self.parking.sleepers.entry(offset).or_default().push(task);
    }

    /// The current task does not sleep after all: the word has changed.
    pub fn withdraw_park(&mut self, offset: u32) {
        let task = self.current;
        if let Some(sleepers) = self.parking.sleepers.get_mut(&offset) {
            sleepers.retain(|sleeper| *sleeper != task);
        }
    }

    /// The current task sleeps from now on: suspend it. False if it has been woken since it announced itself.
    pub fn park(&mut self, offset: u32) -> bool {
        let task = self.current;
        let sleeps = self.parking.sleepers.get(&offset).is_some_and(|sleepers| sleepers.contains(&task));
        if sleeps {
            self.current_task().state = State::Parked;
        }
        sleeps
    }

    /// Wakes the first `n` of those that sleep on the word at `offset`.
    pub fn unpark(&mut self, offset: u32, n: u32) {
        let Some(sleepers) = self.parking.sleepers.get_mut(&offset) else { return };
        let wakes_ps = self.now_ps + self.parking.wake_latency_ps;
        for task in sleepers.drain(..sleepers.len().min(n as usize)) {
            // One that is still about to sleep finds itself woken.
            if self.tasks[task as usize].state == State::Parked {
                self.tasks[task as usize].state = State::Ready;
                self.events.schedule(wakes_ps, Event::Resume(task));
            }
        }
    }
}
