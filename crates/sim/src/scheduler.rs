//! The scheduler: which task has which CPU.
//!
//! ```text
//!   asleep --wake--> [queue of a CPU] --take--> arriving --> running --leave--> asleep, ended
//!      \_____________ its CPU is idle ____________/             |
//!                    [queue of a CPU] <---------- leaving ------+
//! ```
//! A task keeps its CPU until its stores are visible. If each task has a CPU of its own, the
//! scheduler only records which tasks sleep.

mod balance;
mod cpus;
mod owners;
mod preempt;
mod queue;

pub use cpus::Cpus;

use crate::account::Phase;
use crate::engine::Engine;
use crate::events::Event;
use crate::task::{Return, Sibling, State, Task};

impl Engine {
    /// Adds a task that begins at `start_ps`, and seeds its random numbers. Returns its number.
    pub fn add_task(&mut self, cpu: u32, start_ps: u64) -> u32 {
        let id = self.tasks.len() as u32;
        let mut task = Task::new(cpu, self.cpus.core_of(cpu), start_ps);
        task.random = self.jitter.seed();
        if self.cpus.at(cpu).last.is_none() {
            // Ticks continue at their present phase when the CPU's first task begins.
            task.next_tick_ps = self.first_tick_of(cpu);
            self.cpus.at(cpu).last = Some(id);
            self.tasks.push(task);
            self.note_busy(cpu);
        } else {
            self.cpus.are_shared = true;
            self.tasks.push(task);
        }
        self.see_siblings(cpu);
        self.events.schedule(start_ps, Event::Timeout(id));
        id
    }

    /// The moment of a CPU's first tick. It is chosen at random on the first call.
    fn first_tick_of(&mut self, cpu: u32) -> u64 {
        let known = self.cpus.at(cpu).first_tick_ps;
        known.unwrap_or_else(|| {
            let first_ps = self.ticks.first_ps(self.jitter.number());
            *self.cpus.at(cpu).first_tick_ps.insert(first_ps)
        })
    }

    /// Records that the CPU is busy or is about to be.
    fn note_busy(&mut self, cpu: u32) {
        if !std::mem::replace(&mut self.cpus.at(cpu).is_busy, true) {
            *self.cpus.busy_threads_of(cpu) += 1;
            self.see_siblings(cpu);
        }
    }

    fn note_idle(&mut self, cpu: u32) {
        if std::mem::replace(&mut self.cpus.at(cpu).is_busy, false) {
            *self.cpus.busy_threads_of(cpu) -= 1;
            self.see_siblings(cpu);
        }
    }

    /// Tells the tasks of a core whether its other hardware threads are busy.
    ///
    /// As long as each task has a CPU of its own, a CPU counts as busy from the beginning to the
    /// end of the run.
    fn see_siblings(&mut self, cpu: u32) {
        let others_are_busy = *self.cpus.busy_threads_of(cpu) > 1;
        for thread in self.cpus.of_core(cpu) {
            let owner = &self.cpus.all[thread];
            let Some(task) = owner.running.or(owner.last) else { continue };
            let task = &mut self.tasks[task as usize];
            if others_are_busy {
                (task.sibling, task.slowdown) = (Sibling::Busy, 1.0 / self.smt_speed);
            } else if self.cpus.are_shared {
                (task.sibling, task.slowdown) = (Sibling::Idle, 1.0);
            }
        }
    }

    /// Makes a task ready that slept or that begins. Returns whether it has a CPU. If so, the
    /// caller must schedule its arrival there.
    pub fn wake(&mut self, id: u32) -> bool {
        let now_ps = self.now_ps;
        let task = &mut self.tasks[id as usize];
        let from = task.cpu;
        let is_new = task.account.phase() == Phase::Away;
        task.account.wake_ups += u64::from(!is_new);
        task.account.enter(Phase::Waiting, now_ps);
        if self.cpus.at(from).running == Some(id) {
            // The task has not left yet. It keeps the CPU unless other tasks want it.
            let stays = self.cpus.at(from).queue.is_empty();
            self.tasks[id as usize].state = if stays { State::Arriving } else { State::Leaving };
            return stays;
        }
        let cpu = if is_new { from } else { self.cpu_to_wake_on(from) };
        self.settle_among_others(id, cpu, is_new);
        if self.cpus.at(cpu).running.is_none() {
            self.take(cpu, id);
            return true;
        }
        self.enqueue(cpu, id);
        self.preempt_for(cpu, id);
        false
    }

    /// Sets the virtual runtime that a task has on a CPU after it slept.
    fn settle_among_others(&mut self, id: u32, cpu: u32, is_new: bool) {
        self.count_runtime(cpu);
        self.move_runtime(id, cpu);
        let turns = self.cpus.turns;
        let queue = &self.cpus.at(cpu).queue;
        let runtime_ps = self.tasks[id as usize].runtime_ps;
        self.tasks[id as usize].runtime_ps =
            if is_new { queue.of_newcomer(&turns) } else { queue.of_sleeper(runtime_ps, &turns) };
    }

    /// Moves a task to another CPU. The task keeps its lead or lag in virtual runtime.
    fn move_runtime(&mut self, id: u32, cpu: u32) {
        let task = &mut self.tasks[id as usize];
        if task.cpu != cpu {
            let from = &self.cpus.all[task.cpu as usize].queue;
            task.runtime_ps = self.cpus.all[cpu as usize].queue.of_migrant(task.runtime_ps, from);
            task.cpu = cpu;
            task.core = self.cpus.core_of(cpu);
            task.account.migrations += 1;
        }
    }

    /// Puts a ready task into the queue of its CPU.
    fn enqueue(&mut self, cpu: u32, id: u32) {
        let task = &mut self.tasks[id as usize];
        debug_assert_eq!(task.cpu, cpu);
        task.state = State::Waiting;
        let runtime_ps = task.runtime_ps;
        self.cpus.at(cpu).queue.push(runtime_ps, id);
        self.cpus.waiting += 1;
        self.arm_tick(cpu);
    }

    /// Gives an idle CPU to a task that is in no queue.
    fn take(&mut self, cpu: u32, id: u32) {
        let now_ps = self.now_ps;
        let at = self.cpus.at(cpu);
        debug_assert!(at.running.is_none());
        at.running = Some(id);
        (at.need_resched, at.turn_ps, at.counted_ps) = (false, 0, now_ps);
        let is_last = at.last.replace(id) == Some(id);
        self.cpus.idle -= 1;
        if !is_last {
            let first_ps = self.first_tick_of(cpu);
            self.tasks[id as usize].next_tick_ps = self.ticks.last_ps(first_ps, now_ps);
        }
        self.tasks[id as usize].state = State::Arriving;
        self.note_busy(cpu);
        if !is_last {
            self.see_siblings(cpu);
        }
        self.arm_tick(cpu);
    }

    /// Completes the switch to a task.
    pub fn arrive(&mut self, id: u32) -> Option<u32> {
        let now_ps = self.now_ps;
        let task = &mut self.tasks[id as usize];
        debug_assert_eq!(task.state, State::Arriving);
        let cpu = task.cpu;
        if task.account.phase() != Phase::OnCpu {
            task.account.enter(Phase::OnCpu, now_ps);
            self.cpus.at(cpu).counted_ps = now_ps;
        }
        if self.cpus.at(cpu).need_resched {
            self.demand(cpu);
        }
        match std::mem::take(&mut self.tasks[id as usize].going_on) {
            Return::Resume => self.resume(id),
            Return::Look => self.look(id),
            Return::Compute(left_ps) => {
                let task = &mut self.tasks[id as usize];
                task.state = State::Ready;
                let next_ps = &mut task.next_tick_ps;
                let from_ps = self.ticks.interrupted_until_ps(next_ps, now_ps).unwrap_or(now_ps);
                let then_ps = self.ticks.computed_ps(next_ps, from_ps + left_ps);
                self.schedule_due(id, then_ps, Event::Resume(id));
                None
            }
        }
    }

    /// Schedules `event`, which resumes the task or makes it look.
    #[inline(always)]
    pub fn schedule_due(&mut self, id: u32, at_ps: u64, event: Event) {
        let task = &mut self.tasks[id as usize];
        (task.due_ps, task.looks_when_due) = (at_ps, matches!(event, Event::Look(_)));
        self.events.schedule(at_ps, event);
    }

    /// Counts the CPU time of the task that runs on a CPU.
    fn count_runtime(&mut self, cpu: u32) {
        let now_ps = self.now_ps;
        let at = &mut self.cpus.all[cpu as usize];
        let Some(id) = at.running else { return };
        let task = &mut self.tasks[id as usize];
        if task.account.phase() == Phase::OnCpu {
            let ran_ps = now_ps - at.counted_ps;
            at.turn_ps += ran_ps;
            task.runtime_ps += ran_ps;
            at.queue.advance(task.runtime_ps);
        }
        at.counted_ps = now_ps;
    }

    /// Puts the current task to sleep.
    fn fall_asleep(&mut self, state: State) {
        let id = self.current;
        self.current_task().state = state;
        self.leave(id, Phase::Asleep);
    }

    /// Puts the current task to sleep on the word at `offset`, until the given moment at the
    /// latest.
    pub fn sleep_on(&mut self, offset: u32, until_ps: u64) {
        self.current_task().parked_on = offset;
        if until_ps != u64::MAX {
            self.events.schedule(until_ps, Event::Timeout(self.current));
        }
        self.fall_asleep(State::Parked { until_ps });
    }

    /// Puts the current task to sleep for `ps`. Ticks of its CPU prolong the sleep as they prolong
    /// work.
    pub fn sleep(&mut self, ps: u64) {
        let id = self.current;
        let until_ps = self.ticks.computed_ps(&mut self.tasks[id as usize].next_tick_ps, self.now_ps + ps);
        self.events.schedule(until_ps, Event::Timeout(id));
        self.fall_asleep(State::Asleep { until_ps });
    }

    /// Ends a task.
    pub fn end(&mut self, id: u32) {
        self.tasks[id as usize].state = State::Ended;
        self.leave(id, Phase::Away);
    }

    /// Stops a task that runs on a CPU. The task's state says what happens next. The CPU is free as
    /// soon as the task's stores are visible.
    fn leave(&mut self, id: u32, phase: Phase) {
        let now_ps = self.now_ps;
        let cpu = self.tasks[id as usize].cpu;
        self.count_runtime(cpu);
        self.tasks[id as usize].account.enter(phase, now_ps);
        if self.tasks[id as usize].watchers > 0 {
            self.stir_watchers(id);
        }
        if self.tasks[id as usize].buffer.is_empty() {
            self.release(cpu);
        }
    }

    /// Gives a CPU to the next task. The task that has the CPU is leaving, and its stores are
    /// visible.
    pub fn release(&mut self, cpu: u32) {
        let Some(id) = self.cpus.at(cpu).running.take() else { return };
        self.cpus.idle += 1;
        let is_ready = self.tasks[id as usize].state == State::Leaving;
        if is_ready {
            self.enqueue(cpu, id);
        }
        let next = match self.cpus.at(cpu).queue.pop() {
            Some(next) => {
                self.cpus.waiting -= 1;
                Some(next)
            }
            None => self.pull(cpu),
        };
        if next != Some(id) {
            let account = &mut self.tasks[id as usize].account;
            account.involuntary_switches += u64::from(is_ready);
            account.voluntary_switches += u64::from(!is_ready);
        }
        match next {
            Some(next) => self.switch_to(cpu, next),
            None => self.note_idle(cpu),
        }
    }

    /// Switches a CPU to a task, unless the task ran there last.
    fn switch_to(&mut self, cpu: u32, id: u32) {
        let now_ps = self.now_ps;
        let is_last = self.cpus.at(cpu).last == Some(id);
        self.take(cpu, id);
        self.tasks[id as usize].account.enter(Phase::OnCpu, now_ps);
        let switch_ps = if is_last { 0 } else { self.cpus.switch_ps };
        self.events.schedule(now_ps + switch_ps, Event::Arrive(id));
    }
}
