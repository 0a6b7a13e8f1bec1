//! Issuing a task's accesses: store buffers, atomics, and hits, which need no request.

use crate::access::{Access, Operation};
use crate::engine::Engine;
use crate::events::Event;
use crate::line::{Origin, Prefetched, Request};
use crate::spec::OwnershipOverlap;
use crate::task::{State, Task};

/// The cost of a store for the thread that buffers it, in ps. A thread retires about one store a
/// cycle.
const STORE_PS: u64 = 300;

/// The state of an access after it is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issued {
    /// The access is done. Holds the old value.
    Done(u64),
    /// The access will be done when the task is resumed.
    Later,
    /// The access must be issued again when the task is resumed: it has to wait for the store
    /// buffer, or its time has to pass first.
    Again,
}

/// The progress of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Performed {
    /// The access is done. Holds the old value.
    Done(u64),
    /// The access will be done when the task is resumed. The task must let others run and then take
    /// the answer.
    Later,
    /// The task must let others run and then continue with the access.
    Again,
}

impl Engine {
    /// Performs an access of the current task, and processes other events meanwhile, until another
    /// task is to run.
    pub fn perform(&mut self, access: Access) -> Performed {
        let task = self.current_task();
        if std::mem::take(&mut task.has_looked) {
            return Performed::Done(task.answer);
        }
        loop {
            match self.issue(access) {
                Issued::Done(answer) => return Performed::Done(answer),
                Issued::Later if self.comes_back() => return Performed::Done(self.current_task().answer),
                Issued::Later => return Performed::Later,
                Issued::Again if self.comes_back() => {}
                Issued::Again => return Performed::Again,
            }
        }
    }

    /// Issues an access of the current task.
    pub fn issue(&mut self, access: Access) -> Issued {
        match access.operation {
            Operation::Load => self.issue_load(access),
            Operation::Store => self.issue_store(access),
            Operation::Prefetch => {
                let (task, core) = (self.current, self.current_task().core);
                self.prefetch(task, core, access);
                Issued::Done(0)
            }
            Operation::PrefetchRead => {
                self.prefetch_read(Access { operation: Operation::Load, ..access });
                Issued::Done(0)
            }
            _ if !self.current_task().buffer.is_empty() => self.wait_for_buffer(0),
            _ => self.issue_atomic(access),
        }
    }

    /// An atomic on a line that is present takes its time first. The line may be gone afterwards.
    #[inline(always)]
    fn issue_atomic(&mut self, access: Access) -> Issued {
        let core = self.current_task().core;
        let has_taken_its_time = std::mem::take(&mut self.current_task().atomic_under_way);
        self.counters.atomics += u64::from(!has_taken_its_time);
        if has_taken_its_time || !self.lines[access.line()].hits(core, access) {
            return self.issue_at_line(access, 0);
        }
        if self.spend(self.costs.atomic_owned_ps) {
            return Issued::Done(self.write(&access));
        }
        self.current_task().atomic_under_way = true;
        Issued::Again
    }

    #[inline(always)]
    fn issue_load(&mut self, access: Access) -> Issued {
        let version = self.lines[access.line()].version;
        let now_ps = self.now_ps;
        let task = self.current_task();
        task.last_load = access;
        if let Some(arrives_ps) = task.fill_buffers.arrival(access.line(), now_ps) {
            let then_id = self.current;
            self.schedule_due(then_id, arrives_ps, Event::Resume(then_id));
            return Issued::Again;
        }
        if let Some(newest) = task.buffer.newest_on(&access) {
            if !newest.covers(access) {
                return self.wait_for_buffer(0);
            }
            let forwarded = newest.operand;
            task.seen_version = version;
            return self.finish(forwarded, self.costs.l1_ps);
        }
        self.issue_at_line(access, self.costs.l1_ps)
    }

    fn issue_store(&mut self, access: Access) -> Issued {
        let full = self.buffer_entries;
        let task = self.current;
        let buffer = &mut self.current_task().buffer;
        if buffer.len() >= full {
            return self.wait_for_buffer(full - 1);
        }
        buffer.push(access);
        let behind_others = buffer.len() > 1;
        if behind_others && self.overlap == OwnershipOverlap::Prefetch {
            let core = self.current_task().core;
            self.prefetch(task, core, access);
        }
        self.drain(task);
        if full == 1 && !self.current_task().buffer.is_empty() {
            // A buffer of one entry holds no store back: the thread continues when the store is
            // visible.
            self.current_task().answer = 0;
            self.current_task().state = State::Drain(0);
            return Issued::Later;
        }
        self.finish(0, STORE_PS)
    }

    #[inline(always)]
    fn issue_at_line(&mut self, access: Access, hit_ps: u64) -> Issued {
        let (task, core) = (self.current, self.current_task().core);
        if self.lines[access.line()].hits(core, access) {
            let answer = if access.is_load() { self.read(&access, task) } else { self.write(&access) };
            return self.finish(answer, hit_ps);
        }
        self.current_task().state = State::Memory;
        self.request(Request { access, task, core, origin: Origin::Thread });
        Issued::Later
    }

    /// Requests the line of a later load, unless the core has it, or has no fill buffer for it.
    fn prefetch_read(&mut self, access: Access) {
        let (task, core, now_ps) = (self.current, self.current_task().core, self.now_ps);
        let line = &self.lines[access.line()];
        if !line.hits(core, access) && self.current_task().fill_buffers.begin(access.line(), now_ps) {
            self.request(Request { access, task, core, origin: Origin::PrefetchRead });
        }
    }

    fn prefetch(&mut self, task: u32, core: u16, access: Access) {
        let access = Access { operation: Operation::Prefetch, ..access };
        let line = &self.lines[access.line()];
        if !line.hits(core, access) && !line.is_asked_for_by(core) {
            self.request(Request { access, task, core, origin: Origin::Prefetch });
        }
    }

    /// Makes buffered stores visible as long as their lines are present. Requests the line of the
    /// first store whose line is not.
    pub fn drain(&mut self, task: u32) {
        while !self.tasks[task as usize].draining {
            let Task { core, buffer, .. } = &self.tasks[task as usize];
            let (core, Some(&access)) = (*core, buffer.oldest()) else { return };
            let line = &mut self.lines[access.line()];
            if line.hits(core, access) {
                self.write(&access);
                self.tasks[task as usize].buffer.drain_oldest();
                continue;
            }
            let request = Request { access, task, core, origin: Origin::StoreBuffer };
            match line.take_over_prefetch(request) {
                Prefetched::Moving => return,
                Prefetched::Taken => {}
                Prefetched::No => self.request(request),
            }
            self.tasks[task as usize].draining = true;
        }
    }

    #[inline(always)]
    fn finish(&mut self, answer: u64, ps: u64) -> Issued {
        if self.spend(ps) {
            return Issued::Done(answer);
        }
        self.current_task().answer = answer;
        Issued::Later
    }

    fn wait_for_buffer(&mut self, at_most: usize) -> Issued {
        self.current_task().state = State::Drain(at_most);
        Issued::Again
    }

    /// Drains a buffer after a line has arrived for it. Resumes the task if it waits for that.
    pub fn drain_on(&mut self, id: u32) -> Option<u32> {
        self.drain(id);
        let Task { cpu, state, ref buffer, .. } = self.tasks[id as usize];
        match state {
            State::Drain(at_most) if buffer.len() <= at_most => self.resume(id),
            State::DrainToLook if buffer.is_empty() => self.look(id),
            State::Parked { .. } | State::Asleep { .. } | State::Leaving | State::Ended
                if buffer.is_empty() && self.cpus.at(cpu).running == Some(id) =>
            {
                self.release(cpu);
                None
            }
            _ => None,
        }
    }
}
