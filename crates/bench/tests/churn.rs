//! Threads and locks that come and go. They have their own process, since its memory use determines
//! the verdict.

use std::hint::black_box;
use std::mem;
use std::time::Duration;

use nearlock::classic::McsLock;
use nearlock_bench::torture::{self, NumaNodes, Plan, Problem, Threads, Tortured, Verdict, Waiting, churn};
use nearlock_lab::locks;

/// Runs the churn, with threads that call `beside` at their end.
fn run(lock: &str, duration: Duration, beside: fn()) -> Tortured {
    let plan = Plan {
        is_interrupted: || false,
        writers: Some(16),
        readers: None,
        storm: None,
        threads: Threads::ComeAndGo,
        numa_nodes: NumaNodes::Real(1),
        waiting: Waiting::Yield,
        duration,
        stat_interval: Duration::ZERO,
        stutter: Duration::ZERO,
        long_hold_ms: 0,
        priority_percent: 0,
        hang: Duration::from_secs(120),
        watch_progress: None,
        lockstat: false,
        settings: torture::settings(),
    };
    churn::run(locks::lock(lock).unwrap(), &plan, &mut |_| (), beside).unwrap()
}

/// Leaves a block of memory and a queue node behind.
fn leak() {
    mem::forget(black_box(vec![1_u8; 64 << 10]));
    mem::forget(Box::leak(Box::new(McsLock::new(()))).lock());
}

fn has_looked(tortured: &Tortured) -> bool {
    tortured.churn.is_some_and(|churn| churn.memory.is_some())
}

/// Durations in seconds. A busy machine takes longer to warm up, so it gets more time if necessary.
/// A leak shows in any time.
const DURATIONS: [u64; 5] = [1, 2, 4, 8, 16];

/// The shortest duration without a leak.
fn passing(lock: &str) -> u64 {
    for seconds in DURATIONS {
        let tortured = run(lock, Duration::from_secs(seconds), || ());
        if tortured.verdict() == Verdict::Success && has_looked(&tortured) {
            let churn = tortured.churn.expect("it has looked");
            assert!(churn.lives >= 16 && churn.locks >= churn.lives, "{lock}: {churn:?}");
            return seconds;
        }
    }
    panic!("{lock} leaks");
}

#[test]
fn leaks_are_detected_and_nothing_else() {
    let [warm, ..] = ["near-mutex", "near-condvar", "near-condvar-all", "rwsem"].map(passing);
    let grown = |run: &Tortured, kind| {
        let is_that = |problem: &Problem| matches!(problem, Problem::Growth { what, .. } if *what == kind);
        run.problems.iter().any(is_that)
    };
    // Not with a shorter duration than the lock without a leak needed.
    let durations = DURATIONS.into_iter().filter(|&seconds| seconds >= warm);
    let mut leaking = durations.map(|seconds| run("near-mutex", Duration::from_secs(seconds), leak));
    let found = leaking.find(|run| grown(run, "resident") && grown(run, "queue nodes"));
    assert!(found.is_some(), "what is left behind is not found");
}
