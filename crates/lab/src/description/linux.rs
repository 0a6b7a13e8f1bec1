//! The locks of Linux.

use super::{Description, Variation};

/// The algorithms.
pub const ALGORITHMS: &[Description] = &[
    Description {
        lock: "qspinlock",
        word: "4 bytes: locked, pending, tail",
        waiters: "one waiter in the word, the others on nodes that the platform keeps",
        fairness: "first come, first served from the tail swap on; one pending waiter goes ahead",
        source: "Linux `kernel/locking/qspinlock.c`, from a description in own words",
    },
    Description {
        lock: "cna",
        word: "that of `qspinlock`",
        waiters: "the same nodes, with the NUMA node",
        fairness: "first come, first served per queue. The first head after the threshold (1 ms) \
                   flushes the secondary queue. All its waiters except the first may be moved \
                   again, so a wait can last a few thresholds",
        source: "Dice and Kogan, EuroSys 2019; Kogan, v15 patch series, May 2021",
    },
    Description {
        lock: "cna-v13",
        word: "that of `qspinlock`",
        waiters: "the same nodes, with the NUMA node",
        fairness: "first come, first served per queue. A secondary queue is flushed after at most \
                   a threshold (10 ms), two ticks and a hand-over. All its waiters except the \
                   first may be moved again, so a wait can last a few thresholds",
        source: "Dice and Kogan, EuroSys 2019; Kogan, v13 patch series, December 2020",
    },
    Description {
        lock: "rwsem-xadd",
        word: "48 bytes: count, wait lock, waking, queue, owner, spinners",
        waiters: "record on the stack of the waiter, 32 bytes. It sleeps there, or spins as a \
                  writer",
        fairness: "none: arriving writers may overtake all waiters. Adjacent readers enter \
                   together",
        source: "Linux `lib/rwsem.c` 3.10 to 3.12 and the series \"rwsem performance \
                 optimizations\" v8 (October 2013), from a description in own words",
    },
    Description {
        lock: "rwsem",
        word: "40 bytes: count, owner, spinners, queue, wait lock",
        waiters: "record on the stack of the waiter, 32 bytes. It sleeps there, and writers spin \
                  first. Waiters may give up",
        fairness: "a waiter is overtaken for 4 ms, and then until it, or a thread that wakes it, \
                   looks. Readers enter together, 256 at a time",
        source: "Linux `kernel/locking/rwsem.c` since 5.11 (Long, 2019 and later), from a \
                 description in own words",
    },
    Description {
        lock: "linux-mutex",
        word: "32 bytes: word (owner, waiters, hand-off, pick-up), tail of the spinners, wait \
               lock, queue",
        waiters: "record on the stack of the sleeper, 32 bytes; for spinners, nodes that the \
                  platform keeps",
        fairness: "newcomers and spinners overtake the queue until its first has slept and been \
                   woken without success. Then the next unlock hands over. The k-th waiter may be \
                   overtaken in k such rounds; no bound in time",
        source: "Linux `kernel/locking/mutex.c` and `osq_lock.c`, 4.10 and later, from a \
                 description in own words",
    },
    Description {
        lock: "linux-counter-mutex",
        word: "32 bytes: count (1 free, 0 held, below 0 held and marked; the word has the count \
               minus 1), ticket lock, queue, owner",
        waiters: "record on the stack of the waiter, 32 bytes, on which it sleeps",
        fairness: "none: spinners and newcomers overtake the queue",
        source: "Linux' mutex of 3.7 with the patch \"check the counter value first\" of April \
                 2013, from a description in own words",
    },
    Description {
        lock: "linux-counter-mutex-queue",
        word: "40 bytes: the same, and the queue of spinners",
        waiters: "the same, or an MCS node on the stack while it spins",
        fairness: "the same; spinners are first come, first served for each turn",
        source: "Linux 3.10 (Long, 2013)",
    },
    Description {
        lock: "linux-counter-mutex-queue-held",
        word: "as `linux-counter-mutex-queue`",
        waiters: "as `linux-counter-mutex-queue`",
        fairness: "none: spinners and newcomers overtake the queue; spinners are first come, first \
                   served",
        source: "Linux 3.15, except that spinners do not leave the queue early",
    },
    Description {
        lock: "linux-counter-mutex-no-spin",
        word: "that of `linux-counter-mutex`",
        waiters: "that of `linux-counter-mutex`",
        fairness: "none, and no spinners",
        source: "Linux until 2.6.28",
    },
];

/// The presets whose waiters or fairness differ.
pub const PRESETS: &[Variation] = &[
    Variation {
        locks: &["qspinlock-steal-once"],
        waiters: "nodes; the pending bit is the head's, and each waiter has a node",
        fairness: "the queue is first come, first served; a newcomer may overtake it by one \
                   attempt while its head does not look",
    },
    Variation {
        locks: &["qspinlock-steal"],
        waiters: "that of `qspinlock-steal-once`",
        fairness: "the same, by attempts for as long as the head does not look; no more after 1024 \
                   stretches of the head's looking",
    },
    Variation {
        locks: &["qspinlock-park"],
        waiters: "nodes, on which waiters sleep; the head sleeps on the word, whose low byte is 3 \
                  then",
        fairness: "that of `qspinlock`",
    },
    Variation {
        locks: &["qspinlock-preemptible"],
        waiters: "that of `qspinlock-park`",
        fairness: "that of `qspinlock-steal`",
    },
    Variation {
        locks: &["qspinlock-preemptible-late"],
        waiters: "that of `qspinlock-park`, but no waiter sleeps early",
        fairness: "that of `qspinlock-steal`",
    },
    Variation {
        locks: &["qspinlock-preemptible-head"],
        waiters: "that of `qspinlock-park`, but the head does not sleep",
        fairness: "that of `qspinlock-steal`",
    },
    Variation {
        locks: &["cna-preemptible"],
        waiters: "that of `qspinlock-park`",
        fairness: "that of `cna`, with the newcomers of `qspinlock-steal`",
    },
    Variation {
        locks: &["rwsem-xadd-base", "rwsem-xadd-preread", "rwsem-xadd-single-waker", "rwsem-xadd-no-spin"],
        waiters: "no thread spins",
        fairness: "that of `rwsem-xadd`",
    },
    Variation {
        locks: &["rwsem-xadd-preread-spin-queued"],
        waiters: "writers spin in the queue",
        fairness: "that of `rwsem-xadd`",
    },
    Variation {
        locks: &["rwsem-xadd-owner-known"],
        waiters: "writers spin only for writers",
        fairness: "that of `rwsem-xadd`",
    },
    Variation { locks: &["rwsem-no-spin"], waiters: "no thread spins", fairness: "that of `rwsem`" },
    Variation {
        locks: &["rwsem-no-spin-for-readers"],
        waiters: "writers spin only for writers",
        fairness: "that of `rwsem`",
    },
    Variation { locks: &["rwsem-reader-spin"], waiters: "readers spin too", fairness: "that of `rwsem`" },
    Variation {
        locks: &["rwsem-no-handoff"],
        waiters: "that of `rwsem`",
        fairness: "none: a wait has no bound",
    },
    Variation {
        locks: &["rwsem-leading-readers"],
        waiters: "that of `rwsem`",
        fairness: "that of `rwsem`, but readers enter up to the next writer only",
    },
    Variation {
        locks: &["linux-mutex-no-handoff"],
        waiters: "that of `linux-mutex`",
        fairness: "none: other threads may take it for ever",
    },
    Variation {
        locks: &["linux-mutex-no-waiter-spin"],
        waiters: "that of `linux-mutex`, but sleepers do not spin again",
        fairness: "that of `linux-mutex`",
    },
    Variation {
        locks: &["linux-mutex-no-osq"],
        waiters: "record on the stack; all newcomers spin on the word",
        fairness: "that of `linux-mutex`",
    },
    Variation {
        locks: &["linux-mutex-heedless"],
        waiters: "that of `linux-mutex`, but spinners ignore whether the owner sleeps",
        fairness: "that of `linux-mutex`",
    },
    Variation {
        locks: &["linux-mutex-no-spin"],
        waiters: "record on the stack; no thread spins",
        fairness: "that of `linux-mutex`",
    },
];
