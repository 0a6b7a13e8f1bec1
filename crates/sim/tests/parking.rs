//! The futex of the simulated machine.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, Clock, Park, ParkTimeout, Platform, Work};
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Sim};

type Word = <Sim as Platform>::U32;

fn machine() -> Machine {
    Machine::new(&MachineSpec::builtin("haswell-ex-4s").unwrap(), 1)
}

/// Runs a task that sleeps until the word is 1. Another task sets the word after `delay_ns` and
/// wakes it.
fn sleeper_and_waker(delay_ns: u64) -> (Pause, u64) {
    let machine = machine();
    let word = Rc::new(machine.place(0, Word::ZERO));
    let end_ns = Rc::new(std::cell::Cell::new(0));
    let (theirs, end) = (word.clone(), end_ns.clone());
    machine.spawn(0, 0, move || {
        while theirs.load(Relaxed) == 0 {
            Sim::park(&theirs, 0);
        }
        end.set(Sim::now_ns());
    });
    machine.spawn(70, 0, move || {
        Sim::busy_ns(delay_ns);
        word.store(1, Relaxed);
        Sim::unpark(&raw const **word, 1);
    });
    (machine.run_until(1_000_000), end_ns.get())
}

#[test]
fn no_wake_up_is_lost_whenever_it_comes() {
    for delay_ns in 0..600 {
        assert_eq!(sleeper_and_waker(delay_ns).0, Pause::Finished, "after {delay_ns} ns");
    }
}

#[test]
fn waking_takes_its_time() {
    let (_, end_ns) = sleeper_and_waker(10_000);
    assert!((13_500..15_000).contains(&end_ns), "{end_ns} ns");
}

#[test]
fn a_sleeper_that_no_task_wakes_is_a_deadlock() {
    let machine = machine();
    let word = machine.place(0, Word::ZERO);
    machine.spawn(0, 0, move || Sim::park(&word, 0));
    assert_eq!(machine.run_until(1_000_000), Pause::Deadlock(1));
}

#[test]
fn only_so_many_are_woken_the_first_to_sleep_first() {
    let machine = machine();
    let word = Rc::new(machine.place(0, Word::ZERO));
    let woken = Rc::new(std::cell::RefCell::new(Vec::new()));
    for cpu in 0..3 {
        let (word, woken) = (word.clone(), woken.clone());
        machine.spawn(cpu, 1000 * cpu as u64, move || {
            Sim::park(&word, 0);
            woken.borrow_mut().push(cpu);
        });
    }
    machine.spawn(9, 10_000, move || Sim::unpark(&raw const **word, 2));
    assert_eq!(machine.run_until(1_000_000), Pause::Deadlock(1));
    assert_eq!(*woken.borrow(), [0, 1]);
}

#[test]
fn a_machine_whose_tasks_have_ended_does_not_wait_for_the_limits_of_their_sleeps() {
    const LIMIT_NS: u64 = 1_000_000_000;
    let machine = machine();
    let word = Rc::new(machine.place(0, Word::ZERO));
    let theirs = word.clone();
    machine.spawn(0, 0, move || Sim::park_until(&theirs, 0, LIMIT_NS));
    machine.spawn(70, 0, move || {
        Sim::busy_ns(10_000);
        word.store(1, Relaxed);
        Sim::unpark(&raw const **word, 1);
    });
    assert_eq!(machine.run_until(LIMIT_NS / 10), Pause::Finished);
}

#[test]
fn whether_a_task_was_woken_is_known() {
    let machine = machine();
    let word = Rc::new(machine.place(0, Word::ZERO));
    let theirs = word.clone();
    machine.spawn(0, 0, move || Sim::park(&theirs, 0));
    machine.spawn(70, 0, move || {
        Sim::busy_ns(10_000);
        assert!(Sim::unpark_one(&raw const **word));
        assert!(!Sim::unpark_one(&raw const **word));
    });
    assert_eq!(machine.run_until(1_000_000), Pause::Finished);
}
