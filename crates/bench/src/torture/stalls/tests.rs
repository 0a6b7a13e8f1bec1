//! Tests of reports, with threads that wait.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::SleepState;
use nearlock_core::platform::{Park, Platform};
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::schedule::Schedule;
use nearlock_lab::locks;

use super::super::book::Book;
use super::super::run::run;
use super::super::tests::plan;
use super::super::ways::{ByWays, Plain};
use super::super::{News, Plan, Problem, Verdict};
use super::tasks::Task;
use super::*;

#[test]
fn stalls_are_counted_by_cause() {
    let of = |cause, nothing_ran| Conclusion { cause, thread: None, nothing_ran };
    let mut stalls = Stalls::new(Policy::Fifo);
    assert_eq!(stalls.to_string(), "stalls: 0; watched with SCHED_FIFO");
    stalls.add(&of(Cause::HolderWithoutProcessor, true));
    stalls.add(&of(Cause::AllAsleep, false));
    stalls.add(&of(Cause::HolderWithoutProcessor, false));
    stalls.add(&of(Cause::AllAsleep, false));
    stalls.turns_out_as(Cause::LostWakeUp);
    stalls.turns_out_as(Cause::LostWakeUp);
    (stalls.longest_ns, stalls.late) = (61_500_000, 2);
    let expected = "stalls: 4, the longest 61.5 ms; causes: holder without processor 2, all waiters asleep 1, lost \
                    wake-up 1; no thread of the run ran in 1 of them; watched with SCHED_FIFO, which looked late 2 \
                    times";
    assert_eq!(stalls.to_string(), expected);
    stalls.turns_out_as(Cause::AllAsleep);
    assert_eq!(stalls.causes.get(&Cause::LostWakeUp), None);
}

#[test]
fn a_report_has_what_is_known_of_each_thread() {
    let task = Task { state: 'R', cpu: 3, ran: Duration::from_millis(2), involuntary: 9, ..Task::default() };
    let facts_of = |doing, task| Facts { doing, task, is_parked: false, place: None };
    let holder = facts_of(Some(Doing::InSection { since_ns: 1_000_000 }), Some(task));
    let asleep = Task { state: 'S', place: "futex_do_wait".to_owned(), ..Task::default() };
    let waiting = facts_of(Some(Doing::Waiting { since_ns: 2_000_000 }), Some(asleep));
    let waiter = Facts { place: Some(0), is_parked: true, ..waiting };
    let ready = Task { state: 'R', ..Task::default() };
    let woken = facts_of(Some(Doing::Waiting { since_ns: 3_000_000 }), Some(ready));
    let woken = Facts { is_parked: true, ..woken };
    let gone = facts_of(Some(Doing::Thinking), None);
    let facts = vec![holder, waiter, gone, woken, facts_of(None, None)];
    let over = Duration::from_millis(40);
    let conclusion = Conclusion::of(&facts, None, over);
    let stall = Stall {
        number: 1,
        elapsed: Duration::from_millis(1500),
        idle: Duration::from_millis(50),
        over,
        names: ["writer 0", "writer 1", "reader 0", "reader 1", "canceller"].map(str::to_owned).to_vec(),
        facts,
        lock: Some(NearMutex::<OsWatched>::new().diagnose()),
        late: Duration::from_millis(3),
        stolen: Duration::from_millis(20),
        now_ns: 62_000_000,
        conclusion,
    };
    let text = Event::Stall(Box::new(stall)).to_string();
    for line in [
        "stall 1 after 1.500 s: no acquisition for 50.0 ms; the kernel's counts are of the last 40.0 ms\n",
        "  writer 0: in its section for 61.0 ms; R on CPU 3, ran 2.0 ms, delayed 0.0 ms, switches 0+9\n",
        "  writer 1: waits for 60.0 ms; S in futex_do_wait on CPU 0, ran 0.0 ms, delayed 0.0 ms, switches 0+0, 1. in \
         the queue\n",
        "  reader 0: does not want the lock; unknown to the system\n",
        "  reader 1: waits for 59.0 ms; R on CPU 0, ran 0.0 ms, delayed 0.0 ms, switches 0+0, has not run since it \
         slept in the lock\n",
        "  canceller: cancels; unknown to the system\n",
        "  lock: free; counted for releases: 0 waiters, 0 wake requests\n",
        "  the watcher looked 3.0 ms late\n",
        "  the hypervisor kept CPUs from this machine for 20.0 ms in total\n",
        "  conclusion: writer 0 holds the lock and waits for a processor; no thread of the run had a processor",
    ] {
        assert!(text.contains(line), "no {line}: {text}");
    }
}

/// A waiter of `near-mutex` is found in the queue, and its thread by the address of its record.
#[test]
fn the_threads_in_the_queue_of_the_mutex_are_named() {
    let book = Arc::new(Book::new(locks::lock("near-mutex").unwrap(), &plan()));
    let mutex = Arc::new(NearMutex::<OsWatched>::new());
    let probed = Arc::clone(&mutex);
    assert!(book.probe.set(Box::new(move || probed.diagnose())).is_ok());
    // SAFETY: free.
    assert!(unsafe { mutex.try_lock(&()) });
    let account = |thread: usize| &book.watches[thread].0.account;
    let here = 0_u8;
    account(1).begin(OsWatched::thread_id().get(), (&raw const here).cast());
    account(1).set(Doing::InSection { since_ns: now_ns() });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let here = 0_u8;
            account(2).begin(OsWatched::thread_id().get(), (&raw const here).cast());
            account(2).set(Doing::Waiting { since_ns: now_ns() });
            // SAFETY: the main thread unlocks it, and this thread unlocks it once more.
            unsafe {
                mutex.lock(&());
                mutex.unlock(&());
            }
            is_over.store(true, Relaxed);
        });
        let first_sleep = || Some(mutex.diagnose().queue?.waiters().next()?.sleep);
        while first_sleep() != Some(SleepState::Asleep) {
            std::thread::yield_now();
        }
        let stall = watcher::report(&book);
        assert_eq!(
            stall.facts.iter().map(|facts| facts.place).collect::<Vec<_>>(),
            [None, None, Some(0), None]
        );
        assert!(
            stall.lock.as_ref().is_some_and(|lock| lock.is_held && !lock.has_forgotten_first()),
            "{stall}"
        );
        assert_eq!((stall.conclusion.thread, stall.names[1].as_str()), (Some(1), "writer 1"), "{stall}");
        // SAFETY: locked above.
        unsafe { mutex.unlock(&()) };
    });
    assert!(is_over.load(Relaxed));
}

/// A lock that excludes, and wakes no thread that sleeps for it.
struct Mute {
    word: <OsWatched as Platform>::U32,
    bell: <OsWatched as Platform>::U32,
}

impl Default for Mute {
    fn default() -> Self {
        Self { word: 0.into(), bell: 0.into() }
    }
}

// SAFETY: the swap that finds 0 has the lock until the store. SeqCst orders the sections.
unsafe impl RawLock for Mute {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        // Ordering: SeqCst, as above.
        while self.word.swap(1, SeqCst) != 0 {
            OsWatched::park(&self.bell, 0);
        }
    }
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: SeqCst, as above.
        self.word.store(0, SeqCst);
    }
}

// SAFETY: as above.
unsafe impl RawTryLock for Mute {
    unsafe fn try_lock(&self, _node: &()) -> bool {
        // Ordering: SeqCst, as above.
        self.word.swap(1, SeqCst) == 0
    }
}

/// At the end of the run at the latest, only threads that sleep are left.
#[test]
#[cfg(target_os = "linux")]
fn a_lost_wake_up_is_found_and_named_long_before_the_hang() {
    let plan =
        Plan { watch_progress: Some(Duration::from_millis(20)), hang: Duration::from_secs(3600), ..plan() };
    let subject = locks::lock("lock-lost-wakeup").unwrap();
    let mut reports = Vec::new();
    // On a busy machine, two threads may not meet in every run.
    let mut runs = (0..100).map(|_| {
        let mut news = |news: News<'_>| {
            if let News::Progress(event) = news {
                reports.push(event.to_string());
            }
        };
        run(subject, &plan, &mut news, |lives| lives.by::<Mute, Plain>()).unwrap()
    });
    let tortured = runs.find(|tortured| !tortured.problems.is_empty()).expect("two threads meet");
    drop(runs);
    assert_eq!(tortured.verdict(), Verdict::Failure);
    assert!(
        matches!(tortured.problems[..], [Problem::LostWakeUp { waiting: 1.., .. }]),
        "{:?}",
        tortured.problems
    );
    let stalls = tortured.stalls.expect("the run was watched");
    assert_eq!(stalls.causes.get(&Cause::LostWakeUp), Some(&1), "{stalls}");
    let last = reports.last().expect("the lost wake-up is reported");
    assert!(last.contains("conclusion: a lost wake-up: "), "{last}");
}
