//! Many more tasks than CPUs, and a lock whose waiters sleep.

use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use nearlock_core::platform::{Atomic, Clock, Park, Platform, Random, Work};
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Sim, account};

type Word = <Sim as Platform>::U32;

const MS: u64 = 1_000_000;
const SLOW_PATH: usize = 1;

/// A mutex with sleeping waiters: 0 free, 1 held, 2 held and a task may sleep.
fn lock(word: &Word) {
    if word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
        return;
    }
    let _slow_path = account::enter(SLOW_PATH);
    while word.swap(2, Acquire) != 0 {
        Sim::park(word, 2);
    }
}

fn unlock(word: &Word) {
    if word.swap(0, Release) == 2 {
        Sim::unpark(word, 1);
    }
}

/// Lets tasks on all CPUs of a machine alternately compute and lock, until `until_ns`.
fn crowd(machine: &str, tasks: usize, settings: &[(&str, &str)], until_ns: u64) -> Machine {
    let mut spec = MachineSpec::builtin(machine).unwrap();
    settings.iter().for_each(|(key, value)| spec.set(key, value).unwrap());
    let machine = Machine::new(&spec, 3);
    let word = Rc::new(machine.place(0, Word::ZERO));
    for task in 0..tasks {
        let word = word.clone();
        machine.spawn(task % spec.cpus(), 50 * task as u64, move || {
            while Sim::now_ns() < until_ns {
                Sim::busy_ns(u64::from(Sim::random_u32() % 100_000));
                Sim::may_give_way();
                lock(&word);
                Sim::busy_ns(500);
                unlock(&word);
                Sim::may_give_way();
            }
        });
    }
    assert_eq!(machine.run_until(until_ns), Pause::Time);
    machine
}

#[test]
fn no_task_is_forgotten_and_all_time_is_accounted_for() {
    for preemption in ["voluntary", "anywhere"] {
        let machine = crowd("westmere-ex-8s", 1_500, &[("preemption", preemption)], 50 * MS);
        let times = machine.times();
        let all_ns = times.on_cpu_ns + times.waiting_ns + times.asleep_ns;
        let begun_ns: u64 = (0..1_500).map(|task| 50 * MS - 50 * task).sum();
        assert!(all_ns.abs_diff(begun_ns) < 1_500, "{all_ns} of {begun_ns}");
        assert!(times.on_cpu_ns <= 80 * 50 * MS, "80 CPUs have no more: {times:?}");
        assert!(times.on_cpu_ns > 80 * 25 * MS, "{times:?}");
        assert!(times.share_of(SLOW_PATH) > 0.0 && times.asleep_ns > 0, "{times:?}");
        assert_eq!(machine.run_until(10_000 * MS), Pause::Finished, "{preemption}");
    }
}

#[test]
fn two_thousand_tasks_share_few_cpus() {
    let settings = [("nodes", "1"), ("preemption", "anywhere")];
    let machine = crowd("westmere-ex-8s", 2_000, &settings, 20 * MS);
    assert!(machine.times().on_cpu_ns > 10 * 19 * MS, "ten CPUs are busy");
    assert_eq!(machine.run_until(100_000 * MS), Pause::Finished);
}
