//! The event loop: tasks request lines, and each line serves its requests one after the other.
//!
//! ```text
//! request --> [queue of the line] --> begin ------- grab -------- done
//!                                      |             |             |
//!                      holder may still hit   value read or    requester continues;
//!                      the line               written; holder  next request begins
//!                                             loses the line
//! ```
//! A read frees the line for the next request before the read itself is done. The line is busy for
//! the read's *occupancy*.

use std::rc::Rc;

use corosensei::Yielder;
use nearlock_core::events::LockEvent;

use crate::arena::Arena;
use crate::costs::Costs;
use crate::events::{Event, EventQueue};
use crate::jitter::Jitter;
use crate::line::Line;
use crate::parking::Parking;
use crate::scheduler::Cpus;
use crate::spec::{LoadOfModified, MachineSpec, NodeCount, OwnershipOverlap};
use crate::task::{State, Task};
use crate::ticks::Ticks;

/// Counts over a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Lines moved between caches, or from memory.
    pub line_transfers: u64,
    /// Line transfers that crossed sockets.
    pub remote_transfers: u64,
    /// Atomic read-modify-writes, including failed compare-exchanges. A sequentially consistent
    /// store counts as one, as on x86-64.
    pub atomics: u64,
    /// Events of the event loop.
    pub events: u64,
    /// Counts from the slow paths of locks, indexed by [`LockEvent`].
    pub lock_events: [u64; LockEvent::COUNT],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            line_transfers: 0,
            remote_transfers: 0,
            atomics: 0,
            events: 0,
            lock_events: [0; LockEvent::COUNT],
        }
    }
}

/// The result of the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This task runs next.
    Resume(u32),
    /// No events are left.
    Empty,
    /// The next event lies beyond the horizon, or the run was halted.
    Horizon,
}

/// The state of a simulated machine.
pub struct Engine {
    pub now_ps: u64,
    /// Events after this moment are left for later.
    horizon_ps: u64,
    halted: bool,
    /// The virtual time that is visible between two runs. It is the time of the horizon if no event
    /// was left before it.
    pub paused_ps: u64,
    /// The task that is running, or ran last.
    pub current: u32,
    /// The task for which the event loop last ran.
    waiting: u32,
    pub step: Step,
    pub tasks: Vec<Task>,
    pub costs: Costs,
    pub counters: Counters,
    pub arena: Rc<Arena>,
    pub events: EventQueue,
    pub lines: Vec<Line>,
    pub parking: Parking,
    pub heavy_fence_ps: u64,
    pub jitter: Jitter,
    pub overlap: OwnershipOverlap,
    pub load_of_modified: LoadOfModified,
    pub node_count: NodeCount,
    pub buffer_entries: usize,
    pub smt_speed: f64,
    pub ticks: Ticks,
    pub same_socket_bypasses: usize,
    pub cpus: Cpus,
}

impl Engine {
    pub fn new(spec: &MachineSpec, arena: Rc<Arena>, seed: u64) -> Self {
        Self {
            now_ps: 0,
            horizon_ps: 0,
            halted: false,
            paused_ps: 0,
            current: 0,
            waiting: 0,
            step: Step::Empty,
            tasks: Vec::new(),
            costs: Costs::new(spec),
            counters: Counters::default(),
            arena,
            events: EventQueue::default(),
            lines: Vec::new(),
            parking: Parking::new(&spec.model),
            heavy_fence_ps: (spec.model.heavy_fence_ns * 1000.0) as u64,
            jitter: Jitter::new(&spec.model, seed),
            overlap: spec.model.ownership_overlap,
            load_of_modified: spec.model.load_of_modified,
            node_count: spec.model.node_count,
            buffer_entries: spec.model.store_buffer_entries,
            smt_speed: spec.model.smt_speed,
            ticks: Ticks::new(&spec.model),
            same_socket_bypasses: spec.model.same_socket_bypasses,
            cpus: Cpus::new(spec),
        }
    }

    /// Creates directory entries for all lines that were given out since the last call. Their
    /// memory is in socket `home`.
    pub fn cover_new_lines(&mut self, home: u8) {
        let lines = self.arena.used() / crate::arena::LINE;
        assert!(lines < EventQueue::IDS, "more lines than the simulator can name");
        self.lines.resize_with(lines, || Line::new(home));
    }

    pub fn current_task(&mut self) -> &mut Task {
        &mut self.tasks[self.current as usize]
    }

    /// Leaves events after this moment for later.
    pub fn set_horizon(&mut self, ps: u64) {
        self.horizon_ps = if self.halted { 0 } else { ps };
    }

    /// Leaves all events for later.
    pub fn halt(&mut self) {
        self.halted = true;
        self.horizon_ps = 0;
    }

    /// Records that a run has stopped.
    pub fn pause(&mut self, step: Step) {
        let reached = step == Step::Horizon && !self.halted;
        self.paused_ps = if reached { self.horizon_ps } else { self.now_ps };
    }

    /// Processes events until a task is to run.
    pub fn run(&mut self) -> Step {
        loop {
            let Some((at, event)) = self.events.pop(self.horizon_ps) else {
                return if self.events.is_empty() { Step::Empty } else { Step::Horizon };
            };
            debug_assert!(at >= self.now_ps);
            self.now_ps = at;
            self.counters.events += 1;
            let task = match event {
                Event::Resume(task) | Event::Look(task)
                    if self.tasks[task as usize].stale_events > 0 && self.is_stale(task, event) =>
                {
                    None
                }
                Event::Resume(task) => self.resume(task),
                Event::Timeout(task) => self.time_out(task),
                Event::Done(line) => self.done(line),
                Event::Look(task) => self.look(task),
                Event::Arrive(task) => self.arrive(task),
                Event::Tick(cpu) => {
                    self.tick(cpu);
                    None
                }
                Event::Grab(line) => {
                    self.grab(line);
                    None
                }
                Event::Free(line) => {
                    self.begin_next(line);
                    None
                }
            };
            if let Some(task) = task {
                return Step::Resume(task);
            }
        }
    }

    /// Resumes a task that has waited, unless its CPU is being interrupted at this moment.
    #[inline(always)]
    pub fn resume(&mut self, id: u32) -> Option<u32> {
        if self.is_interrupted(id, Event::Resume(id)) {
            return None;
        }
        self.current = id;
        Some(id)
    }

    /// Whether a task that has waited must also wait for the end of an interrupt. If so, the event
    /// `then` follows.
    #[inline(always)]
    pub fn is_interrupted(&mut self, id: u32, then: Event) -> bool {
        let task = &mut self.tasks[id as usize];
        task.state = State::Ready;
        if task.must_leave && self.leave_at_last(id, then) {
            return true;
        }
        let task = &mut self.tasks[id as usize];
        let Some(then_ps) = self.ticks.interrupted_until_ps(&mut task.next_tick_ps, self.now_ps) else {
            return false;
        };
        self.schedule_due(id, then_ps, then);
        true
    }

    /// Lets the current task spend `ps`. Returns `true` if nothing else happens meanwhile and the
    /// task may continue at once, or `false` if it must suspend itself.
    #[inline(always)]
    pub fn spend(&mut self, ps: u64) -> bool {
        let next_tick_ps = &mut self.tasks[self.current as usize].next_tick_ps;
        let then = self.ticks.computed_ps(next_tick_ps, self.now_ps + ps);
        if then <= self.horizon_ps && self.events.is_quiet(then) {
            self.now_ps = then;
            return true;
        }
        self.schedule_due(self.current, then, Event::Resume(self.current));
        false
    }

    /// Runs the event loop for the current task, which waits. Returns `true` if this task is the
    /// next to run. Otherwise it must let others run.
    pub fn comes_back(&mut self) -> bool {
        self.waiting = self.current;
        self.step = self.run();
        self.step == Step::Resume(self.waiting)
    }

    /// The waiting task's way back to the stack of
    /// [`Machine::run_until`](crate::Machine::run_until).
    pub fn yielder(&self) -> *const Yielder<(), ()> {
        self.tasks[self.waiting as usize].yielder()
    }

    /// The number of tasks that have not ended.
    pub fn unfinished(&self) -> usize {
        self.tasks.iter().filter(|task| task.state != State::Ended).count()
    }
}
