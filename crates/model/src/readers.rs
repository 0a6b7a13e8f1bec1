//! Models that every lock with readers can have. Writers count. Readers look at the count, and
//! report a writer.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::parking::{Cancellation, GaveUp, Limit, RawTimedRwLock};
use nearlock_core::platform::{Clock, Priority};
use nearlock_core::raw::RawRwLock;

use crate::engine::{Counter, Engine, Handle, Others};
use crate::exclusion::{Guarded, in_slot};
use crate::model::Model;
use crate::shuttle::Shuttle;

impl<E: Engine, L: RawRwLock> Guarded<E, L> {
    /// Locks shared, looks at the count and unlocks.
    pub fn shared_section(&self) -> u32 {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { self.lock.lock_shared(&node) };
        let count = self.count.look();
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock_shared(&node) };
        count
    }

    /// As [`shared_section`](Self::shared_section), if there is no writer.
    pub fn try_shared_section(&self) -> Option<u32> {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        if !unsafe { self.lock.try_lock_shared(&node) } {
            return None;
        }
        let count = self.count.look();
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock_shared(&node) };
        Some(count)
    }

    /// As [`shared_section`](Self::shared_section), if the thread gets the lock within the limit.
    pub fn shared_section_within(&self, limit: &Limit<'_, E>) -> Result<u32, GaveUp>
    where
        L: RawTimedRwLock<Platform = E>,
    {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { self.lock.lock_shared_within(&node, limit) }?;
        let count = self.count.look();
        // SAFETY: locked above with this node.
        unsafe { self.lock.unlock_shared(&node) };
        Ok(count)
    }

    /// Locks and counts, then looks as a reader, with no other writer in between.
    pub fn downgraded_section(&self) {
        let node = L::Node::default();
        // SAFETY: the node is ours and outlives the section.
        unsafe { self.lock.lock(&node) };
        self.count.add_one();
        let count = self.count.look();
        // SAFETY: locked above with this node.
        unsafe { self.lock.downgrade(&node) };
        assert_eq!(self.count.look(), count, "a writer came in between");
        // SAFETY: shared since the downgrade.
        unsafe { self.lock.unlock_shared(&node) };
    }
}

/// What a thread of a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Writes.
    Write,
    /// Reads.
    Read,
    /// Writes, and then reads without a gap.
    Downgrade,
    /// Writes if that is possible at once.
    TryWrite,
    /// Reads if that is possible at once.
    TryRead,
}

impl Act {
    /// Does it, and returns how many of its sections wrote.
    fn on<E: Engine, L: RawRwLock>(self, guarded: &Guarded<E, L>) -> u32 {
        match self {
            Self::Write => guarded.section(),
            Self::Read => _ = guarded.shared_section(),
            Self::Downgrade => guarded.downgraded_section(),
            Self::TryWrite => return guarded.try_section().into(),
            Self::TryRead => _ = guarded.try_shared_section(),
        }
        u32::from(self == Self::Write || self == Self::Downgrade)
    }
}

/// A thread for each of these lists, which does what its list says. The first list is that of the
/// first thread of the model.
pub fn acting<E: Engine, L: RawRwLock>(
    name: &str,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    let title = format!("{name}: {}", titles(acts));
    Model::new(title, acts.len() as u32, preemptions, move || {
        let shared = Arc::new(Guarded::<E, L>::default());
        let written = Arc::new(AtomicU32::new(0));
        let work = |slot: usize| {
            let (shared, written) = (shared.clone(), written.clone());
            move || {
                let count: u32 = acts[slot].iter().map(|act| act.on(&shared)).sum();
                written.fetch_add(count, Relaxed);
            }
        };
        let mut others = Others::<E>::default();
        for slot in 1..acts.len() {
            others.spawn(in_slot(slot as u32), work(slot));
        }
        work(0)();
        others.join();
        finish(&shared, written.load(Relaxed));
    })
}

/// The first thread already writes when the others come, which do what these lists say.
pub fn written_at_first<E: Engine, L: RawRwLock>(
    name: &str,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    held_at_first::<E, L>(name, "written", Act::Write, acts, preemptions)
}

/// The first thread already reads when the others come, which do what these lists say.
pub fn read_at_first<E: Engine, L: RawRwLock>(
    name: &str,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    held_at_first::<E, L>(name, "read", Act::Read, acts, preemptions)
}

fn held_at_first<E: Engine, L: RawRwLock>(
    name: &str,
    how: &str,
    first: Act,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    let title = format!("{name}: {how} at first; {}", titles(acts));
    Model::new(title, acts.len() as u32 + 1, preemptions, move || {
        let shared = Arc::new(Guarded::<E, L>::default());
        let writes = acts.iter().flat_map(|acts| acts.iter()).filter(|act| **act != Act::Read).count() as u32;
        let node = L::Node::default();
        take::<E, L>(&shared, first, &node);
        let mut others = Others::<E>::default();
        for (slot, acts) in (1..).zip(acts) {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || acts.iter().for_each(|act| _ = act.on(&shared)));
        }
        let written = give_back::<E, L>(&shared, first, &node, || ());
        others.join();
        finish(&shared, written + writes);
    })
}

/// The limit of a waiter that may give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until a time that passes while it sleeps.
    Time,
    /// Until the first thread cancels the wait.
    Cancellation,
}

/// The first thread already writes when a reader comes that may give up, and others, which do what
/// these lists say.
pub fn impatient_reader<E: Engine, L: RawTimedRwLock<Platform = E>>(
    name: &str,
    patience: Patience,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    let title = format!("{name}: written at first; a reader's {patience:?} | {}", titles(acts));
    impatient::<E, L>(title, Act::Write, Act::Read, patience, acts, preemptions)
}

/// The first thread already reads when a writer comes that may give up, and others, which do what
/// these lists say.
pub fn impatient_writer<E: Engine, L: RawTimedRwLock<Platform = E>>(
    name: &str,
    patience: Patience,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    let title = format!("{name}: read at first; a writer's {patience:?} | {}", titles(acts));
    impatient::<E, L>(title, Act::Read, Act::Write, patience, acts, preemptions)
}

/// `first`, the act of the first thread, is `Read` or `Write`. So is `waiter`, the act of the
/// thread that may give up.
fn impatient<E: Engine, L: RawTimedRwLock<Platform = E>>(
    title: String,
    first: Act,
    waiter: Act,
    patience: Patience,
    acts: &'static [&'static [Act]],
    preemptions: Option<usize>,
) -> Model<E> {
    Model::new(title, acts.len() as u32 + 2, preemptions, move || {
        let shared = Arc::new(Guarded::<E, L>::default());
        let cancellation = Arc::new(Cancellation::<E>::default());
        let written = Arc::new(AtomicU32::new(0));
        let node = L::Node::default();
        take::<E, L>(&shared, first, &node);
        let impatient = {
            let (shared, cancellation, written) = (shared.clone(), cancellation.clone(), written.clone());
            E::spawn(in_slot(1), move || {
                let limit = match patience {
                    Patience::Time => Limit::until(E::now_ns() + 1),
                    Patience::Cancellation => Limit { until_ns: None, cancellation: Some(&cancellation) },
                };
                if waiter == Act::Read {
                    let _ = shared.shared_section_within(&limit);
                } else if shared.section_within(&limit).is_ok() {
                    written.fetch_add(1, Relaxed);
                }
            })
        };
        let mut others = Others::<E>::default();
        for (slot, acts) in (2..).zip(acts) {
            let (shared, written) = (shared.clone(), written.clone());
            others.spawn(in_slot(slot), move || {
                written.fetch_add(acts.iter().map(|act| act.on(&shared)).sum(), Relaxed);
            });
        }
        let cancel = || {
            if patience == Patience::Cancellation {
                cancellation.cancel();
            }
        };
        written.fetch_add(give_back::<E, L>(&shared, first, &node, cancel), Relaxed);
        impatient.join().unwrap();
        others.join();
        finish(&shared, written.load(Relaxed));
    })
}

/// The first thread locks, to read or to write.
fn take<E: Engine, L: RawRwLock>(shared: &Guarded<E, L>, first: Act, node: &L::Node) {
    // SAFETY: the node is the caller's, and outlives the section, which `give_back` ends.
    unsafe {
        match first {
            Act::Read => shared.lock.lock_shared(node),
            _ => shared.lock.lock(node),
        }
    }
}

/// The first thread reads or writes, calls `last`, and unlocks. Returns how many of its sections
/// wrote.
fn give_back<E: Engine, L: RawRwLock>(
    shared: &Guarded<E, L>,
    first: Act,
    node: &L::Node,
    last: impl FnOnce(),
) -> u32 {
    if first == Act::Read {
        shared.count.look();
        last();
        // SAFETY: locked by `take`; also below.
        unsafe { shared.lock.unlock_shared(node) };
        return 0;
    }
    shared.count.add_one();
    last();
    // SAFETY: as above.
    unsafe { shared.lock.unlock(node) };
    1
}

fn titles(acts: &[&[Act]]) -> String {
    let of_thread = |acts: &&[Act]| acts.iter().map(|act| format!("{act:?}")).collect::<Vec<_>>().join(", ");
    acts.iter().map(of_thread).collect::<Vec<_>>().join(" | ")
}

fn finish<E: Engine, L: RawRwLock>(shared: &Guarded<E, L>, written: u32) {
    assert_eq!(shared.count.get(), written);
    assert_eq!(shared.try_shared_section(), Some(written), "no writer is left");
    assert!(shared.try_section(), "the lock is free at last");
}

/// One in this many turns at the lock is urgent.
const URGENT: u32 = 6;
/// The acts of threads of a crowd: most are readers.
const ACTS: [Act; 7] =
    [Act::Read, Act::Read, Act::Read, Act::Write, Act::Downgrade, Act::TryRead, Act::TryWrite];

/// `threads` threads that go `rounds` times to the lock, as readers or writers.
pub fn crowd<L: RawRwLock>(name: &str, threads: u32, rounds: u32) -> Model<Shuttle> {
    let title = format!("{name}: {threads} readers and writers, {rounds} rounds each");
    crowd_of::<L>(title, threads, rounds, |guarded, _| {
        Shuttle::set_priority(Shuttle::below(URGENT) == 0);
        ACTS[Shuttle::below(ACTS.len() as u32) as usize].on(guarded)
    })
}

/// The longest wait of a waiter of a crowd, in ns: from no time to some sleeps.
const LIMITS_NS: [u64; 4] = [0, 500, 5_000, 50_000];

/// As [`crowd`], of readers and writers that may give up, or cancel the waits of others.
pub fn impatient_crowd<L>(name: &str, threads: u32, rounds: u32) -> Model<Shuttle>
where
    L: RawTimedRwLock<Platform = Shuttle>,
{
    let title = format!("{name}: {threads} readers and writers that may give up, {rounds} rounds each");
    crowd_of::<L>(title, threads, rounds, |guarded, cancellation| {
        let limit_ns = LIMITS_NS[Shuttle::below(LIMITS_NS.len() as u32) as usize];
        let cancellation = Some(cancellation).filter(|_| Shuttle::below(2) == 0);
        let until_ns = Some(Shuttle::now_ns() + limit_ns).filter(|_| limit_ns > 0 || cancellation.is_none());
        let limit = Limit { until_ns, cancellation };
        match Shuttle::below(4) {
            0 => Act::Write.on(guarded),
            1 => guarded.section_within(&limit).is_ok().into(),
            _ => {
                let _ = guarded.shared_section_within(&limit);
                0
            }
        }
    })
}

/// Each round is one `turn`, which returns how many sections wrote. Only this thread waits with the
/// given cancellation, and any thread may cancel the wait at any time.
pub(crate) fn crowd_of<L: RawRwLock>(
    title: String,
    threads: u32,
    rounds: u32,
    turn: fn(&Guarded<Shuttle, L>, &Cancellation<Shuttle>) -> u32,
) -> Model<Shuttle> {
    Model::new(title, threads, None, move || {
        let shared = Arc::new(Guarded::<Shuttle, L>::default());
        let written = Arc::new(AtomicU32::new(0));
        let turns = threads * rounds;
        let cancellations: Arc<[Cancellation<Shuttle>]> =
            (0..turns).map(|_| Cancellation::default()).collect();
        let work = |slot: u32| {
            let (shared, written, cancellations) = (shared.clone(), written.clone(), cancellations.clone());
            move || {
                for round in 0..rounds {
                    cancellations[Shuttle::below(turns) as usize].cancel();
                    let count = turn(&shared, &cancellations[(slot * rounds + round) as usize]);
                    written.fetch_add(count, Relaxed);
                }
            }
        };
        let mut others = Others::<Shuttle>::default();
        for slot in 1..threads {
            others.spawn(in_slot(slot), work(slot));
        }
        work(0)();
        others.join();
        finish(&shared, written.load(Relaxed));
    })
}
