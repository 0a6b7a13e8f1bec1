//! A simulated thread: its coroutine, its CPU, and its store buffer.

use std::cell::Cell;
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use nearlock_core::schedule::Mark;
use nearlock_core::shared_holds::SharedLock;

use crate::access::Access;
use crate::account::Account;
use crate::fill_buffers::FillBuffers;
use crate::stores::StoreBuffer;

/// The stack size of a task, in bytes. Locks and workloads need little stack. A page fault behind
/// the stack ends the process.
const STACK: usize = 64 * 1024;

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The task runs, or an event will resume it.
    Ready,
    /// The task waits for the answer to a request for a line.
    Memory,
    /// The task waits until its store buffer holds at most this many stores.
    Drain(usize),
    /// The task waits until its store buffer is empty, then looks at the word that it waits on.
    DrainToLook,
    /// The task waits for a line to change, at most until the given moment, in ps.
    Line { line: u32, until_ps: u64 },
    /// The task sleeps on a word until it is woken, or until the given moment at the latest, in ps.
    Parked { until_ps: u64 },
    /// The task sleeps until the given moment, in ps, or begins then.
    Asleep { until_ps: u64 },
    /// The task waits for a CPU.
    Waiting,
    /// The task has a CPU, which is switching to it.
    Arriving,
    /// The task gives way to others as soon as its stores are visible.
    Leaving,
    /// The task has ended.
    Ended,
}

/// How a task continues when it gets a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Return {
    /// The task runs.
    #[default]
    Resume,
    /// The task still has to compute for this long, in ps.
    Compute(u64),
    /// The task looks at the word that it waits on.
    Look,
}

/// The activity of the other hardware threads of a task's core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sibling {
    /// They are idle.
    Idle,
    /// One of them runs a task too.
    Busy,
}

/// Memory for words on a task's stack: whole lines, which the task keeps for reuse.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub address: *mut u8,
    pub size: usize,
}

/// A simulated thread, except its stack (see [`Body`]).
pub struct Task {
    yielder: *const Yielder<(), ()>,
    pub cpu: u32,
    pub core: u16,
    pub state: State,
    /// The answer to the task's last request.
    pub answer: u64,
    /// Stores that are not visible to other tasks yet, oldest first.
    pub buffer: StoreBuffer,
    /// Whether the oldest buffered store is being served.
    pub draining: bool,
    /// Whether the atomic that the task issues again has already taken its time.
    pub atomic_under_way: bool,
    pub fill_buffers: FillBuffers,
    /// The task's last load.
    pub last_load: Access,
    /// The version of the line that the last load saw.
    pub seen_version: u64,
    /// Whether the last load was issued again for the task while it waited. If so, `answer` is the
    /// result of the next access.
    pub has_looked: bool,
    /// The number of queue nodes in use.
    pub depth: u32,
    /// Memory of the task's former records, for reuse.
    pub records: Vec<Record>,
    /// The state of the generator behind `Random`.
    pub random: u32,
    pub urgent: bool,
    /// The mark that the task has set.
    pub mark: Mark,
    /// How many locks of each kind the task holds shared.
    pub shared_holds: [Cell<u32>; SharedLock::COUNT],
    /// How many sections the task is in. In a section it keeps its CPU.
    pub sections: u32,
    pub sibling: Sibling,
    /// Factor on the time of instructions, for the sibling on the same core.
    pub slowdown: f64,
    /// When the timer next interrupts the task's CPU.
    pub next_tick_ps: u64,
    /// The moment of the event that resumes the task, in ps, and whether the task looks then.
    pub due_ps: u64,
    pub looks_when_due: bool,
    /// The number of events that would have resumed the task, but were cancelled when it was
    /// preempted.
    pub stale_events: u32,
    /// Whether the task is to be preempted as soon as its access is done.
    pub must_leave: bool,
    pub going_on: Return,
    /// The task's virtual runtime, in ps.
    pub runtime_ps: u64,
    /// The word that the task is parked on.
    pub parked_on: u32,
    /// The task that this one watches. This task stops waiting for a line when the watched task
    /// leaves its CPU, or when other tasks need this task's CPU.
    pub watches: Option<u32>,
    /// How many tasks watch this one.
    pub watchers: u32,
    pub account: Account,
    /// The set of queue nodes that the task has while it uses some.
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
            fill_buffers: FillBuffers::default(),
            last_load: Access::NONE,
            seen_version: 0,
            has_looked: false,
            depth: 0,
            records: Vec::new(),
            random: 1,
            urgent: false,
            shared_holds: Default::default(),
            sections: 0,
            mark: Mark::ANONYMOUS,
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

/// The code of a task, on a stack of its own.
pub struct Body(Coroutine<(), (), ()>);

impl Body {
    /// Creates a body. `entered` receives the way back to the event loop before `body` runs.
    pub fn new(entered: impl FnOnce(*const Yielder<(), ()>) + 'static, body: Box<dyn FnOnce()>) -> Self {
        let stack = DefaultStack::new(STACK).expect("memory for a task's stack");
        Self(Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            entered(ptr::from_ref(yielder));
            body();
        }))
    }

    /// Runs the body until it suspends itself or ends. Returns whether it has ended.
    pub fn resume(&mut self) -> bool {
        matches!(self.0.resume(()), CoroutineResult::Return(()))
    }
}
