//! The model that every lock of the list has under Shuttle: many threads that do all that threads
//! may do with it.
//!
//! Each thread takes the lock or tries to, several times, urgently or not. It is on some NUMA node,
//! or moves from one to another; it has queue nodes, or none. While it waits it may be interrupted,
//! and then takes another lock of the same type, up to [`NodeId::NESTING`] levels in all.
//! Thresholds and limits are small, so that they are met.

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

/// One in so many threads has no queue nodes.
const NAMELESS: u32 = 8;
/// One in so many threads migrates.
const MIGRANTS: u32 = 3;
/// One in so many acquisitions is urgent.
const URGENT: u32 = 6;
/// One in so many is an attempt only.
const ATTEMPTS: u32 = 4;
/// Not interrupted: a waiter for the lock of a chain may hold its gate then, which all locks of the
/// model share, so that no handler may want it.
const UNINTERRUPTED: &str = "parking-lot-0.13-protocol";
/// In each execution one turn of a wait in so many is interrupted: a power of two, drawn below this
/// one.
const INTERRUPTS: u32 = 6;
const INTERRUPTS_PER_THREAD: u32 = 4;
/// Limits are drawn below this.
const LIMIT: u32 = 3;

/// A lock for each level of interrupts, and the sections there have been.
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
    let is_interrupted = Subject::named(name).is_none_or(|lock| lock.algorithm.name != UNINTERRUPTED);
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
