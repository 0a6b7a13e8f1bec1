//! The switches: when waiters spin, and when the mutex is handed over.

words! {
    /// When a waiter spins rather than sleeps.
    pub enum Spinning {
        /// Never: it sleeps at once.
        Never "never",
        /// As long as the owner is not known to sleep.
        UnlessOwnerSleeps "unless-owner-sleeps",
        /// Whatever the owner does. If the owner sleeps, spinning costs a processor that it may
        /// need.
        Always "always",
    }
}

switches! {
    /// The switches of [`LinuxMutex`](super::LinuxMutex).
    pub trait MutexTuning;
    SWITCHES from 48;

    /// When a waiter spins. Each time for as long as the platform allows: natively
    /// `spin.budget-ns`.
    fn spinning("spinning") -> Spinning as word = Spinning::UnlessOwnerSleeps;
    /// Whether newcomers spin one at a time, and the others wait in a queue of spinners
    /// ([`osq`](crate::linux::osq)).
    fn spinner_queue("spinner-queue") -> bool as flag = true;
    /// Whether the first waiter in the queue spins too, when it has been woken and its attempt has
    /// failed. It does so at the same time as the first of the spinners.
    fn waiter_spins("waiter-spins") -> bool as flag = true;
    /// Whether the first waiter in the queue is handed the mutex, when it has been woken and its
    /// attempt has failed. If not, other threads may take the mutex for ever. If so, the mutex is
    /// then idle until that waiter runs.
    fn hand_over("handoff") -> bool as flag = true;
    /// Whether a newcomer that has spun for long enough yields before it queues, as in the kernel,
    /// where the scheduler says when it is enough. Other threads run first, so that the mutex is
    /// not taken by a thread that is about to be preempted.
    fn yields_before_queue("yields-before-queue") -> bool as flag = false;
}

crate::tuning! {
    /// Waiters sleep at once.
    pub struct NoSpinning: MutexTuning {
        spinning: Spinning = Spinning::Never;
    }
}

crate::tuning! {
    /// Waiters spin even if the owner sleeps.
    pub struct HeedlessSpinning: MutexTuning {
        spinning: Spinning = Spinning::Always;
    }
}

crate::tuning! {
    /// All newcomers spin on the word.
    pub struct NoSpinnerQueue: MutexTuning {
        spinner_queue: bool = false;
    }
}

crate::tuning! {
    /// Newcomers spin, and the first waiter in the queue does not.
    pub struct SleepyWaiter: MutexTuning {
        waiter_spins: bool = false;
    }
}

crate::tuning! {
    /// The mutex is never handed over.
    pub struct NoHandOver: MutexTuning {
        hand_over: bool = false;
    }
}

crate::tuning! {
    /// Newcomers yield when they have spun for long enough.
    pub struct YieldsBeforeQueue: MutexTuning {
        yields_before_queue: bool = true;
    }
}
