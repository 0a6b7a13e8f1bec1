//! The switches of the family, and their values in the course of time. A lock uses those that its
//! entry in the list of all locks names.

use super::lock_delay::Backoff;
use crate::tuning::Standard;

words! {
    /// The value that a waiter uses after an attempt that failed.
    pub enum CasValue {
        /// The word, read again: until 2016.
        Reread "reread",
        /// The word as read before the attempt. Then a lost race looks like a free mutex. The
        /// waiter goes to the chain, and sleeps there although the new owner may run. The form of
        /// the pre-read that its author gave up.
        Kept "kept",
        /// The word that the failed compare-exchange has found: `fcmpset`, since 2017. A waiter
        /// tries only if it has seen the mutex free, so [`Tuning::hard_pre_read`] has no effect.
        /// The compare-exchange is the weak one.
        Found "found",
    }
}

words! {
    /// How long a spinner spins.
    pub enum FollowOwner {
        /// Until there is another owner. Then it tries.
        Same "same",
        /// Until there is no owner, as long as each owner runs.
        Any "any",
    }
}

words! {
    /// What a waiter that holds the chain's lock does when it fails to set the waiter bit.
    pub enum WaiterCasFail {
        /// It unlocks the chain, and starts again.
        Restart "restart",
        /// It looks again, and keeps the chain.
        RetryLocked "retry-locked",
    }
}

words! {
    /// What an unlock with waiters does first. The chain is locked meanwhile.
    pub enum ReleaseOrder {
        /// It makes the mutex free, and then collects the waiters. So other threads can have the
        /// mutex sooner.
        FreeFirst "free-first",
        /// It collects the waiters, and then makes the mutex free: until 2017.
        CollectFirst "collect-first",
    }
}

words! {
    /// How a waiter that spins for readers passes the time between two looks.
    pub enum ReaderWait {
        /// By one pause.
        OnePause "one-pause",
        /// By a pause for each reader: since December 2017.
        PausePerReader "pause-per-reader",
    }
}

words! {
    /// What the last reader does, as it unlocks, with the mark of a spinning writer.
    pub enum SpinnerBit {
        /// It clears the mark, so that readers may lock before the writer.
        Cleared "cleared",
        /// It leaves the mark, so that readers wait for the writer: since May 2018.
        Kept "kept",
    }
}

words! {
    /// Whether readers or writers go first where they compete.
    pub enum Precedence {
        /// Readers wait behind writers that wait or spin, and an unlock wakes the writers.
        Writers "writers",
        /// Readers join the readers that hold the lock, and an unlock wakes the readers.
        Readers "readers",
    }
}

words! {
    /// Which unlocks of an sx notice that all waiters of a waiter bit have given up.
    pub enum StaleBits {
        /// Those of writers, which count the queue. An unlock by the last reader then wakes no
        /// thread, and readers that wait behind the bit may sleep for ever. The kernel.
        SeenByWriters "seen-by-writers",
        /// All unlocks.
        SeenByAll "seen-by-all",
    }
}

words! {
    /// How unlocks of a lockmgr treat writers that fail once they have slept
    /// ([`Options::sleep_fail`](super::lockmgr::Options::sleep_fail)).
    pub enum SleepFailers {
        /// As other writers: as far as is remembered, until December 2009. If an unlock wakes no
        /// other threads, sharers sleep on at a free lock.
        Ignored "ignored",
        /// They are counted. If no other writers wait, sharers are woken with them. A sharer that
        /// unlocks clears the count before it knows whether it is the last one. If it is not, the
        /// last one finds no count. The kernel.
        Forgotten "forgotten",
        /// They are counted as long as they wait.
        Counted "counted",
    }
}

switches! {
    /// The switches. The defaults are those of the present kernel, unless a switch says otherwise.
    pub trait Tuning;
    SWITCHES from 72;

    /// Whether the fast path of `lock` (and `try_lock`) reads the word before it tries to write it.
    fn lock_pre_read("lock-preread") -> bool as flag = false;
    /// Whether the fast path of `unlock` reads the word before it tries to write it.
    fn unlock_pre_read("unlock-preread") -> bool as flag = false;
    /// Whether a waiter reads the word before each attempt to write it.
    fn hard_pre_read("hard-preread") -> bool as flag = true;
    /// The value that a waiter uses after a failed attempt.
    fn cas_value("cas-value") -> CasValue as word = CasValue::Found;
    /// Whether waiters spin while the owner runs. If not, they sleep at once: the kernel's options
    /// `NO_ADAPTIVE_MUTEXES` and so on. Spin mutexes ignore it.
    fn adaptive("adaptive") -> bool as flag = true;
    /// How the delays between a spinner's looks grow.
    fn backoff("backoff") -> Backoff as word = Backoff::Exponential;
    /// How long a spinner spins.
    fn follow_owner("follow-owner") -> FollowOwner as word = FollowOwner::Any;
    /// What a waiter does when it fails to set the waiter bit.
    fn waiter_cas_fail("waiter-cas-fail") -> WaiterCasFail as word = WaiterCasFail::RetryLocked;
    /// What an unlock with waiters does first.
    fn release_order("release-order") -> ReleaseOrder as word = ReleaseOrder::FreeFirst;
    /// How a waiter that spins for readers passes the time between two looks.
    fn reader_wait("reader-wait") -> ReaderWait as word = ReaderWait::PausePerReader;
    /// What the last reader does with the mark of a spinning writer.
    fn spinner_bit("spinner-bit") -> SpinnerBit as word = SpinnerBit::Kept;
    /// Whether readers or writers go first at an sx.
    fn sx_precedence("precedence") -> Precedence as word = Precedence::Writers;
    /// Which unlocks of an sx notice that waiters have given up. The default is not that of the
    /// kernel, which is a mistake.
    fn sx_stale_bits("stale-bits") -> StaleBits as word = StaleBits::SeenByAll;
    /// Whether a thread that waits for a lockmgr may spin: since July 2020.
    fn lockmgr_adaptive("spins") -> bool as flag = true;
    /// How unlocks of a lockmgr treat writers that fail after a sleep. The default is not that of
    /// the kernel, which is a mistake.
    fn lockmgr_sleep_failers("sleep-failers") -> SleepFailers as word = SleepFailers::Counted;
}

crate::tuning! {
    /// The present kernel, except that waiters sleep at once.
    pub struct NotAdaptive: Tuning {
        adaptive: bool = false;
    }
}

/// Presets of the time before `fcmpset`. They differ in the pre-reads of `lock`, of `unlock` and of
/// waiters, in the value that a waiter uses after an attempt that failed, and in the back-off. A
/// spinner does not follow owners. All else is as in [`Fcmpset2017`].
macro_rules! until_2016 {
    ($($(#[$doc:meta])* $name:ident: $lock:literal, $unlock:literal, $hard:literal, $cas_value:ident, $backoff:ident;)*) => {
        $(crate::tuning! {
            $(#[$doc])*
            pub struct $name: Tuning {
                lock_pre_read: bool = $lock;
                unlock_pre_read: bool = $unlock;
                hard_pre_read: bool = $hard;
                cas_value: CasValue = CasValue::$cas_value;
                backoff: Backoff = Backoff::$backoff;
                follow_owner: FollowOwner = FollowOwner::Same;
                waiter_cas_fail: WaiterCasFail = WaiterCasFail::Restart;
                release_order: ReleaseOrder = ReleaseOrder::CollectFirst;
                reader_wait: ReaderWait = ReaderWait::OnePause;
                spinner_bit: SpinnerBit = SpinnerBit::Cleared;
                sx_precedence: Precedence = Precedence::Readers;
                lockmgr_adaptive: bool = false;
            }
        })*
    };
}

until_2016! {
    /// FreeBSD 10.1: no pre-read, no back-off. A waiter writes before it reads.
    Era2014: false, false, false, Reread, None;
    /// [`Era2014`] with the pre-reads of the fast paths, and not that of waiters.
    PreReadFastPath: true, true, false, Reread, None;
    /// [`Era2014`] with the pre-read of waiters only.
    PreReadHardPath: false, false, true, Reread, None;
    /// [`Era2014`] with the pre-reads of waiters and of the fast path of `lock`, and not that of
    /// `unlock`.
    PreReadLock: true, false, true, Reread, None;
    /// [`Era2014`] with all pre-reads: the patch of November 2015 as it was posted.
    PreReadEverywhere: true, true, true, Reread, None;
    /// [`PreReadEverywhere`] whose waiters keep the value that they have read: an earlier form of
    /// the patch. A waiter that loses the race for a free mutex sleeps.
    Preloaded: true, true, true, Kept, None;
    /// [`PreReadEverywhere`] with the linear, random back-off of August 2016.
    LinearBackoff2016: true, true, true, Reread, Linear;
}

crate::tuning! {
    /// What came after the pre-read, in March 2017: the fast paths write at once, waiters use the
    /// value that a failed write has found, and back off exponentially.
    pub struct Fcmpset2017: Tuning {
        waiter_cas_fail: WaiterCasFail = WaiterCasFail::Restart;
        release_order: ReleaseOrder = ReleaseOrder::CollectFirst;
        reader_wait: ReaderWait = ReaderWait::OnePause;
        spinner_bit: SpinnerBit = SpinnerBit::Cleared;
        sx_precedence: Precedence = Precedence::Readers;
        lockmgr_adaptive: bool = false;
    }
}

crate::tuning! {
    /// June 2018. The last reader leaves a writer's mark (May 2018). Waiters try again under the
    /// chain's lock, and pause for each reader (December 2017). At an sx writers go first. What
    /// came later: threads that wait for a lockmgr may spin.
    pub struct KeptSpinner2018: Tuning {
        lockmgr_adaptive: bool = false;
    }
}

/// The present kernel, by a name like those of the dated presets.
pub type Current = Standard;
