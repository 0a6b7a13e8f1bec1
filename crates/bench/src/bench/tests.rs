use super::sample::Sample;
use super::*;
use crate::torture::Waiting;
use nearlock_collection::subjects::Subject;
use std::ops::ControlFlow;

fn plan(mode: Mode, locks: &[&str]) -> Plan {
    let locks: Vec<_> = locks.iter().map(|name| Candidate::named(name).expect("is in a list")).collect();
    let point = match mode {
        Mode::Handover => Point::handover(HANDOVER_SECTION_NS),
        _ if mode.point().is_some() => mode.point().expect("checked"),
        _ => Point { threads: 3, section_ns: 20, think_ns: 50, read_percent: None },
    };
    Plan {
        baselines: vec![locks[0]],
        cells: vec![Cell { mode, point, locks, own: None }],
        rounds: 2,
        window: Duration::from_millis(20),
        waiting: Waiting::Yield,
        helper: Helper { program: "/no/such/program".into(), compute: vec![], first_lock: vec![] },
        settings: Setting::DEFAULTS,
    }
}

/// A plan for many locks, with shorter runs.
fn plan_of_many(mode: Mode, locks: &[&str]) -> Plan {
    Plan { window: Duration::from_millis(5), ..plan(mode, locks) }
}

/// [`everything`] without the presets. The test of the command
/// `text_says_what_was_measured_and_fits` measures those in `free` and `open1`.
fn algorithms_and_peers() -> Vec<&'static str> {
    let is_preset = |name: &&str| Subject::named(name).is_some_and(|lock| !lock.positions.is_empty());
    everything().into_iter().filter(|name| !is_preset(name)).collect()
}

/// The locks that are meant to work, and the peers that are available, except controls.
fn everything() -> Vec<&'static str> {
    let is_there = |peer: &&Peer| peer.obtain().is_ok() && peer.unfit_for(Mode::Free).is_none();
    Subject::working()
        .map(|lock| lock.name)
        .chain(PEERS.iter().filter(is_there).map(|peer| peer.name))
        .collect()
}

fn report(plan: &Plan) -> Report {
    let mut runs = 0;
    let report = run(plan, &TestBed::this(), &Calibration::measure(), || {
        runs += 1;
        ControlFlow::Continue(())
    })
    .expect("can be measured");
    assert!(runs == plan.runs() || !report.failed.is_empty());
    report
}

#[test]
fn every_algorithm_keeps_its_counter() {
    let all = algorithms_and_peers();
    for waiting in [Waiting::Yield, Waiting::Spin] {
        let report = report(&Plan { waiting, ..plan_of_many(Mode::Free, &all) });
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        assert_eq!(report.rows.iter().map(|row| row.lock).collect::<Vec<_>>(), all);
        for row in &report.rows {
            assert_eq!((row.threads, row.section_ns, row.think_ns), (Some(3), Some(20), Some(50)));
            assert_eq!((row.rounds, row.summary, row.situations), (2, None, 1));
            assert_eq!((row.read_percent, row.rmw_per_op), (None, None));
            assert!(row.wait_ns_p99_9 <= row.wait_ns_max, "{row:?}");
        }
    }
}

#[test]
fn each_thread_has_a_core_in_parallel() {
    let machine = TestBed::this();
    let mut plan = plan(Mode::Parallel, &["ttas", "std"]);
    plan.cells[0].point.threads = machine.cores.len();
    let report = report(&plan);
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    assert!(report.rows.iter().all(|row| (row.mode, row.threads) == ("parallel", Some(machine.cores.len()))));
}

#[test]
fn a_plan_is_fitted_into_its_time() {
    let plan = plan(Mode::Free, &["ttas", "std"]);
    let [least, most] = [5, 50].map(Duration::from_millis);
    let long = plan.clone().within(Duration::MAX, least, most);
    assert_eq!(long.window, most);
    let short = plan.clone().within(long.takes() / 2, least, most);
    assert!(short.takes() <= long.takes() / 2 && short.window < most, "{:?}", short.window);
    assert_eq!(plan.within(Duration::ZERO, least, most).window, least);
}

#[test]
fn the_baseline_is_one_times_as_fast_as_itself() {
    let report = report(&plan(Mode::Free, &["qspinlock", "mcs"]));
    let [first, second] = &report.rows[..] else { panic!("{report:?}") };
    assert_eq!([first.ratio, first.ratio_low_quartile, first.ratio_high_quartile], [Some(1.0); 3]);
    assert_eq!((first.baseline, second.baseline), ("qspinlock", "qspinlock"));
    assert!(second.ratio.is_some() && second.cpu_ns_per_op.is_some() && second.jain.is_some());
    assert!(report.spread.is_some());
    assert_eq!((first.size_bytes, second.size_bytes), (4, size_of::<usize>()));
}

#[test]
fn with_several_baselines_each_has_its_rows() {
    let mut plan = plan(Mode::Uncontended, &["std", "parking-lot-0.13", "ttas"]);
    plan.baselines = plan.cells[0].locks[..2].to_vec();
    let rows = report(&plan).rows;
    let found: Vec<_> = rows.iter().map(|row| (row.baseline, row.lock)).collect();
    let of = |baseline| plan.cells[0].locks.iter().map(move |lock| (baseline, lock.name()));
    assert_eq!(found, of("std").chain(of("parking-lot-0.13")).collect::<Vec<_>>());
    assert_eq!((rows[0].ratio, rows[4].ratio), (Some(1.0), Some(1.0)));
    // The same samples, compared with another baseline.
    assert_eq!(rows[2].ns_per_op, rows[5].ns_per_op);
    assert_eq!((rows[0].size_bytes, rows[1].size_bytes), (size_of::<std::sync::Mutex<()>>(), 1));
}

#[test]
fn every_lock_with_readers_keeps_writers_apart_from_them() {
    let all: Vec<_> = everything()
        .into_iter()
        .filter(|name| Candidate::named(name).is_ok_and(Candidate::has_readers))
        .collect();
    for waiting in [Waiting::Yield, Waiting::Spin] {
        let mut plan = Plan { waiting, ..plan_of_many(Mode::Free, &all) };
        plan.cells[0].point.read_percent = Some(70);
        let report = report(&plan);
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        assert_eq!(report.rows.iter().map(|row| row.lock).collect::<Vec<_>>(), all);
        assert!(report.rows.iter().all(|row| row.read_percent == Some(70)));
    }
    let report = report(&plan_of_many(Mode::Writer, &all));
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    assert_eq!(report.rows.iter().map(|row| row.lock).collect::<Vec<_>>(), all);
    assert!(report.rows.iter().all(|row| (row.mode, row.jain.unwrap_or(1.0)) == ("writer", 1.0)));
}

#[test]
fn a_reader_alone_is_measured_as_a_reader() {
    let mut plan = plan(Mode::Uncontended, &["rwsem-xadd", "std-rwlock"]);
    let cell = |percent| {
        let point = Point { read_percent: Some(percent), ..Point::ALONE };
        Cell { point, ..plan.cells[0].clone() }
    };
    plan.cells = [0, 100].map(cell).to_vec();
    for row in report(&plan).rows {
        assert!(row.ns_per_op > Some(0.0), "{row:?}");
        assert_eq!(row.rmw_per_op.unwrap_or(2.0), 2.0, "{row:?}");
    }
}

#[test]
fn threads_in_a_queue_end_although_they_only_spin() {
    let mut plan = plan(Mode::Free, &["mcs"]);
    plan.waiting = Waiting::Spin;
    plan.cells[0].point.threads = 32 * TestBed::this().cpus;
    assert!(report(&plan).failed.is_empty());
}

#[test]
fn one_thread_alone_has_no_waits() {
    let report = report(&plan(Mode::Uncontended, &["mcs", "ttas", "std"]));
    let atomics: Vec<_> = report.rows.iter().map(|row| row.rmw_per_op).collect();
    // Without instruction counts, those of peers are not known.
    assert_eq!((atomics[0], atomics[1], atomics[2].unwrap_or(2.0)), (Some(2.0), Some(1.0), 2.0));
    for row in &report.rows {
        assert!(row.instructions_per_op.is_none_or(|count| count >= 2.0), "{row:?}");
        assert!(row.ns_per_op > Some(0.0) && row.ops_per_us.is_some() && row.ratio.is_some(), "{row:?}");
        assert_eq!((row.threads, row.wait_ns_max, row.jain, row.cpu_ns_per_op), (Some(1), None, None, None));
    }
}

/// The two counts share only the locks' source.
#[test]
fn native_counts_are_those_of_the_simulator() {
    let simulated = |lock: &Subject| atomics::per_pair(lock, Setting::DEFAULTS);
    let of_algorithm = |lock: &Subject| Subject::named(lock.algorithm.name).and_then(simulated);
    // Each instruction of a lock costs a signal here. So a preset is counted only if its number of
    // atomics differs from its algorithm's.
    let counted = Subject::working()
        .filter(|lock| lock.positions.is_empty() || simulated(lock) != of_algorithm(lock))
        .map(|lock| lock.name)
        .collect::<Vec<_>>();
    let mut plan = plan(Mode::Uncontended, &counted);
    plan.window = Duration::from_micros(1);
    plan.rounds = 1;
    for row in report(&plan).rows {
        let lock = Subject::named(row.lock).expect("is in the list");
        assert_eq!(row.rmw_per_op, simulated(lock), "{}", row.lock);
    }
}

/// Locks that model another library's lock have as many atomics as that library's own code. (A
/// writer of `glibc-rwlock` has one more.)
#[test]
fn models_of_locks_make_as_many_atomics_as_the_originals() {
    let pairs = [
        ("std-mutex-protocol", "std"),
        ("parking-lot-0.12-protocol", "parking-lot-0.12"),
        ("parking-lot-0.13-protocol", "parking-lot-0.13"),
        ("std-rwlock-protocol", "std-rwlock"),
        ("parking-lot-0.13-rwlock-protocol", "parking-lot-0.13-rwlock"),
    ];
    let mut plan = plan(Mode::Uncontended, &pairs.map(|(ours, theirs)| [ours, theirs]).concat());
    plan.window = Duration::from_micros(1);
    for rows in report(&plan).rows.chunks(2) {
        assert_eq!(rows[0].rmw_per_op, rows[1].rmw_per_op, "{}", rows[0].lock);
    }
}

#[test]
fn a_section_may_write_to_lines() {
    let locks = ["near-mutex", "bare-exchange", "bare-compare-exchange"];
    let instructions = |mode: Mode| {
        let report = report(&plan(mode, &locks));
        assert!(report.rows.iter().all(|row| row.ns_per_op > Some(0.0)), "{report:?}");
        assert!(report.rows.iter().all(|row| row.mode == "uncontended" && row.case == mode.case()));
        report.rows.iter().map(|row| row.instructions_per_op).collect::<Vec<_>>()
    };
    let counts = [Mode::Uncontended, Mode::Stores(&STORES_CASES[0]), Mode::Stores(&STORES_CASES[1])];
    let [none, one, four] = counts.map(instructions);
    for ((none, one), four) in none.into_iter().zip(one).zip(four) {
        assert!(none.is_none() || none < one && one < four, "{none:?} {one:?} {four:?}");
    }
}

#[test]
fn gates_are_computed_from_the_rounds() {
    let mut plan = plan(Mode::Uncontended, &["near-mutex", "bare-compare-exchange"]);
    plan.rounds = 7;
    plan.window = Duration::from_millis(2);
    let gates = report(&plan).gates;
    let found: Vec<_> = gates.iter().map(|gate| (gate.name, gate.baseline)).collect();
    assert_eq!(found, [("uncontended", Some("bare-compare-exchange"))]);
    // A round does not count in which the loop seems to take no longer with the lock than without.
    let gate = &gates[0];
    assert!((1..=7).contains(&gate.rounds) && gate.value > 0.0, "{gates:?}");
    assert_eq!(gate.verdict.is_some(), gate.rounds == 7, "{gates:?}");
}

#[test]
fn situations_have_means() {
    let mut plan = plan(Mode::Free, &["ttas", "std"]);
    let cell = |think_ns| {
        let Cell { point, .. } = plan.cells[0];
        Cell { point: Point { think_ns, ..point }, ..plan.cells[0].clone() }
    };
    plan.cells = [0, 50, 100].map(cell).to_vec();
    let rows = report(&plan).rows;
    let means: Vec<_> = rows.iter().filter(|row| row.summary.is_some()).collect();
    let found: Vec<_> = means.iter().map(|row| (row.mode, row.summary, row.lock, row.situations)).collect();
    // There is no mean of the one situation without think time.
    let of = |mode, group, situations| ["ttas", "std"].map(|lock| (mode, Some(group), lock, situations));
    let groups = |mode| [of(mode, "think time", 2), of(mode, "all", 3)].concat();
    assert_eq!(found, [groups("free"), groups("contended")].concat());
    assert!(means.iter().all(|row| row.threads.is_none() && row.ratio.is_some() && row.cpu_ratio.is_some()));
    let [mean, first, second] = [means[1].ratio, rows[3].ratio, rows[5].ratio].map(Option::unwrap);
    assert!((mean - (first * second).sqrt()).abs() < 1e-9, "{rows:?}");
}

#[test]
fn each_percentage_of_reads_has_means() {
    let mut plan = plan(Mode::Free, &["rwsem"]);
    let cell = |(percent, section_ns)| {
        let Cell { point, .. } = plan.cells[0];
        Cell { point: Point { section_ns, read_percent: Some(percent), ..point }, ..plan.cells[0].clone() }
    };
    plan.cells = [(90, 0), (90, 20), (50, 0), (50, 20)].map(cell).to_vec();
    let rows = report(&plan).rows;
    let means = rows.iter().filter(|row| row.summary.is_some());
    let found: Vec<_> = means.map(|row| (row.mode, row.read_percent, row.situations)).collect();
    let of_percents = [90, 50].map(|percent| ("contended", Some(percent), 2));
    assert_eq!(found, [&[("free", None, 4), ("contended", None, 4)], &of_percents[..]].concat());
    let speeds = |percent| Row::speeds(&rows, &[Mode::Free], percent, "rwsem").len();
    assert_eq!(Row::read_percents(&rows, &[Mode::Free]), [Some(90), Some(50)]);
    assert_eq!((speeds(Some(90)), speeds(Some(50)), speeds(None)), (2, 2, 0));
}

#[test]
fn hand_overs_are_timed() {
    if TestBed::this().allowed.len() < 2 {
        return;
    }
    let all = everything();
    let report = report(&plan_of_many(Mode::Handover, &all));
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    assert_eq!(report.rows.len(), all.len());
    for row in &report.rows {
        assert!(row.wait_ns_max.is_some() && row.ops_per_us.is_none(), "{row:?}");
    }
}

#[test]
fn a_lock_that_does_not_exclude_is_detected() {
    let mut plan = plan(Mode::Free, &["mcs", "lock-busted"]);
    // Sections are so long that even on one CPU a thread is preempted in a section.
    plan.cells[0].point.section_ns = 50_000;
    plan.window = Duration::from_millis(300);
    let report = report(&plan);
    assert!(matches!(report.failed[0].failure, Failure::LostUpdates { .. }), "{report:?}");
    assert_eq!(report.failed[0].lock, "lock-busted");
    // The failed lock has no figures, but the other lock has.
    assert_eq!(report.rows.iter().map(|row| row.lock).collect::<Vec<_>>(), ["mcs"]);
}

#[test]
fn calls_are_made_over_every_algorithm() {
    let all = algorithms_and_peers();
    for mode in [Mode::Calls(Calls::Open1), Mode::Calls(Calls::Lock2)] {
        let report = report(&plan_of_many(mode, &all));
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        for (row, lock) in report.rows.iter().zip(all.iter()) {
            assert_eq!((row.lock, row.mode, row.threads), (*lock, mode.name(), Some(3)));
            assert!(row.wait_ns_p99_9 <= row.wait_ns_max && row.rmw_per_op.is_none(), "{row:?}");
        }
    }
}

#[test]
fn calls_over_a_lock_that_does_not_exclude_are_detected() {
    for calls in [Calls::Open1, Calls::Lock2] {
        let mut plan = plan(Mode::Calls(calls), &["lock-busted"]);
        plan.cells[0].point.section_ns = 50_000;
        plan.window = Duration::from_millis(300);
        let report = report(&plan);
        assert!(matches!(report.failed[0].failure, Failure::Faults { .. }), "{report:?}");
    }
}

#[test]
fn every_case_of_condition_variables_is_measured_over_every_lock_that_has_one() {
    let machine = TestBed::this();
    for case in &CONDVAR_CASES {
        let mode = Mode::Condvar(case);
        if mode.needs_two_cpus() && machine.allowed.len() < 2 {
            continue;
        }
        let suiting = |name: &&str| Candidate::named(name).is_ok_and(|lock| lock.suits(mode));
        let all: Vec<_> = everything().into_iter().filter(suiting).collect();
        for expected in ["near-mutex", "std", "parking-lot-0.12", "parking-lot-0.13"] {
            assert!(all.contains(&expected), "{all:?}");
        }
        let plan = plan_of_many(mode, &all);
        let report = report(&plan);
        assert!(report.failed.is_empty(), "{}: {:?}", case.name, report.failed);
        for (row, lock) in report.rows.iter().zip(all) {
            assert_eq!((row.lock, row.mode, row.case), (lock, "condvar", Some(case.name)));
            assert_eq!(row.threads, Some(case.threads));
            assert!(row.wait_ns_p99_9 <= row.wait_ns_max && row.rmw_per_op.is_none(), "{row:?}");
        }
    }
}

#[test]
fn sections_that_wait_and_many_locks_are_measured_over_peers_and_ours() {
    let long = LONG_CASES.iter().map(Mode::Long);
    let modes = long.chain(MANY_CASES.iter().map(Mode::Many)).chain([Mode::Away]);
    for mode in modes.chain(WAKE_CASES.iter().map(Mode::Wake)) {
        let all = ["near-mutex", "std", "parking-lot-0.13", "pthread-mutex", "linux-mutex"];
        let all: Vec<_> = all.into_iter().filter(|name| everything().contains(name)).collect();
        let report = report(&plan_of_many(mode, &all));
        assert!(report.failed.is_empty(), "{mode:?}: {:?}", report.failed);
        assert_eq!(report.rows.len(), all.len());
        for row in &report.rows {
            assert_eq!((row.mode, row.case), (mode.name(), mode.case()));
            assert_eq!(row.threads, mode.point().map(|point| point.threads));
            assert!(row.wait_ns_p99_9 <= row.wait_ns_max, "{row:?}");
        }
    }
}

#[test]
fn a_lock_that_does_not_exclude_is_detected_although_its_holder_sleeps() {
    for mode in [Mode::Away, Mode::Long(&LONG_CASES[0]), Mode::Wake(&WAKE_CASES[0])] {
        let report = report(&plan(mode, &["lock-busted"]));
        let failure = report.failed.first().map(|failed| &failed.failure);
        let expected = matches!(failure, Some(Failure::LostUpdates { .. } | Failure::Overlaps { .. }));
        assert!(expected, "{mode:?}: {report:?}");
    }
}

#[test]
fn a_situation_may_have_its_own_window_and_fewer_rounds() {
    let mut plan = plan(Mode::Free, &["ttas", "std"]);
    let takes = plan.takes();
    plan.cells[0].own = Some((10 * plan.window, 1));
    assert_eq!(plan.runs(), 2);
    assert!(plan.takes() > takes, "{:?}", plan.takes());
    assert!(report(&plan).rows.iter().all(|row| row.rounds == 1));
}

#[test]
fn a_lock_that_does_not_wait_is_detected() {
    if TestBed::this().allowed.len() < 2 {
        return;
    }
    let report = report(&plan(Mode::Handover, &["lock-busted"]));
    assert!(matches!(report.failed[0].failure, Failure::Overlaps { .. }), "{report:?}");
}

#[test]
fn rounds_are_in_many_orders_and_always_complete() {
    let mut order = Order::new(4);
    let mut orders: Vec<Vec<usize>> = (0..200).map(|_| order.draw().to_vec()).collect();
    assert!(orders.iter().all(|order| order.iter().sum::<usize>() == 6));
    assert_eq!(Order::new(4).draw(), orders[0]);
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), 24);
}

#[test]
fn the_ratio_of_a_lock_without_operations_is_0() {
    let plan = plan(Mode::Free, &["mcs", "ttas"]);
    let sample = |ns| Sample { ns_per_op: Some(ns), ..Sample::default() };
    let (none, some) = (Some(vec![sample(f64::INFINITY); 2]), Some(vec![sample(100.0); 2]));
    let mut report = Report::default();
    report.add(&plan, &plan.cells[0], &[some.clone(), none.clone()]);
    report.add(&plan, &plan.cells[0], &[none, some]);
    let figures: Vec<_> = report.rows.iter().map(|row| (row.ns_per_op, row.ops_per_us, row.ratio)).collect();
    assert_eq!(figures[0], (Some(100.0), Some(10.0), Some(1.0)));
    assert_eq!(figures[1], (None, Some(0.0), Some(0.0)));
    // There is no ratio to a baseline without operations.
    assert_eq!(figures[2..], [(None, Some(0.0), None), (Some(100.0), Some(10.0), None)]);
}

/// The page has the cost of each algorithm. A preset may be newer than the measurement.
#[test]
fn the_page_of_costs_has_the_cost_of_each_algorithm() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/laboratory/costs.md");
    let text = std::fs::read_to_string(page).expect("docs/laboratory/costs.md");
    let (_, costs) = text.split_once("## What they cost uncontended").expect("a section of costs");
    let has = |costs: &str, name: &str| costs.lines().any(|line| line.starts_with(&format!("{name} ")));
    let (locks, readers) = costs.split_once("Of a reader alone").expect("a part about readers");
    for lock in Subject::working().filter(|lock| lock.positions.is_empty()) {
        assert!(has(locks, lock.name), "docs/laboratory/costs.md lacks {}, and names the command", lock.name);
        assert!(!lock.is_rw() || has(readers, lock.name), "its readers' part lacks {}", lock.name);
    }
}

/// The types of `RUST_NAMES`, with the sizes of their locks.
macro_rules! types {
    ($($path:literal = $type:ty,)*) => {
        [$(($path, size_of::<$type>())),*]
    };
}

#[test]
fn the_names_in_rust_are_types_of_the_library() {
    let types = types! {
        "Mutex" = nearlock::Mutex<()>,
        "RwLock" = nearlock::RwLock<()>,
        "Condvar" = nearlock::Condvar,
        "linux::SpinLock" = nearlock::linux::SpinLock<()>,
        "linux::CnaLock" = nearlock::linux::CnaLock<()>,
        "linux::FifoSpinLock" = nearlock::linux::FifoSpinLock<()>,
        "linux::RwSem" = nearlock::linux::RwSem<()>,
        "linux::Mutex" = nearlock::linux::Mutex<()>,
        "linux::CounterMutex" = nearlock::linux::CounterMutex<()>,
        "freebsd::Mtx" = nearlock::freebsd::Mtx<()>,
        "freebsd::SpinMtx" = nearlock::freebsd::SpinMtx<()>,
        "freebsd::Rw" = nearlock::freebsd::Rw<()>,
        "freebsd::Sx" = nearlock::freebsd::Sx<()>,
        "freebsd::LockMgr" = nearlock::freebsd::LockMgr<()>,
        "classic::McsLock" = nearlock::classic::McsLock<()>,
        "classic::ClhLock" = nearlock::classic::ClhLock<()>,
        "classic::GlibcMutex" = nearlock::classic::GlibcMutex<()>,
        "classic::RawTicketLock" = nearlock::classic::RawTicketLock,
        "classic::TtasLock" = nearlock::classic::TtasLock<()>,
        "classic::RawTasLock" = nearlock::classic::RawTasLock,
    };
    let named: Vec<_> = nearlock_lab::names::RUST_NAMES.iter().map(|name| name.path).collect();
    assert_eq!(types.map(|(path, _)| path).to_vec(), named);
    assert!(types.iter().all(|(_, size)| *size <= 40), "{types:?}");
}

#[test]
fn situations_with_a_gate_of_their_own_have_longer_windows() {
    let window_ms = |mode: Mode| {
        let mut plan = plan(mode, &["near-mutex"]);
        plan.cells[0].own = mode.least();
        let plan = plan.for_gates();
        plan.window_of(&plan.cells[0]).as_millis()
    };
    let [one, shared, _] = MANY_CASES.each_ref().map(Mode::Many);
    assert_eq!([one, shared, Mode::Free, Mode::Away].map(window_ms), [20, 250, 20, 300]);
}
