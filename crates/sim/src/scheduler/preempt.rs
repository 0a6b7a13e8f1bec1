//! Preemption: a task gives way at the end of its turn, or for a task that has run much less.

use crate::account::Phase;
use crate::engine::Engine;
use crate::events::Event;
use crate::spec::Preemption;
use crate::task::{Return, State};
use crate::ticks::NEVER;

impl Engine {
    /// Schedules the CPU's next tick, if it may matter. It matters if a task waits, and either the
    /// running task has not been told to give way or another CPU could take the waiting task.
    pub(super) fn arm_tick(&mut self, cpu: u32) {
        let some_cpu_is_idle = self.some_cpu_is_idle();
        let at = self.cpus.at(cpu);
        let matters = !at.queue.is_empty() && (!at.need_resched || some_cpu_is_idle);
        if !matters || at.tick_ps != NEVER {
            return;
        }
        let first_ps = self.first_tick_of(cpu);
        let tick_ps = self.ticks.after_ps(first_ps, self.now_ps);
        if tick_ps != NEVER {
            self.cpus.at(cpu).tick_ps = tick_ps;
            self.events.schedule(tick_ps, Event::Tick(cpu));
        }
    }

    /// Handles a timer interrupt of a CPU that tasks wait for, or preempts the CPU's task.
    pub fn tick(&mut self, cpu: u32) {
        if self.cpus.at(cpu).tick_ps != self.now_ps {
            return self.take_off(cpu);
        }
        self.cpus.at(cpu).tick_ps = NEVER;
        if self.cpus.at(cpu).queue.is_empty() {
            return;
        }
        self.count_runtime(cpu);
        self.push_away(cpu);
        if self.is_turn_over(cpu) {
            self.set_need_resched(cpu);
        }
        self.arm_tick(cpu);
    }

    /// Whether a CPU's running task has used up its turn, or is ahead of the first waiting task by
    /// a turn.
    fn is_turn_over(&self, cpu: u32) -> bool {
        let (at, turns) = (&self.cpus.all[cpu as usize], &self.cpus.turns);
        let (Some(id), Some(first_ps)) = (at.running, at.queue.first_ps()) else { return false };
        let slice_ps = turns.slice_ps(at.queue.len() + 1);
        let ahead_ps = self.tasks[id as usize].runtime_ps.saturating_sub(first_ps);
        at.turn_ps > slice_ps || at.turn_ps >= turns.granularity_ps && ahead_ps > slice_ps
    }

    /// Preempts a CPU's running task for one that has been woken into its queue, if the running
    /// task has run much more.
    pub(super) fn preempt_for(&mut self, cpu: u32, woken: u32) {
        let Some(running) = self.cpus.at(cpu).running else { return };
        let runtime_ps = |id: u32| self.tasks[id as usize].runtime_ps;
        let ahead_ps = runtime_ps(running).saturating_sub(runtime_ps(woken));
        if ahead_ps > self.cpus.turns.wake_granularity_ps {
            self.set_need_resched(cpu);
        }
    }

    fn set_need_resched(&mut self, cpu: u32) {
        if std::mem::replace(&mut self.cpus.at(cpu).need_resched, true) {
            return;
        }
        self.demand(cpu);
        if let Some(id) = self.cpus.at(cpu).running
            && self.tasks[id as usize].watches.is_some()
        {
            self.stir(id);
        }
    }

    /// Preempts the task that runs here, if tasks can be preempted anywhere. This is done from the
    /// event loop, since the task may be running at this very moment.
    pub(super) fn demand(&mut self, cpu: u32) {
        if self.cpus.preemption == Preemption::Anywhere {
            self.events.schedule(self.now_ps, Event::Tick(cpu));
        }
    }

    /// Preempts the running task if it should give way. During an interrupt this waits until the
    /// interrupt ends.
    fn take_off(&mut self, cpu: u32) {
        let first_ps = self.first_tick_of(cpu);
        let at = self.cpus.at(cpu);
        let (Some(id), true) = (at.running, at.need_resched) else { return };
        if let Some(end_ps) = self.ticks.end_of_interrupt_ps(first_ps, self.now_ps) {
            return self.events.schedule(end_ps, Event::Tick(cpu));
        }
        let task = &self.tasks[id as usize];
        if task.sections > 0 {
            return;
        }
        match task.state {
            State::Memory | State::Drain(_) | State::DrainToLook => {
                self.tasks[id as usize].must_leave = true;
                return;
            }
            State::Ready | State::Line { .. } => {}
            // The task leaves anyway, or has not arrived yet.
            _ => return,
        }
        if !self.has_to_go(cpu) {
            return;
        }
        let going_on = match self.tasks[id as usize].state {
            State::Line { line, .. } => {
                self.lines[line as usize].waiters.retain(|waiter| *waiter != id);
                Return::Look
            }
            _ => self.interrupt(id, first_ps),
        };
        self.give_way(id, going_on);
    }

    /// Cancels the event by which a task would continue. Returns how it continues later.
    fn interrupt(&mut self, id: u32, first_tick_ps: u64) -> Return {
        let now_ps = self.now_ps;
        let task = &mut self.tasks[id as usize];
        task.stale_events += 1;
        let due_ps = std::mem::replace(&mut task.due_ps, NEVER);
        if task.looks_when_due {
            return Return::Look;
        }
        Return::Compute(self.ticks.left_ps(first_tick_ps, task.next_tick_ps, now_ps, due_ps))
    }

    /// Whether the event that should resume a task has been cancelled.
    #[cold]
    pub fn is_stale(&mut self, id: u32, event: Event) -> bool {
        let now_ps = self.now_ps;
        let task = &mut self.tasks[id as usize];
        let is_due = task.due_ps == now_ps && task.looks_when_due == matches!(event, Event::Look(_));
        if is_due {
            // An uncancelled event at the same moment does as well, but only one counts.
            task.due_ps = NEVER;
        } else {
            task.stale_events -= 1;
        }
        !is_due
    }

    /// Takes a task off its CPU once its access is done. The task would otherwise continue by
    /// `then`.
    #[cold]
    pub fn leave_at_last(&mut self, id: u32, then: Event) -> bool {
        self.tasks[id as usize].must_leave = false;
        let cpu = self.tasks[id as usize].cpu;
        if !self.has_to_go(cpu) {
            return false;
        }
        let going_on = if matches!(then, Event::Look(_)) { Return::Look } else { Return::Resume };
        self.give_way(id, going_on);
        true
    }

    /// Whether the task that runs on a CPU has run more than a waiting task. If not, it gets
    /// another turn.
    fn has_to_go(&mut self, cpu: u32) -> bool {
        self.count_runtime(cpu);
        let at = &mut self.cpus.all[cpu as usize];
        let Some(id) = at.running else { return false };
        let goes = at.queue.first_ps().is_some_and(|first_ps| first_ps < self.tasks[id as usize].runtime_ps);
        if !goes {
            (at.need_resched, at.turn_ps) = (false, 0);
            self.arm_tick(cpu);
        }
        goes
    }

    /// Takes a task off its CPU that is ready to continue.
    fn give_way(&mut self, id: u32, going_on: Return) {
        let task = &mut self.tasks[id as usize];
        (task.state, task.going_on) = (State::Leaving, going_on);
        self.leave(id, Phase::Waiting);
    }

    /// Ends a section in which the current task kept its CPU.
    pub fn leave_section(&mut self) {
        let task = self.current_task();
        task.sections -= 1;
        let (is_last, cpu) = (task.sections == 0, task.cpu);
        if is_last && self.is_wanted() {
            self.demand(cpu);
        }
    }

    /// Whether other tasks want the current task's CPU.
    pub fn is_wanted(&self) -> bool {
        let cpu = self.tasks[self.current as usize].cpu;
        self.cpus.all[cpu as usize].need_resched
    }

    /// Offers the current task's CPU to other tasks. Returns whether the current task must suspend
    /// itself.
    pub fn offer(&mut self) -> bool {
        let (id, cpu) = (self.current, self.current_task().cpu);
        if !self.is_wanted() || !self.has_to_go(cpu) {
            return false;
        }
        self.give_way(id, Return::Resume);
        true
    }

    /// Gives the current task's CPU to another ready task, if there is one. Returns whether the
    /// current task must suspend itself.
    pub fn yield_cpu(&mut self) -> bool {
        let (id, cpu) = (self.current, self.current_task().cpu);
        self.count_runtime(cpu);
        let Some(first_ps) = self.cpus.at(cpu).queue.first_ps() else { return false };
        // Place the current task behind the first waiting task.
        let task = self.current_task();
        task.runtime_ps = task.runtime_ps.max(first_ps);
        self.give_way(id, Return::Resume);
        true
    }
}
