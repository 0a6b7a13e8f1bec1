//! A reader-writer lock as a monitor, for bugs of other libraries in what a waiter or a release
//! decides. Its bookkeeping is plain numbers. Each access to them is one step of a model, like a
//! critical section of the internal lock that those libraries have there.
//!
//! ```text
//! gate     how many steps there were: it orders them
//! inside   how many readers, writers and upgradable readers are in
//! waiting  how many threads of each role wait
//! woken    how often threads of a role were to be woken; `serials` has the same, a little later
//! ```
//! A waiter that cannot enter is counted in `waiting`, in the same step. It sleeps until `woken`
//! changes. Then it tries again. A release that lets waiters enter wakes them in the same step.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use nearlock_core::parking::{GaveUp, Limit, RawTimedLock, RawTimedRwLock};
use nearlock_core::platform::{Atomic, AtomicInt, Park, ParkTimeout, Platform};
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_model::loom::{Loom, LoomU32};

use crate::peers::Upgrades;

/// The faults of the forms. The tests say which library had them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A writer that gives up wakes no readers that have waited for it.
    GivesUpInSilence,
    /// A waiter that was woken, and gives up all the same, does not pass the wake-up on.
    KeepsWakeUp,
    /// A reader that gives up is still counted as one that waits.
    LeavesMark,
    /// Readers wait for an upgradable reader that waits, as they do for a writer.
    WaitsForUpgradable,
    /// A writer that leaves wakes the readers, and no upgradable reader beside them.
    LeavesUpgradable,
    /// An upgrade releases the lock, and then acquires it.
    UpgradesInTwoSteps,
    /// A release of an upgradable reader wakes waiters if the count was 0 before.
    LooksAtOldCount,
}

/// Which waiters go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    Readers,
    Writers,
}

/// One form of the lock.
pub trait Form: Send + Sync + 'static {
    const FAULT: Fault;
    const FIRST: First = First::Writers;
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Reader,
    Writer,
    Upgradable,
    /// An upgradable reader that becomes a writer.
    Upgrade,
}

const ROLES: usize = 4;

#[derive(Default)]
struct Books {
    readers: Cell<u32>,
    writers: Cell<u32>,
    upgradables: Cell<u32>,
    waiting: [Cell<u32>; ROLES],
    woken: [Cell<u32>; ROLES],
}

/// See the module.
pub struct Monitor<F> {
    gate: LoomU32,
    serials: [LoomU32; ROLES],
    books: Books,
    form: PhantomData<F>,
}

// SAFETY: the threads of a model are coroutines on one thread of the machine.
unsafe impl<F: Form> Sync for Monitor<F> {}

impl<F> Default for Monitor<F> {
    fn default() -> Self {
        let serials = std::array::from_fn(|_| LoomU32::new(0));
        Self { gate: LoomU32::new(0), serials, books: Books::default(), form: PhantomData }
    }
}

fn add(number: &Cell<u32>) {
    number.set(number.get() + 1);
}

fn subtract(number: &Cell<u32>) {
    number.set(number.get().checked_sub(1).expect("a number that was added to"));
}

/// The threads to be woken: how many, of each role.
type Wakes = [u32; ROLES];

impl<F: Form> Monitor<F> {
    /// Calls `f` in one step with the books, and wakes the threads that it returns.
    fn step<R>(&self, f: impl FnOnce(&Books) -> (R, Wakes)) -> R {
        // Ordering: AcqRel: the steps before, and what their threads did before, happen before
        // this one.
        self.gate.fetch_add(1, AcqRel);
        let (result, wakes) = f(&self.books);
        for (role, count) in wakes.into_iter().enumerate().filter(|(_, count)| *count != 0) {
            self.serials[role].fetch_add(1, Relaxed);
            Loom::unpark(&self.serials[role], count);
        }
        result
    }

    fn waits(books: &Books, role: Role) -> bool {
        books.waiting[role as usize].get() != 0
    }

    fn is_free(books: &Books) -> bool {
        books.readers.get() + books.writers.get() + books.upgradables.get() == 0
    }

    /// Whether a reader that arrives must let a waiter go first.
    fn has_precedence(books: &Books) -> bool {
        let upgradable = F::FAULT == Fault::WaitsForUpgradable && Self::waits(books, Role::Upgradable);
        let writer = F::FIRST == First::Writers && Self::waits(books, Role::Writer);
        writer || upgradable || Self::waits(books, Role::Upgrade)
    }

    /// Enters, unless another thread is in the way.
    fn enters(books: &Books, role: Role) -> bool {
        let no_writer = books.writers.get() == 0;
        let enters = match role {
            Role::Reader => no_writer && !Self::has_precedence(books),
            Role::Writer => Self::is_free(books),
            Role::Upgradable => no_writer && books.upgradables.get() == 0,
            Role::Upgrade => books.readers.get() == 0,
        };
        if enters {
            match role {
                Role::Reader => add(&books.readers),
                Role::Writer => add(&books.writers),
                Role::Upgradable => add(&books.upgradables),
                Role::Upgrade => {
                    subtract(&books.upgradables);
                    add(&books.writers);
                }
            }
        }
        enters
    }

    /// Chooses the waiters that can enter.
    fn wakes(books: &Books) -> Wakes {
        let mut wakes = [0; ROLES];
        if books.writers.get() != 0 {
            return wakes;
        }
        let mut wake = |role: Role, count: u32| {
            let waits = Self::waits(books, role);
            if waits {
                add(&books.woken[role as usize]);
                wakes[role as usize] = count;
            }
            waits
        };
        if Self::waits(books, Role::Upgrade) {
            _ = books.readers.get() == 0 && wake(Role::Upgrade, 1);
        } else if F::FIRST == First::Writers && Self::waits(books, Role::Writer) {
            _ = Self::is_free(books) && wake(Role::Writer, 1);
        } else {
            let has_readers = wake(Role::Reader, u32::MAX);
            if !(has_readers && F::FAULT == Fault::LeavesUpgradable) && books.upgradables.get() == 0 {
                wake(Role::Upgradable, 1);
            }
            if !has_readers && Self::is_free(books) {
                wake(Role::Writer, 1);
            }
        }
        wakes
    }

    /// The step of a waiter that does not wait any more, and was woken or not.
    fn gives_up(books: &Books, role: Role, was_woken: bool) -> Wakes {
        if !(F::FAULT == Fault::LeavesMark && role == Role::Reader) {
            subtract(&books.waiting[role as usize]);
        }
        let passes_on = match F::FAULT {
            Fault::GivesUpInSilence => was_woken,
            Fault::KeepsWakeUp => !was_woken,
            _ => true,
        };
        if passes_on { Self::wakes(books) } else { [0; ROLES] }
    }

    fn acquire(&self, role: Role, limit: &Limit<'_, Loom>) -> Result<(), GaveUp> {
        let place = role as usize;
        let (mut has_waited, mut seen, mut turn) = (false, 0, 0);
        loop {
            let enters = self.step(|books| {
                if has_waited {
                    subtract(&books.waiting[place]);
                }
                let enters = Self::enters(books, role);
                if !enters {
                    add(&books.waiting[place]);
                    seen = books.woken[place].get();
                }
                (enters, [0; ROLES])
            });
            if enters {
                return Ok(());
            }
            has_waited = true;
            match limit.until_ns {
                Some(until_ns) => Loom::park_until(&self.serials[place], seen, until_ns),
                None => Loom::park(&self.serials[place], seen),
            }
            if let Some(why) = limit.is_reached() {
                self.step(|books| {
                    let was_woken = books.woken[place].get() != seen;
                    ((), Self::gives_up(books, role, was_woken))
                });
                return Err(why);
            }
            // The release that has woken this thread may not have written `serials` yet.
            Loom::cpu_relax(turn);
            turn += 1;
        }
    }

    fn wait(&self, role: Role) {
        assert!(self.acquire(role, &Limit::NONE).is_ok(), "no limit");
    }

    /// Changes the books as a release does, and wakes waiters.
    fn release(&self, change: impl FnOnce(&Books)) {
        self.step(|books| {
            change(books);
            ((), Self::wakes(books))
        });
    }
}

// SAFETY: none: a fault may break it; also below.
unsafe impl<F: Form> RawLock for Monitor<F> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        self.wait(Role::Writer);
    }
    unsafe fn unlock(&self, _node: &()) {
        self.release(|books| subtract(&books.writers));
    }
}

// SAFETY: none, as above.
unsafe impl<F: Form> RawTryLock for Monitor<F> {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        self.step(|books| (Self::enters(books, Role::Writer), [0; ROLES]))
    }
}

// SAFETY: none, as above.
unsafe impl<F: Form> RawRwLock for Monitor<F> {
    unsafe fn lock_shared(&self, _node: &()) {
        self.wait(Role::Reader);
    }
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        self.step(|books| (Self::enters(books, Role::Reader), [0; ROLES]))
    }
    unsafe fn unlock_shared(&self, _node: &()) {
        self.step(|books| {
            subtract(&books.readers);
            // A reader keeps no others out.
            let is_awaited = Self::waits(books, Role::Writer) || Self::waits(books, Role::Upgrade);
            ((), if is_awaited { Self::wakes(books) } else { [0; ROLES] })
        });
    }
    unsafe fn downgrade(&self, _node: &()) {
        self.release(|books| {
            subtract(&books.writers);
            add(&books.readers);
        });
    }
}

// SAFETY: none, as above.
unsafe impl<F: Form> RawTimedLock for Monitor<F> {
    type Platform = Loom;
    unsafe fn lock_within(&self, _node: &(), limit: &Limit<'_, Loom>) -> Result<(), GaveUp> {
        self.acquire(Role::Writer, limit)
    }
}

// SAFETY: none, as above.
unsafe impl<F: Form> RawTimedRwLock for Monitor<F> {
    unsafe fn lock_shared_within(&self, _node: &(), limit: &Limit<'_, Loom>) -> Result<(), GaveUp> {
        self.acquire(Role::Reader, limit)
    }
}

impl<F: Form> Upgrades for Monitor<F> {
    unsafe fn lock_upgradable(&self) {
        self.wait(Role::Upgradable);
    }
    unsafe fn unlock_upgradable(&self) {
        self.step(|books| {
            let before = books.upgradables.get();
            subtract(&books.upgradables);
            let wakes = F::FAULT != Fault::LooksAtOldCount || before == 0;
            ((), if wakes { Self::wakes(books) } else { [0; ROLES] })
        });
    }
    unsafe fn upgrade(&self) {
        if F::FAULT == Fault::UpgradesInTwoSteps {
            self.release(|books| subtract(&books.upgradables));
            self.wait(Role::Writer);
        } else {
            self.wait(Role::Upgrade);
        }
    }
}
