//! nearlock's own locks, the classic ones, and protocols of other libraries.

use super::{Description, Variation};

/// The algorithms.
pub const ALGORITHMS: &[Description] = &[
    Description {
        lock: "near-mutex",
        word: "4 bytes: the holder and its processor",
        waiters: "record on the stack of the waiter, 32 bytes, in a chain, as `freebsd-mtx`. The \
                  first in the queue looks, the others sleep. Waiters may give up",
        fairness: "newcomers overtake the queue until its first waiter has looked for 20 to 32 us; \
                   then the next release hands over to it. A first waiter that sleeps, or has no \
                   processor, is overtaken for 2 ms. These times are 0.2 and 0.35 ms if one thread \
                   takes the mutex again and again. But a first waiter that sleeps until its turn, \
                   and has no processor then, is overtaken until it has one. If sections take 77 us \
                   or more, the first waiter is woken to compete before these times count. While \
                   the holders of many mutexes have no processor, releases of these hand over to a \
                   first waiter in any state. The queue is first come, first served, with \
                   two exceptions. Waiters of one NUMA node go first for 1 ms, and then up to 32 \
                   that were moved together. A sleeper that is taken out of the queue to compete \
                   may join it again once, at its end",
        source: "own: a plain store, an asymmetric fence, a table of words that say whether a \
                 waiter needs a release, and counting filters. Bounded barging as in WebKit's `WTF::Lock` and parking_lot; waiters of a NUMA node moved \
                 together as in shuffling locks (Kashyap et al., SOSP 2019)",
    },
    Description {
        lock: "near-condvar",
        word: "16 bytes: a condition variable (the mutex of its waiters, or none), `near-mutex`, \
               held or not",
        waiters: "record on the stack of the waiter, in a chain of the condition variable, asleep; \
                  then as `near-mutex`. Waiters may give up",
        fairness: "none: a notified waiter competes with newcomers, and waits again if it loses. \
                   Notifications are first come, first served",
        source: "own: a monitor as a program builds it, over `nearlock::Condvar`. It is in the \
                 list so that all tests of locks also test condition variables",
    },
    Description {
        lock: "near-rwlock",
        word: "32 bytes: `near-mutex`, the mode, the numbers of counted readers and of waiting writers, the number \
               of reads, an id, the time of the last revocation. Each thread has 64 bytes: the ids of seven locks that it \
               reads",
        waiters: "writers as `near-mutex`, and then for readers: a writer looks, and sleeps on the line of \
                  the reader. Readers look, and sleep on the word of the mutex; after 0.5 ms they wait as \
                  writers. Waiters may give up",
        fairness: "a waiting writer lets no new reader in, except one that holds the lock already. Among \
                   writers, and readers that have waited for 0.5 ms, as `near-mutex`",
        source: "own: a reader publishes the id of the lock in its own line, and looks afterwards. Lines as \
                 in brlock (Linux 2.4) and TLRW (Dice and Shavit, SPAA 2010); an asymmetric fence (Dice, \
                 Huang, Yang, 2001); forced visibility as in passive reader-writer locks (Liu, Zhang, Chen, \
                 USENIX ATC 2014)",
    },
    Description {
        lock: "tas",
        word: "4 bytes: 0 free, 1 held",
        waiters: "none",
        fairness: "none: a wait has no bound",
        source: "Anderson, IEEE TPDS 1(1), 1990: spin on test-and-set",
    },
    Description {
        lock: "ttas",
        word: "4 bytes: 0 free, 1 held",
        waiters: "none",
        fairness: "none: a wait has no bound",
        source: "Rudolph and Segall, ISCA 1984",
    },
    Description {
        lock: "ticket",
        word: "4 bytes: serving, next",
        waiters: "none",
        fairness: "first come, first served; at most 2^16 threads at one lock",
        source: "Reed and Kanodia, CACM 22(2), 1979; Mellor-Crummey and Scott, ACM TOCS 9(1), \
                 1991, Figure 2",
    },
    Description {
        lock: "mcs",
        word: "pointer to the last node",
        waiters: "node from the caller, 16 bytes",
        fairness: "first come, first served",
        source: "Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, Figure 5",
    },
    Description {
        lock: "clh",
        word: "pointer to the last node",
        waiters: "node from the caller, 4 bytes",
        fairness: "first come, first served",
        source: "Craig, 1993; Magnusson, Landin and Hagersten, IPPS 1994; with the null tail and \
                 the wait in `unlock` of Hemlock (Dice and Kogan, SPAA 2021)",
    },
    Description {
        lock: "hmcs",
        word: "1152 bytes: global lock, 8 queues",
        waiters: "node from the caller, 32 bytes",
        fairness: "first come, first served within a NUMA node; the other NUMA nodes are overtaken \
                   by at most a pass limit (800) of hand-overs at a time",
        source: "Chabbi, Fagan and Mellor-Crummey, PPoPP 2015, two levels",
    },
    Description {
        lock: "cohort",
        word: "1152 bytes: global lock, 8 queues",
        waiters: "node from the caller, 24 bytes",
        fairness: "as `hmcs`",
        source: "Dice, Marathe and Shavit, PPoPP 2012: C-TKT-MCS, MCS locks under a ticket lock",
    },
    Description {
        lock: "glibc-mutex",
        word: "4 bytes: 0 free, 1 held, 2 held and a thread may sleep",
        waiters: "none of its own: it sleeps on the word",
        fairness: "none: a newcomer may take it while the woken thread is on its way",
        source: "Drepper, \"Futexes Are Tricky\", 2011: the C library's `lll_lock`",
    },
    Description {
        lock: "std-mutex-protocol",
        word: "as `glibc-mutex`",
        waiters: "as `glibc-mutex`; it looks 100 times before each sleep, unless other threads \
                  sleep",
        fairness: "as `glibc-mutex`",
        source: "Rust 1.95's `std::sync::Mutex` on Linux, from its source, in own words",
    },
    Description {
        lock: "parking-lot-0.13-protocol",
        word: "4 bytes: held, a thread sleeps",
        waiters: "record on the stack of the sleeper, 32 bytes, in a chain, as `freebsd-mtx`. Ten \
                  looks with pauses and yields before each sleep, unless other threads sleep",
        fairness: "sleepers are first come, first served; newcomers may overtake them for ever",
        source: "parking_lot 0.13.0, from its source, in own words: it is free before the release \
                 looks for a sleeper",
    },
    Description {
        lock: "glibc-rwlock",
        word: "12 bytes: readers, of which some may wait, and two bits; the phase; the writers' word",
        waiters: "none of its own: it sleeps on the phase, or on the writers' word",
        fairness: "none: readers go before writers, and may keep them out for ever",
        source: "glibc 2.36 as a program sees it (`PTHREAD_RWLOCK_PREFER_READER_NP`); not from its source",
    },
    Description {
        lock: "std-rwlock-protocol",
        word: "8 bytes: readers or a writer, readers sleep, writers sleep; the word of the writers",
        waiters: "none of its own: it looks 100 times, and sleeps on one of the words",
        fairness: "no reader overtakes a sleeping writer; newcomers among the writers may overtake it",
        source: "Rust 1.95's `std::sync::RwLock` on Linux, from its source, in own words",
    },
    Description {
        lock: "parking-lot-0.13-rwlock-protocol",
        word: "4 bytes: readers, a writer, a thread sleeps, the writer sleeps",
        waiters: "that of `parking-lot-0.13-protocol`",
        fairness: "a writer lets no new reader in once it has its turn; it waits for its turn as for \
                   `parking-lot-0.13-protocol`",
        source: "parking_lot 0.13.0, from its source, in own words",
    },
];

/// The presets whose waiters or fairness differ.
pub const PRESETS: &[Variation] = &[
    Variation {
        locks: &["parking-lot-0.12-protocol"],
        waiters: "that of `parking-lot-0.13-protocol`",
        fairness: "sleepers are first come, first served; newcomers overtake them until the chain \
                   hands over, 0 to 1 ms after it last did",
    },
    Variation {
        locks: &["near-condvar-all"],
        waiters: "that of `near-condvar`",
        fairness: "none: all waiters are notified, and compete",
    },
];
