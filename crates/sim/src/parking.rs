//! Sleeping on a word: the futex of the simulated machine.
//!
//! A task that is about to sleep announces this, then compares the word (which takes time), then
//! sleeps. A wake-up in between finds the announcement, so that no wake-up is lost.

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::events::Event;
use crate::spec::ModelParameters;
use crate::task::State;

/// The sleeping tasks, and the cost of a futex call.
pub struct Parking {
    /// Tasks that sleep or are about to sleep, by the offset of the word, oldest first.
    sleepers: BTreeMap<u32, Vec<u32>>,
    /// The cost of a call for the caller.
    pub call_ps: u64,
}

impl Parking {
    pub fn new(model: &ModelParameters) -> Self {
        Self { sleepers: BTreeMap::new(), call_ps: (model.futex_call_ns * 1000.0) as u64 }
    }
}

impl Engine {
    /// Announces that the current task is about to sleep on the word at `offset`. Wake-ups count
    /// from now on.
    pub fn announce_park(&mut self, offset: u32) {
        let task = self.current;
        self.parking.sleepers.entry(offset).or_default().push(task);
    }

    /// Withdraws a task's announcement or sleep: the word has changed, or the time limit has
    /// passed.
    pub fn withdraw_park(&mut self, offset: u32, task: u32) {
        if let Some(sleepers) = self.parking.sleepers.get_mut(&offset) {
            sleepers.retain(|sleeper| *sleeper != task);
        }
    }

    /// Puts the current task to sleep, at most until the given moment. The caller must suspend the
    /// task. Returns `false` if the task has been woken since it announced itself.
    pub fn park(&mut self, offset: u32, until_ps: u64) -> bool {
        let task = self.current;
        let sleeps = self.parking.sleepers.get(&offset).is_some_and(|sleepers| sleepers.contains(&task));
        if sleeps {
            self.sleep_on(offset, until_ps.max(self.now_ps));
        }
        sleeps
    }

    /// Wakes the first `n` tasks that sleep on the word at `offset`. Returns how many there were.
    pub fn unpark(&mut self, offset: u32, n: u32) -> usize {
        let Some(sleepers) = self.parking.sleepers.get_mut(&offset) else { return 0 };
        let woken: Vec<u32> = sleepers.drain(..sleepers.len().min(n as usize)).collect();
        let arrives_ps = self.now_ps + self.cpus.wake_latency_ps;
        for &task in &woken {
            // A task that is still about to sleep will find that it has been woken.
            let sleeps = matches!(self.tasks[task as usize].state, State::Parked { .. });
            if sleeps && self.wake(task) {
                self.events.schedule(arrives_ps, Event::Arrive(task));
            }
        }
        woken.len()
    }
}
