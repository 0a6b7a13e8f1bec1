//! The locks of FreeBSD.

use super::{Description, Variation};

/// The algorithms.
pub const ALGORITHMS: &[Description] = &[
    Description {
        lock: "freebsd-mtx",
        word: "8 bytes: word (owner, destroyed, contested, recursed), depth",
        waiters: "record on the stack of the sleeper, 32 bytes, in a chain that the platform keeps \
                  for locks by their address",
        fairness: "none: a release wakes all waiters, and newcomers compete with them",
        source: "FreeBSD's `mtx` of today (Baldwin, Guzik): `fcmpset`, exponential back-off",
    },
    Description {
        lock: "freebsd-spin-mtx",
        word: "8 bytes: owner, depth",
        waiters: "none",
        fairness: "none",
        source: "FreeBSD's `mtx` of type `MTX_SPIN`: it waits outside of its section, and reports \
                 waits that are too long",
    },
    Description {
        lock: "freebsd-rw",
        word: "16 bytes: word (readers or writer, recursed, a writer spins, writers wait, readers \
               wait, written), depth",
        waiters: "record on the stack of the sleeper, in a chain, as `freebsd-mtx`. Waiters spin \
                  for writers that run, and for a while for readers",
        fairness: "none: a release wakes all writers, or else all readers, and newcomers compete \
                   with them. Readers wait for writers that wait or spin, unless they hold another \
                   lock of the kind",
        source: "FreeBSD's `rw` of today (Baldwin, Guzik)",
    },
    Description {
        lock: "freebsd-sx",
        word: "as `freebsd-rw`",
        waiters: "as `freebsd-rw`; waiters may give up",
        fairness: "as `freebsd-rw`",
        source: "FreeBSD's `sx` of today (Evans, Rao, Guzik), without its lost wake-up \
                 ([history-freebsd.md](../internals/history-freebsd.md))",
    },
    Description {
        lock: "freebsd-lockmgr",
        word: "32 bytes: word (sharers or holder, recursed, exclusive waiters, sharing waiters, \
               exclusive), depth, waiters that fail after their sleep, attributes",
        waiters: "record on the stack of the sleeper, in a chain, as `freebsd-mtx`. Waiters spin \
                  only for an exclusive holder that runs while no thread waits. They may give up",
        fairness: "none: a release wakes all exclusive waiters, or all waiters if the exclusive \
                   ones would fail, and newcomers compete with them. Sharers wait for exclusive \
                   waiters, unless they hold another lock of the kind. A downgrade wakes no thread",
        source: "FreeBSD's `lockmgr` of today (Rao, Roberson, Guzik), without two faults \
                 ([kernel-differences.md](../internals/kernel-differences.md#freebsd)): it counts \
                 all waiters that fail after a sleep, and a drain that has woken waiters starts \
                 again. A time limit is one moment for all sleeps of a wait; an upgrade is ordered",
    },
    Description {
        lock: "freebsd-thread-lock",
        word: "16 bytes: pointer to the mutex, a mutex of its own",
        waiters: "none",
        fairness: "none",
        source: "FreeBSD's `thread_lock`: a spin mutex behind a pointer that its holder may change",
    },
];

/// The presets whose waiters or fairness differ.
pub const PRESETS: &[Variation] = &[
    Variation {
        locks: &["freebsd-mtx-no-spin"],
        waiters: "no thread spins",
        fairness: "that of `freebsd-mtx`",
    },
    Variation {
        locks: &["freebsd-sx-no-preread"],
        waiters: "that of `freebsd-sx`",
        fairness: "that of `freebsd-sx`, but readers ignore writers that wait, and are woken first",
    },
    Variation {
        locks: &[
            "freebsd-lockmgr-no-preread",
            "freebsd-lockmgr-preread",
            "freebsd-lockmgr-fcmpset",
            "freebsd-lockmgr-no-adaptive",
        ],
        waiters: "no thread spins",
        fairness: "that of `freebsd-lockmgr`",
    },
];
