//! Spinning as long as the owner of a lock runs, sleeping with a time limit, and regions.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{
    Atomic, Clock, LentNode, LocalNodes, Park, ParkTimeout, Platform, Work, ZeroNode,
};
use nearlock_core::schedule::{OwnerState, Schedule, Spin, Stop, ThreadId};
use nearlock_sim::account;
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Placed, Sim};

type Word = <Sim as Platform>::U32;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn machine() -> Machine {
    let mut spec = MachineSpec::builtin("haswell-ex-4s").unwrap();
    for (key, value) in
        [("jitter", "0"), ("tick-ns", "0"), ("balance", "off"), ("wake-placement", "previous")]
    {
        spec.set(key, value).unwrap();
    }
    Machine::new(&spec, 1)
}

fn word(machine: &Machine) -> Rc<Placed<Word>> {
    Rc::new(machine.place(0, Word::ZERO))
}

/// The result of spinning for the first task, and the moment at which it ended.
type Ending = Rc<Cell<Option<(Result<u32, Stop>, u64)>>>;

/// Adds a task on `cpu` that spins from `start_ns` on while task `owner` runs, until the word is
/// not 0.
fn spinner(machine: &Machine, cpu: usize, start_ns: u64, word: &Rc<Placed<Word>>, owner: usize) -> Ending {
    let (ending, word) = (Ending::default(), word.clone());
    let ended = ending.clone();
    machine.spawn(cpu, start_ns, move || {
        let owner = ThreadId::new(owner as u32 + 1).unwrap();
        let result = Sim::spin_on_owner(&mut Spin::default(), &**word, Relaxed, owner, |v| v != 0);
        ended.set(Some((result, Sim::now_ns())));
    });
    ending
}

fn ending(ending: &Ending) -> (Result<u32, Stop>, u64) {
    ending.get().expect("the spinning has ended")
}

#[test]
fn spinning_ends_when_the_word_is_as_wanted() {
    let machine = machine();
    let word = word(&machine);
    let theirs = word.clone();
    machine.spawn(0, 0, move || {
        assert_eq!(Sim::thread_id().get(), 1);
        Sim::busy_ns(50 * US);
        theirs.store(9, Relaxed);
        Sim::busy_ns(50 * US);
    });
    let endings = [2, 40].map(|cpu| spinner(&machine, cpu, US, &word, 0));
    assert_eq!(machine.run_until(MS), Pause::Finished);
    for (result, at_ns) in endings.iter().map(ending) {
        assert_eq!(result, Ok(9));
        assert!((50 * US..51 * US).contains(&at_ns), "{at_ns}");
    }
}

#[test]
fn spinning_ends_when_the_owner_sleeps() {
    let machine = machine();
    let word = word(&machine);
    machine.spawn(0, 0, || {
        Sim::busy_ns(50 * US);
        Sim::sleep_ns(100 * US);
        Sim::busy_ns(100 * US);
    });
    let early = [2, 40].map(|cpu| spinner(&machine, cpu, US, &word, 0));
    let asleep = spinner(&machine, 4, 100 * US, &word, 0);
    let ended = spinner(&machine, 6, 400 * US, &word, 0);
    assert_eq!(machine.run_until(MS), Pause::Finished);
    for (result, at_ns) in early.iter().map(ending) {
        assert_eq!(result, Err(Stop::OwnerSleeps));
        assert!((50 * US..50 * US + 100).contains(&at_ns), "within a turn of the loop: {at_ns}");
    }
    for (late, from_ns) in [(asleep, 100 * US), (ended, 400 * US)] {
        let (result, at_ns) = ending(&late);
        assert_eq!(result, Err(Stop::OwnerSleeps));
        assert!((from_ns..from_ns + 200).contains(&at_ns), "as soon as it has looked: {at_ns}");
    }
}

#[test]
fn spinning_ends_when_the_owner_waits_for_a_cpu() {
    let machine = machine();
    let word = word(&machine);
    machine.spawn(0, 0, || {
        Sim::busy_ns(50 * US);
        Sim::preempt();
        Sim::busy_ns(50 * US);
    });
    machine.spawn(0, 0, || Sim::busy_ns(50 * US));
    let early = spinner(&machine, 2, US, &word, 0);
    assert_eq!(machine.run_until(MS), Pause::Finished);
    let (result, at_ns) = ending(&early);
    assert_eq!(result, Err(Stop::OwnerSleeps));
    assert!((50 * US..50 * US + 100).contains(&at_ns), "{at_ns}");
}

#[test]
fn spinning_ends_when_others_want_the_cpu() {
    let machine = machine();
    let word = word(&machine);
    machine.spawn(0, 0, || Sim::busy_ns(100 * MS));
    // The spinner has its CPU to itself until 20 ms. The task that is woken then has run less by
    // more than 4 ms.
    machine.spawn(2, 0, || {
        Sim::sleep_ns(20 * MS);
        Sim::busy_ns(US);
    });
    let spins = spinner(&machine, 2, US, &word, 0);
    assert_eq!(machine.run_until(200 * MS), Pause::Finished);
    let (result, at_ns) = ending(&spins);
    assert_eq!(result, Err(Stop::GiveWay));
    assert!((20 * MS..20 * MS + 100).contains(&at_ns), "{at_ns}");
}

#[test]
fn spinning_ends_at_the_end_of_the_turn() {
    let machine = machine();
    let word = word(&machine);
    machine.spawn(0, 0, || Sim::busy_ns(100 * MS));
    let spins = spinner(&machine, 2, 0, &word, 0);
    machine.spawn(2, US, || Sim::busy_ns(US));
    assert_eq!(machine.run_until(200 * MS), Pause::Finished);
    let (result, at_ns) = ending(&spins);
    assert_eq!(result, Err(Stop::GiveWay));
    assert!((12 * MS..=13 * MS + US).contains(&at_ns), "two tasks have 12 ms each: {at_ns}");
}

#[test]
fn a_task_that_is_switched_to_does_not_run_yet() {
    let machine = machine();
    let seen = Rc::new(Cell::new(None));
    machine.spawn(0, 0, || {
        Sim::sleep_ns(10 * US);
        Sim::busy_ns(10 * US);
    });
    machine.spawn(0, 0, || Sim::busy_ns(20 * US));
    let sees = seen.clone();
    machine.spawn(2, 0, move || {
        let state = || Sim::owner_state(ThreadId::new(1).unwrap());
        let at = |ns| Sim::busy_ns(ns - Sim::now_ns());
        at(15 * US);
        let waits = state();
        at(20 * US + 500);
        let arrives = state();
        at(25 * US);
        sees.set(Some((waits, arrives, state())));
    });
    assert_eq!(machine.run_until(MS), Pause::Finished);
    assert_eq!(seen.get(), Some((OwnerState::Asleep, OwnerState::Asleep, OwnerState::Running)));
}

#[test]
fn parking_ends_at_its_limit_and_wake_ups_do_not_count_after_that() {
    let machine = machine();
    let word = word(&machine);
    let (theirs, ends) = (word.clone(), Rc::new(Cell::new((0, 0))));
    let ended = ends.clone();
    machine.spawn(0, 0, move || {
        Sim::park_until(&theirs, 0, 100 * US);
        let first_ns = Sim::now_ns();
        // The second time it is woken before its limit. The first limit has passed.
        Sim::park_until(&theirs, 0, 900 * US);
        ended.set((first_ns, Sim::now_ns()));
        Sim::park_until(&theirs, 0, Sim::now_ns());
    });
    machine.spawn(2, 300 * US, move || Sim::unpark(&raw const **word, 1));
    assert_eq!(machine.run_until(10 * MS), Pause::Finished);
    let (first_ns, second_ns) = ends.get();
    assert_eq!(first_ns, 100 * US);
    assert!((303 * US..305 * US).contains(&second_ns), "{second_ns}");
}

#[test]
fn a_deadlock_is_found_when_the_last_timer_has_gone_off() {
    let machine = machine();
    let word = word(&machine);
    let theirs = word.clone();
    machine.spawn(0, 0, move || Sim::park(&word, 0));
    machine.spawn(0, 0, move || {
        Sim::park_until(&theirs, 0, 3 * MS);
        Sim::sleep_ns(2 * MS);
        Sim::park(&theirs, 0);
    });
    machine.spawn(0, 0, || Sim::sleep_ns(MS));
    assert_eq!(machine.run_until(100 * MS), Pause::Deadlock(2));
    assert_eq!(machine.now_ns() / MS, 5);
}

#[test]
fn regions_count_spinning_but_not_sleeping() {
    let machine = machine();
    let word = word(&machine);
    let theirs = word.clone();
    machine.spawn(0, 0, move || {
        Sim::busy_ns(10 * US);
        let slow_path = account::enter(1);
        Sim::wait_until(&**theirs, Relaxed, |v| v == 1);
        Sim::sleep_ns(500 * US);
        {
            let _inner = account::enter(2);
            Sim::busy_ns(20 * US);
        }
        drop(slow_path);
        Sim::busy_ns(30 * US);
    });
    machine.spawn(2, 0, move || {
        Sim::busy_ns(60 * US);
        word.store(1, Relaxed);
    });
    assert_eq!(machine.run_until(50 * US), Pause::Time);
    let early = machine.times();
    assert_eq!((early.on_cpu_ns, early.regions_ns[1]), (100 * US, 40 * US), "also while it spins");
    assert_eq!(machine.run_until(10 * MS), Pause::Finished);
    let times = machine.times_of(0);
    assert!((50 * US..51 * US).contains(&times.regions_ns[1]), "{times:?}");
    assert_eq!((times.regions_ns[2], times.regions_ns[0]), (20 * US, 40 * US));
    assert_eq!(times.on_cpu_ns, times.regions_ns.iter().sum::<u64>());
    let since = machine.times().since(&early);
    assert!((0.05..0.5).contains(&since.share_of(1)), "{since:?}");
}

#[test]
fn a_slow_path_is_without_its_spinning_as_a_profiler_shows_it() {
    let machine = machine();
    let (owner, flag) = (word(&machine), word(&machine));
    let (theirs, theirs_too) = (owner.clone(), flag.clone());
    machine.spawn(0, 0, move || {
        Sim::busy_ns(50 * US);
        theirs.store(9, Relaxed);
        Sim::busy_ns(50 * US);
        theirs_too.store(1, Relaxed);
    });
    machine.spawn(2, 0, move || {
        Sim::in_slow_path(|| {
            let first = ThreadId::new(1).unwrap();
            let found = Sim::spin_on_owner(&mut Spin::default(), &**owner, Relaxed, first, |v| v != 0);
            assert_eq!(found, Ok(9));
            Sim::busy_ns(20 * US);
            Sim::wait_until(&**flag, Relaxed, |v| v == 1);
        });
        Sim::wait_until(&**flag, Relaxed, |v| v == 1);
        Sim::busy_ns(10 * US);
    });
    assert_eq!(machine.run_until(MS), Pause::Finished);
    let times = machine.times_of(1);
    let [own_ns, spinning_ns] =
        [account::SLOW_PATH, account::SPINNING].map(|region| times.regions_ns[region]);
    assert!((20 * US..21 * US).contains(&own_ns), "{times:?}");
    assert!((79 * US..82 * US).contains(&spinning_ns), "{times:?}");
    assert!((10 * US..11 * US).contains(&times.regions_ns[0]), "outside of slow paths: {times:?}");
}

#[repr(C)]
struct Node(Word);

// SAFETY: a word of zero bytes is valid and needs no drop.
unsafe impl ZeroNode for Node {}

#[test]
fn a_task_that_leaves_its_cpu_with_a_node_in_use_keeps_it() {
    let machine = machine();
    let slots = Rc::new(Cell::new([0; 3]));
    for task in 0..3 {
        let slots = slots.clone();
        machine.spawn(5, task as u64 * US, move || {
            Sim::with_node(|lent: Option<LentNode<Node>>| {
                let lent = lent.unwrap();
                let mut all = slots.get();
                all[task] = lent.id.slot;
                slots.set(all);
                assert!(std::ptr::eq(lent.node, <Sim as LocalNodes<Node>>::node(lent.id)));
                // The second task has left before the third begins.
                Sim::sleep_ns(if task == 1 { US / 2 } else { 50 * US });
            });
        });
    }
    assert_eq!(machine.run_until(MS), Pause::Finished);
    let [first, second, third] = slots.get();
    assert_eq!(first, 5, "the CPU's own");
    assert!(second >= 144 && third >= 144, "spare ones: {second}, {third}");
}
