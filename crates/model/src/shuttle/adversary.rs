//! A scheduler that works against one thread, for locks under which a waiter can starve.
//!
//! The victim takes a step only when a predicate says that this is bad for the victim, or when it
//! has been held back for very long. Without the second rule a waiter of a fair lock would never
//! get its turn, and the others could not continue. The measure is how often others have had the
//! lock between one step of the victim and its next. Under a lock that bounds the wait, that number
//! stays small however long the others continue. Under another lock it grows with their rounds.
//!
//! [`overtaken`] does all this for a lock. A model of another form states the word
//! ([`Shuttle::watch`]) and wraps the wait in [`Shuttle::suffer`]. It is run by
//! [`check_with`](crate::model::Model::check_with) with an [`Adversary`] around any other
//! scheduler.
//!
//! ```
//! use nearlock_collection::classic::{ticket::TicketLock, ttas::TtasLock};
//! use nearlock_collection::linux::qspinlock::QSpinLock;
//! use nearlock_model::shuttle::Shuttle;
//! use nearlock_model::shuttle::adversary::{Contest, overtaken, word_of};
//!
//! let contest = Contest { others: 2, rounds: 50, schedules: 5, seed: 1 };
//! // The victim looks only while another has the lock.
//! let most = overtaken::<TtasLock<Shuttle>>(contest, |_| 0, |seen| seen.held);
//! assert!(most > 40, "{most}");
//! let most = overtaken::<TicketLock<Shuttle>>(contest, |_| 0, |seen| seen.held);
//! assert!(most < 5, "{most}");
//! // It tries only after the word has changed: a compare-exchange with the value that it has seen
//! // would fail.
//! let most = overtaken::<QSpinLock<Shuttle>>(contest, word_of, |seen| seen.now != seen.then);
//! assert!(most < 10, "{most}");
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use ::shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};
use nearlock_collection::linux::qspinlock::{QSpinLock, QSpinTuning, QueuePolicy};
use nearlock_core::platform::SWITCHES_MAX;
use nearlock_core::raw::RawLock;

use super::{BESIDES, Shuttle, ShuttleU32};
use crate::engine::{Counter, Others};
use crate::exclusion::{Guarded, in_slot};
use crate::model::Model;

/// The largest number of choices of the scheduler for which the victim is held back.
const HELD_BACK_MAX: u32 = 300;

/// What the predicate learns before a step of the victim.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The word after the victim's last step.
    pub then: u32,
    /// The word now.
    pub now: u32,
    /// Whether some thread is in its section.
    pub held: bool,
}

/// The state of the execution.
#[derive(Default)]
pub(super) struct Watch {
    word: RefCell<Option<Rc<dyn Fn() -> u32>>>,
    victim: Cell<Option<TaskId>>,
    sections: Cell<u64>,
    /// The count of sections at the last step of the victim.
    sections_then: Cell<u64>,
    overtaken: Cell<u32>,
    held: Cell<bool>,
}

impl Watch {
    pub(super) fn reset(&self) {
        self.word.replace(None);
        self.victim.set(None);
        self.held.set(false);
    }

    pub(super) fn enter_section(&self) {
        self.held.set(true);
        self.sections.set(self.sections.get() + 1);
    }

    pub(super) fn leave_section(&self) {
        self.held.set(false);
    }

    fn step_of_victim(&self) {
        let now = self.sections.get();
        if self.sections_then.replace(now) != now {
            self.overtaken.set(self.overtaken.get() + 1);
        }
    }
}

impl Shuttle {
    /// From now on the adversary's predicate gets what `word` returns, which must be a look
    /// ([`ShuttleU32::peek`]), and no operation.
    pub fn watch(word: impl Fn() -> u32 + 'static) {
        BESIDES.with(|i| i.watch.word.replace(Some(Rc::new(word))));
    }

    /// Calls `f`, during which the calling thread is the adversary's victim. Returns also how many
    /// of the victim's steps came after sections of others since its step before.
    pub fn suffer<R>(f: impl FnOnce() -> R) -> (R, u32) {
        BESIDES.with(|i| {
            i.watch.victim.set(Some(::shuttle::current::me()));
            i.watch.sections_then.set(i.watch.sections.get());
            i.watch.overtaken.set(0);
        });
        let r = f();
        BESIDES.with(|i| {
            i.watch.victim.set(None);
            (r, i.watch.overtaken.get())
        })
    }
}

/// A scheduler that asks another one, except for the victim's steps; see the [module](self).
pub struct Adversary<S> {
    inner: S,
    bad: Box<dyn Fn(Seen) -> bool>,
    then: u32,
    held_back: u32,
}

impl<S: Scheduler> Adversary<S> {
    /// `inner` chooses among the threads other than the victim. The victim takes a step when `bad`
    /// says so.
    pub fn new(inner: S, bad: impl Fn(Seen) -> bool + 'static) -> Self {
        Self { inner, bad: Box::new(bad), then: 0, held_back: 0 }
    }
}

impl<S: Scheduler> Scheduler for Adversary<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.held_back = 0;
        self.inner.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let (victim, held) = BESIDES.with(|i| (i.watch.victim.get(), i.watch.held.get()));
        let Some(victim) = victim else {
            return self.inner.next_task(runnable, current, is_yielding);
        };
        let now = BESIDES.with(|i| i.watch.word.borrow().as_ref().map_or(0, |word| word()));
        if current == Some(victim) {
            self.then = now;
        }
        let others: Vec<&Task> = runnable.iter().filter(|task| task.id() != victim).copied().collect();
        if others.len() == runnable.len() {
            return self.inner.next_task(runnable, current, is_yielding);
        }
        let seen = Seen { then: self.then, now, held };
        // At most every second step, or the others could not finish what is bad for the victim.
        let bad = current != Some(victim) && (self.bad)(seen);
        if bad || others.is_empty() || self.held_back == HELD_BACK_MAX {
            self.held_back = 0;
            BESIDES.with(|i| i.watch.step_of_victim());
            return Some(victim);
        }
        self.held_back += 1;
        self.inner.next_task(&others, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }
}

/// The program of one victim and other threads with a lock.
#[derive(Clone, Copy, Debug)]
pub struct Contest {
    /// How many other threads there are.
    pub others: u32,
    /// How often each of them locks the lock; the victim does once.
    pub rounds: u32,
    /// How many schedules are tried.
    pub schedules: usize,
    /// The seed from which they are drawn.
    pub seed: u64,
}

/// The largest number of steps of one wait for the lock before which others have had the lock since
/// the step before. The victim takes a step when `bad` says so. `word_of` is what the predicate
/// learns of the lock.
pub fn overtaken<L: RawLock>(
    contest: Contest,
    word_of: fn(&L) -> u32,
    bad: impl Fn(Seen) -> bool + 'static,
) -> u32 {
    overtaken_with::<L>([0; SWITCHES_MAX], contest, word_of, bad)
}

/// The same for a lock with these stored switches.
pub fn overtaken_with<L: RawLock>(
    switches: [u64; SWITCHES_MAX],
    contest: Contest,
    word_of: fn(&L) -> u32,
    bad: impl Fn(Seen) -> bool + 'static,
) -> u32 {
    let Contest { others: count, rounds, schedules, seed } = contest;
    let most = Arc::new(AtomicU32::new(0));
    let result = most.clone();
    let mut model = Model::<Shuttle>::new("contest", count + 1, None, move || {
        let shared = Arc::new(Guarded::<Shuttle, L>::default());
        let watched = shared.clone();
        Shuttle::watch(move || word_of(&watched.lock));
        let mut others = Others::<Shuttle>::default();
        for slot in 1..=count {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || (0..rounds).for_each(|_| shared.section()));
        }
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        let ((), overtaken) = Shuttle::suffer(|| unsafe { shared.lock.lock(&node) });
        most.fetch_max(overtaken, Relaxed);
        shared.count.add_one();
        // SAFETY: locked above with this node.
        unsafe { shared.lock.unlock(&node) };
        others.join();
    });
    model.switches = switches;
    model.check_with(Adversary::new(RandomScheduler::new_from_seed(seed, schedules), bad));
    result.load(Relaxed)
}

/// The word of a qspinlock.
pub fn word_of<Q: QueuePolicy<Shuttle>, T: QSpinTuning>(lock: &QSpinLock<Shuttle, Q, T>) -> u32 {
    // SAFETY: the lock is its word and nothing else (`repr(transparent)`).
    unsafe { &*std::ptr::from_ref(lock).cast::<ShuttleU32>() }.peek()
}
