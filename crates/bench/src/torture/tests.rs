//! Tests of verdicts.

mod ways;

use super::*;
use nearlock_lab::locks;

pub(super) fn plan() -> Plan {
    Plan {
        is_interrupted: || false,
        writers: Some(4),
        readers: None,
        storm: None,
        threads: Threads::Stay,
        numa_nodes: NumaNodes::Synthetic(2),
        waiting: Waiting::Yield,
        duration: Duration::from_millis(200),
        stat_interval: Duration::from_millis(50),
        stutter: Duration::ZERO,
        long_hold_ms: 0,
        priority_percent: 10,
        hang: Duration::from_secs(60),
        watch_progress: None,
        lockstat: false,
        settings: settings(),
    }
}

#[test]
fn nodes_are_those_that_the_settings_make() {
    let by = |mode: NumaMode, locality: NumaLocality| {
        let mut settings = Setting::DEFAULTS;
        settings[Setting::NumaMode as usize] = mode as u64;
        settings[Setting::NumaLocality as usize] = locality as u64;
        settings[Setting::NumaSyntheticNodes as usize] = 5;
        NumaNodes::by(&settings)
    };
    assert_eq!(by(NumaMode::Off, NumaLocality::Synthetic), NumaNodes::Real(1));
    assert_eq!(by(NumaMode::Auto, NumaLocality::Synthetic), NumaNodes::Slots(5));
    assert!(by(NumaMode::Auto, NumaLocality::Node).count() >= 2);
    assert!(by(NumaMode::On, NumaLocality::LastLevelCache).count() >= 1);
}

#[test]
fn every_algorithm_passes() {
    for lock in Subject::working().filter(|lock| lock.positions.is_empty()) {
        let mut reports = 0;
        let short =
            Plan { duration: Duration::from_millis(80), stat_interval: Duration::from_millis(20), ..plan() };
        let mut once = || torture(lock, &short, &mut |_| reports += 1).unwrap();
        let mut tortured = once();
        // On a busy machine, 80 ms may pass before the first writer gets a CPU.
        for _ in 0..100 {
            if tortured.totals.writes.total == 0 && tortured.problems.is_empty() {
                tortured = once();
            }
        }
        assert_eq!(tortured.problems, [], "{}", lock.name);
        assert!(tortured.totals.writes.total > 0, "{}: {tortured:?}", lock.name);
        assert!(reports > 0);
        let seen = tortured.events_seen().filter(|(event, _)| event.name().starts_with("cna_")).count();
        let cna_events = if tortured.lock.algorithm.name.starts_with("cna") { 4 } else { 0 };
        assert_eq!(seen + tortured.paths_not_taken().count(), cna_events, "{}", lock.name);
    }
}

#[test]
fn stutter_and_one_writer_pass() {
    let stutter = Duration::from_millis(30);
    let plan = Plan { writers: Some(1), stutter, waiting: Waiting::Spin, long_hold_ms: 1, ..plan() };
    let tortured = torture(locks::lock("qspinlock").unwrap(), &plan, &mut |_| ()).unwrap();
    assert_eq!(tortured.problems, []);
    assert!(!tortured.totals.writes.is_uneven());
}

/// The first of ten runs in which a fault is found. On a busy machine, two threads may not meet in
/// every run.
pub(super) fn first_found(lock: &str, plan: &Plan) -> Tortured {
    let lock = locks::lock(lock).unwrap();
    let mut runs = (0..10).map(|_| torture(lock, plan, &mut |_| ()).unwrap());
    runs.find(|tortured| !tortured.problems.is_empty()).expect("a fault is found")
}

#[test]
fn a_lock_that_does_not_exclude_is_detected() {
    let tortured = first_found("lock-busted", &plan());
    assert_eq!(tortured.verdict(), Verdict::Failure);
    assert!(matches!(tortured.problems[0], Problem::Exclusion { .. }), "{:?}", tortured.problems);
}

#[test]
fn a_lock_that_wakes_no_waiter_is_detected() {
    let plan = Plan { duration: Duration::from_millis(500), hang: Duration::from_secs(1), ..plan() };
    let tortured = first_found("lock-lost-wakeup", &plan);
    assert!(matches!(tortured.problems[..], [Problem::Hang { .. }]), "{:?}", tortured.problems);
    assert!(tortured.wait_ns_max > 1_000_000);
}
