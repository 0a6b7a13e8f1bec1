//! Threads and locks that come and go, in a process of their own: what that has in memory is what
//! is judged.

use std::hint::black_box;
use std::mem;
use std::time::Duration;

use nearlock::classic::McsLock;
use nearlock_bench::torture::{self, NumaNodes, Plan, Problem, Threads, Tortured, Verdict, Waiting, churn};
use nearlock_lab::names;

/// With threads that do this beside.
fn run(lock: &str, duration: Duration, beside: fn()) -> Tortured {
    let plan = Plan {
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
        lockstat: false,
        settings: torture::settings(),
    };
    churn::run(names::lock(lock).unwrap(), &plan, &mut |_| (), beside).unwrap()
}

/// Leaves a block of memory and a queue node behind.
fn leak() {
    mem::forget(black_box(vec![1_u8; 64 << 10]));
    mem::forget(Box::leak(Box::new(McsLock::new(()))).lock());
}

fn has_looked(tortured: &Tortured) -> bool {
    tortured.churn.is_some_and(|churn| churn.memory.is_some())
}

/// A busy machine takes longer to warm up: so they are given more time if need be. What leaks does
/// so in any time.
#[test]
fn what_is_left_behind_is_found_and_nothing_else() {
    for lock in ["near-mutex", "near-condvar", "near-condvar-all", "rwsem"] {
        let mut runs =
            [2, 4, 8, 16].into_iter().map(|seconds| run(lock, Duration::from_secs(seconds), || ()));
        let passed = runs.find(|run| run.verdict() == Verdict::Success && has_looked(run));
        let churn = passed.and_then(|run| run.churn).unwrap_or_else(|| panic!("{lock} leaks"));
        assert!(churn.lives >= 16 && churn.locks >= churn.lives, "{lock}: {churn:?}");
    }
    let leaking = run("near-mutex", Duration::from_secs(4), leak);
    let grown = |kind| {
        let is_that = |problem: &Problem| matches!(problem, Problem::Growth { what, .. } if *what == kind);
        leaking.problems.iter().any(is_that)
    };
    assert!(grown("resident") && grown("queue nodes"), "{leaking:?}");
}
