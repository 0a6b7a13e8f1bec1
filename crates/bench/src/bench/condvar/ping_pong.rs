//! Ping-pong: two threads send each other a message in turn, so that one of them always waits.

use std::sync::Arc;
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_workload::Observer;

use super::super::crew::Members;
use super::super::sample::Outcome;
use super::super::throughput::{Done, Life, Witness, with};
use super::WithCondvar;
use super::case::{Notify, When};
use super::monitor::Monitor;

#[derive(Default)]
struct Table {
    /// The thread whose turn it is.
    turn: usize,
    /// Number of messages.
    messages: u64,
}

/// The condition variable of the monitor: the other thread has the turn.
const TURNED: usize = 0;

type Shared<L> = Monitor<L, Table, 1>;

/// Plays as this thread until the run is over. Returns the number of its messages.
fn play<W: Wait, L: WithCondvar>(
    shared: &Shared<L>,
    thread: usize,
    when: When,
    witness: &mut Witness<'_, W>,
) -> u64 {
    let mut node = L::Node::default();
    let mut sent = 0;
    loop {
        witness.waiting();
        let is_on = shared.section(&mut node, |held| {
            if !held.wait_until(TURNED, |table| table.turn == thread) {
                return false;
            }
            witness.acquired();
            let table = held.data();
            table.messages += 1;
            table.turn = 1 - thread;
            if when == When::Under {
                held.notify(TURNED, Notify::One);
            }
            true
        });
        if !is_on {
            break;
        }
        if when == When::After {
            shared.notify(TURNED, Notify::One);
        }
        sent += 1;
        if !witness.goes_on() {
            break;
        }
    }
    shared.finish(&mut node);
    sent
}

/// One run of one lock.
pub fn measure<W: Wait, L: WithCondvar>(members: Members, when: When, window: Duration) -> Outcome {
    let shared = Arc::new(Shared::<L>::new(Table::default()));
    let played = Arc::clone(&shared);
    let life: Life<W> = Box::new(move |run, thread| {
        run.witnessed(thread, &mut |witness| Done {
            counted: play(&played, thread, when, witness),
            ..Done::default()
        });
    });
    let messages = || shared.section(&mut L::Node::default(), |held| held.data().messages);
    with(members, window, life, &messages)
}
