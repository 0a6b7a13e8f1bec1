//! `near-mutex`: how long a waiter is first in the queue, in virtual time, and counts of the
//! actions of releases.
//!
//! At the end of its section, the holder of the mutex looks at the first waiter in the queue. It
//! reads since when the waiter has been first, whether it has requested its turn, and whether it
//! sleeps. This information is in the waiter's record (`crates/core/src/near/mutex/queue.rs`).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::events::LockEvent;
use nearlock_core::near::Near;
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::chain::{Locked, Queue};
use nearlock_core::platform::{Atomic, Clock, Random, Work};
use nearlock_core::raw::RawLock;
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Sim};

type Mutex = NearMutex<Sim>;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const RUN_NS: u64 = 20 * MS;

/// Bits of a waiter's note. `REQUEST` tells whether it has made a request. From `SINCE_SHIFT` on,
/// the note tells since when it has been first or passed over, in units of 2^10 ns.
const REQUEST: u32 = 1 << 1;
const SINCE_SHIFT: u32 = 12;
const UNIT_SHIFT: u32 = 10;

/// The behaviour of tasks that use the mutex repeatedly.
#[derive(Clone, Copy, Debug)]
struct Contest {
    tasks: usize,
    section_ns: u64,
    think_ns: u64,
    /// The seed of the machine.
    seed: u64,
}

/// Observations at the ends of sections.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sections: u64,
    /// The longest time for which a waiter has been first in the queue.
    first_ns_max: u64,
    /// The longest time for which other waiters have been preferred to the next one.
    preferred_ns_max: u64,
    /// How often the first waiter had made a request and was awake.
    asked: u64,
    /// How often another thread had the next section, although no waiter had to be woken.
    passed_over: u64,
}

fn count_of(event: LockEvent) -> u64 {
    Machine::current_counters().lock_events[event as usize]
}

/// The time that has passed since the moment in a note; 0 if there is none yet.
fn ns_since(note: u32) -> u64 {
    if note >> SINCE_SHIFT == 0 {
        return 0;
    }
    let now = (Sim::now_ns() >> UNIT_SHIFT) as u32;
    u64::from(now.wrapping_sub(note >> SINCE_SHIFT) << SINCE_SHIFT >> SINCE_SHIFT) << UNIT_SHIFT
}

/// A look at the queue by the holder of the mutex. If the first waiter is awake and has made a
/// request, returns the present numbers of hand-overs and wake-ups. The next holder compares them.
fn look(mutex: &Mutex, seen: &mut Seen) -> Option<[u64; 2]> {
    // SAFETY: nothing is changed.
    let queue = unsafe { Locked::<Sim, Near>::of(mutex) };
    let first = queue.first(Queue::Exclusive)?;
    let note = first.note.load(Relaxed);
    seen.first_ns_max = seen.first_ns_max.max(ns_since(note));
    for waiter in queue.waiters(Queue::Exclusive).skip(1) {
        let note = waiter.note.load(Relaxed);
        if note >> SINCE_SHIFT != 0 {
            seen.preferred_ns_max = seen.preferred_ns_max.max(ns_since(note));
        }
    }
    if first.is_asleep() {
        return None;
    }
    (note & REQUEST != 0).then(|| {
        seen.asked += 1;
        [LockEvent::MutexHandOver, LockEvent::MutexWake].map(count_of)
    })
}

fn run(spec: &MachineSpec, contest: Contest) -> Seen {
    let machine = Machine::new(spec, contest.seed);
    let mutex = Rc::new(machine.place(0, Mutex::default()));
    let seen = Rc::new(RefCell::new((Seen::default(), None)));
    for task in 0..contest.tasks {
        let (mutex, seen) = (mutex.clone(), seen.clone());
        machine.spawn(task % spec.cpus(), 50 * task as u64, move || {
            while Sim::now_ns() < RUN_NS {
                // SAFETY: `unlock` follows `lock`.
                unsafe { mutex.lock(&()) };
                {
                    let (seen, asked) = &mut *seen.borrow_mut();
                    seen.sections += 1;
                    if let Some(before) = asked.take() {
                        let now = [LockEvent::MutexHandOver, LockEvent::MutexWake].map(count_of);
                        seen.passed_over += u64::from(now == before);
                    }
                }
                Sim::busy_ns(contest.section_ns);
                let mut found = seen.borrow().0;
                let asked = look(&mutex, &mut found);
                *seen.borrow_mut() = (found, asked);
                // SAFETY: locked above.
                unsafe { mutex.unlock(&()) };
                if contest.think_ns > 0 {
                    Sim::busy_ns(u64::from(Sim::random_u32()) % contest.think_ns);
                }
                Sim::may_give_way();
            }
        });
    }
    assert_eq!(machine.run_until(100 * RUN_NS), Pause::Finished);
    seen.borrow().0
}

/// The value of a constant of the mutex, in ns.
fn constant(name: &str) -> u64 {
    let source = concat!(
        include_str!("../../core/src/near/mutex.rs"),
        include_str!("../../core/src/near/mutex/spinning.rs"),
        include_str!("../../core/src/near/mutex/waiting.rs")
    );
    let (_, behind) = source.split_once(&format!("const {name}: u64 = ")).expect("a constant of this name");
    let (value, _) = behind.split_once(';').expect("a value");
    value.replace('_', "").parse().expect("a number")
}

/// Contests with this many tasks for each CPU. With 0, there are two tasks.
fn contests(tasks_per_cpu: usize) -> impl Iterator<Item = (MachineSpec, Contest)> {
    const SECTIONS: [(u64, u64); 7] = [
        (200, 0),
        (200, 2 * US),
        (5 * US, 0),
        (5 * US, 20 * US),
        (50 * US, 0),
        (100 * US, 0),
        (200 * US, 50 * US),
    ];
    ["haswell-ex-4s", "epyc-genoa-2s", "cascadelake-2s"].into_iter().flat_map(move |machine| {
        let mut spec = MachineSpec::builtin(machine).unwrap();
        for (key, value) in [("cores-per-socket", "4"), ("smt", "1"), ("preemption", "anywhere")] {
            spec.set(key, value).unwrap();
        }
        let tasks = (tasks_per_cpu * spec.cpus()).max(2);
        SECTIONS
            .map(|(section_ns, think_ns)| (spec.clone(), Contest { tasks, section_ns, think_ns, seed: 7 }))
    })
}

/// The time that the first waiter in the queue can take by itself. It includes its looks and its
/// sleep, the looks after its wake request, and the wake-up that made it first. Two sections are
/// added: one that it meets, and one whose release did not see it.
fn awake_ns(contest: Contest) -> u64 {
    constant("PATIENCE_NS").max(constant("TURN_NS"))
        + constant("PATIENCE_NS")
        + 2 * contest.section_ns
        + 5 * US
}

/// Every task has a CPU. If sections are longer than the first waiter looks, it sleeps.
#[test]
fn the_first_waiter_has_its_turn_in_time() {
    let due_ns = constant("DUE_NS");
    for (spec, contest) in contests(0).chain(contests(1)) {
        let seen = run(&spec, contest);
        let in_time_ns = match contest.section_ns < constant("PATIENCE_NS") {
            true => awake_ns(contest),
            false => due_ns + awake_ns(contest),
        };
        assert!(
            seen.first_ns_max <= in_time_ns,
            "{}: {contest:?}: {seen:?}, in time: {in_time_ns}",
            spec.name
        );
        assert!(seen.sections >= RUN_NS / (2 * (contest.section_ns + contest.think_ns + 2 * US)), "{seen:?}");
    }
}

/// The first waiter may have no CPU. A release after the due time reaches the queue only when the
/// next waiter is in it. This waiter may have no CPU either, for as long as the turns of some tasks
/// last.
#[test]
fn the_first_waiter_has_its_turn_in_time_even_without_a_cpu() {
    /// How long each of two tasks has a CPU before the other does.
    const SLICE_NS: u64 = 12 * MS;
    for (spec, contest) in contests(3).chain(contests(8)) {
        let seen = run(&spec, contest);
        let in_time_ns = constant("DUE_NS") + SLICE_NS / 4 + awake_ns(contest);
        assert!(
            seen.first_ns_max <= in_time_ns,
            "{}: {contest:?}: {seen:?}, in time: {in_time_ns}",
            spec.name
        );
    }
}

/// The waiters that were preferred together have their turns after that.
#[test]
fn the_next_waiter_is_passed_over_for_a_turn_of_a_numa_node_at_most() {
    let mut longest_ns = 0;
    let seeds =
        |(spec, contest)| [7, 8, 9].map(|seed| (MachineSpec::clone(&spec), Contest { seed, ..contest }));
    for (spec, contest) in contests(1).flat_map(seeds) {
        let seen = run(&spec, contest);
        let turn_ns = match contest.section_ns < constant("PATIENCE_NS") {
            true => awake_ns(contest),
            false => constant("DUE_NS") + awake_ns(contest),
        };
        let on_a_node = (0..spec.cpus()).filter(|cpu| spec.numa_node_of_cpu(*cpu) == 0).count();
        let in_time_ns = constant("NODE_TURN_NS") + on_a_node as u64 * turn_ns;
        assert!(
            seen.preferred_ns_max <= in_time_ns,
            "{}: {contest:?}: {seen:?}, in time: {in_time_ns}",
            spec.name
        );
        longest_ns = longest_ns.max(seen.preferred_ns_max);
    }
    assert!(longest_ns > constant("NODE_TURN_NS") / 2, "{longest_ns}");
}

/// At most one section lies between a request and the hand-over. It follows a release that has
/// missed the request. At the end of the section the request is visible.
#[test]
fn between_request_and_hand_over_is_one_section_at_most() {
    let mut asked = 0;
    for (spec, contest) in [0, 1, 3].into_iter().flat_map(contests) {
        let seen = run(&spec, contest);
        assert_eq!(seen.passed_over, 0, "{}: {contest:?}: {seen:?}", spec.name);
        asked += seen.asked;
    }
    assert!(asked > 1_000, "{asked}");
}
