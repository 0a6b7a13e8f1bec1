//! The event loop: tasks ask for lines, lines serve one request after the other.
//!
//! ```text
//! request --> [queue of the line] --> begin ------- grab -------- done
//!                                      |             |             |
//!                      holder may still hit   value read or    requester goes on;
//!                      the line               written; holder  next request begins
//!                                             loses the line
//! ```
//! A read gives the line back to the next request earlier than its own done (its *occupancy*).

use std::rc::Rc;

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::access::{Access, Operation};
use crate::arena::Arena;
use crate::costs::{Arrival, Cost, Costs, Transfer};
use crate::events::{Event, EventQueue};
use crate::line::{Line, Origin, Prefetched, Request, Service};
use crate::parking::Parking;
use crate::spec::{MachineSpec, OwnershipOverlap};
use crate::task::{State, Task};

/// What a store costs the thread that buffers it, in ps: it retires about one a cycle.
const STORE_PS: u64 = 300;

/// What is counted over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Lines moved between caches, or from memory.
    pub line_transfers: u64,
    /// Those that crossed sockets.
    pub remote_transfers: u64,
    /// Events of the loop.
    pub events: u64,
}

/// What has become of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issued {
    /// It is done; this is the old value.
    Done(u64),
    /// It will be done when the task is resumed: suspend, then take the answer.
    Later,
    /// It has to wait for the store buffer: suspend, then issue it again.
    Again,
}

/// What the loop has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Go on.
    Next,
    /// Let this task run, then go on.
    Resume(u32),
    /// Nothing will happen any more.
    Empty,
    /// What comes next lies behind the horizon, or the run was halted.
    Horizon,
}

/// The state of a simulated machine.
pub struct Engine {
    pub now_ps: u64,
    /// Events after this moment are left for later.
    pub horizon_ps: u64,
    pub halted: bool,
    pub current: u32,
    pub tasks: Vec<Task>,
    pub costs: Costs,
    pub counters: Counters,
    pub arena: Rc<Arena>,
    pub events: EventQueue,
    lines: Vec<Line>,
    pub parking: Parking,
    pub heavy_fence_ps: u64,
    jitter: Xoshiro256PlusPlus,
    jitter_width: f64,
    overlap: OwnershipOverlap,
    buffer_entries: usize,
    smt_miss_scale: f64,
    smt_speed: f64,
    threads_per_core: usize,
}

impl Engine {
    pub fn new(spec: &MachineSpec, arena: Rc<Arena>, jitter: Xoshiro256PlusPlus) -> Self {
        Self {
            now_ps: 0,
            horizon_ps: 0,
            halted: false,
            current: 0,
            tasks: Vec::new(),
            costs: Costs::new(spec),
            counters: Counters::default(),
            arena,
            events: EventQueue::default(),
            lines: Vec::new(),
            parking: Parking::new(&spec.model),
            heavy_fence_ps: (spec.model.heavy_fence_ns * 1000.0) as u64,
            jitter,
            jitter_width: spec.model.jitter,
            overlap: spec.model.ownership_overlap,
            buffer_entries: spec.model.store_buffer_entries,
            smt_miss_scale: spec.model.smt_miss_scale,
            smt_speed: spec.model.smt_speed,
            threads_per_core: spec.smt,
        }
    }

    /// Makes directory entries, with memory in socket `home`, for all lines given out since the last call.
    pub fn cover_new_lines(&mut self, home: u8) {
        let lines = self.arena.used() / crate::arena::LINE;
        assert!(lines < EventQueue::IDS, "more lines than the simulator can name");
        self.lines.resize_with(lines, || Line::new(home));
    }

    pub fn core_of_cpu(&self, cpu: usize) -> u16 {
        (cpu / self.threads_per_core) as u16
    }

    /// Gives a new task its random numbers, and notes whom it shares its core with.
    pub fn settle(&mut self, task: &mut Task) {
        task.random = self.jitter.next_u32() | 1;
        let core = task.core;
        for sibling in self.tasks.iter_mut().filter(|other| other.core == core) {
            for one in [&mut *sibling, &mut *task] {
                one.sibling_is_busy = true;
                one.slowdown = 1.0 / self.smt_speed;
            }
        }
    }

    pub fn add_task(&mut self, task: Task, start_ps: u64) -> u32 {
        let id = self.tasks.len() as u32;
        self.tasks.push(task);
        self.events.schedule(start_ps, Event::Resume(id));
        id
    }

    pub fn current_task(&mut self) -> &mut Task {
        &mut self.tasks[self.current as usize]
    }

    /// Does the next thing.
    pub fn step(&mut self) -> Step {
        match self.events.next_ps() {
            None => return Step::Empty,
            Some(at) if at > self.horizon_ps || self.halted => return Step::Horizon,
            Some(_) => {}
        }
        let Some((at, event)) = self.events.pop() else { return Step::Empty };
        debug_assert!(at >= self.now_ps);
        self.now_ps = at;
        self.counters.events += 1;
        match event {
            Event::Resume(task) => self.resume(task),
            Event::Timeout(task) => self.time_out(task),
            Event::Grab(line) => {
                self.grab(line);
                Step::Next
            }
            Event::Done(line) => self.done(line),
            Event::Free(line) => {
                self.begin_next(line);
                Step::Next
            }
        }
    }

    fn resume(&mut self, task: u32) -> Step {
        self.current = task;
        self.tasks[task as usize].state = State::Ready;
        Step::Resume(task)
    }

    fn time_out(&mut self, task: u32) -> Step {
        // Not if it was woken before, and waits for something else by now.
        let State::Line { line, until_ps } = self.tasks[task as usize].state else { return Step::Next };
        if until_ps != self.now_ps {
            return Step::Next;
        }
        self.lines[line as usize].waiters.retain(|waiter| *waiter != task);
        self.resume(task)
    }

    /// Lets the current task spend `ps`: true if nothing else happens meanwhile and it may go on at
    /// once, false if it must suspend itself.
    pub fn spend(&mut self, ps: u64) -> bool {
        let then = self.now_ps + ps;
        let alone = self.events.next_ps().is_none_or(|next| next > then);
        if alone && then <= self.horizon_ps && !self.halted {
            self.now_ps = then;
            return true;
        }
        self.events.schedule(then, Event::Resume(self.current));
        false
    }

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
            _ if !self.current_task().buffer.is_empty() => self.wait_for_buffer(0),
            _ => self.issue_atomic(access),
        }
    }

    /// An atomic on a line that is here takes its time first, and may find the line gone by then.
    fn issue_atomic(&mut self, access: Access) -> Issued {
        let core = self.current_task().core;
        let has_taken_its_time = std::mem::take(&mut self.current_task().atomic_under_way);
        if has_taken_its_time || !self.lines[access.line()].hits(core, access) {
            return self.issue_at_line(access, 0);
        }
        if self.spend(self.costs.atomic_owned_ps) {
            return Issued::Done(self.apply(access, self.current));
        }
        self.current_task().atomic_under_way = true;
        Issued::Again
    }

    fn issue_load(&mut self, access: Access) -> Issued {
        let version = self.lines[access.line()].version;
        let task = self.current_task();
        if let Some(newest) = task.buffer.iter().rev().find(|store| store.overlaps(access)) {
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
        buffer.push_back(access);
        let behind_others = buffer.len() > 1;
        if behind_others && self.overlap == OwnershipOverlap::Prefetch {
            let core = self.current_task().core;
            self.prefetch(task, core, access);
        }
        self.drain(task);
        if full == 1 && !self.current_task().buffer.is_empty() {
            // A buffer of one holds nothing back: the thread goes on when the store is visible.
            self.current_task().answer = 0;
            self.current_task().state = State::Drain(0);
            return Issued::Later;
        }
        self.finish(0, STORE_PS)
    }

    fn issue_at_line(&mut self, access: Access, hit_ps: u64) -> Issued {
        let (task, core) = (self.current, self.current_task().core);
        if self.lines[access.line()].hits(core, access) {
            let answer = self.apply(access, task);
            return self.finish(answer, hit_ps);
        }
        self.current_task().state = State::Memory;
        self.request(Request { access, task, core, origin: Origin::Thread });
        Issued::Later
    }

    fn prefetch(&mut self, task: u32, core: u16, access: Access) {
        let access = Access { operation: Operation::Prefetch, ..access };
        let line = &self.lines[access.line()];
        if !line.hits(core, access) && !line.is_asked_for_by(core) {
            self.request(Request { access, task, core, origin: Origin::Prefetch });
        }
    }

    /// Makes buffered stores visible, as far as their lines are here; asks for the first that is not.
    fn drain(&mut self, task: u32) {
        while !self.tasks[task as usize].draining {
            let Task { core, buffer, .. } = &self.tasks[task as usize];
            let (core, Some(&access)) = (*core, buffer.front()) else { return };
            let line = &mut self.lines[access.line()];
            if line.hits(core, access) {
                self.apply(access, task);
                self.tasks[task as usize].drain_oldest();
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

    /// Reads or writes a word whose line is here.
    fn apply(&mut self, access: Access, task: u32) -> u64 {
        // SAFETY: offsets come from words in the arena, which are live and aligned.
        let old = unsafe { access.apply(self.arena.at(access.offset as usize)) };
        if access.is_load() {
            self.tasks[task as usize].seen_version = self.lines[access.line()].version;
        } else {
            self.change(access.line());
        }
        old
    }

    /// Notes that a line has changed or moved, and wakes those who wait for that. Each notices within a
    /// turn of its spin loop.
    fn change(&mut self, line: usize) {
        let line = &mut self.lines[line];
        line.version += 1;
        if line.waiters.is_empty() {
            return;
        }
        let mut waiters = std::mem::take(&mut line.waiters);
        let turn = self.costs.pause_ps.max(1);
        for task in waiters.drain(..) {
            self.tasks[task as usize].state = State::Ready;
            let notices = self.now_ps + self.jitter.next_u64() % turn;
            self.events.schedule(notices, Event::Resume(task));
        }
        line.waiters = waiters;
    }

    /// Makes the current task wait until the line of `offset` changes, at most for `turns` of a spin
    /// loop. False if it has changed since the task looked, or is not here any more: look again.
    pub fn wait_for_change(&mut self, offset: u32, turns: Option<u32>) -> bool {
        let look = Access { offset, width: 1, operation: Operation::Load, operand: 0, expected: 0 };
        let (task, core, seen) = (self.current, self.current_task().core, self.current_task().seen_version);
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

    fn request(&mut self, request: Request) {
        let index = request.access.line();
        match self.lines[index].service {
            Service::Idle => self.begin(index as u32, request, Arrival::AtOnce),
            _ => self.lines[index].queue.push_back(request),
        }
    }

    fn begin_next(&mut self, index: u32) {
        let line = &mut self.lines[index as usize];
        line.service = Service::Idle;
        if let Some(request) = line.queue.pop_front() {
            self.begin(index, request, Arrival::Queued);
        }
    }

    fn begin(&mut self, index: u32, request: Request, arrival: Arrival) {
        let line = &self.lines[index as usize];
        let cost = self.vary(self.costs.of(request.core, line, request.access.operation), request.task);
        match cost.transfer {
            Transfer::None => {}
            Transfer::Local => self.counters.line_transfers += 1,
            Transfer::Remote => {
                self.counters.line_transfers += 1;
                self.counters.remote_transfers += 1;
            }
        }
        let (done_ps, free_ps) = (self.now_ps + cost.latency_ps, self.now_ps + cost.occupancy_ps);
        self.lines[index as usize].service = Service::Begun { request, done_ps, free_ps };
        self.events.schedule(self.now_ps + self.costs.grab_ps(cost, arrival), Event::Grab(index));
    }

    /// Real transfers vary, and take longer while the core's other thread is busy.
    fn vary(&mut self, cost: Cost, task: u32) -> Cost {
        if cost.transfer == Transfer::None || self.jitter_width == 0.0 && self.smt_miss_scale == 1.0 {
            return cost;
        }
        let unit = (self.jitter.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let busy_sibling = self.tasks[task as usize].sibling_is_busy;
        let smt = if busy_sibling { self.smt_miss_scale } else { 1.0 };
        let factor = smt * (1.0 + self.jitter_width * (2.0 * unit - 1.0));
        Cost {
            latency_ps: (cost.latency_ps as f64 * factor) as u64,
            occupancy_ps: ((cost.occupancy_ps as f64 * factor) as u64).max(1),
            ..cost
        }
    }

    fn grab(&mut self, index: u32) {
        let Service::Begun { request, done_ps, free_ps } = self.lines[index as usize].service else {
            unreachable!("a grab of a line that serves nobody")
        };
        let domain = self.costs.domain_of_core[usize::from(request.core)];
        let line = &mut self.lines[index as usize];
        if !request.access.is_load() {
            line.give(request.core, domain);
            line.service = Service::Moving { request };
            let answer = self.apply(request.access, request.task);
            if request.origin == Origin::Thread {
                self.tasks[request.task as usize].answer = answer;
            }
            self.events.schedule(done_ps, Event::Done(index));
            return;
        }
        if line.owner.is_none() && line.sharer_domains == 0 {
            line.give(request.core, domain);
        } else {
            line.share(request.core, domain);
        }
        line.service = Service::Reading;
        self.tasks[request.task as usize].answer = self.apply(request.access, request.task);
        self.events.schedule(done_ps, Event::Resume(request.task));
        if free_ps > self.now_ps {
            self.events.schedule(free_ps, Event::Free(index));
        } else {
            self.begin_next(index);
        }
    }

    fn done(&mut self, index: u32) -> Step {
        let Service::Moving { request } = self.lines[index as usize].service else {
            unreachable!("a line arrives that did not move")
        };
        self.lines[index as usize].service = Service::Idle;
        let step = match request.origin {
            Origin::Thread => self.resume(request.task),
            Origin::Prefetch => self.drain_on(request.task),
            Origin::StoreBuffer => {
                let task = &mut self.tasks[request.task as usize];
                task.drain_oldest();
                task.draining = false;
                self.drain_on(request.task)
            }
        };
        self.begin_next(index);
        step
    }

    /// Drains a buffer to which a line has come, and lets its task go on if that is what it waits for.
    fn drain_on(&mut self, id: u32) -> Step {
        self.drain(id);
        let task = &self.tasks[id as usize];
        match task.state {
            State::Drain(at_most) if task.buffer.len() <= at_most => self.resume(id),
            _ => Step::Next,
        }
    }

    /// Tasks that have not ended.
    pub fn unfinished(&self) -> usize {
        self.tasks.iter().filter(|task| task.state != State::Ended).count()
    }
}
