//! Sleeping on a word: the futex of the simulated machine.
//!
//! A task that is about to sleep announces itself, then compares the word (which takes its time),
//! then sleeps. A wake-up in between finds it announced, so that none is lost.

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::events::Event;
use crate::spec::ModelParameters;
use crate::task::State;

/// Who sleeps, and what sleeping costs.
pub struct Parking {
    /// Tasks that sleep on a word, or are about to, by its offset; oldest first.
    sleepers: BTreeMap<u32, Vec<u32>>,
    /// What a call costs the caller.
    pub call_ps: u64,
}

impl Parking {
    pub fn new(model: &ModelParameters) -> Self {
        Self { sleepers: BTreeMap::new(), call_ps: (model.futex_call_ns * 1000.0) as u64 }
    }
}

impl Engine {
    /// The current task is about to sleep on the word at `offset`: wake-ups count from now on.
    pub fn announce_park(&mut self, offset: u32) {
        let task = self.current;
        self.parking.sleepers.entry(offset).or_default().push(task);
    }

    /// A task does not sleep on a word after all, or no longer: the word has changed, or the time
    /// is over.
    pub fn withdraw_park(&mut self, offset: u32, task: u32) {
        if let Some(sleepers) = self.parking.sleepers.get_mut(&offset) {
            sleepers.retain(|sleeper| *sleeper != task);
        }
    }

    /// The current task sleeps from now on, at most until the moment given: suspend it. False if it
    /// has been woken since it announced itself.
    pub fn park(&mut self, offset: u32, until_ps: u64) -> bool {
        let task = self.current;
        let sleeps = self.parking.sleepers.get(&offset).is_some_and(|sleepers| sleepers.contains(&task));
        if sleeps {
            self.sleep_on(offset, until_ps.max(self.now_ps));
        }
        sleeps
    }

    /// Wakes the first `n` of those that sleep on the word at `offset`.
    pub fn unpark(&mut self, offset: u32, n: u32) {
        let Some(sleepers) = self.parking.sleepers.get_mut(&offset) else { return };
        let woken: Vec<u32> = sleepers.drain(..sleepers.len().min(n as usize)).collect();
        let arrives_ps = self.now_ps + self.cpus.wake_latency_ps;
        for task in woken {
            // One that is still about to sleep finds itself woken.
            let sleeps = matches!(self.tasks[task as usize].state, State::Parked { .. });
            if sleeps && self.wake(task) {
                self.events.schedule(arrives_ps, Event::Arrive(task));
            }
        }
    }
}
