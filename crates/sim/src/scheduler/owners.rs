//! Spinning as long as another task runs.
//!
//! The waiter is set aside until the line changes, like any waiter for a line. The wait also ends
//! when the task that it watches leaves its CPU, or when the waiter's own CPU is wanted.

use crate::engine::Engine;
use crate::events::Event;
use crate::task::State;

impl Engine {
    /// Whether a task runs: it has a CPU and is not about to leave it.
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

    /// Like [`Engine::wait_for_change`], but also ends when task `owner` leaves its CPU or when the
    /// current task's CPU is wanted. The caller calls [`Engine::stop_watching`] afterwards.
    pub fn wait_for_owner(&mut self, offset: u32, owner: u32) -> bool {
        self.current_task().watches = Some(owner);
        self.tasks[owner as usize].watchers += 1;
        self.is_running(owner) && !self.is_wanted() && self.wait_for_change(offset, None)
    }

    /// Ends the current task's watch of another task.
    pub fn stop_watching(&mut self) {
        if let Some(owner) = self.current_task().watches.take() {
            self.tasks[owner as usize].watchers -= 1;
        }
    }

    /// Notifies the tasks that watch `owner`, which leaves its CPU. They notice within a turn of
    /// their spin loop.
    pub(super) fn stir_watchers(&mut self, owner: u32) {
        for cpu in 0..self.cpus.all.len() {
            if let Some(id) = self.cpus.all[cpu].running
                && self.tasks[id as usize].watches == Some(owner)
            {
                self.stir(id);
            }
        }
    }

    /// Makes a task look that waits for a line to change.
    pub(super) fn stir(&mut self, id: u32) {
        let State::Line { line, .. } = self.tasks[id as usize].state else { return };
        self.lines[line as usize].waiters.retain(|waiter| *waiter != id);
        self.tasks[id as usize].state = State::Ready;
        let notices_ps = self.now_ps + self.jitter.below(self.costs.pause_ps.max(1));
        self.schedule_due(id, notices_ps, Event::Look(id));
    }
}
