//! The cases of condition variables.

/// When a thread notifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before it unlocks.
    Under,
    /// After it has unlocked.
    After,
}

/// Whom a thread notifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// One thread.
    One,
    /// All threads.
    All,
}

/// Where two threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Both on one CPU.
    OneCpu,
    /// Each on its own CPU.
    TwoCpus,
    /// Where the scheduler puts them.
    Free,
}

/// A queue of limited size between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Number of threads that put messages in.
    pub producers: usize,
    /// Number of threads that take messages out.
    pub consumers: usize,
    /// The greatest number of messages in it.
    pub slots: usize,
    /// Whom each operation notifies.
    pub notify: Notify,
    /// When it notifies.
    pub when: When,
}

/// What the threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two threads that send each other a message in turn.
    PingPong(When, Place),
    /// Producers and consumers.
    Queue(Queue),
    /// One thread that notifies many.
    Broadcast,
}

/// A case of [`Mode::Condvar`](crate::bench::Mode::Condvar).
#[derive(Debug, PartialEq, Eq)]
pub struct CondvarCase {
    /// Its name on the command line.
    pub name: &'static str,
    /// Number of threads.
    pub threads: usize,
    pub(in crate::bench) kind: Kind,
}

/// Threads that wait for a broadcast.
pub const LISTENERS: usize = 32;

const fn ping_pong(name: &'static str, when: When, place: Place) -> CondvarCase {
    CondvarCase { name, threads: 2, kind: Kind::PingPong(when, place) }
}

const fn queue(
    name: &'static str,
    [producers, consumers, slots]: [usize; 3],
    notify: Notify,
    when: When,
) -> CondvarCase {
    let queue = Queue { producers, consumers, slots, notify, when };
    CondvarCase { name, threads: producers + consumers, kind: Kind::Queue(queue) }
}

use Notify::{All, One};
use When::{After, Under};

/// All cases of [`Mode::Condvar`](crate::bench::Mode::Condvar).
pub static CONDVAR_CASES: [CondvarCase; 23] = [
    ping_pong("ping-pong-under-one-cpu", Under, Place::OneCpu),
    ping_pong("ping-pong-under-two-cpus", Under, Place::TwoCpus),
    ping_pong("ping-pong-under-free", Under, Place::Free),
    ping_pong("ping-pong-after-one-cpu", After, Place::OneCpu),
    ping_pong("ping-pong-after-two-cpus", After, Place::TwoCpus),
    ping_pong("ping-pong-after-free", After, Place::Free),
    queue("channel-1-1-slots-1", [1, 1, 1], One, After),
    queue("channel-1-1-slots-4", [1, 1, 4], One, After),
    queue("channel-1-1-slots-64", [1, 1, 64], One, After),
    queue("channel-4-4-slots-1", [4, 4, 1], One, After),
    queue("channel-4-4-slots-4", [4, 4, 4], One, After),
    queue("channel-4-4-slots-64", [4, 4, 64], One, After),
    queue("channel-4-4-slots-4-under", [4, 4, 4], One, Under),
    queue("queue-all-1-1-slots-1", [1, 1, 1], All, After),
    queue("queue-all-10-1-slots-1", [10, 1, 1], All, After),
    queue("queue-all-1-10-slots-1", [1, 10, 1], All, After),
    queue("queue-all-10-10-slots-1", [10, 10, 1], All, After),
    queue("queue-all-10-10-slots-100", [10, 10, 100], All, After),
    queue("queue-one-10-1-slots-1", [10, 1, 1], One, After),
    queue("queue-one-1-10-slots-1", [1, 10, 1], One, After),
    queue("queue-one-10-10-slots-1", [10, 10, 1], One, After),
    queue("queue-one-10-10-slots-100", [10, 10, 100], One, After),
    CondvarCase { name: "broadcast-32", threads: 1 + LISTENERS, kind: Kind::Broadcast },
];
