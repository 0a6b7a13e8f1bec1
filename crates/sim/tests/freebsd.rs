//! The features that FreeBSD's locks need from the simulated machine: sections that keep the CPU,
//! and chains to sleep in.

use std::cell::Cell;
use std::rc::Rc;

use nearlock_collection::freebsd::mtx::Mtx;
use nearlock_collection::freebsd::tuning::NotAdaptive;
use nearlock_core::platform::{Clock, Work};
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::schedule::{Schedule, Sections};
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Sim};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn machine(settings: &[(&str, &str)]) -> Machine {
    let mut spec = MachineSpec::builtin("ivybridge-ep-2s").unwrap();
    settings.iter().for_each(|(key, value)| spec.set(key, value).unwrap());
    Machine::new(&spec, 1)
}

/// Runs two tasks on a CPU where tasks can be preempted anywhere. The first is in a section for
/// most of its work, or not at all. Returns how often the first is preempted.
fn switches(is_in_section: bool) -> u64 {
    let machine = machine(&[("preemption", "anywhere"), ("balance", "off"), ("wake-placement", "previous")]);
    machine.spawn(0, 0, move || {
        if is_in_section {
            Sim::enter_section();
            Sim::enter_section();
            Sim::leave_section();
            assert_eq!(Sim::section_depth(), 1);
        }
        Sim::busy_ns(100 * MS);
        if is_in_section {
            Sim::leave_section();
        }
        Sim::busy_ns(US);
    });
    machine.spawn(0, 0, || Sim::busy_ns(100 * MS));
    assert_eq!(machine.run_until(1_000 * MS), Pause::Finished);
    machine.times_of(0).involuntary_switches
}

#[test]
fn a_task_in_a_section_keeps_its_cpu_and_loses_it_when_it_leaves() {
    assert!(switches(false) > 1);
    assert_eq!(switches(true), 1);
}

type Mutex = Mtx<Sim, NotAdaptive>;

#[test]
fn waiters_of_locks_with_the_same_chain_are_woken_by_their_own() {
    let machine = machine(&[]);
    // The distance between the first and the last lock is as many lines as there are chains.
    let locks = Rc::new(machine.place_slice(0, 128 * 64 / size_of::<Mutex>() + 1, Mutex::default));
    let woken_ns = Rc::new(Cell::new([0; 2]));
    let last = locks.len() - 1;
    for (task, lock) in [0, last].into_iter().enumerate() {
        let (theirs, woken) = (locks.clone(), woken_ns.clone());
        // SAFETY: unlock follows lock.
        machine.spawn(4 * task, 0, move || unsafe {
            theirs[lock].lock(&());
            Sim::busy_ns((task as u64 + 1) * 100 * US);
            theirs[lock].unlock(&());
        });
        let theirs = locks.clone();
        // SAFETY: as above.
        machine.spawn(4 * task + 2, 10 * US, move || unsafe {
            theirs[lock].lock(&());
            let mut times = woken.get();
            times[task] = Sim::now_ns();
            woken.set(times);
            theirs[lock].unlock(&());
        });
    }
    assert_eq!(machine.run_until(10 * MS), Pause::Finished);
    let [first, second] = woken_ns.get();
    assert!(
        (100 * US..200 * US).contains(&first) && (200 * US..300 * US).contains(&second),
        "{first} {second}"
    );
    assert!(machine.times_of(1).asleep_ns > 50 * US && machine.times_of(3).asleep_ns > 150 * US);
    assert!(!locks[0].is_locked() && !locks[last].is_locked());
}

#[test]
fn back_off_knows_how_many_processors_there_are() {
    let machine = machine(&[]);
    machine.spawn(0, 0, || assert_eq!(Sim::processors(), 40));
    assert_eq!(machine.run_until(MS), Pause::Finished);
}
