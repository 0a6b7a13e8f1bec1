//! Every lock of the list under Shuttle, which runs many threads on schedules drawn at random.

#![cfg(target_pointer_width = "64")]

use std::sync::Mutex;
use std::thread;

use nearlock_collection::freebsd::tuning::{Era2014, NotAdaptive, Tuning};
use nearlock_collection::linux::cna::Cna;
use nearlock_collection::linux::cna_v13::CnaV13;
use nearlock_collection::linux::qspinlock::{Fifo, Preemptible, QSpinLock, QSpinTuning, WholeWord};
use nearlock_collection::subjects::{Fairness, LockVisitor, Subject};
use nearlock_core::events::LockEvent;
use nearlock_core::parking::{RawTimedLock, RawTimedRwLock};
use nearlock_core::platform::LocalNodes;
use nearlock_core::raw::{RawRwLock, RawTryLock};
use nearlock_core::settings::Setting;
use nearlock_core::tuning::Standard;
use nearlock_model::engine::Engine;
use nearlock_model::exclusion::held_at_first;
use nearlock_model::lockmgr;
use nearlock_model::model::Model;
use nearlock_model::parts::{condvar, osq, parker, waiters};
use nearlock_model::readers;
use nearlock_model::rwlock::{self, Biased, Fenced, Fresh, Mode};
use nearlock_model::shuttle::Shuttle;
use nearlock_model::shuttle::adversary::{Contest, overtaken_with};
use nearlock_model::shuttle::check::{REPLAY, SCHEDULES};
use nearlock_model::shuttle::crowd::crowd;
use nearlock_model::staged::{
    Queue, Stage, queue_at_work, queue_of_held_lock, queued_against_nameless, queued_against_pending,
    without_node,
};

use nearlock_model::timed;

/// The number of threads, how often each of them goes to the lock, and the number of schedules of
/// each kind.
const CROWDS: [(u32, u32, usize); 3] = [(4, 5, 1_200), (8, 4, 400), (16, 3, 120)];

/// The events that must have happened in the schedules of a lock. Locks that are not named have no
/// events except their sections.
fn must_reach(name: &str) -> Vec<LockEvent> {
    use LockEvent::*;
    const NESTED: [LockEvent; 5] = [Slowpath, UseNode2, UseNode3, UseNode4, NoNode];
    const SLEEPS: [LockEvent; 2] = [WaitNode, KickWaiter];
    const HEAD_SLEEPS: [LockEvent; 2] = [WaitHead, KickUnlock];
    const MUTEX: [LockEvent; 5] = [Slowpath, MutexAtOnce, MutexSleep, MutexAfterSleep, MutexWake];
    const CHAIN: [LockEvent; 4] = [Slowpath, MutexAfterSleep, ChainSleep, ChainWake];
    const PARKING_LOT: [LockEvent; 6] =
        [Slowpath, MutexOptLock, MutexSleep, MutexAfterSleep, MutexWake, ChainCancel];
    const READERS: [LockEvent; 4] = [Slowpath, ChainCancel, ChainSleep, ChainWake];
    const SPINS: [LockEvent; 3] = [MutexOptLock, OsqLeave, OsqGranted];
    const RWSEM: [LockEvent; 6] =
        [RwsemSleepReader, RwsemSleepWriter, RwsemWakeReader, RwsemWakeWriter, RwsemRlock, RwsemWlock];
    const RWSEM_SPINS: [LockEvent; 2] = [RwsemOptLock, RwsemOptFail];
    const RWSEM_QUEUE: [LockEvent; 3] = [RwsemRlockFast, RwsemRlockHandoff, RwsemWlockHandoff];
    const RW_SLEEPS: [LockEvent; 4] = [Slowpath, RwsemSleepReader, RwsemSleepWriter, RwsemWakeWriter];
    const SORTS: [LockEvent; 4] = [CnaSplice, CnaFlush, CnaTailSplice, CnaTailUpdateFailed];
    let parts: &[&[LockEvent]] = match name {
        "hmcs" | "cohort" => &[&[LocalPass, PassLimit]],
        "qspinlock" | "qspinlock-whole-word" => &[&NESTED, &[Pending]],
        "qspinlock-steal-once" | "qspinlock-steal" => &[&NESTED, &[Stealing]],
        "qspinlock-park" => &[&NESTED, &SLEEPS, &HEAD_SLEEPS, &[WaitEarly]],
        "qspinlock-preemptible" => &[&NESTED, &SLEEPS, &HEAD_SLEEPS, &[WaitEarly, Stealing]],
        "qspinlock-preemptible-late" => &[&NESTED, &SLEEPS, &HEAD_SLEEPS, &[Stealing]],
        "qspinlock-preemptible-head" => &[&NESTED, &SLEEPS, &[WaitEarly, Stealing]],
        "cna" | "cna-v13" | "cna-v13-no-sro" => &[&NESTED, &SORTS, &[Pending]],
        "linux-mutex" | "linux-mutex-no-waiter-spin" => &[&MUTEX, &SPINS, &[MutexHandOver]],
        "linux-mutex-no-handoff" => &[&MUTEX, &SPINS],
        "linux-mutex-no-osq" | "linux-mutex-heedless" => &[&MUTEX, &[MutexOptLock, MutexHandOver]],
        "linux-mutex-no-spin" => &[&MUTEX, &[MutexHandOver]],
        "near-mutex" => &[&MUTEX, &[MutexOptLock, MutexHandOver]],
        "near-rwlock" => &[&[Slowpath]],
        "std-mutex-protocol" => &[&[Slowpath, MutexOptLock, MutexSleep, MutexWake]],
        "parking-lot-0.12-protocol" => &[&PARKING_LOT, &[MutexHandOver]],
        "parking-lot-0.13-protocol" => &[&PARKING_LOT],
        "glibc-rwlock" | "std-rwlock-protocol" => &[&RW_SLEEPS, &[RwsemWakeReader]],
        "parking-lot-0.13-rwlock-protocol" => &[&RW_SLEEPS, &[ChainWake]],
        "near-condvar" => &[&[Slowpath, CondvarWake]],
        "near-condvar-all" => &[&[Slowpath, CondvarWake, CondvarMove]],
        "freebsd-mtx-no-spin" => &[&CHAIN],
        "freebsd-mtx-preloaded" | "freebsd-mtx-no-preread" => &[&CHAIN, &[MutexOptLock, ChainCancel]],
        name if name.starts_with("freebsd-mtx") => &[&CHAIN, &[MutexOptLock]],
        name if name.starts_with("freebsd-spin-mtx") || name == "freebsd-thread-lock" => &[&[Slowpath]],
        name if ["freebsd-rw", "freebsd-sx", "freebsd-lockmgr"].iter().any(|base| name.starts_with(base)) => {
            &[&READERS]
        }
        "linux-counter-mutex-no-spin" => &[&MUTEX],
        name if name.starts_with("linux-counter-mutex") => &[&MUTEX, &[MutexOptLock]],
        "rwsem-xadd-base" | "rwsem-xadd-preread" => &[&RWSEM],
        "rwsem-xadd-single-waker" | "rwsem-xadd-no-spin" => &[&RWSEM, &[RwsemWakeSkipped]],
        "rwsem-xadd" => &[&RWSEM, &RWSEM_SPINS, &[RwsemWakeSkipped]],
        "rwsem-no-spin" => &[&RWSEM, &RWSEM_QUEUE, &[RwsemRlockSteal]],
        "rwsem" | "rwsem-leading-readers" => &[&RWSEM, &RWSEM_SPINS, &RWSEM_QUEUE, &[RwsemRlockSteal]],
        "rwsem-reader-spin" => &[&RWSEM, &RWSEM_SPINS, &[RwsemRlockSteal]],
        name if name.starts_with("rwsem") => &[&RWSEM, &RWSEM_SPINS],
        "cna-preemptible" => &[&NESTED, &SORTS, &SLEEPS, &HEAD_SLEEPS, &[WaitEarly, Stealing]],
        _ => &[],
    };
    parts.concat()
}

/// Runs these models, and checks that the events have happened.
fn check_all(name: &str, models: &[(Model<Shuttle>, usize)], events: &[LockEvent]) {
    let before = Shuttle::events();
    for (model, schedules) in models {
        model.check(*schedules);
    }
    let replayed = std::env::var_os(REPLAY).is_some();
    for ((event, before), after) in LockEvent::ALL.iter().zip(before).zip(Shuttle::events()) {
        eprintln!("{name}: {} {}", after - before, event.name());
        assert!(replayed || after > before || !events.contains(event), "{name}: no {}", event.name());
    }
}

/// As [`CROWDS`], of readers and writers.
const MIXED_CROWDS: [(u32, u32, usize); 3] = [(3, 5, 300), (6, 5, 150), (12, 3, 40)];

/// As [`CROWDS`], of threads that may give up.
const IMPATIENT_CROWDS: [(u32, u32, usize); 2] = [(4, 6, 400), (8, 4, 100)];

/// A preset has one in this many of the schedules, unless [`SCHEDULES`] asks for more. In crowds of
/// readers and writers it has all of them, because events that must happen are rare there.
const OF_PRESETS: usize = 4;

/// Crowds of threads that use all operations of the lock.
struct Crowds(&'static Subject);

impl Crowds {
    /// These crowds, with fewer schedules if the lock is a preset.
    fn fewer<const N: usize>(&self, crowds: [(u32, u32, usize); N]) -> [(u32, u32, usize); N] {
        let has_all = self.0.positions.is_empty() || std::env::var_os(SCHEDULES).is_some();
        let divisor = if has_all { 1 } else { OF_PRESETS };
        crowds.map(|(threads, rounds, schedules)| (threads, rounds, schedules / divisor))
    }

    /// Runs these crowds, and checks that the events have happened.
    fn check(
        &self,
        crowds: &[(u32, u32, usize)],
        model: fn(&str, u32, u32) -> Model<Shuttle>,
        events: &[LockEvent],
    ) {
        let switched = |&(threads, rounds, schedules): &(u32, u32, usize)| {
            let mut model = model(self.0.name, threads, rounds);
            model.switches = self.0.switches();
            (model, schedules)
        };
        check_all(self.0.name, &crowds.iter().map(switched).collect::<Vec<_>>(), events);
    }
}

impl LockVisitor<Shuttle> for Crowds {
    type Output = ();
    fn visit<L: RawTryLock>(self) {
        // For locks with readers, see below.
        let events = if self.0.is_rw() { Vec::new() } else { must_reach(self.0.name) };
        self.check(&self.fewer(CROWDS), crowd::<L>, &events);
    }
    fn visit_timed<L: RawTimedLock<Platform = Shuttle>>(self) {
        self.check(&self.fewer(IMPATIENT_CROWDS), timed::crowd::<L>, &[]);
        self.visit::<L>();
    }
    fn visit_rw<L: RawRwLock>(self) {
        self.check(&MIXED_CROWDS, readers::crowd::<L>, &must_reach(self.0.name));
        self.visit::<L>();
    }
    fn visit_timed_rw<L: RawTimedRwLock<Platform = Shuttle>>(self) {
        self.check(&self.fewer(IMPATIENT_CROWDS), timed::crowd::<L>, &[]);
        self.check(&self.fewer(IMPATIENT_CROWDS), readers::impatient_crowd::<L>, &[]);
        self.visit_rw::<L>();
    }
}

#[test]
fn every_working_lock_holds_in_a_crowd() {
    let subjects = Mutex::new(Subject::working());
    let next = || subjects.lock().unwrap().next();
    let work = || {
        while let Some(subject) = next() {
            subject.visit::<Shuttle, _>(Crowds(subject));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| _ = scope.spawn(work)));
}

/// A crowd whose threads use all operations of a lockmgr.
#[test]
fn all_operations_of_lockmgr_hold_in_a_crowd() {
    fn of<T: Tuning>(name: &str) {
        let models = [(4, 6, 300), (8, 4, 150)]
            .map(|(threads, rounds, schedules)| (lockmgr::crowd::<T>(name, threads, rounds), schedules));
        check_all(name, &models, &must_reach(name));
    }
    of::<Standard>("freebsd-lockmgr");
    of::<Era2014>("freebsd-lockmgr-no-preread");
    of::<NotAdaptive>("freebsd-lockmgr-no-adaptive");
}

/// A crowd whose threads use all operations of the reader-writer lock, which begins in each mode.
#[test]
fn all_operations_of_the_rwlock_hold_in_a_crowd() {
    fn of<M: Mode>() {
        let models = [(3, 5, 2_400), (6, 5, 800), (12, 3, 200)].map(|(threads, rounds, schedules)| {
            (rwlock::crowd::<M>("near-rwlock", threads, rounds), schedules)
        });
        check_all("near-rwlock", &models, &must_reach("near-rwlock"));
    }
    of::<Fresh>();
    of::<Fenced>();
    of::<Biased>();
}

/// A reader that waits for a recursive one, while a writer waits.
#[test]
fn a_writer_that_waits_keeps_no_recursive_reader_out() {
    fn of<M: Mode>() {
        check_all(
            "near-rwlock",
            &[(rwlock::read_for_another::<Shuttle, M>("near-rwlock", None), 2_000)],
            &[],
        );
    }
    of::<Fresh>();
    of::<Fenced>();
    of::<Biased>();
}

/// The other threads run for long; each schedule works against one waiter.
const CONTEST: Contest = Contest { others: 3, rounds: 60, schedules: 10, seed: 4 };

struct Overtaken<'a>(&'a Subject, Contest);

impl LockVisitor<Shuttle> for Overtaken<'_> {
    type Output = u32;
    fn visit<L: RawTryLock>(self) -> u32 {
        overtaken_with::<L>(self.0.switches(), self.1, |_| 0, |seen| seen.held)
    }
}

/// How often the victim of the contest is overtaken at this lock.
fn most_overtaken(subject: &Subject, contest: Contest) -> u32 {
    subject.visit::<Shuttle, _>(Overtaken(subject, contest))
}

#[test]
fn a_fair_lock_lets_no_waiter_starve() {
    for subject in Subject::working().filter(|subject| subject.fairness() == Fairness::Fifo) {
        let most = most_overtaken(subject, CONTEST);
        eprintln!("{}: overtaken {most} times", subject.name);
        assert!(most < 20, "{}: overtaken {most} times", subject.name);
    }
}

/// The waiter takes its steps while others hold the mutex: it sleeps, is woken up without getting
/// the mutex, and then gets it by a hand-over.
#[test]
fn a_mutex_that_is_handed_over_lets_no_waiter_starve() {
    let longer = Contest { rounds: 4 * CONTEST.rounds, ..CONTEST };
    // In one series of schedules a waiter may be unlucky early. So the sums of several series are
    // compared.
    let most = |name| {
        let subject = Subject::named(name).unwrap();
        let most = [CONTEST, longer]
            .map(|contest| [1, 2, 3, 4, 5].map(|seed| most_overtaken(subject, Contest { seed, ..contest })));
        eprintln!("{name}: overtaken {most:?} times");
        most
    };
    // The waiter takes at most this many steps, however long the others run.
    for name in ["linux-mutex", "linux-mutex-no-waiter-spin", "linux-mutex-no-osq", "linux-mutex-no-spin"] {
        assert!(most(name).as_flattened().iter().all(|most| *most < 40), "{name} starves");
    }
    // Twelve looks of a newcomer before it queues up, of three steps each.
    let looks = 12 * 3;
    let near = most("near-mutex");
    assert!(near.as_flattened().iter().all(|most| *most < 60 + looks), "near-mutex starves");
    let [short, long] = near.map(|most| most.iter().sum::<u32>());
    assert!(long < short + short / 4, "near-mutex is overtaken for longer by threads that go on for longer");
    let unfair = most("linux-mutex-no-handoff")[1];
    assert!(unfair.iter().any(|most| *most > 40), "without hand-over no waiter is overtaken for longer");
}

#[test]
fn an_unfair_lock_is_found_out() {
    for name in ["tas", "ttas", "lock-lifo"] {
        let most = most_overtaken(Subject::named(name).unwrap(), CONTEST);
        assert!(most > 100, "{name}: overtaken {most} times only");
    }
}

/// Staged queues of CNA, for the paths that crowds take rarely.
fn staged<Q: Stage<Shuttle>, T: QSpinTuning>(name: &str)
where
    Shuttle: LocalNodes<nearlock_collection::linux::qspinlock::Node<Shuttle, Q::Part>>,
{
    use LockEvent::{CnaFlush, CnaSplice, CnaTailSplice, CnaTailUpdateFailed};
    const QUEUES: [Queue; 4] = [
        Queue { main: &[1, 2, 3], secondary: &[], newcomers: &[4, 5], urgent: &[3], migrants: &[] },
        Queue { main: &[1, 3], secondary: &[], newcomers: &[2, 4, 5], urgent: &[], migrants: &[6] },
        Queue { main: &[2], secondary: &[1, 3], newcomers: &[4, 5, 6], urgent: &[5], migrants: &[7] },
        Queue { main: &[], secondary: &[1, 3, 5], newcomers: &[2], urgent: &[], migrants: &[4, 6, 7] },
    ];
    let sort = || {
        Shuttle::set(Setting::CnaShuffleReduction, 0);
        Shuttle::set(Setting::CnaV13ShuffleReduction, 0);
    };
    let mut models = Vec::new();
    for queue in QUEUES {
        let situation = format!("{queue:?}");
        models.push((queue_at_work::<Shuttle, Q, T>(name, &situation, queue, None, sort), 300));
        models.push((queue_of_held_lock::<Shuttle, Q, T>(name, &situation, queue, None, sort), 300));
    }
    check_all(name, &models, &[CnaFlush, CnaSplice, CnaTailSplice, CnaTailUpdateFailed]);
}

#[test]
fn staged_queues_of_cna_hold() {
    staged::<Cna, Standard>("cna");
}

#[test]
fn staged_queues_of_version_13_hold() {
    staged::<CnaV13, Standard>("cna-v13");
}

/// The pending waiter of qspinlock and the queue behind it. Every contest begins in this state, and
/// few stay in it.
fn pending_path<Q: Stage<Shuttle>, T: QSpinTuning>(name: &str, events: &[LockEvent])
where
    Shuttle: LocalNodes<nearlock_collection::linux::qspinlock::Node<Shuttle, Q::Part>>,
{
    const NEWCOMERS: Queue = Queue { newcomers: &[1, 2, 3, 4], migrants: &[5], ..Queue::NOBODY };
    let models = [
        held_at_first::<Shuttle, QSpinLock<Shuttle, Q, T>>(name, 4, None),
        held_at_first::<Shuttle, QSpinLock<Shuttle, Q, T>>(name, 8, None),
        queued_against_pending::<Shuttle, Q, T>(name, None),
        queued_against_nameless::<Shuttle, Q, T>(name, None),
        without_node::<Shuttle, Q, T>(name, None),
        queue_at_work::<Shuttle, Q, T>(name, "newcomers behind a head", NEWCOMERS, None, || ()),
        queue_of_held_lock::<Shuttle, Q, T>(name, "newcomers behind a head", NEWCOMERS, None, || ()),
    ];
    check_all(name, &models.map(|model| (model, 300)), events);
}

#[test]
fn the_pending_path_of_qspinlock_holds() {
    use LockEvent::{KickUnlock, KickWaiter, NoNode, Pending, Stealing};
    pending_path::<Fifo, Standard>("qspinlock", &[Pending, NoNode]);
    pending_path::<Fifo, WholeWord>("qspinlock-whole-word", &[Pending, NoNode]);
    pending_path::<Cna, Standard>("cna", &[Pending, NoNode]);
    pending_path::<Fifo, Preemptible>("qspinlock-preemptible", &[Stealing, KickUnlock, KickWaiter, NoNode]);
}

#[test]
fn spinners_leave_their_queue_at_random() {
    let models = osq::crowds().into_iter().map(|model| (model, 500)).collect::<Vec<_>>();
    check_all("osq", &models, &[LockEvent::OsqLeave, LockEvent::OsqGranted]);
}

/// Tokens are announced to one waiter or to all, and many of the waiters give up.
#[test]
fn no_notification_is_lost_in_a_crowd() {
    use LockEvent::{CondvarGiveUp, CondvarLate, CondvarMove, CondvarWake};
    let models = [(condvar::crowd(4, 3), 400), (condvar::crowd(8, 2), 100)];
    check_all("condvar", &models, &[CondvarGiveUp, CondvarLate, CondvarMove, CondvarWake]);
    condvar::models::<Shuttle>().iter().for_each(|model| model.check(100));
}

#[test]
fn no_parking_token_is_lost_when_sleepers_wake_for_no_reason() {
    for model in parker::<Shuttle>().into_iter().chain(waiters()) {
        model.check(500);
    }
}

/// As [`CROWDS`], of threads that find out that processors are short.
const SHORT_CROWDS: [(u32, u32, usize); 3] = [(4, 5, 1_200), (4, 20, 300), (8, 20, 100)];

/// Each release that visits the chain hands the mutex over, to a waiter in any state.
#[test]
fn a_mutex_holds_in_a_crowd_while_processors_are_short() {
    struct Short(u32);
    impl LockVisitor<Shuttle> for Short {
        type Output = u64;
        fn visit<L: RawTryLock>(self) -> u64 {
            let models = SHORT_CROWDS.map(|(threads, rounds, schedules)| {
                let mut model = crowd::<L>("near-mutex", threads, rounds);
                model.shortages = self.0;
                (model, schedules)
            });
            let hand_overs = || Shuttle::events()[LockEvent::MutexHandOver as usize];
            let before = hand_overs();
            check_all("near-mutex", &models, &[LockEvent::MutexHandOver]);
            hand_overs() - before
        }
    }
    // Processors are not short if the holders of one chain lack them.
    let [few, many] =
        [1, u32::MAX].map(|groups| Subject::named("near-mutex").unwrap().visit::<Shuttle, _>(Short(groups)));
    assert!(few < many / 2, "{few} and {many} hand-overs");
}
