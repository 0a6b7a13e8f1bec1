//! Models that every lock whose waiters may give up can have. A waiter that stays is never
//! forgotten when others give up. A lock that is handed over to a waiter that gives up is not lost.
//! At the end the lock is free.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use nearlock_core::parking::{Cancellation, GaveUp, Limit, RawTimedLock};
use nearlock_core::platform::Clock;

use crate::engine::{Counter, Engine, Others};
use crate::exclusion::{Guarded, in_slot};
use crate::model::Model;
use crate::shuttle::Shuttle;

impl<E: Engine, L: RawTimedLock<Platform = E>> Guarded<E, L> {
    /// As [`section`](Self::section), if the thread gets the lock within the limit.
    pub fn section_within(&self, limit: &Limit<'_, E>) -> Result<(), GaveUp> {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { self.lock.lock_within(&node, limit) }?;
        self.count.add_one();
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock(&node) };
        Ok(())
    }
}

/// What a thread of a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Locks, however long that takes.
    Lock,
    /// Locks if the lock is free.
    TryLock,
    /// Locks if that takes no time.
    AtOnce,
    /// Locks within a time, which passes while the thread sleeps.
    InTime,
    /// Locks unless it is cancelled.
    UnlessCancelled,
    /// Cancels the wait of [`Act::UnlessCancelled`].
    Cancel,
}

/// The time of [`Act::InTime`], in ns.
const TIME_NS: u64 = 1;

struct TimedState<E: Engine, L> {
    guarded: Guarded<E, L>,
    cancellation: Cancellation<E>,
    sections: AtomicU32,
}

impl<E: Engine, L: RawTimedLock<Platform = E>> TimedState<E, L> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            guarded: Guarded::default(),
            cancellation: Cancellation::default(),
            sections: AtomicU32::new(0),
        })
    }

    fn within(&self, limit: &Limit<'_, E>, reason: GaveUp) -> bool {
        let result = self.guarded.section_within(limit);
        assert!(result.is_ok() || result == Err(reason), "{result:?}");
        result.is_ok()
    }

    /// Returns whether there was a section.
    fn act(&self, act: Act) -> bool {
        match act {
            Act::Lock => {
                self.guarded.section();
                true
            }
            Act::TryLock => self.guarded.try_section(),
            Act::AtOnce => self.within(&Limit::until(0), GaveUp::TimedOut),
            Act::InTime => self.within(&Limit::until(E::now_ns() + TIME_NS), GaveUp::TimedOut),
            Act::UnlessCancelled => {
                let limit = Limit { until_ns: None, cancellation: Some(&self.cancellation) };
                self.within(&limit, GaveUp::Cancelled)
            }
            Act::Cancel => {
                self.cancellation.cancel();
                false
            }
        }
    }

    fn act_all(&self, acts: &[Act]) {
        let sections = acts.iter().filter(|act| self.act(**act)).count();
        self.sections.fetch_add(sections as u32, Relaxed);
    }

    fn finish(&self) {
        assert_eq!(self.guarded.count.get(), self.sections.load(Relaxed));
        assert!(self.guarded.try_section(), "the lock is free at last");
    }
}

/// What the first thread, which holds the lock when the others come, does before its list.
#[derive(Clone, Copy, Debug)]
pub enum First {
    /// Unlocks.
    Releases,
    /// Cancels the wait of a waiter, and then unlocks.
    CancelsAndReleases,
}

/// The first thread holds the lock when the others come. It unlocks, and does what the first list
/// says. The others do what their lists say.
pub fn held_at_first<E: Engine, L: RawTimedLock<Platform = E>>(
    name: &str,
    first: First,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    let lists: Vec<_> = acts.iter().map(|acts| format!("{acts:?}")).collect();
    let title = format!("{name}: held at first; {first:?} {}", lists.join(" "));
    Model::new(title, acts.len() as u32, preemptions, move || {
        let shared = TimedState::<E, L>::new();
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { shared.guarded.lock.lock(&node) };
        let mut others = Others::<E>::default();
        for (slot, acts) in (1..).zip(&acts[1..]) {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || shared.act_all(acts));
        }
        shared.guarded.count.add_one();
        shared.sections.fetch_add(1, Relaxed);
        if matches!(first, First::CancelsAndReleases) {
            shared.cancellation.cancel();
        }
        // SAFETY: locked above with this node.
        unsafe { shared.guarded.lock.unlock(&node) };
        shared.act_all(acts[0]);
        others.join();
        shared.finish();
    })
}

/// The longest wait of a waiter of a crowd, in ns: from no time to some sleeps.
const LIMITS_NS: [u64; 4] = [0, 500, 5_000, 50_000];
/// One in this many turns at the lock has no limit and no cancellation. Of the others, one in this
/// many has a cancellation.
const PLAIN: u32 = 3;
const CANCELLABLE: u32 = 2;
/// One in this many turns cancels the wait of another thread.
const CANCELS: u32 = 3;

/// The cancellations of the current waits, by thread.
type Cancellations = Mutex<Vec<Option<Arc<Cancellation<Shuttle>>>>>;

struct Crowd<L> {
    guarded: Guarded<Shuttle, L>,
    cancellations: Cancellations,
    sections: AtomicU32,
}

impl<L: RawTimedLock<Platform = Shuttle>> Crowd<L> {
    /// A section with some limit, if the thread gets the lock within it.
    fn section(&self, slot: u32) {
        if Shuttle::below(PLAIN) == 0 {
            self.guarded.section();
        } else {
            let cancellation = (Shuttle::below(CANCELLABLE) == 0).then(Arc::<Cancellation<_>>::default);
            self.cancellations.lock().unwrap()[slot as usize].clone_from(&cancellation);
            let limit_ns = LIMITS_NS[Shuttle::below(LIMITS_NS.len() as u32) as usize];
            let until_ns = match &cancellation {
                Some(_) if limit_ns == 0 => None,
                _ => Some(Shuttle::now_ns() + limit_ns),
            };
            let limit = Limit { until_ns, cancellation: cancellation.as_deref() };
            let result = self.guarded.section_within(&limit);
            self.cancellations.lock().unwrap()[slot as usize] = None;
            if result.is_err() {
                return;
            }
        }
        self.sections.fetch_add(1, Relaxed);
    }

    /// Cancels the wait of a random thread, if that thread has a cancellation.
    fn cancel(&self) {
        let chosen = {
            let cancellations = self.cancellations.lock().unwrap();
            cancellations[Shuttle::below(cancellations.len() as u32) as usize].clone()
        };
        if let Some(cancellation) = chosen {
            cancellation.cancel();
        }
    }
}

/// `threads` threads that go `rounds` times to the lock. They have all kinds of limits, or cancel
/// the waits of others.
pub fn crowd<L: RawTimedLock<Platform = Shuttle>>(name: &str, threads: u32, rounds: u32) -> Model<Shuttle> {
    let title = format!("{name}: {threads} threads that may give up, {rounds} rounds each");
    Model::new(title, threads, None, move || {
        let crowd = Arc::new(Crowd::<L> {
            guarded: Guarded::default(),
            cancellations: Mutex::new(vec![None; threads as usize]),
            sections: AtomicU32::new(0),
        });
        let work = move |crowd: &Crowd<L>, slot| {
            for _ in 0..rounds {
                match Shuttle::below(CANCELS) {
                    0 => crowd.cancel(),
                    _ => crowd.section(slot),
                }
            }
        };
        let mut others = Others::<Shuttle>::default();
        for slot in 1..threads {
            let crowd = crowd.clone();
            others.spawn(in_slot(slot), move || work(&crowd, slot));
        }
        work(&crowd, 0);
        others.join();
        assert_eq!(crowd.guarded.count.get(), crowd.sections.load(Relaxed));
        assert!(crowd.guarded.try_section(), "the lock is free at last");
    })
}

/// The models that a checker that tries everything can handle. Each has a waiter that gives up, or
/// is about to.
pub fn models<E: Engine, L: RawTimedLock<Platform = E>>(name: &str) -> Vec<Model<E>> {
    use Act::{AtOnce, Cancel, InTime, Lock, TryLock, UnlessCancelled};
    use First::{CancelsAndReleases, Releases};
    let model = |first, acts, preemptions| held_at_first::<E, L>(name, first, acts, Some(preemptions));
    vec![
        model(Releases, &[&[], &[AtOnce]], 2),
        model(Releases, &[&[TryLock], &[InTime]], 2),
        model(Releases, &[&[Cancel], &[UnlessCancelled]], 3),
        model(CancelsAndReleases, &[&[TryLock], &[UnlessCancelled]], 2),
        model(Releases, &[&[], &[InTime], &[Lock]], 1),
        model(CancelsAndReleases, &[&[], &[UnlessCancelled], &[Lock]], 1),
    ]
}

/// A few of them, for a lock that shares its source with one that has them all.
pub fn few<E: Engine, L: RawTimedLock<Platform = E>>(name: &str) -> Vec<Model<E>> {
    use Act::{AtOnce, InTime, UnlessCancelled};
    use First::{CancelsAndReleases, Releases};
    let model = |first, acts, preemptions| held_at_first::<E, L>(name, first, acts, Some(preemptions));
    vec![
        model(Releases, &[&[], &[AtOnce]], 2),
        model(Releases, &[&[], &[InTime]], 2),
        model(CancelsAndReleases, &[&[], &[UnlessCancelled]], 2),
    ]
}
