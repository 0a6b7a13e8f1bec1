//! The events that slow paths count.
//!
//! The names are those of the kernel's `lock_events`, if it has the event.

macro_rules! events {
    ($($variant:ident $name:literal $doc:literal)*) => {
        /// One kind of event in a slow path.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LockEvent {
            $(#[doc = $doc] $variant,)*
        }
        impl LockEvent {
            /// All kinds, in the order of their discriminants.
            pub const ALL: &[LockEvent] = &[$(LockEvent::$variant,)*];
            /// The name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(LockEvent::$variant => $name,)* }
            }
        }
    };
}

events! {
    Slowpath "lock_slowpath" "An acquisition that did not get the lock at once."
    Pending "lock_pending" "The one pending waiter got the lock, without a queue node."
    UseNode2 "lock_use_node2" "A waiter on the thread's second node: one slow path interrupted another."
    UseNode3 "lock_use_node3" "A waiter on the thread's third node."
    UseNode4 "lock_use_node4" "A waiter on the thread's fourth node."
    NoNode "lock_no_node" "A waiter without a node, which tried again and again, outside of the queue."
    Stealing "pv_lock_stealing" "A newcomer that got the lock ahead of the queue."
    WaitEarly "pv_wait_early" "A waiter that slept because its predecessor did."
    WaitNode "pv_wait_node" "A queued waiter that slept."
    WaitHead "pv_wait_head" "A head of the queue that slept."
    KickWaiter "pv_kick_waiter" "A hand-over that woke the next waiter."
    KickUnlock "pv_kick_unlock" "An unlock that woke the head."
    OsqLeave "osq_leave" "A spinner that left its queue, or was about to."
    OsqGranted "osq_granted" "Such a spinner that was granted its turn just then, and stayed."
    LocalPass "lock_local_pass" "A hand-over within a NUMA node, ahead of waiters of other NUMA nodes."
    PassLimit "lock_pass_limit" "A release that left a NUMA node with waiters, after enough hand-overs there."
    CnaSplice "cna_splice" "A waiter moved from the main to the secondary queue."
    CnaFlush "cna_flush" "The secondary queue went in front of the main queue, since its wait was over."
    CnaTailSplice "cna_tail_splice" "The main queue ran empty, and the secondary queue took its place."
    CnaTailUpdateFailed "cna_tail_update_failed" "That replacement was undone: a waiter queued meanwhile."
    RwsemSleepReader "rwsem_sleep_reader" "A reader that slept in the queue."
    RwsemSleepWriter "rwsem_sleep_writer" "A writer that slept in the queue."
    RwsemWakeReader "rwsem_wake_reader" "A queued reader that was let in."
    RwsemWakeWriter "rwsem_wake_writer" "A queued writer that was told to try."
    RwsemOptLock "rwsem_opt_lock" "A writer that got the lock by spinning."
    RwsemOptFail "rwsem_opt_fail" "A writer that spun without success."
    RwsemOptNospin "rwsem_opt_nospin" "A writer that had reason not to spin."
    RwsemRlock "rwsem_rlock" "A reader that got the lock in the queue."
    RwsemWlock "rwsem_wlock" "A writer that got the lock in the queue."
    RwsemRlockSteal "rwsem_rlock_steal" "A reader that went ahead of the queue."
    RwsemRlockFast "rwsem_rlock_fast" "A reader that was about to queue, and found that the writer had gone."
    RwsemRlockFail "rwsem_rlock_fail" "A queued reader that gave up."
    RwsemRlockHandoff "rwsem_rlock_handoff" "From now on no thread overtakes a queued reader."
    RwsemWlockFail "rwsem_wlock_fail" "A queued writer that gave up."
    RwsemWlockHandoff "rwsem_wlock_handoff" "From now on no thread overtakes the first waiter, on behalf of a writer."
    RwsemWakeSkipped "rwsem_wake_skipped" "A release that left the wake-up to another release."
    MutexOptLock "mutex_opt_lock" "A spinner that got a mutex, without a place in its queue."
    MutexAtOnce "mutex_lock_at_once" "A queued waiter that got a mutex before a sleep."
    MutexAfterSleep "mutex_lock_after_sleep" "A queued waiter that got a mutex after a sleep."
    MutexSleep "mutex_sleep" "A sleep in the queue of a mutex."
    MutexWake "mutex_wake" "An unlock that woke the first queued waiter."
    MutexHandOver "mutex_handoff" "An unlock that handed a mutex over to the first queued waiter."
    SpinTooLong "spin_too_long" "A wait for a spin mutex that took more pauses than freebsd.spin-limit."
    ChainCancel "chain_cancel" "A thread that locked a chain, but did not sleep: the lock had changed."
    ChainSleep "chain_sleep" "A sleep in a chain."
    ChainWake "chain_wake" "A release that woke all of a queue of a chain."
    QueueLockSleep "queue_lock_sleep" "A sleep for the lock of a queue of waiters, which its holder kept."
    CondvarWake "condvar_wake" "A notification whose waiter is woken, by the notifier or by its release of the mutex."
    CondvarMove "condvar_move" "A waiter that was notified, and sleeps on in the mutex's queue."
    CondvarGiveUp "condvar_give_up" "A wait for a condition that was given up."
    CondvarLate "condvar_late" "A wait whose limit was reached, and that had been notified by then."
    CondvarSent "condvar_sent" "A notification that a monitor sent to a waiter."
    CondvarReturn "condvar_return" "A wait in a monitor that reports a notification as its end."
}

impl LockEvent {
    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// The kind of event for a nesting level of slow paths; `None` for the first level.
    pub const fn of_level(level: u32) -> Option<Self> {
        match level {
            0 => None,
            1 => Some(Self::UseNode2),
            2 => Some(Self::UseNode3),
            _ => Some(Self::UseNode4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_the_order_of_the_discriminants() {
        for (i, event) in LockEvent::ALL.iter().enumerate() {
            assert_eq!(*event as usize, i);
        }
    }

    #[test]
    fn levels_are_counted_from_the_second_on() {
        let names = [0, 1, 2, 3].map(|level| LockEvent::of_level(level).map(LockEvent::name));
        assert_eq!(names, [None, Some("lock_use_node2"), Some("lock_use_node3"), Some("lock_use_node4")]);
    }
}
