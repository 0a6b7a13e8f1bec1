//! The switches of the family, and what they were at what time. A lock heeds those that it says.

use super::lock_delay::Backoff;
use crate::tuning::Standard;

words! {
    /// What a waiter goes by after an attempt that failed.
    pub enum CasValue {
        /// The word, read again: until 2016.
        Reread "reread",
        /// What it has read before the attempt. Then a lost race looks like a free mutex, and the waiter goes to the chain and
        /// sleeps there though the new owner may run. The form of the pre-read that its author gave up.
        Kept "kept",
        /// What the failed compare-exchange has found: `fcmpset`, since 2017. A waiter tries only if it has seen the mutex
        /// free, so that [`Tuning::hard_pre_read`] has nothing left to do. The compare-exchange is the weak one.
        Found "found",
    }
}

words! {
    /// How long a spinner spins.
    pub enum FollowOwner {
        /// Until there is another owner: then it tries.
        Same "same",
        /// Until there is none, as long as each of them runs.
        Any "any",
    }
}

words! {
    /// What a waiter does that holds the chain's lock and fails to set the waiter bit.
    pub enum WaiterCasFail {
        /// It unlocks the chain, and starts anew.
        Restart "restart",
        /// It looks again, and keeps the chain.
        RetryLocked "retry-locked",
    }
}

words! {
    /// What a release with waiters does first. The chain is locked meanwhile.
    pub enum ReleaseOrder {
        /// It makes the mutex free, and then collects the waiters: others can have it sooner.
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
    /// What the last reader that leaves makes of the mark that a writer spins.
    pub enum SpinnerBit {
        /// It takes it off, so that readers may come in before the writer.
        Cleared "cleared",
        /// It leaves it, so that readers wait for the writer: since May 2018.
        Kept "kept",
    }
}

words! {
    /// Who goes first where readers and writers compete.
    pub enum Precedence {
        /// Readers wait behind writers that wait or spin, and a release wakes the writers.
        Writers "writers",
        /// Readers join those who read, and a release wakes the readers.
        Readers "readers",
    }
}

words! {
    /// Which releases of an sx notice that the waiters of a bit have given up.
    pub enum StaleBits {
        /// Those of writers, which count the queue. The last reader wakes nobody then, and readers that wait behind the bit may
        /// sleep for ever. The kernel.
        SeenByWriters "seen-by-writers",
        /// All of them.
        SeenByAll "seen-by-all",
    }
}

words! {
    /// What releases of a lockmgr make of writers that wait only until they have slept, and then fail
    /// ([`Options::sleep_fail`](super::lockmgr::Options::sleep_fail)).
    pub enum SleepFailers {
        /// Writers like others: as far as is remembered, until December 2009. If they are the only ones that a release wakes,
        /// sharers sleep on at a free lock.
        Ignored "ignored",
        /// They are counted, and where no other writers wait, sharers are woken with them. A sharer that leaves forgets the count
        /// before it knows that it is the last one; if it is not, the last one finds no count. The kernel.
        Forgotten "forgotten",
        /// They are counted as long as they wait.
        Counted "counted",
    }
}

switches! {
    /// The switches. The defaults are those of the present kernel.
    pub trait Tuning;
    SWITCHES from 72;

    /// Whether the fast path of `lock` (and `try_lock`) reads the word before it tries to write it.
    fn lock_pre_read("lock-preread") -> bool as flag = false;
    /// Whether that of `unlock` does.
    fn unlock_pre_read("unlock-preread") -> bool as flag = false;
    /// Whether a waiter does, each time.
    fn hard_pre_read("hard-preread") -> bool as flag = true;
    /// What a waiter goes by after a failed attempt.
    fn cas_value("cas-value") -> CasValue as word = CasValue::Found;
    /// Whether waiters spin while the owner runs. If not, they sleep at once: the kernel's options `NO_ADAPTIVE_MUTEXES` and so
    /// on. Spin mutexes do not heed it.
    fn adaptive("adaptive") -> bool as flag = true;
    /// How the delays between a spinner's looks grow.
    fn backoff("backoff") -> Backoff as word = Backoff::Exponential;
    /// How long a spinner spins.
    fn follow_owner("follow-owner") -> FollowOwner as word = FollowOwner::Any;
    /// What a waiter does that fails to set the waiter bit.
    fn waiter_cas_fail("waiter-cas-fail") -> WaiterCasFail as word = WaiterCasFail::RetryLocked;
    /// What a release with waiters does first.
    fn release_order("release-order") -> ReleaseOrder as word = ReleaseOrder::FreeFirst;
    /// How a waiter that spins for readers passes the time between two looks.
    fn reader_wait("reader-wait") -> ReaderWait as word = ReaderWait::PausePerReader;
    /// What the last reader makes of the mark that a writer spins.
    fn spinner_bit("spinner-bit") -> SpinnerBit as word = SpinnerBit::Kept;
    /// Who goes first at an sx.
    fn sx_precedence("precedence") -> Precedence as word = Precedence::Writers;
    /// Which releases of an sx notice that waiters have given up. Not that of the kernel, which is a mistake.
    fn sx_stale_bits("stale-bits") -> StaleBits as word = StaleBits::SeenByAll;
    /// Whether those who wait for a lockmgr may spin: since July 2020.
    fn lockmgr_adaptive("spins") -> bool as flag = true;
    /// What releases of a lockmgr make of writers that fail after a sleep. Not that of the kernel, which is a mistake.
    fn lockmgr_sleep_failers("sleep-failers") -> SleepFailers as word = SleepFailers::Counted;
}

crate::tuning! {
    /// The present kernel, but that waiters sleep at once.
    pub struct NotAdaptive: Tuning {
        adaptive: bool = false;
    }
}

/// Presets of the time before `fcmpset`. What differs among them: the pre-reads of `lock`, of
/// `unlock` and of waiters; what a waiter goes by after an attempt that failed; and its back-off.
/// All else is as in [`Fcmpset2017`].
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
    /// [`Era2014`] with the pre-reads of waiters and of the fast path of `lock`, and not that of `unlock`.
    PreReadLock: true, false, true, Reread, None;
    /// [`Era2014`] with all pre-reads: the patch of November 2015 as it was posted.
    PreReadEverywhere: true, true, true, Reread, None;
    /// [`PreReadEverywhere`] whose waiters keep the value that they have read: the form of the patch before. One that loses
    /// the race for a free mutex sleeps.
    Preloaded: true, true, true, Kept, None;
    /// [`PreReadEverywhere`] with the linear, random back-off of August 2016.
    LinearBackoff2016: true, true, true, Reread, Linear;
}

crate::tuning! {
    /// What came after the pre-read, of March 2017: the fast paths write at once, waiters go by what a failed write has found,
    /// and back off exponentially.
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
    /// June 2018: the last reader leaves a writer's mark (May 2018), waiters try again under the chain's lock and pause for each
    /// reader (December 2017), and at an sx writers go first. What came later: those who wait for a lockmgr may spin.
    pub struct KeptSpinner2018: Tuning {
        lockmgr_adaptive: bool = false;
    }
}

/// The present one, by a name of its own beside the dated ones.
pub type Current = Standard;
