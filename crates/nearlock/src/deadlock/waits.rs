//! The list of the threads that wait, and what each of them waits for.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::thread;

use backtrace::Backtrace;
use nearlock_core::near::rwlock::NearRwLock;
use nearlock_core::parking::Limit;
use nearlock_core::schedule::{Mark, Schedule, ThreadId};
use nearlock_core::unwinding::without_unwinding;
use nearlock_os::Os;

use super::Asked;
use super::cycles::cycles;
use super::known::{self, Id, Known, Number, Owner};
use crate::{Cancellation, near, process};

/// The number of a wait. It is used once.
pub(super) type Serial = u64;

/// The acquisition that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Exclusive,
    Shared,
    /// By a recursive reader, which does not wait for a writer that waits for readers.
    SharedRecursive,
    Upgradable,
    /// Of an upgradable acquisition to an exclusive one.
    Upgrade,
}

impl Kind {
    fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::SharedRecursive)
    }
}

/// The lock that a thread waits for.
#[derive(Clone, Copy)]
pub(super) struct Awaited<'a> {
    pub(super) known: &'a Known,
    /// The lock, if it is one that a waiting writer closes.
    pub(super) closable: Option<&'a NearRwLock<Os>>,
}

/// A thread that waits.
struct Wait {
    serial: Serial,
    number: Number,
    /// As locks name their holders.
    mark: ThreadId,
    thread_id: thread::ThreadId,
    kind: Kind,
    known: *const Known,
    closable: Option<*const NearRwLock<Os>>,
    reads: Vec<Id>,
    /// Wakes the thread. Null while it does not sleep.
    cancellation: *const Cancellation,
    question: Option<Sender<Answer>>,
    is_reported: bool,
}

// SAFETY: the pointers are used under the lock of the list. The thread removes its entry, or
// replaces the pointer, under that lock before the pointee ends. `Known`, `NearRwLock` and
// `Cancellation` are `Sync`.
unsafe impl Send for Wait {}

impl Wait {
    fn known(&self) -> &Known {
        // SAFETY: the thread has borrowed it as long as the entry exists.
        unsafe { &*self.known }
    }

    /// Whether the thread keeps other readers and writers out while it waits. An owner of the lock
    /// may have ended, and this thread may have its mark. So the lock must have no other owner.
    fn closes(&self) -> bool {
        // SAFETY: as in `known`.
        self.closable.is_some_and(|lock| match (self.kind, unsafe { &*lock }) {
            (Kind::Exclusive, lock) if self.known().owner().is_none() => {
                lock.is_closed_by(self.mark) || lock.is_closed_by_waiters()
            }
            (Kind::Upgrade, lock) => lock.is_closed_by(self.mark),
            _ => false,
        })
    }
}

/// What a thread answers that was woken.
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    pub(super) backtrace: Backtrace,
}

/// What has become of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The thread had to wait, and waits again.
    Waits,
    /// It has got the lock.
    Ended,
}

static WAITS: near::Mutex<Vec<Wait>> = near::Mutex::new(Vec::new());

fn position(waits: &[Wait], serial: Serial) -> Option<usize> {
    waits.iter().position(|wait| wait.serial == serial)
}

/// Waits until `attempt` returns true. It returns false only if its limit is reached.
#[cold]
pub(super) fn wait(awaited: Awaited<'_>, kind: Kind, attempt: impl Fn(&Limit<'_, Os>) -> bool) {
    static SERIALS: AtomicU64 = AtomicU64::new(0);
    let serial = SERIALS.fetch_add(1, Relaxed);
    if <Os>::mark().is_anonymous() {
        // So that a lock that the thread closes says so.
        <Os>::set_mark(Mark::new(<Os>::thread_id(), <Os>::processor()));
    }
    let mut is_entered = false;
    // The list has pointers to what is on this stack.
    without_unwinding(|| {
        loop {
            let cancellation = Cancellation::new();
            if is_entered {
                go_on(serial, &cancellation);
            } else {
                enter(serial, awaited, kind, &cancellation);
                is_entered = true;
            }
            let has_got_it = attempt(&cancellation.limit());
            let (outcome, question) = if has_got_it {
                (Outcome::Ended, leave(serial))
            } else {
                (Outcome::Waits, interrupt(serial))
            };
            if let Some(question) = question {
                // If nobody waits for the answer any more, it is not needed.
                _ = question.send(Answer { outcome, backtrace: Backtrace::new_unresolved() });
            }
            if has_got_it {
                return;
            }
        }
    });
}

fn enter(serial: Serial, awaited: Awaited<'_>, kind: Kind, cancellation: &Cancellation) {
    let wait = Wait {
        serial,
        number: known::own_number(),
        mark: process::thread_id(),
        thread_id: thread::current().id(),
        kind,
        known: awaited.known,
        closable: awaited.closable.map(ptr::from_ref),
        reads: known::own_reads(),
        cancellation,
        question: None,
        is_reported: false,
    };
    WAITS.lock().push(wait);
}

/// The thread sleeps again.
fn go_on(serial: Serial, cancellation: &Cancellation) {
    let mut waits = WAITS.lock();
    if let Some(index) = position(&waits, serial) {
        waits[index].cancellation = cancellation;
    }
}

/// The thread was woken. Returns the question that it answers.
fn interrupt(serial: Serial) -> Option<Sender<Answer>> {
    let mut waits = WAITS.lock();
    let index = position(&waits, serial)?;
    waits[index].cancellation = ptr::null();
    waits[index].question.take()
}

/// The thread does not wait any more.
fn leave(serial: Serial) -> Option<Sender<Answer>> {
    let mut waits = WAITS.lock();
    let index = position(&waits, serial)?;
    waits.swap_remove(index).question
}

/// Wakes a thread, which then answers. If it does not wait any more, the question is dropped.
pub(super) fn ask(serial: Serial, question: Sender<Answer>) {
    let mut waits = WAITS.lock();
    let Some(index) = position(&waits, serial) else { return };
    waits[index].question = Some(question);
    // SAFETY: it is null, or on the stack of the thread until that has replaced it.
    if let Some(cancellation) = unsafe { waits[index].cancellation.as_ref() } {
        cancellation.cancel();
    }
}

/// These waits are part of deadlocks that are reported.
pub(super) fn note_reported(serials: impl Iterator<Item = Serial>) {
    let mut waits = WAITS.lock();
    for serial in serials {
        if let Some(index) = position(&waits, serial) {
            waits[index].is_reported = true;
        }
    }
}

/// The presumed deadlocks that have not been reported.
pub(super) fn deadlocks() -> Vec<Vec<Asked>> {
    let waits = WAITS.lock();
    let is_new = |set: &Vec<usize>| set.iter().any(|index| !waits[*index].is_reported);
    let asked = |index: usize| {
        let Wait { serial, thread_id, kind, .. } = waits[index];
        Asked { serial, thread_id, is_reader: kind.is_shared() }
    };
    let sets = cycles(&edges(&waits)).into_iter().filter(is_new);
    sets.map(|set| set.into_iter().map(asked).collect()).collect()
}

/// For each thread, those without which it does not get its lock.
fn edges(waits: &[Wait]) -> Vec<Vec<usize>> {
    let mut threads: HashMap<Number, usize> = HashMap::new();
    let mut readers: HashMap<Id, Vec<usize>> = HashMap::new();
    let mut closers: HashMap<*const Known, usize> = HashMap::new();
    for (index, wait) in waits.iter().enumerate() {
        threads.insert(wait.number, index);
        wait.reads.iter().for_each(|id| readers.entry(*id).or_default().push(index));
        if wait.closes() {
            closers.insert(wait.known, index);
        }
    }
    let edges_of = |(index, wait): (usize, &Wait)| {
        let owner = match wait.known().owner() {
            _ if wait.kind == Kind::Upgrade => None,
            Some(Owner::Upgradable(_)) if wait.kind.is_shared() => None,
            owner => owner.and_then(|owner| threads.get(&owner.number())),
        };
        let is_kept_out = |closer: &&usize| **closer != index && wait.kind != Kind::SharedRecursive;
        let closer = closers.get(&wait.known).filter(is_kept_out);
        let readers = match wait.kind {
            Kind::Exclusive | Kind::Upgrade => wait.known().id().and_then(|id| readers.get(&id)),
            Kind::Shared | Kind::SharedRecursive | Kind::Upgradable => None,
        };
        owner.into_iter().chain(closer).chain(readers.into_iter().flatten()).copied().collect()
    };
    waits.iter().enumerate().map(edges_of).collect()
}
