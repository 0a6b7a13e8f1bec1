//! The models of each lock of the list.

mod cna;
mod counter_mutex;
mod mtx;
mod mutex;
mod near;
mod peers;
mod rwsx;
mod thread_lock;

use nearlock_collection::classic::cohort::CohortLock;
use nearlock_collection::classic::hmcs::HmcsLock;
use nearlock_collection::freebsd::rw::RwKind;
use nearlock_collection::linux::cna::{Cna, NoShuffleReduction};
use nearlock_collection::linux::cna_v13::CnaV13;
use nearlock_collection::linux::counter_mutex::{Crowd, Exchange, InTurns, NoPreRead, OneSpins, UnlockFirst};
use nearlock_collection::linux::qspinlock::{
    Fifo, Node, ParkOnly, Preemptible, QSpinLock, QSpinTuning, StealHybrid, StealOnce, WaitLate, WakefulHead,
    WholeWord,
};
use nearlock_collection::subjects::{Family, LockVisitor, Subject};
use nearlock_core::events::LockEvent;
use nearlock_core::parking::{RawTimedLock, RawTimedRwLock};
use nearlock_core::platform::LocalNodes;
use nearlock_core::raw::{RawRwLock, RawTryLock};
use nearlock_core::settings::Setting;
use nearlock_core::tuning::Standard;

use crate::engine::Engine;
use crate::exclusion::{counting, held_at_first, on_numa_nodes, one_node_for_two_locks, trying};
use crate::lockmgr;
use crate::loom::Loom;
use crate::model::Model;
use crate::parts;
use crate::readers::{Act, Patience, acting, impatient_reader, read_at_first, written_at_first};
use crate::rwlock;
use crate::staged::{
    Queue, Stage, queue_at_work, queued_against_nameless, queued_against_pending, without_node,
};
use crate::timed;

/// All models: those of each working lock of the list, and of the parts of core that are no locks.
pub fn all_models() -> Vec<Model> {
    Subject::working().flat_map(models_of).chain(parts::models()).collect()
}

/// The models of a lock of the list: those that any lock has, and those of the lock's special
/// states. A preset has one preemption less than in [`whole_models_of`], but at least one.
pub fn models_of(subject: &Subject) -> Vec<Model> {
    let mut models = whole_models_of(subject);
    if has_base(subject) {
        // A model that must reach an event needs its preemptions for that.
        for model in models.iter_mut().filter(|model| model.reaches.is_empty()) {
            model.preemptions = model.preemptions.map(|bound| bound.saturating_sub(1).max(1));
        }
    }
    models
}

/// As [`models_of`], but a preset has the bounds of its algorithm.
pub fn whole_models_of(subject: &Subject) -> Vec<Model> {
    let listed = subject.visit::<Loom, _>(Listed(subject));
    let mut models: Vec<_> = listed.into_iter().map(|model| model.of_lock(subject.name)).collect();
    models.extend(own_models(subject.name));
    let further = preemptions_for_queue_lock(subject);
    models.iter_mut().for_each(|model| model.preemptions = model.preemptions.map(|bound| bound + further));
    models
}

/// One more preemption for locks whose waiters queue under a
/// [`QueueLock`](nearlock_core::parking::QueueLock). That lock is locked without a look, so a
/// thread lets others run there only by a preemption. A look may return an old value, and then the
/// thread lets others run at no cost. (Near locks have bounds that take this into account.)
fn preemptions_for_queue_lock(subject: &Subject) -> usize {
    usize::from(subject.family() == Family::FreeBsd || subject.algorithm.name == "linux-mutex")
}

/// Whether the lock differs only by switches from another lock, which has more models. They share
/// their code.
fn has_base(subject: &Subject) -> bool {
    subject.family() != Family::Near && !subject.positions.is_empty()
}

/// Whether newcomers steal the lock, or its waiters sleep.
fn is_for_preempted_waiters(subject: &Subject) -> bool {
    let is = |key, to| subject.algorithm.switch(key).is_some() && !subject.is_switched(key, to);
    is("stealing", "off") || is("park-turns", "off")
}

/// The largest numbers of preemptions in the models that any lock has; `None`: any number.
struct Bounds {
    one_section_each: Option<usize>,
    trying: Option<usize>,
    two_sections_each: usize,
    three_threads: usize,
    two_locks: usize,
}

impl Bounds {
    /// The bounds that take some seconds.
    fn of(subject: &Subject) -> Self {
        if subject.algorithm.name == "near-mutex" {
            // The chain's lock is locked without a look, and no other thread is told about a
            // sleeper, so there is less to try.
            return Self {
                one_section_each: Some(6),
                trying: Some(2),
                two_sections_each: 2,
                three_threads: 2,
                two_locks: 2,
            };
        }
        if subject.is_rw() || subject.is_timed() {
            // Waiters that sleep in a queue take many steps.
            return Self {
                one_section_each: Some(2),
                trying: Some(1),
                two_sections_each: 1,
                three_threads: 1,
                two_locks: 1,
            };
        }
        let one_section_each = None;
        match subject.family() {
            // Newcomers that steal and waiters that sleep multiply the number of executions.
            Family::Linux if is_for_preempted_waiters(subject) => Self {
                one_section_each,
                trying: Some(3),
                two_sections_each: 2,
                three_threads: 1,
                two_locks: 1,
            },
            // These locks spin for their owners and sleep in a chain, and attempts fail for no
            // reason.
            Family::FreeBsd => Self {
                one_section_each,
                trying: Some(2),
                two_sections_each: 2,
                three_threads: usize::from(!has_base(subject)),
                two_locks: 2,
            },
            Family::Linux => {
                Self { one_section_each, trying: None, two_sections_each: 3, three_threads: 3, two_locks: 2 }
            }
            _ => {
                Self { one_section_each, trying: None, two_sections_each: 3, three_threads: 2, two_locks: 3 }
            }
        }
    }
}

/// The models that a lock has because of its capabilities.
struct Listed<'a>(&'a Subject);

impl LockVisitor<Loom> for Listed<'_> {
    type Output = Vec<Model>;
    fn visit<L: RawTryLock>(self) -> Vec<Model> {
        let (name, bounds) = (self.0.name, Bounds::of(self.0));
        vec![
            counting::<Loom, L>(name, 2, 1, bounds.one_section_each),
            trying::<Loom, L>(name, bounds.trying),
            counting::<Loom, L>(name, 2, 2, Some(bounds.two_sections_each)),
            counting::<Loom, L>(name, 3, 1, Some(bounds.three_threads)),
            one_node_for_two_locks::<Loom, L>(name, Some(bounds.two_locks)),
        ]
    }
    fn visit_timed<L: RawTimedLock<Platform = Loom>>(self) -> Vec<Model> {
        let timed = timed::<L>(self.0);
        both(self.visit::<L>(), timed)
    }
    fn visit_rw<L: RawRwLock>(self) -> Vec<Model> {
        let readers = readers::<L>(self.0);
        both(self.visit::<L>(), readers)
    }
    fn visit_timed_rw<L: RawTimedRwLock<Platform = Loom>>(self) -> Vec<Model> {
        let more = both(timed::<L>(self.0), timed_readers::<L>(self.0));
        both(self.visit_rw::<L>(), more)
    }
}

/// The models of readers and writers.
fn readers<L: RawRwLock>(subject: &Subject) -> Vec<Model> {
    use Act::{Downgrade, Read, TryRead, TryWrite, Write};
    let name = subject.name;
    // The bound on preemptions in the models of three threads, one of which sleeps.
    let sleepers = if matches!(subject.family(), Family::FreeBsd | Family::Near) { 1 } else { 2 };
    vec![
        acting::<Loom, L>(name, &[&[Write], &[Read]], Some(3)),
        acting::<Loom, L>(name, &[&[TryWrite, TryRead], &[Read]], Some(3)),
        acting::<Loom, L>(name, &[&[TryRead, TryWrite], &[Write]], Some(2)),
        acting::<Loom, L>(name, &[&[Downgrade], &[Read], &[Write]], Some(1)),
        acting::<Loom, L>(name, &[&[Write, Read], &[Read, Write]], Some(1)),
        written_at_first::<Loom, L>(name, &[&[Read], &[Read]], Some(sleepers)),
        written_at_first::<Loom, L>(name, &[&[Read], &[Write]], Some(sleepers)),
        read_at_first::<Loom, L>(name, &[&[Write], &[Read]], Some(sleepers)),
        read_at_first::<Loom, L>(name, &[&[Write], &[Write]], Some(1)),
    ]
}

/// The models of waiters that give up.
fn timed<L: RawTimedLock<Platform = Loom>>(subject: &Subject) -> Vec<Model> {
    match has_base(subject) {
        true => timed::few::<Loom, L>(subject.name),
        false => timed::models::<Loom, L>(subject.name),
    }
}

/// The models of readers that give up.
fn timed_readers<L: RawTimedRwLock<Platform = Loom>>(subject: &Subject) -> Vec<Model> {
    let model = |patience, acts, preemptions| {
        impatient_reader::<Loom, L>(subject.name, patience, acts, Some(preemptions))
    };
    let mut models = vec![
        model(Patience::Time, &[], 3),
        model(Patience::Cancellation, &[], 2),
        model(Patience::Time, &[&[Act::Write]], 1),
    ];
    // A writer waits together with a reader that is cancelled. This model has the most executions.
    if subject.family() != Family::FreeBsd || !has_base(subject) {
        models.push(model(Patience::Cancellation, &[&[Act::Write]], 1));
    }
    models
}

/// The models of states that threads that only lock and unlock would hardly reach.
fn own_models(name: &str) -> Vec<Model> {
    use LockEvent::{KickUnlock, KickWaiter, Stealing, WaitHead, WaitNode};
    match name {
        "cohort" => numa_lock::<CohortLock<Loom>>(name, || Loom::set(Setting::CohortLocalPassLimit, 0)),
        "hmcs" => numa_lock::<HmcsLock<Loom>>(name, || Loom::set(Setting::HmcsLocalPassLimit, 0)),
        "freebsd-mtx" => mtx::current(name),
        "freebsd-mtx-no-preread"
        | "freebsd-mtx-preloaded"
        | "freebsd-mtx-fcmpset"
        | "freebsd-mtx-no-spin" => mtx::sleeping(name),
        "freebsd-rw" | "freebsd-rw-no-preread" => rwsx::of::<RwKind>(name),
        "freebsd-sx" | "freebsd-sx-no-preread" => rwsx::giving_up(name),
        "freebsd-lockmgr" | "freebsd-lockmgr-no-preread" => lockmgr::of(name),
        "freebsd-thread-lock" => thread_lock::moves(name),
        "freebsd-spin-mtx" | "freebsd-spin-mtx-no-preread" => mtx::spinning(name),
        "linux-counter-mutex" => counter_mutex::spinning::<Crowd>(name),
        "linux-counter-mutex-queue" => counter_mutex::spinning::<InTurns<Loom>>(name),
        "linux-counter-mutex-queue-no-preread" => {
            counter_mutex::spinning_by::<InTurns<Loom>, NoPreRead>(name)
        }
        "linux-counter-mutex-queue-held-no-preread" => {
            counter_mutex::spinning_by::<OneSpins<Loom>, NoPreRead>(name)
        }
        "linux-counter-mutex-queue-held" => counter_mutex::spinning::<OneSpins<Loom>>(name),
        "linux-counter-mutex-no-spin" => counter_mutex::sleeping::<Standard>(name),
        "linux-counter-mutex-exchange" => counter_mutex::sleeping::<Exchange>(name),
        "linux-counter-mutex-unlock-first" => counter_mutex::sleeping::<UnlockFirst>(name),
        "qspinlock" => qspin::<Fifo, Standard>(name),
        "qspinlock-whole-word" => qspin::<Fifo, WholeWord>(name),
        "qspinlock-steal-once" => competing::<Fifo, StealOnce>(name, 1, &[Stealing]),
        "qspinlock-steal" => competing::<Fifo, StealHybrid>(name, 1, &[Stealing]),
        "qspinlock-park" => {
            competing::<Fifo, ParkOnly>(name, 2, &[WaitNode, WaitHead, KickUnlock, KickWaiter])
        }
        "qspinlock-preemptible" => {
            competing::<Fifo, Preemptible>(name, 1, &[Stealing, WaitNode, WaitHead, KickUnlock, KickWaiter])
        }
        "qspinlock-preemptible-late" => {
            competing::<Fifo, WaitLate>(name, 1, &[Stealing, WaitNode, WaitHead, KickUnlock, KickWaiter])
        }
        "qspinlock-preemptible-head" => {
            competing::<Fifo, WakefulHead>(name, 1, &[Stealing, WaitNode, KickWaiter])
        }
        "cna" => both(qspin::<Cna, Standard>(name), cna::final_form(name)),
        "cna-preemptible" => cna::preemptible(name),
        "cna-v13" => both(qspin::<CnaV13, Standard>(name), cna::v13::<Standard>(name)),
        "cna-v13-no-sro" => {
            both(qspin::<CnaV13<NoShuffleReduction>, Standard>(name), cna::v13::<NoShuffleReduction>(name))
        }
        "near-mutex" => near::mutex(name),
        "near-rwlock" => rwlock::models(name),
        "parking-lot-0.12-protocol" => peers::parking_lot_fair(name),
        "parking-lot-0.13-protocol" => peers::parking_lot_unfair(name),
        "parking-lot-0.13-rwlock-protocol" => peers::parking_lot_rwlock(name),
        "std-mutex-protocol" => peers::std(name),
        "std-rwlock-protocol" => peers::std_rwlock(name),
        "linux-mutex" => mutex::spinning::<Standard>(name),
        "linux-mutex-no-spin" => mutex::sleeping(name),
        _ => Vec::new(),
    }
}

fn both(mut models: Vec<Model>, more: Vec<Model>) -> Vec<Model> {
    models.extend(more);
    models
}

/// The models of a lock with a queue per NUMA node, whose pass limit `never_pass` sets to 0.
fn numa_lock<L: RawTryLock>(name: &str, never_pass: fn()) -> Vec<Model> {
    vec![
        on_numa_nodes::<Loom, L>(name, "passing", &[0, 0], 3, || ()).reaching(&[LockEvent::LocalPass]),
        on_numa_nodes::<Loom, L>(name, "passing", &[0, 0, 0], 2, || ()).reaching(&[LockEvent::LocalPass]),
        on_numa_nodes::<Loom, L>(name, "never passing", &[0, 0], 3, never_pass)
            .reaching(&[LockEvent::PassLimit]),
        on_numa_nodes::<Loom, L>(name, "never passing", &[0, 0, 1], 2, never_pass)
            .reaching(&[LockEvent::PassLimit]),
    ]
}

fn qspin<Q: Stage<Loom>, T: QSpinTuning>(name: &str) -> Vec<Model>
where
    Loom: LocalNodes<Node<Loom, Q::Part>>,
{
    type Lock<Q, T> = QSpinLock<Loom, Q, T>;
    let two_newcomers = Queue { newcomers: &[1, 2], ..Queue::default() };
    vec![
        held_at_first::<Loom, Lock<Q, T>>(name, 3, Some(3)).reaching(&[LockEvent::Pending]),
        queue_at_work::<Loom, Q, T>(name, "two newcomers behind a head", two_newcomers, Some(2), || ()),
        queued_against_pending::<Loom, Q, T>(name, Some(3)),
        queued_against_nameless::<Loom, Q, T>(name, Some(3)).reaching(&[LockEvent::NoNode]),
        without_node::<Loom, Q, T>(name, Some(3)).reaching(&[LockEvent::NoNode]),
    ]
}

/// The models with the switches for preempted waiters, under which these events must happen. The
/// largest model has this many preemptions.
fn competing<Q: Stage<Loom>, T: QSpinTuning>(
    name: &str,
    preemptions: usize,
    reaches: &'static [LockEvent],
) -> Vec<Model>
where
    Loom: LocalNodes<Node<Loom, Q::Part>>,
{
    type Lock<Q, T> = QSpinLock<Loom, Q, T>;
    let (one, two) =
        (Queue { main: &[1], ..Queue::default() }, Queue { newcomers: &[1, 2], ..Queue::default() });
    let waiter_and_newcomer = Queue { newcomers: &[2], ..one };
    vec![
        held_at_first::<Loom, Lock<Q, T>>(name, 3, Some(1)),
        queue_at_work::<Loom, Q, T>(name, "a waiter behind a head", one, Some(3), || ()),
        queue_at_work::<Loom, Q, T>(name, "a waiter and a newcomer", waiter_and_newcomer, Some(2), || ())
            .reaching(reaches),
        queue_at_work::<Loom, Q, T>(name, "two newcomers behind a head", two, Some(preemptions), || ()),
        without_node::<Loom, Q, T>(name, Some(2)).reaching(&[LockEvent::NoNode]),
    ]
}
