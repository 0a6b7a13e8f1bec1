//! A simulated thread: a coroutine, the CPU on which it runs or ran last, its store buffer.

use std::cell::Cell;
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use nearlock_core::shared_holds::SharedLock;

use crate::access::Access;
use crate::account::Account;
use crate::stores::StoreBuffer;

/// Bytes of stack of a task. Locks and workloads are shallow; a page fault behind it ends the
/// process.
const STACK: usize = 64 * 1024;

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, or has an event that will resume it.
    Ready,
    /// It waits for the answer to a request for a line.
    Memory,
    /// It waits until its store buffer holds at most so many stores.
    Drain(usize),
    /// It waits until its store buffer is empty, and then looks at the word on which it waits.
    DrainToLook,
    /// It waits for a line to change, at most until the moment given, in ps.
    Line { line: u32, until_ps: u64 },
    /// It sleeps on a word, until another wakes it, or at most until the moment given, in ps.
    Parked { until_ps: u64 },
    /// It sleeps until the moment given, in ps; or it begins then.
    Asleep { until_ps: u64 },
    /// It waits for a CPU.
    Waiting,
    /// It has a CPU, which is switched to it.
    Arriving,
    /// It gives way to others, as soon as its stores are visible.
    Leaving,
    /// It has ended.
    Ended,
}

/// How a task goes on that gets a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Return {
    /// It runs.
    #[default]
    Resume,
    /// It has still to compute for so long, in ps.
    Compute(u64),
    /// It looks at the word on which it waits.
    Look,
}

/// What the other hardware threads of a task's core do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sibling {
    /// Nothing.
    Idle,
    /// One of them runs a task too.
    Busy,
}

/// Memory for words on a task's stack: whole lines, which stay in the task's hands.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub address: *mut u8,
    pub size: usize,
}

/// A simulated thread, but for the stack that it runs on (see [`Body`]).
pub struct Task {
    yielder: *const Yielder<(), ()>,
    pub cpu: u32,
    pub core: u16,
    pub state: State,
    /// Answer to the request it waited for.
    pub answer: u64,
    /// Stores that are not visible to others yet, oldest first.
    pub buffer: StoreBuffer,
    /// Whether the oldest of them is being served.
    pub draining: bool,
    /// Whether the atomic that it issues again has spent its time.
    pub atomic_under_way: bool,
    /// The load that it issued last.
    pub last_load: Access,
    /// The version of the line at which that load looked.
    pub seen_version: u64,
    /// What the same load, issued for it while it waited, has found: the answer to its next access.
    pub has_looked: bool,
    /// Queue nodes in use.
    pub depth: u32,
    /// Memory for records that the task has had, and has no use for at present.
    pub records: Vec<Record>,
    /// State of the generator behind `Random`.
    pub random: u32,
    pub urgent: bool,
    /// How many locks of a kind it holds shared.
    pub shared_holds: [Cell<u32>; SharedLock::COUNT],
    /// How many sections it is in: it is not taken off its CPU.
    pub sections: u32,
    pub sibling: Sibling,
    /// Factor on the time that instructions take, for the sibling on the same core.
    pub slowdown: f64,
    /// When the timer interrupts its CPU next.
    pub next_tick_ps: u64,
    /// The moment of the event by which it goes on, in ps, and whether it looks then.
    pub due_ps: u64,
    pub looks_when_due: bool,
    /// Events by which it would have gone on if it had not been taken off its CPU; they mean
    /// nothing.
    pub stale_events: u32,
    /// Whether it is to be taken off its CPU as soon as its access is done.
    pub must_leave: bool,
    pub going_on: Return,
    /// CPU time that it has had, as the queues count it, in ps.
    pub runtime_ps: u64,
    /// The word on which it is parked.
    pub parked_on: u32,
    /// The task that it watches, and gives up waiting for a line when that task leaves its CPU or
    /// when others need its own CPU.
    pub watches: Option<u32>,
    /// How many watch it.
    pub watchers: u32,
    pub account: Account,
    /// The set of queue nodes that it has, while it has some in use.
    pub nodes: u32,
}

impl Task {
    /// A task that has not begun.
    pub fn new(cpu: u32, core: u16, start_ps: u64) -> Self {
        Self {
            yielder: ptr::null(),
            cpu,
            core,
            state: State::Asleep { until_ps: start_ps },
            answer: 0,
            buffer: StoreBuffer::default(),
            draining: false,
            atomic_under_way: false,
            last_load: Access::NONE,
            seen_version: 0,
            has_looked: false,
            depth: 0,
            records: Vec::new(),
            random: 1,
            urgent: false,
            shared_holds: Default::default(),
            sections: 0,
            sibling: Sibling::Idle,
            slowdown: 1.0,
            next_tick_ps: u64::MAX,
            due_ps: 0,
            looks_when_due: false,
            stale_events: 0,
            must_leave: false,
            going_on: Return::Resume,
            runtime_ps: 0,
            parked_on: 0,
            watches: None,
            watchers: 0,
            account: Account::default(),
            nodes: 0,
        }
    }

    pub fn entered(&mut self, yielder: *const Yielder<(), ()>) {
        self.yielder = yielder;
    }

    /// The way back to the event loop, once the body has begun.
    pub fn yielder(&self) -> *const Yielder<(), ()> {
        self.yielder
    }
}

/// What a task does, on a stack of its own.
pub struct Body(Coroutine<(), (), ()>);

impl Body {
    /// `entered` is told the way back to the event loop before `body` runs.
    pub fn new(entered: impl FnOnce(*const Yielder<(), ()>) + 'static, body: Box<dyn FnOnce()>) -> Self {
        let stack = DefaultStack::new(STACK).expect("memory for a task's stack");
        Self(Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            entered(ptr::from_ref(yielder));
            body();
        }))
    }

    /// Runs it until it suspends itself or ends. Whether it has ended.
    pub fn resume(&mut self) -> bool {
        matches!(self.0.resume(()), CoroutineResult::Return(()))
    }
}
