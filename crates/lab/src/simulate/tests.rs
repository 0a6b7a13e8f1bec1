use nearlock_collection::subjects::{Family, SUBJECTS, Subject};
use nearlock_core::settings::{NumaLocality, NumaMode, Setting};
use nearlock_workload::jobs::Root;

use super::workloads::Constants;
use super::*;
use nearlock_sim::spec::MachineSpec;

fn cell(lock: &str, threads: usize) -> Simulation {
    Simulation {
        machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
        workload: Box::new(Locktorture::DEFAULT),
        lock: Subject::named(lock).unwrap(),
        placement: Placement::default(),
        start: Start::default(),
        threads,
        seed: 5,
        settings: Setting::DEFAULTS,
        limits: Limits { warm_up_ns: 200_000, window_ns: 2_000_000, ..Limits::default() },
        lockstat: false,
    }
}

/// Presets are simulated here. Other workloads are tested with algorithms.
#[test]
fn every_working_lock_passes_the_checkers_and_repeats() {
    for lock in Subject::working() {
        for threads in [1, 2, 9, 40] {
            let cell = cell(lock.name, threads);
            let first = simulate(&cell).unwrap();
            assert_eq!(simulate(&cell).unwrap(), first);
            assert!(first.ops_per_us > 0.1 && first.wait_ns_p50 <= first.wait_ns_p99, "{first:?}");
            assert!(first.wait_ns_p99 <= first.wait_ns_max + first.wait_ns_max / 500, "{first:?}");
        }
    }
}

#[test]
fn each_checker_finds_its_control_and_names_the_seed() {
    let kind = |lock, threads| {
        let failure = simulate(&cell(lock, threads)).unwrap_err();
        assert!(failure.to_string().contains("seed 5"), "{failure}");
        failure.fault
    };
    assert!(matches!(kind("lock-busted", 4), Fault::Exclusion { .. }));
    assert!(matches!(kind("lock-lost-wakeup", 4), Fault::Deadlock { .. }));
    assert!(matches!(kind("lock-after-you", 4), Fault::Livelock { .. }));
    assert!(matches!(kind("lock-lifo", 4), Fault::Starvation { .. }));
}

#[test]
fn correct_locks_do_not_starve_by_default_whatever_the_machine_and_the_settings() {
    let mut slow = cell("mcs", 142);
    slow.workload = Box::new(Locktorture { section_ns: 100_000, ..Locktorture::DEFAULT });
    slow.limits.window_ns = 50_000_000;
    simulate(&slow).unwrap();
    let mut far = cell("cna-v13-no-sro", 80);
    far.machine = MachineSpec::builtin("westmere-ex-8s").unwrap();
    far.limits.window_ns = 120_000_000;
    simulate(&far).unwrap();
}

#[test]
fn settings_say_what_counts_as_a_numa_node() {
    // Few sections until the queue is sorted, and no flush: hand-overs are as local as possible.
    let simulated = |machine: &str, mode: NumaMode, locality: NumaLocality| {
        let mut cell = cell("cna-v13-no-sro", 64);
        cell.machine = MachineSpec::builtin(machine).unwrap();
        cell.placement = Placement::Random;
        cell.settings[Setting::NumaMode as usize] = mode as u64;
        cell.settings[Setting::NumaLocality as usize] = locality as u64;
        cell.settings[Setting::NumaSyntheticNodes as usize] = 1;
        cell.limits.warm_up_ns = 1_000_000;
        simulate(&cell).unwrap()
    };
    let haswell = |mode, locality| simulated("haswell-ex-4s", mode, locality);
    let auto = haswell(NumaMode::Auto, NumaLocality::Node);
    assert!(auto.local_handover_share > 0.9, "{auto:?}");
    assert_eq!(haswell(NumaMode::On, NumaLocality::Node), auto);
    // On this machine a socket has one last-level cache.
    assert_eq!(haswell(NumaMode::Auto, NumaLocality::LastLevelCache), auto);
    // First come, first served.
    let off = haswell(NumaMode::Off, NumaLocality::Node);
    assert!(off.local_handover_share < 0.5, "{off:?}");
    assert_eq!(haswell(NumaMode::On, NumaLocality::Synthetic), off);

    let rome = |locality| simulated("epyc-rome-2s", NumaMode::Auto, locality);
    let (by_node, by_cache) = (rome(NumaLocality::Node), rome(NumaLocality::LastLevelCache));
    assert!(by_cache.local_handover_share > 0.9, "{by_cache:?}");
    assert_ne!(by_node, by_cache);
}

#[test]
fn the_controls_pass_alone() {
    for lock in ["lock-busted", "lock-lost-wakeup", "lock-after-you", "lock-lifo"] {
        assert!(simulate(&cell(lock, 1)).is_ok(), "{lock}");
    }
}

#[test]
fn first_come_first_served_bounds_the_wait_and_cna_shares_within_a_node() {
    let scattered = Simulation { placement: Placement::Random, ..cell("mcs", 40) };
    let mcs = simulate(&scattered).unwrap();
    assert!(mcs.jain > 0.99, "{mcs:?}");
    assert!(mcs.wait_ns_max < 3 * mcs.wait_ns_p50, "{mcs:?}");
    let mut cna = cell("cna-v13", 40);
    cna.settings[Setting::CnaV13ThresholdNs as usize] = 200_000;
    cna.settings[Setting::CnaV13TickHz as usize] = 100_000;
    let v13 = simulate(&cna).unwrap();
    let mut cna = cell("cna", 40);
    cna.settings[Setting::CnaThresholdNs as usize] = 200_000;
    let v15 = simulate(&cna).unwrap();
    assert!(mcs.local_handover_share < 0.5, "{mcs:?}");
    for cna in [v13, v15] {
        assert!(cna.local_handover_share > 0.7, "{cna:?}");
        assert!((200_000..1_000_000).contains(&cna.wait_ns_max), "{cna:?}");
    }
}

#[test]
fn a_rare_long_section_causes_no_starvation_and_hides_none() {
    let limits = Limits::default();
    let workload = self::users("aim7-high-systime", |c| c.long_every = 50);
    let machine = MachineSpec::builtin("westmere-ex-8s").unwrap();
    let users = Simulation { machine, workload, limits, ..cell("mcs", 80) };
    // One long section in a few ms, for which all threads wait.
    let (waited_ns, bound_ns) = (simulate(&users).unwrap().wait_ns_max, starvation::bound_ns(&users));
    assert!(waited_ns > 100_000, "{waited_ns}");
    assert!((2 * waited_ns..limits.window_ns).contains(&bound_ns), "{waited_ns} {bound_ns}");
}

#[test]
fn cna_without_a_threshold_promises_nothing() {
    let mut cell = cell("cna", 40);
    assert!(starvation::bound_ns(&cell) < u64::MAX);
    cell.settings[Setting::CnaThresholdNs as usize] = 0;
    assert_eq!(starvation::bound_ns(&cell), u64::MAX);
    let cna = simulate(&cell).unwrap();
    assert!(cna.wait_ns_max > cell.limits.window_ns / 2 && cna.jain < 0.9, "{cna:?}");
}

#[test]
fn a_pass_limit_says_how_often_the_lock_leaves_a_numa_node() {
    let with_limit = |limit| {
        let mut cell = cell("hmcs", 40);
        cell.settings[Setting::HmcsLocalPassLimit as usize] = limit;
        cell
    };
    let [never, seldom, often] = [u64::from(u32::MAX), 399, 19].map(|limit| simulate(&with_limit(limit)));
    let (seldom, often) = (seldom.unwrap(), often.unwrap());
    assert!((0.94..0.96).contains(&often.local_handover_share), "19 of 20: {often:?}");
    assert!(often.jain > 0.99 && 3 * often.wait_ns_max < seldom.wait_ns_max, "{often:?} {seldom:?}");
    assert!(often.ops_per_us < seldom.ops_per_us, "{often:?} {seldom:?}");
    // This is within the limit, which is long, but far longer than any wait above.
    assert!(never.unwrap().wait_ns_max > 3 * seldom.wait_ns_max);
    let mut judged = with_limit(u64::from(u32::MAX));
    judged.limits.starvation_ns = 3 * seldom.wait_ns_max;
    assert!(matches!(simulate(&judged).unwrap_err().fault, Fault::Starvation { .. }));
}

#[test]
fn many_waiters_on_one_word_fall_behind_a_queue() {
    let [ttas, mcs, cna] = ["ttas", "mcs", "cna-v13"].map(|lock| simulate(&cell(lock, 36)).unwrap());
    assert!(ttas.ops_per_us < mcs.ops_per_us && mcs.ops_per_us < cna.ops_per_us);
    assert!(ttas.line_transfers_per_op > 2.0 * mcs.line_transfers_per_op);
}

#[test]
fn urgent_waiters_end_the_preference_for_a_numa_node() {
    let mut urgent = cell("cna-v13", 20);
    urgent.workload = Box::new(Locktorture { priority_percent: 100, ..Locktorture::DEFAULT });
    let urgent = simulate(&urgent).unwrap();
    let ordinary = simulate(&cell("cna-v13", 20)).unwrap();
    assert!(urgent.local_handover_share < 0.7 && ordinary.local_handover_share > 0.9);
}

#[test]
fn cna_is_ahead_of_qspinlock_from_eight_threads_on() {
    for threads in [8, 36, 142] {
        // The mean over seeds: with eight threads the result depends on where they run.
        let [stock, cna, v13] = ["qspinlock", "cna", "cna-v13"].map(|lock| {
            let limits = Limits { warm_up_ns: 1_000_000, window_ns: 5_000_000, ..Limits::default() };
            let of_seed = |seed| simulate(&Simulation { seed, limits, ..cell(lock, threads) });
            (1..=6).map(|seed| of_seed(seed).unwrap().ops_per_us).sum::<f64>() / 6.0
        });
        assert!(cna.min(v13) > stock, "{threads} threads: {cna}, {v13} against {stock}");
    }
}

#[test]
fn a_window_without_acquisitions_gives_zeros() {
    let mut cell = cell("mcs", 1);
    (cell.limits.warm_up_ns, cell.limits.window_ns) = (1_000, 10);
    let simulated = simulate(&cell).unwrap();
    assert_eq!((simulated.ops_per_us, simulated.jain, simulated.local_handover_share), (0.0, 0.0, 0.0));
    assert_eq!(simulated.line_transfers_per_op, 0.0);
}

/// Pairs that wake each other, for half a millisecond.
fn pairs(lock: &str, threads: usize, context1: Context1) -> Simulation {
    let mut cell = cell(lock, threads);
    cell.machine = MachineSpec::builtin("cascadelake-2s").unwrap();
    cell.workload = Box::new(context1);
    cell.limits.window_ns = 500_000;
    cell
}

#[test]
fn pairs_take_turns_at_every_algorithm_and_repeat() {
    for lock in Subject::working().filter(|lock| lock.positions.is_empty()) {
        for threads in [2, 8, 56] {
            let cell = pairs(lock.name, threads, Context1::DEFAULT);
            let first = simulate(&cell).unwrap();
            assert_eq!(simulate(&cell).unwrap(), first);
            assert!(first.ops_per_us > 0.05, "{first:?}");
        }
    }
    // One thread of a pair sleeps during the other's turn, so that both have the same number of
    // turns.
    let both = simulate(&pairs("mcs", 2, Context1::DEFAULT)).unwrap();
    assert!(both.jain > 0.999, "{both:?}");
    assert!(matches!(
        simulate(&pairs("lock-busted", 56, Context1::DEFAULT)).unwrap_err().fault,
        Fault::Exclusion { .. }
    ));
}

#[test]
fn what_a_hop_of_a_pair_consists_of_shows() {
    let plain = Context1::DEFAULT;
    let ops = |context1: &Context1| simulate(&pairs("mcs", 56, context1.clone())).unwrap().ops_per_us;
    let of_plain = ops(&plain);
    for changed in [
        Context1 { section_ns: plain.section_ns + 1000, ..plain.clone() },
        Context1 { think_ns: plain.think_ns + 3000, ..plain.clone() },
        Context1 { lines: plain.lines + 8, ..plain.clone() },
    ] {
        assert!(ops(&changed) < 0.95 * of_plain, "{changed:?}");
    }
    let crowded = Context1 { locks: 1, section_ns: 1000, ..plain };
    let spread = Context1 { locks: 4, ..crowded.clone() };
    assert!(ops(&spread) > 1.5 * ops(&crowded));
}

#[test]
fn partners_run_on_one_socket_unless_anywhere() {
    // Each pair has a lock of its own, so that lines cross sockets only if partners are on two
    // sockets.
    let remote = |partners, placement| {
        let context1 = Context1 { partners, locks: 4, ..Context1::DEFAULT };
        (1..=8)
            .map(|seed| {
                let mut cell = pairs("mcs", 8, context1.clone());
                (cell.seed, cell.placement) = (seed, placement);
                simulate(&cell).unwrap().remote_transfers_per_op
            })
            .sum::<f64>()
    };
    for placement in [Placement::Random, Placement::Filled] {
        assert!(remote(Partners::Socket, placement) < remote(Partners::Anywhere, placement));
    }
}

/// Users of a profile with changed constants.
fn users(profile: &str, change: impl FnOnce(&mut Constants)) -> Box<dyn AnyWorkload> {
    let mut users = Jobs::named(profile);
    change(&mut users.constants);
    Box::new(users)
}

#[test]
fn users_of_every_profile_do_jobs_and_repeat() {
    for profile in Jobs::ALL.map(|users| users.name) {
        let mut cell = cell("mcs", 24);
        cell.workload = users(profile, |_| {});
        let first = simulate(&cell).unwrap();
        assert_eq!(simulate(&cell).unwrap(), first);
        assert!(first.jobs_per_minute > Some(1000.0), "{first:?}");
        assert_eq!(first.workload, profile);
    }
    assert_eq!(simulate(&cell("mcs", 2)).unwrap().jobs_per_minute, None);
}

#[test]
fn jobs_are_as_many_as_their_lengths_allow() {
    let mut cell = cell("mcs", 4);
    cell.limits.window_ns = 40_000_000;
    cell.workload = users("aim7-compute", |c| {
        (c.locking_percent, c.steps, c.step_ns, c.spinlock_ns) = (0, 10, 10_000, 0);
    });
    cell.machine.model.tick_hz = 0.0;
    // Four users, 0.1 ms per job.
    let jobs = simulate(&cell).unwrap().jobs_per_minute.unwrap();
    assert!((jobs / 2_400_000.0 - 1.0).abs() < 0.03, "{jobs}");
    // Users that sleep as long as they work complete half as many jobs.
    cell.workload = users("aim7-compute", |c| {
        (c.locking_percent, c.steps, c.step_ns, c.spinlock_ns) = (0, 10, 10_000, 0);
        (c.sleep_percent, c.sleep_ns) = (100, 10_000);
    });
    let asleep = simulate(&cell).unwrap().jobs_per_minute.unwrap();
    assert!(asleep < 0.55 * jobs, "{asleep} {jobs}");
}

#[test]
fn users_may_be_more_than_cpus_and_then_share_them() {
    let jobs = |users: usize| {
        let mut cell = cell("mcs", users);
        cell.machine.sockets = 1;
        cell.machine.smt = 1;
        cell.limits.window_ns = 40_000_000;
        cell.workload = self::users("aim7-compute", |c| (c.locking_percent, c.spinlock_ns) = (0, 0));
        simulate(&cell).unwrap().jobs_per_minute.unwrap()
    };
    // All 18 cores are busy with 18 users as well as with 100.
    let (each_its_own, shared) = (jobs(18), jobs(100));
    assert!((shared / each_its_own - 1.0).abs() < 0.1, "{each_its_own} {shared}");
}

#[test]
fn users_that_end_are_counted_from_their_beginning_to_the_end_of_the_last() {
    let mut cell = cell("linux-mutex", 36);
    cell.machine.smt = 1;
    cell.machine.sockets = 1;
    cell.workload = users("aim7-short", |_| {});
    // With any window, 18 cores have to complete 100 jobs for each of 36 users.
    for window_ns in [1_000_000, 60_000_000] {
        cell.limits.window_ns = window_ns;
        let jobs = simulate(&cell).unwrap().jobs_per_minute.unwrap();
        let busy_share = jobs / 60e9 * 330_000.0 / 18.0;
        assert!((0.9..1.02).contains(&busy_share), "{jobs} {busy_share}");
    }
}

#[test]
fn the_roots_lock_is_of_the_tested_type_or_a_semaphore_that_sleeps() {
    let slow_path_share = |root| {
        let mut cell = cell("mcs", 24);
        cell.workload = users("aim7-custom", |c| (c.locking_percent, c.jobs, c.root) = (100, 0, root));
        simulate(&cell).unwrap().slow_path_share
    };
    // Of these two locks only the semaphore marks its slow path.
    assert_eq!(slow_path_share(Root::Last), 0.0);
    assert!(slow_path_share(Root::Rwsem) > 0.0);
}

#[test]
fn each_of_a_profiles_locks_excludes() {
    let mut cell = cell("lock-busted", 24);
    cell.workload = users("aim7-fserver", |c| c.locking_percent = 100);
    assert!(matches!(simulate(&cell).unwrap_err().fault, Fault::Exclusion { .. }));
    cell.lock = Subject::named("ticket").unwrap();
    simulate(&cell).unwrap();
}

#[test]
fn readers_meet_no_writer_and_are_together_where_the_lock_lets_them() {
    let rw: Vec<_> = SUBJECTS.iter().filter(|lock| lock.is_rw()).collect();
    assert!(!rw.is_empty());
    for lock in rw {
        let mut cell = cell(lock.name, 24);
        cell.workload = users("page-fault", |_| {});
        match simulate(&cell) {
            Ok(simulated) => {
                assert!(lock.family() != Family::Control, "{} is broken", lock.name);
                assert!(simulated.jobs_per_minute > Some(0.0));
            }
            Err(failure) => assert!(lock.family() == Family::Control, "{failure}"),
        }
    }
}
