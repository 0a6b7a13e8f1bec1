//! Loads of lines that a thread has requested before.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, Clock, Platform};
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Sim};

type U32 = <Sim as Platform>::U32;

/// The number of lines that a thread reads.
const LINES: u32 = 8;

/// A thread writes to lines. Later, one on another socket reads them all, having requested the
/// first of them. Returns the values, and the time that the reads took, in ns.
fn read_all(requested: u32) -> (Vec<u32>, u64) {
    let mut spec = MachineSpec::builtin("haswell-ex-4s").unwrap();
    spec.set("jitter", "0").unwrap();
    let machine = Machine::new(&spec, 1);
    let words: Vec<_> = (0..LINES).map(|_| Rc::new(machine.place(0, U32::new(0)))).collect();
    let writes = words.clone();
    machine.spawn(0, 0, move || {
        (1..).zip(&writes).for_each(|(value, word)| word.store(value, Relaxed));
    });
    let seen = Rc::new(Cell::new((Vec::new(), 0)));
    let result = Rc::clone(&seen);
    machine.spawn(40, 10_000, move || {
        let begin_ns = Sim::now_ns();
        words.iter().take(requested as usize).for_each(|word| Sim::prefetch_read::<U32>(&raw const ***word));
        let values = words.iter().map(|word| word.load(Relaxed)).collect();
        result.set((values, Sim::now_ns() - begin_ns));
    });
    assert_eq!(machine.run_until(1_000_000), Pause::Finished);
    seen.take()
}

#[test]
fn a_thread_waits_for_requested_lines_at_the_same_time() {
    let (one_by_one, alone_ns) = read_all(0);
    let (at_once, together_ns) = read_all(LINES);
    let (half, half_ns) = read_all(LINES / 2);
    assert_eq!(one_by_one, (1..=LINES).collect::<Vec<_>>());
    assert_eq!((&at_once, &half), (&one_by_one, &one_by_one));
    assert!(together_ns * 3 < alone_ns, "{together_ns} and {alone_ns} ns");
    assert!(together_ns < half_ns && half_ns < alone_ns, "{together_ns}, {half_ns} and {alone_ns} ns");
}
