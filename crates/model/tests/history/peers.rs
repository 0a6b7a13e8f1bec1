//! Bugs of other libraries' reader-writer locks. Each is put into a small lock of this test, which
//! has a form with the bug and one without it. Where a test has no lock of its own, it has a
//! platform. `near-rwlock` passes the models of upgradable readers, too.

use std::sync::Arc;

use nearlock_collection::classic::std_mutex::StdMutexTuning;
use nearlock_collection::classic::std_rwlock::StdRwLock;
use nearlock_core::near::rwlock::NearRwLock;
use nearlock_core::parking::{GaveUp, Limit, RawTimedRwLock};
use nearlock_core::platform::{Clock, Park, Platform};
use nearlock_core::raw::RawRwLock;
use nearlock_model::engine::{Counter, Engine, Handle, Thread};
use nearlock_model::exclusion::Guarded;
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::{Depth, Model};
use nearlock_model::readers::Act::{Read, TryWrite, Write};
use nearlock_model::readers::{Patience, acting, impatient_reader, impatient_writer, written_at_first};

use crate::monitor::{Fault, First, Form, Monitor};
use crate::phases::{self, Phases, PhasesForm};
use crate::timed_word::{self, Clears, TimedWord};
use crate::words::{Kind, Words};
use crate::{NO_END, caught};

/// A lock with upgradable readers.
pub trait Upgrades: RawRwLock<Node = ()> {
    /// Waits for an upgradable acquisition.
    ///
    /// # Safety
    ///
    /// The caller releases it; also below.
    unsafe fn lock_upgradable(&self);
    /// Releases it.
    unsafe fn unlock_upgradable(&self);
    /// Turns it into an exclusive one.
    unsafe fn upgrade(&self);
}

impl Upgrades for NearRwLock<Loom> {
    unsafe fn lock_upgradable(&self) {
        // SAFETY: the condition of the caller; also below. Without a limit no call gives up.
        _ = unsafe { self.lock_upgradable_within(&Limit::NONE) };
    }
    unsafe fn unlock_upgradable(&self) {
        // SAFETY: as above.
        unsafe { NearRwLock::unlock_upgradable(self) };
    }
    unsafe fn upgrade(&self) {
        // SAFETY: as above.
        _ = unsafe { self.upgrade_within(&Limit::NONE) };
    }
}

fn in_slot(slot: u32) -> Thread {
    Thread { slot: Some(slot), ..Thread::default() }
}

type State<L> = Guarded<Loom, L>;
type Act<L> = fn(&State<L>);

/// Another thread does this.
fn start<L: Upgrades>(slot: u32, shared: &Arc<State<L>>, act: Act<L>) -> impl Handle + use<L> {
    let shared = shared.clone();
    Loom::spawn(in_slot(slot), move || act(&shared))
}

fn reads<L: Upgrades>(shared: &State<L>) {
    shared.shared_section();
}

fn reads_upgradably<L: Upgrades>(shared: &State<L>) {
    // SAFETY: unlocked below.
    unsafe { shared.lock.lock_upgradable() };
    shared.count.look();
    // SAFETY: locked above.
    unsafe { shared.lock.unlock_upgradable() };
}

/// The last steps of a model: no thread has the lock.
fn is_free_at_last<L: Upgrades>(shared: &State<L>) {
    assert!(shared.try_section(), "the lock is free at last");
}

/// `near-rwlock` passes the model, too.
fn near_passes(model: &Model) {
    println!("near-rwlock: {}", model.run(Depth::default()));
}

fn is_caught_and_near_passes(test: &str, near: &Model, today: &Model, bug: &Model, how: &str) {
    near_passes(near);
    caught(test, today, bug, how);
}

/// The forms of the monitor.
macro_rules! form {
    ($(#[$doc:meta])* $name:ident = $fault:ident $(, $first:ident)?) => {
        $(#[$doc])*
        struct $name;
        impl Form for $name {
            const FAULT: Fault = Fault::$fault;
            $(const FIRST: First = First::$first;)?
        }
    };
}

form!(Mended = None);

#[test]
fn glibc_reader_with_an_old_look() {
    fn model<F: PhasesForm>() -> Model {
        written_at_first::<Loom, Phases<F>>("phases", &[&[Read]], Some(2))
    }
    caught("glibc_reader_with_an_old_look", &model::<phases::Mended>(), &model::<phases::OldLook>(), NO_END);
}

#[test]
fn glibc_try_write_loses_the_mark_of_sleepers() {
    fn model<F: PhasesForm>() -> Model {
        acting::<Loom, Phases<F>>("phases", &[&[Write], &[Read], &[TryWrite]], Some(3))
    }
    let test = "glibc_try_write_loses_the_mark_of_sleepers";
    caught(test, &model::<phases::Mended>(), &model::<phases::MarkLost>(), NO_END);
}

#[test]
fn glibc_writer_that_gives_up_wakes_no_reader() {
    form!(Silent = GivesUpInSilence);
    /// The first thread reads until another one has read.
    fn model<L: RawTimedRwLock<Node = (), Platform = Loom>>() -> Model {
        Model::new("monitor: read until another reads, a writer gives up", 3, Some(2), || {
            let lock = Arc::new(L::default());
            // SAFETY: unlocked below; so in the other threads.
            unsafe { lock.lock_shared(&()) };
            let (writes, reads) = (lock.clone(), lock.clone());
            let writer = Loom::spawn(in_slot(1), move || {
                // SAFETY: it fails, because the lock is read all the time.
                let result = unsafe { writes.lock_within(&(), &Limit::until(0)) };
                assert_eq!(result, Err(GaveUp::TimedOut));
            });
            let reader = Loom::spawn(in_slot(2), move || {
                // SAFETY: as above.
                unsafe {
                    reads.lock_shared(&());
                    reads.unlock_shared(&());
                }
            });
            reader.join().unwrap();
            writer.join().unwrap();
            // SAFETY: locked above.
            unsafe { lock.unlock_shared(&()) };
            // SAFETY: no other thread is there.
            assert!(unsafe { lock.try_lock(&()) }, "the lock is free at last");
        })
    }
    let test = "glibc_writer_that_gives_up_wakes_no_reader";
    let (today, bug) = (model::<Monitor<Mended>>(), model::<Monitor<Silent>>());
    is_caught_and_near_passes(test, &model::<NearRwLock<Loom>>(), &today, &bug, NO_END);
}

#[test]
fn llvm_libc_writer_that_gives_up_keeps_a_wake_up() {
    form!(Keeps = KeepsWakeUp);
    fn model<L: RawTimedRwLock<Platform = Loom>>() -> Model {
        impatient_writer::<Loom, L>("monitor", Patience::Time, &[&[Read]], Some(2))
    }
    let test = "llvm_libc_writer_that_gives_up_keeps_a_wake_up";
    let (today, bug) = (model::<Monitor<Mended>>(), model::<Monitor<Keeps>>());
    caught(test, &today, &bug, NO_END);
}

#[test]
fn freebsd_mark_of_a_reader_that_gave_up() {
    form!(ReadersFirst = None, Readers);
    form!(Left = LeavesMark, Readers);
    fn model<L: RawTimedRwLock<Platform = Loom>>() -> Model {
        impatient_reader::<Loom, L>("monitor, readers first", Patience::Time, &[&[Write]], Some(2))
    }
    let test = "freebsd_mark_of_a_reader_that_gave_up";
    caught(test, &model::<Monitor<ReadersFirst>>(), &model::<Monitor<Left>>(), NO_END);
}

#[test]
fn std_wake_up_that_no_thread_got() {
    nearlock_core::tuning! {
        /// Waiters sleep at once.
        struct NoLooks: StdMutexTuning {
            looks: u32 = 0;
        }
    }
    /// The system says that a thread was woken.
    struct Claims;
    impl Kind for Claims {
        fn unpark_one(word: *const LoomU32) -> bool {
            Loom::unpark(word, 1);
            true
        }
    }
    /// The system does not know.
    struct DoesNotKnow;
    impl Kind for DoesNotKnow {
        fn unpark_one(word: *const LoomU32) -> bool {
            Loom::unpark(word, 1);
            false
        }
    }
    fn model<K: Kind>() -> Model {
        let acts = &[&[Read] as &[_], &[Write]];
        written_at_first::<Loom, StdRwLock<Words<K>, NoLooks>>("std-rwlock-protocol", acts, Some(2))
    }
    caught("std_wake_up_that_no_thread_got", &model::<DoesNotKnow>(), &model::<Claims>(), NO_END);
}

#[test]
fn parking_lot_waiting_upgradable_reader_keeps_readers_out() {
    form!(Waits = WaitsForUpgradable);
    fn model<L: Upgrades>() -> Model {
        let title = "monitor: read upgradably until another reads, and another upgradable reader";
        Model::new(title, 3, Some(2), || {
            let shared = Arc::new(State::<L>::default());
            // SAFETY: unlocked below.
            unsafe { shared.lock.lock_upgradable() };
            let upgradable = start(1, &shared, reads_upgradably);
            let reader = start(2, &shared, reads);
            reader.join().unwrap();
            // SAFETY: locked above.
            unsafe { shared.lock.unlock_upgradable() };
            upgradable.join().unwrap();
            is_free_at_last(&shared);
        })
    }
    let test = "parking_lot_waiting_upgradable_reader_keeps_readers_out";
    let (today, bug) = (model::<Monitor<Mended>>(), model::<Monitor<Waits>>());
    is_caught_and_near_passes(test, &model::<NearRwLock<Loom>>(), &today, &bug, NO_END);
}

#[test]
fn parking_lot_upgradable_reader_left_asleep() {
    form!(Leaves = LeavesUpgradable);
    fn model<L: Upgrades>(preemptions: usize) -> Model {
        let title = "monitor: written at first; an upgradable reader | a reader";
        Model::new(title, 3, Some(preemptions), || {
            let shared = Arc::new(State::<L>::default());
            // SAFETY: unlocked below.
            unsafe { shared.lock.lock(&()) };
            let others = [start(1, &shared, reads_upgradably), start(2, &shared, reads)];
            // SAFETY: locked above.
            unsafe { shared.lock.unlock(&()) };
            others.into_iter().for_each(|other| other.join().unwrap());
            is_free_at_last(&shared);
        })
    }
    let test = "parking_lot_upgradable_reader_left_asleep";
    let (today, bug) = (model::<Monitor<Mended>>(2), model::<Monitor<Leaves>>(2));
    is_caught_and_near_passes(test, &model::<NearRwLock<Loom>>(1), &today, &bug, NO_END);
}

#[test]
fn parking_lot_mark_of_the_writer_cleared_twice() {
    fn model<C: Clears>() -> Model {
        Model::new("timed word: read for a while; a writer with a limit", 2, Some(2), || {
            let shared = Arc::new(State::<TimedWord<C>>::default());
            // SAFETY: unlocked below.
            unsafe { shared.lock.lock_shared(&()) };
            let writes = shared.clone();
            let limit_ns = Loom::now_ns() + 1;
            let writer = Loom::spawn(in_slot(1), move || _ = writes.section_within(&Limit::until(limit_ns)));
            // The writer's time passes.
            (0..2).for_each(|_| Loom::cpu_relax(0));
            // SAFETY: locked above.
            unsafe { shared.lock.unlock_shared(&()) };
            writer.join().unwrap();
            assert!(shared.try_section(), "the lock is free at last");
        })
    }
    let test = "parking_lot_mark_of_the_writer_cleared_twice";
    let (today, bug) = (model::<timed_word::IfSet>(), model::<timed_word::AsSetBefore>());
    caught(test, &today, &bug, "the lock is free at last");
}

#[test]
fn shuttle_upgrade_in_two_steps() {
    form!(TwoSteps = UpgradesInTwoSteps);
    fn model<L: Upgrades>() -> Model {
        Model::new("monitor: an upgrade | Write", 2, Some(3), || {
            let shared = Arc::new(State::<L>::default());
            let writer = start(1, &shared, |shared: &State<L>| shared.section());
            // SAFETY: what is locked is unlocked; also below.
            unsafe { shared.lock.lock_upgradable() };
            let count = shared.count.look();
            // SAFETY: as above.
            unsafe { shared.lock.upgrade() };
            assert_eq!(shared.count.look(), count, "a writer came in between");
            shared.count.add_one();
            // SAFETY: as above.
            unsafe { shared.lock.unlock(&()) };
            writer.join().unwrap();
            is_free_at_last(&shared);
        })
    }
    let test = "shuttle_upgrade_in_two_steps";
    let (today, bug) = (model::<Monitor<Mended>>(), model::<Monitor<TwoSteps>>());
    let how = "a writer came in between";
    is_caught_and_near_passes(test, &model::<NearRwLock<Loom>>(), &today, &bug, how);
}

#[test]
fn asterinas_release_that_looks_at_the_old_count() {
    form!(OldCount = LooksAtOldCount);
    fn model<L: Upgrades>() -> Model {
        Model::new("monitor: read upgradably at first; Write", 2, Some(3), || {
            let shared = Arc::new(State::<L>::default());
            // SAFETY: unlocked below.
            unsafe { shared.lock.lock_upgradable() };
            let writer = start(1, &shared, |shared: &State<L>| shared.section());
            shared.count.look();
            // SAFETY: locked above.
            unsafe { shared.lock.unlock_upgradable() };
            writer.join().unwrap();
            is_free_at_last(&shared);
        })
    }
    let test = "asterinas_release_that_looks_at_the_old_count";
    let (today, bug) = (model::<Monitor<Mended>>(), model::<Monitor<OldCount>>());
    is_caught_and_near_passes(test, &model::<NearRwLock<Loom>>(), &today, &bug, NO_END);
}
