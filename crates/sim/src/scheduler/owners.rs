//! Spinning as long as another task runs.
//!
//! The waiter is set aside until the line changes, as any other that waits for a line; and besides
//! until the task that it watches leaves its CPU, or its own CPU is wanted.

use crate::engine::Engine;
use crate::events::Event;
use crate::task::State;

impl Engine {
    /// Whether a task runs: it has a CPU, and is not about to leave it.
    pub fn is_running(&self, id: u32) -> bool {
        let task = &self.tasks[id as usize];
        let leaves_or_comes = matches!(
            task.state,
            State::Parked { .. }
                | State::Asleep { .. }
                | State::Waiting
                | State::Arriving
                | State::Leaving
                | State::Ended
        );
        !leaves_or_comes
    }

    /// As [`Engine::wait_for_change`], but also until task `owner` leaves its CPU, or the current
    /// task's is wanted. [`Engine::stop_watching`] comes next.
    pub fn wait_for_owner(&mut self, offset: u32, owner: u32) -> bool {
        self.current_task().watches = Some(owner);
        self.tasks[owner as usize].watchers += 1;
        self.is_running(owner) && !self.is_wanted() && self.wait_for_change(offset, None)
    }

    /// The current task watches nobody any more.
    pub fn stop_watching(&mut self) {
        if let Some(owner) = self.current_task().watches.take() {
            self.tasks[owner as usize].watchers -= 1;
        }
    }

    /// A task leaves its CPU: those that watch it notice within a turn of their spin loop.
    pub(super) fn stir_watchers(&mut self, owner: u32) {
        for cpu in 0..self.cpus.all.len() {
            if let Some(id) = self.cpus.all[cpu].running
                && self.tasks[id as usize].watches == Some(owner)
            {
                self.stir(id);
            }
        }
    }

    /// Has a task look that waits for a line to change.
    pub(super) fn stir(&mut self, id: u32) {
        let State::Line { line, .. } = self.tasks[id as usize].state else { return };
        self.lines[line as usize].waiters.retain(|waiter| *waiter != id);
        self.tasks[id as usize].state = State::Ready;
        let notices_ps = self.now_ps + self.jitter.below(self.costs.pause_ps.max(1));
        self.schedule_due(id, notices_ps, Event::Look(id));
    }
}
