//! Waiting for a line to change. A wait costs nothing until the line changes.

use crate::engine::Engine;
use crate::events::Event;
use crate::issue::Issued;
use crate::task::{State, Task};

impl Engine {
    /// Records that a line has changed or moved, and wakes the tasks that wait for this.
    #[inline]
    pub fn change(&mut self, line: usize) {
        self.lines[line].version += 1;
        if !self.lines[line].waiters.is_empty() {
            self.wake_waiters(line);
        }
    }

    /// Wakes the tasks that wait for a line. Each notices the change within a turn of its spin
    /// loop.
    fn wake_waiters(&mut self, line: usize) {
        let line = &mut self.lines[line];
        let mut waiters = std::mem::take(&mut line.waiters);
        let turn = self.costs.pause_ps.max(1);
        for task in waiters.drain(..) {
            let notices_ps = self.now_ps + self.jitter.below(turn);
            let waiter = &mut self.tasks[task as usize];
            (waiter.state, waiter.due_ps, waiter.looks_when_due) = (State::Ready, notices_ps, true);
            self.events.schedule(notices_ps, Event::Look(task));
        }
        line.waiters = waiters;
    }

    /// Makes the current task wait until the line of `offset` changes, for at most `turns` turns of
    /// a spin loop. Returns `false` if the line has changed since the task looked, or is no longer
    /// present. The task must then look again.
    pub fn wait_for_change(&mut self, offset: u32, turns: Option<u32>) -> bool {
        let Task { core, last_load: look, seen_version: seen, .. } = *self.current_task();
        debug_assert_eq!(look.offset, offset, "a task waits for the word that it has loaded last");
        let task = self.current;
        let line = &mut self.lines[look.line()];
        if line.version != seen || !line.hits(core, look) {
            return false;
        }
        line.waiters.push(task);
        let until_ps = turns.map_or(u64::MAX, |turns| self.now_ps + u64::from(turns) * self.costs.pause_ps);
        if until_ps != u64::MAX {
            self.events.schedule(until_ps, Event::Timeout(task));
        }
        self.current_task().state = State::Line { line: look.line() as u32, until_ps };
        true
    }

    /// Handles the end of a task's time limit. It has no effect if the task was woken before and
    /// now waits for something else.
    pub fn time_out(&mut self, task: u32) -> Option<u32> {
        let state = self.tasks[task as usize].state;
        match state {
            State::Line { line, until_ps } if until_ps == self.now_ps => {
                self.lines[line as usize].waiters.retain(|waiter| *waiter != task);
                self.look(task)
            }
            State::Asleep { until_ps } if until_ps == self.now_ps => self.wake_by_timer(task),
            State::Parked { until_ps } if until_ps == self.now_ps => {
                let offset = self.tasks[task as usize].parked_on;
                self.withdraw_park(offset, task);
                self.wake_by_timer(task)
            }
            _ => None,
        }
    }

    /// Wakes a task by its timer, whose interrupt has also woken an idle CPU by now.
    fn wake_by_timer(&mut self, task: u32) -> Option<u32> {
        if self.wake(task) { self.arrive(task) } else { None }
    }

    /// Issues again the load for which the task waits, as the task would do. The task need not run
    /// for this. It finds the answer when it next loads.
    pub fn look(&mut self, id: u32) -> Option<u32> {
        if self.is_interrupted(id, Event::Look(id)) {
            return None;
        }
        self.current = id;
        let task = &mut self.tasks[id as usize];
        task.has_looked = true;
        let load = task.last_load;
        match self.issue(load) {
            Issued::Done(answer) => {
                self.tasks[id as usize].answer = answer;
                Some(id)
            }
            Issued::Later => None,
            Issued::Again => {
                self.tasks[id as usize].state = State::DrainToLook;
                None
            }
        }
    }
}
