//! A machine: memory, tasks, and the run.

mod chains;
mod readers;

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;

use nearlock_core::parking::chain::TABLES;
use nearlock_core::platform::NodeId;
use nearlock_core::platform::SWITCHES_MAX;
use nearlock_core::settings::Setting;

use crate::access::Access;
use crate::account::{self, Times};
use crate::arena::{Arena, LINE, Placed};
use crate::engine::{Counters, Engine, Step};
use crate::issue::Performed;
use crate::nodes::{Lent, Nodes};
use crate::spec::{CORES_MAX, MachineSpec, NodeCount};
use crate::task::{Body, Record, Task};

pub(crate) use self::chains::CHAIN_LINES;
use self::readers::Readers;

/// Bytes of simulated memory. Only memory that is used costs anything.
const MEMORY: usize = 64 << 20;

thread_local! {
    /// The machine whose task currently runs on this thread.
    static RUNNING: Cell<*const Inner> = const { Cell::new(ptr::null()) };
}

/// The parts of a machine. Tasks reach it through [`RUNNING`].
pub(crate) struct Inner {
    pub engine: RefCell<Engine>,
    arena: Rc<Arena>,
    nodes: RefCell<Nodes>,
    socket_of_cpu: Vec<u32>,
    domain_of_cpu: Vec<u32>,
    settings: Cell<[u64; Setting::COUNT]>,
    switches: Cell<[u64; SWITCHES_MAX]>,
    /// The offset of each table of chains, once a lock has asked for one of its chains.
    chains: [Cell<Option<usize>>; TABLES],
    /// The offset of the table of attention words, once a lock has asked for one of them.
    attention: Cell<Option<usize>>,
    readers: Readers,
    pub transfer_ns: Cell<u32>,
    /// Whether time has stopped. The remaining parts of the machine's tasks are then dropped.
    has_ended: Cell<bool>,
}

/// The reason why a run has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// All tasks have ended.
    Finished,
    /// This many tasks wait, and no event can wake them any more.
    Deadlock(usize),
    /// Virtual time has reached the given moment, or a task has called [`Machine::halt`].
    Time,
}

/// A simulated machine. Tasks run on the thread that calls [`Machine::run_until`].
pub struct Machine {
    inner: Rc<Inner>,
    /// The coroutine of each task. Borrowed while a task runs.
    bodies: RefCell<Vec<Body>>,
}

impl Machine {
    /// A machine without tasks. `seed` determines the jitter of latencies and the tasks' random
    /// numbers.
    pub fn new(spec: &MachineSpec, seed: u64) -> Self {
        debug_assert!(spec.cores() <= CORES_MAX);
        let arena = Arena::new(MEMORY);
        let mut engine = Engine::new(spec, Rc::clone(&arena), seed);
        let mut nodes = Nodes::new();
        for cpu in 0..spec.cpus() {
            nodes.add_cpu(&arena);
            engine.cover_new_lines(spec.socket_of_cpu(cpu) as u8);
        }
        let socket_of_cpu = (0..spec.cpus()).map(|cpu| spec.socket_of_cpu(cpu) as u32).collect();
        let domain_of_cpu =
            (0..spec.cpus()).map(|cpu| spec.domain_of_core(spec.core_of_cpu(cpu)) as u32).collect();
        Self {
            inner: Rc::new(Inner {
                engine: RefCell::new(engine),
                arena,
                nodes: RefCell::new(nodes),
                socket_of_cpu,
                domain_of_cpu,
                settings: Cell::new(Setting::DEFAULTS),
                switches: Cell::new([0; SWITCHES_MAX]),
                chains: Default::default(),
                attention: Cell::default(),
                readers: Readers::default(),
                transfer_ns: Cell::default(),
                has_ended: Cell::new(false),
            }),
            bodies: RefCell::default(),
        }
    }

    /// Applies these settings to the locks on this machine.
    pub fn set_settings(&self, values: [u64; Setting::COUNT]) {
        self.inner.settings.set(values);
    }

    /// Applies these switches, in stored form, to the locks whose tuning is
    /// [`Switched`](nearlock_core::tuning::Switched).
    ///
    /// # Panics
    ///
    /// If there is a task, since it may have a lock with other switches.
    pub fn set_switches(&self, stored: [u64; SWITCHES_MAX]) {
        assert!(self.inner.engine.borrow().tasks.is_empty(), "switches are set before there are tasks");
        self.inner.switches.set(stored);
    }

    /// Places a value on cache lines of its own, in the memory of socket `home`. No CPU has the
    /// lines in its cache.
    pub fn place<T>(&self, home: usize, value: T) -> Placed<T> {
        let placed = Placed::new(&self.inner.arena, value);
        self.inner.engine.borrow_mut().cover_new_lines(home as u8);
        placed
    }

    /// Places `len` values side by side.
    pub fn place_slice<T>(&self, home: usize, len: usize, make: impl Fn() -> T) -> Placed<[T]> {
        let placed = Placed::slice(&self.inner.arena, len, make);
        self.inner.engine.borrow_mut().cover_new_lines(home as u8);
        placed
    }

    /// Adds a task that begins at `start_ns` on `cpu`. If other tasks have the CPU then, it waits
    /// for its turn. Returns the task's number, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such CPU. If `body` panics, [`Machine::run_until`] passes on the panic.
    pub fn spawn(&self, cpu: usize, start_ns: u64, body: impl FnOnce() + 'static) -> usize {
        self.add(cpu, start_ns, Box::new(body))
    }

    fn add(&self, cpu: usize, start_ns: u64, body: Box<dyn FnOnce()>) -> usize {
        assert!(cpu < self.inner.socket_of_cpu.len(), "CPU {cpu} of {}", self.inner.socket_of_cpu.len());
        let id = self.inner.engine.borrow_mut().add_task(cpu as u32, start_ns * 1000) as usize;
        let entered = move |yielder| with(|inner| inner.engine.borrow_mut().tasks[id].entered(yielder));
        self.bodies.borrow_mut().push(Body::new(entered, body));
        id
    }

    /// Lets virtual time advance to `until_ns`, unless the run ends before.
    pub fn run_until(&self, until_ns: u64) -> Pause {
        let outer = RUNNING.replace(Rc::as_ptr(&self.inner));
        let _restore = Restore(outer);
        self.inner.engine.borrow_mut().set_horizon(until_ns * 1000);
        let bodies = &mut *self.bodies.borrow_mut();
        let mut step = self.inner.engine.borrow_mut().run();
        loop {
            match step {
                // The engine is not borrowed while the task runs, since the task borrows it.
                Step::Resume(task) => {
                    let has_ended = bodies[task as usize].resume();
                    let engine = &mut *self.inner.engine.borrow_mut();
                    if has_ended {
                        engine.end(task);
                        step = engine.run();
                    } else {
                        step = engine.step;
                    }
                }
                Step::Horizon | Step::Empty => {
                    let engine = &mut *self.inner.engine.borrow_mut();
                    if step == Step::Horizon && engine.unfinished() == 0 {
                        // Only time limits of sleeps that have ended are left.
                        engine.set_horizon(u64::MAX);
                        step = engine.run();
                        if step == Step::Empty {
                            continue;
                        }
                    }
                    engine.pause(step);
                    return match (step, engine.unfinished()) {
                        (Step::Horizon, _) => Pause::Time,
                        (_, 0) => Pause::Finished,
                        (_, waiting) => Pause::Deadlock(waiting),
                    };
                }
            }
        }
    }

    /// Virtual time, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.inner.engine.borrow().now_ps / 1000
    }

    /// The counts so far.
    pub fn counters(&self) -> Counters {
        self.inner.engine.borrow().counters
    }

    /// The times of a task so far.
    ///
    /// # Panics
    ///
    /// If there is no such task.
    pub fn times_of(&self, task: usize) -> Times {
        let engine = self.inner.engine.borrow();
        engine.times(task..task + 1, engine.paused_ps)
    }

    /// The sum of the times of all tasks so far.
    pub fn times(&self) -> Times {
        let engine = self.inner.engine.borrow();
        engine.times(0..engine.tasks.len(), engine.paused_ps)
    }

    /// The sum of the times of all tasks of the calling task's machine so far.
    pub fn current_times() -> Times {
        with(|inner| {
            let engine = inner.engine.borrow();
            engine.times(0..engine.tasks.len(), engine.now_ps)
        })
    }

    /// Ends the current call of [`Machine::run_until`] as soon as the calling task waits for
    /// anything.
    pub fn halt() {
        with(|inner| inner.engine.borrow_mut().halt());
    }

    /// The counts of the calling task's machine so far.
    pub fn current_counters() -> Counters {
        with(|inner| inner.engine.borrow().counters)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Suspended tasks unwind. The values that they drop may use the machine and access its
        // words. These accesses take effect at once, since no task can be suspended any more.
        let _restore = Restore(RUNNING.replace(Rc::as_ptr(&self.inner)));
        self.inner.has_ended.set(true);
        self.bodies.borrow_mut().clear();
    }
}

/// Restores the machine that ran before on this thread.
struct Restore(*const Inner);

impl Drop for Restore {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}

/// The machine that runs on this thread.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Inner) -> R) -> R {
    let inner = RUNNING.get();
    assert!(!inner.is_null(), "only tasks of a simulated machine can do this");
    // SAFETY: `run_until` and `drop` keep the machine alive for as long as `RUNNING` names it.
    f(unsafe { &*inner })
}

/// Whether the machine on this thread has ended and drops its tasks.
#[inline]
fn has_ended() -> bool {
    with(|inner| inner.has_ended.get())
}

/// Performs an access to the word at `address`. The access is simulated if a machine runs on this
/// thread. It is immediate before and after a run, and for values that the end of the machine
/// drops.
///
/// # Safety
///
/// `address` must point to a live word of the access's width.
#[inline]
pub(crate) unsafe fn perform(address: *mut u8, access: Access) -> u64 {
    if RUNNING.get().is_null() || has_ended() {
        // SAFETY: guaranteed by the caller.
        return unsafe { access.apply(address) };
    }
    loop {
        let performed = with(|inner| {
            let offset = inner.offset_of(address) + access.offset;
            inner.engine.borrow_mut().perform(Access { offset, ..access })
        });
        match performed {
            Performed::Done(answer) => return answer,
            Performed::Later => {
                let_others_run();
                return with(|inner| inner.engine.borrow_mut().current_task().answer);
            }
            Performed::Again => let_others_run(),
        }
    }
}

/// Waits until the line of `address` has changed, for at most `turns` turns of a spin loop.
pub(crate) fn wait_for_change(address: *const u8, turns: Option<u32>) {
    let must_wait = with(|inner| {
        let engine = &mut *inner.engine.borrow_mut();
        engine.wait_for_change(inner.offset_of(address), turns) && !engine.comes_back()
    });
    if must_wait {
        let_others_run();
    }
}

/// Like [`wait_for_change`], but also ends when task `owner` leaves its CPU or when other tasks
/// want the running task's CPU.
pub(crate) fn wait_for_owner(address: *const u8, owner: u32) {
    let must_wait = with(|inner| {
        let engine = &mut *inner.engine.borrow_mut();
        engine.wait_for_owner(inner.offset_of(address), owner) && !engine.comes_back()
    });
    if must_wait {
        let_others_run();
    }
    with(|inner| inner.engine.borrow_mut().stop_watching());
}

/// Puts the running task to sleep on the word at `address` until the given moment at the latest.
/// The task does not sleep if `is_expected` finds that the word has changed.
pub(crate) fn park(address: *const u8, until_ps: u64, is_expected: impl FnOnce() -> bool) {
    let began_ps = with(Inner::now_ps);
    spend_ps(with(|inner| inner.engine.borrow().parking.call_ps));
    let offset = with(|inner| {
        let offset = inner.offset_of(address);
        inner.engine.borrow_mut().announce_park(offset);
        offset
    });
    if !is_expected() {
        with(|inner| {
            let engine = &mut *inner.engine.borrow_mut();
            engine.withdraw_park(offset, engine.current);
        });
        return;
    }
    let must_wait = with(|inner| {
        let engine = &mut *inner.engine.borrow_mut();
        engine.park(offset, until_ps) && !engine.comes_back()
    });
    if must_wait {
        let_others_run();
        account::slept_since(began_ps);
    }
}

/// Wakes at most `n` tasks that sleep on the word at `address`. Returns how many.
pub(crate) fn unpark(address: *const u8, n: u32) -> usize {
    if has_ended() {
        return 0;
    }
    spend_ps(with(|inner| inner.engine.borrow().parking.call_ps));
    with(|inner| {
        let offset = inner.offset_of(address);
        inner.engine.borrow_mut().unpark(offset, n)
    })
}

/// Lets virtual time pass for the running task.
#[inline]
pub(crate) fn spend_ps(ps: u64) {
    let must_wait = with(|inner| {
        let engine = &mut *inner.engine.borrow_mut();
        !inner.has_ended.get() && !engine.spend(ps) && !engine.comes_back()
    });
    if must_wait {
        let_others_run();
    }
}

/// Performs an operation that may take the running task off its CPU. `leaves` returns whether it
/// does.
#[inline]
pub(crate) fn leave_if(leaves: impl FnOnce(&mut Engine) -> bool) {
    let must_wait = with(|inner| {
        let engine = &mut *inner.engine.borrow_mut();
        !inner.has_ended.get() && leaves(engine) && !engine.comes_back()
    });
    if must_wait {
        let_others_run();
    }
}

/// Switches to the stack of [`Machine::run_until`] until the running task is resumed.
fn let_others_run() {
    let yielder = with(|inner| inner.engine.borrow().yielder());
    // SAFETY: the running task's yielder lives on its stack for as long as the task does.
    unsafe { (*yielder).suspend(()) };
}

impl Inner {
    fn offset_of(&self, address: *const u8) -> u32 {
        let offset = self.arena.offset_of(address.addr());
        offset.expect("a word outside simulated memory: place it on the machine") as u32
    }

    /// Reads or changes the running task.
    pub fn task<R>(&self, f: impl FnOnce(&mut Task) -> R) -> R {
        let engine = &mut *self.engine.borrow_mut();
        f(&mut engine.tasks[engine.current as usize])
    }

    pub fn now_ps(&self) -> u64 {
        self.engine.borrow().now_ps
    }

    pub fn node_count(&self) -> NodeCount {
        self.engine.borrow().node_count
    }

    pub fn spin_exit_ps(&self) -> u64 {
        self.engine.borrow().costs.spin_exit_ps
    }

    pub fn pause_ps(&self) -> u64 {
        self.engine.borrow().costs.pause_ps
    }

    pub fn processors(&self) -> u32 {
        self.socket_of_cpu.len() as u32
    }

    /// The line that contains `address`.
    pub fn line_of(&self, address: *const u8) -> usize {
        self.offset_of(address) as usize / LINE
    }

    pub fn socket_of_cpu(&self, cpu: u32) -> u32 {
        self.socket_of_cpu[cpu as usize]
    }

    pub fn domain_of_cpu(&self, cpu: u32) -> u32 {
        self.domain_of_cpu[cpu as usize]
    }

    pub fn setting(&self, which: Setting) -> u64 {
        self.settings.get()[which as usize]
    }

    pub fn switch(&self, index: usize) -> u64 {
        self.switches.get()[index]
    }

    /// Memory for a record of the running task, in the memory of its socket.
    pub fn borrow_record(&self, layout: Layout) -> Record {
        let size = layout.size().next_multiple_of(LINE);
        debug_assert!(layout.align() <= LINE);
        let had = self.task(|task| {
            let fits = task.records.iter().rposition(|record| record.size >= size)?;
            Some(task.records.swap_remove(fits))
        });
        had.unwrap_or_else(|| {
            let offset = self.arena.take(layout);
            let home = self.socket_of_cpu(self.task(|task| task.cpu)) as u8;
            self.engine.borrow_mut().cover_new_lines(home);
            Record { address: self.arena.at(offset), size }
        })
    }

    /// Takes back a record of the running task.
    pub fn give_back(&self, record: Record) {
        self.task(|task| task.records.push(record));
    }

    /// Lends the running task a set of queue nodes. `None` if there are too many sets.
    pub fn lend_nodes(&self) -> Option<u32> {
        let cpu = self.task(|task| task.cpu);
        let nodes = &mut *self.nodes.borrow_mut();
        let set = match nodes.lend(cpu) {
            Lent::Set(set) => set,
            Lent::None => {
                let set = nodes.lend_new(&self.arena)?;
                self.engine.borrow_mut().cover_new_lines(self.socket_of_cpu(cpu) as u8);
                set
            }
        };
        self.task(|task| task.nodes = set);
        Some(set)
    }

    /// Takes back a set of queue nodes from the running task.
    pub fn give_back_nodes(&self, set: u32) {
        self.nodes.borrow_mut().give_back(set);
    }

    /// The memory of a queue node.
    pub fn node(&self, id: NodeId) -> *mut u8 {
        self.arena.at(self.nodes.borrow().offset(id))
    }
}
