//! The model that every lock of the list has under Shuttle: many threads that do all that threads
//! may do with the lock.
//!
//! Each thread locks or tries to lock several times, urgently or not. It is on some NUMA node, or
//! moves between NUMA nodes; it has queue nodes, or none. While it waits it may be interrupted.
//! Then it locks another lock of the same type, up to [`NodeId::NESTING`] levels in all. Thresholds
//! and limits are small, so that they are reached.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_collection::subjects::Subject;
use nearlock_core::platform::{NodeId, Priority};
use nearlock_core::raw::RawTryLock;
use nearlock_core::settings::Setting;

use super::{NUMA_NODES, Shuttle};
use crate::engine::{Counter, Engine, Others, Thread};
use crate::exclusion::Guarded;
use crate::model::Model;

/// One in this many threads has no queue nodes.
const NAMELESS: u32 = 8;
/// One in this many threads migrates.
const MIGRANTS: u32 = 3;
/// One in this many acquisitions is urgent.
const URGENT: u32 = 6;
/// One in this many is only an attempt.
const ATTEMPTS: u32 = 4;
/// These locks are not interrupted. A waiter for the lock of a chain may hold the chain's gate at
/// that moment. All locks of the model share the gate, so a handler must not need it.
const UNINTERRUPTED: [&str; 2] = ["parking-lot-0.13-protocol", "parking-lot-0.13-rwlock-protocol"];
/// In each execution one in this many turns of a wait is interrupted. The number is a power of two,
/// whose exponent is drawn below this constant.
const INTERRUPTS: u32 = 6;
const INTERRUPTS_PER_THREAD: u32 = 4;
/// Limits are drawn below this.
const LIMIT: u32 = 3;

/// A lock for each level of interrupts, and the number of its sections.
struct Locks<L> {
    levels: [Guarded<Shuttle, L>; NodeId::NESTING as usize],
    sections: [AtomicU32; NodeId::NESTING as usize],
}

impl<L: RawTryLock> Locks<L> {
    fn section(&self, level: u32) {
        let (guarded, sections) = (&self.levels[level as usize], &self.sections[level as usize]);
        if Shuttle::below(ATTEMPTS) > 0 {
            guarded.section();
        } else if !guarded.try_section() {
            return;
        }
        sections.fetch_add(1, Relaxed);
    }

    fn sections(&self, rounds: u32) {
        for _ in 0..rounds {
            Shuttle::set_priority(Shuttle::below(URGENT) == 0);
            self.section(0);
        }
    }
}

fn some_thread(slot: u32) -> Thread {
    Thread {
        slot: (Shuttle::below(NAMELESS) > 0).then_some(slot),
        numa_node: Shuttle::below(NUMA_NODES),
        migrates: Shuttle::below(MIGRANTS) == 0,
        ..Thread::default()
    }
}

/// `threads` threads that go `rounds` times to the lock.
pub fn crowd<L: RawTryLock>(name: &str, threads: u32, rounds: u32) -> Model<Shuttle> {
    let title = format!("{name}: {threads} threads, {rounds} rounds each");
    let is_interrupted =
        Subject::named(name).is_none_or(|lock| !UNINTERRUPTED.contains(&lock.algorithm.name));
    let times = if is_interrupted { INTERRUPTS_PER_THREAD * threads } else { 0 };
    Model::new(title, threads, None, move || {
        for setting in [
            Setting::CnaShuffleReduction,
            Setting::CnaV13ShuffleReduction,
            Setting::HmcsLocalPassLimit,
            Setting::CohortLocalPassLimit,
        ] {
            Shuttle::set(setting, Shuttle::below(LIMIT).into());
        }
        let locks = Arc::new(Locks::<L> { levels: Default::default(), sections: Default::default() });
        let interrupted = locks.clone();
        let once_in = 1 << Shuttle::below(INTERRUPTS);
        Shuttle::interrupt(once_in, times, move |level| interrupted.section(level));
        Shuttle::become_thread(some_thread(0));
        let mut others = Others::<Shuttle>::default();
        for slot in 1..threads {
            let locks = locks.clone();
            others.spawn(some_thread(slot), move || locks.sections(rounds));
        }
        locks.sections(rounds);
        others.join();
        for (guarded, sections) in locks.levels.iter().zip(&locks.sections) {
            assert_eq!(guarded.count.get(), sections.load(Relaxed));
            assert!(guarded.try_section(), "the lock is free at last");
        }
    })
}
