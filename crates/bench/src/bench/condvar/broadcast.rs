//! Broadcast: one thread notifies many, and continues when all of them have returned.

use std::sync::Arc;
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_workload::Observer;

use super::super::crew::Members;
use super::super::sample::Outcome;
use super::super::throughput::{Done, Life, Witness, with_counted};
use super::WithCondvar;
use super::case::{LISTENERS, Notify};
use super::monitor::Monitor;

#[derive(Default)]
struct Generations {
    /// Number of broadcasts.
    generation: u64,
    /// Number of listeners that have returned from the last one.
    returned: usize,
}

/// The condition variables of the monitor. A listener waits for the next generation, and the leader
/// until all listeners have returned.
const CHANGED: usize = 0;
const ALL_RETURNED: usize = 1;
/// The thread that notifies. Only its broadcasts count as operations.
const LEADER: usize = 0;

type Shared<L> = Monitor<L, Generations, 2>;

/// Returns the number of broadcasts.
fn lead<W: Wait, L: WithCondvar>(shared: &Shared<L>, witness: &mut Witness<'_, W>) -> u64 {
    let mut node = L::Node::default();
    let mut broadcasts = 0;
    loop {
        shared.section(&mut node, |held| {
            let data = held.data();
            data.generation += 1;
            data.returned = 0;
        });
        shared.notify(CHANGED, Notify::All);
        witness.waiting();
        shared.section(&mut node, |held| {
            // Only this thread ends the run.
            held.wait_until(ALL_RETURNED, |data| data.returned == LISTENERS);
            witness.acquired();
        });
        broadcasts += 1;
        if !witness.goes_on() {
            break;
        }
    }
    shared.finish(&mut node);
    broadcasts
}

/// Returns the number of missed broadcasts.
fn listen<L: WithCondvar>(shared: &Shared<L>) -> u64 {
    let mut node = L::Node::default();
    let (mut seen, mut missed) = (0, 0);
    loop {
        let (is_on, is_last) = shared.section(&mut node, |held| {
            if !held.wait_until(CHANGED, |data| data.generation != seen) {
                return (false, false);
            }
            let data = held.data();
            missed += data.generation - seen - 1;
            seen = data.generation;
            data.returned += 1;
            (true, data.returned == LISTENERS)
        });
        if !is_on {
            return missed;
        }
        if is_last {
            shared.notify(ALL_RETURNED, Notify::One);
        }
    }
}

/// One run of one lock.
pub fn measure<W: Wait, L: WithCondvar>(members: Members, window: Duration) -> Outcome {
    let shared = Arc::new(Shared::<L>::new(Generations::default()));
    let worked = Arc::clone(&shared);
    let life: Life<W> = Box::new(move |run, thread| {
        run.witnessed(thread, &mut |witness| match thread {
            LEADER => Done { counted: lead(&worked, witness), ..Done::default() },
            _ => Done { faults: listen(&worked), ..Done::default() },
        });
    });
    let generation = || shared.section(&mut L::Node::default(), |held| held.data().generation);
    with_counted(members, 1, window, life, &generation)
}
