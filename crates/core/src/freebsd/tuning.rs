//! The switches of the family, and what they were at what time. A lock heeds those that it says.

use core::marker::PhantomData;

use super::lock_delay::Backoff;
use crate::tuning::Standard;

/// What a waiter goes by after an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasValue {
    /// The word, read again: until 2016.
    Reread,
    /// What it has read before the attempt. Then a lost race looks like a free mutex, and the waiter goes to the chain and
    /// sleeps there though the new owner may run. The form of the pre-read that its author gave up.
    Kept,
    /// What the failed compare-exchange has found: `fcmpset`, since 2017. A waiter tries only if it has seen the mutex
    /// free, so that [`Tuning::HARD_PRE_READ`] has nothing left to do. The compare-exchange is the weak one.
    Found,
}

/// How long a spinner spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowOwner {
    /// Until there is another owner: then it tries.
    Same,
    /// Until there is none, as long as each of them runs.
    Any,
}

/// What a waiter does that holds the chain's lock and fails to set the waiter bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaiterCasFail {
    /// It unlocks the chain, and starts anew.
    Restart,
    /// It looks again, and keeps the chain.
    RetryLocked,
}

/// What a release with waiters does first. The chain is locked meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOrder {
    /// It makes the mutex free, and then collects the waiters: others can have it sooner.
    FreeFirst,
    /// It collects the waiters, and then makes the mutex free: until 2017.
    CollectFirst,
}

/// How a waiter that spins for readers passes the time between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderWait {
    /// By one pause.
    OnePause,
    /// By a pause for each reader: since December 2017.
    PausePerReader,
}

/// What the last reader that leaves makes of the mark that a writer spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinnerBit {
    /// It takes it off, so that readers may come in before the writer.
    Cleared,
    /// It leaves it, so that readers wait for the writer: since May 2018.
    Kept,
}

/// Who goes first where readers and writers compete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// Readers wait behind writers that wait or spin, and a release wakes the writers.
    Writers,
    /// Readers join those who read, and a release wakes the readers.
    Readers,
}

/// Which releases of an sx notice that the waiters of a bit have given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleBits {
    /// Those of writers, which count the queue. The last reader wakes nobody then, and readers that wait behind the bit may
    /// sleep for ever. The kernel.
    SeenByWriters,
    /// All of them.
    SeenByAll,
}

/// What releases of a lockmgr make of writers that wait only until they have slept, and then fail
/// ([`Options::sleep_fail`](super::lockmgr::Options::sleep_fail)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepFailers {
    /// Writers like others: as far as is remembered, until December 2009. If they are the only ones that a release wakes,
    /// sharers sleep on at a free lock.
    Ignored,
    /// They are counted, and where no other writers wait, sharers are woken with them. A sharer that leaves forgets the count
    /// before it knows that it is the last one; if it is not, the last one finds no count. The kernel.
    Forgotten,
    /// They are counted as long as they wait.
    Counted,
}

/// The switches. The defaults are those of the present kernel.
pub trait Tuning: Send + Sync + 'static {
    /// Whether the fast path of `lock` (and `try_lock`) reads the word before it tries to write it.
    const LOCK_PRE_READ: bool = false;
    /// Whether that of `unlock` does.
    const UNLOCK_PRE_READ: bool = false;
    /// Whether a waiter does, each time.
    const HARD_PRE_READ: bool = true;
    /// What a waiter goes by after a failed attempt.
    const CAS_VALUE: CasValue = CasValue::Found;
    /// Whether waiters spin while the owner runs. If not, they sleep at once: the kernel's options `NO_ADAPTIVE_MUTEXES` and so
    /// on. Spin mutexes do not heed it.
    const ADAPTIVE: bool = true;
    /// How the delays between a spinner's looks grow.
    const BACKOFF: Backoff = Backoff::Exponential;
    /// How long a spinner spins.
    const FOLLOW_OWNER: FollowOwner = FollowOwner::Any;
    /// What a waiter does that fails to set the waiter bit.
    const WAITER_CAS_FAIL: WaiterCasFail = WaiterCasFail::RetryLocked;
    /// What a release with waiters does first.
    const RELEASE_ORDER: ReleaseOrder = ReleaseOrder::FreeFirst;
    /// How a waiter that spins for readers passes the time between two looks.
    const READER_WAIT: ReaderWait = ReaderWait::PausePerReader;
    /// What the last reader makes of the mark that a writer spins.
    const SPINNER_BIT: SpinnerBit = SpinnerBit::Kept;
    /// Who goes first at an sx.
    const SX_PRECEDENCE: Precedence = Precedence::Writers;
    /// Which releases of an sx notice that waiters have given up. Not that of the kernel, which is a mistake.
    const SX_STALE_BITS: StaleBits = StaleBits::SeenByAll;
    /// Whether those who wait for a lockmgr may spin: since July 2020.
    const LOCKMGR_ADAPTIVE: bool = true;
    /// What releases of a lockmgr make of writers that fail after a sleep. Not that of the kernel, which is a mistake.
    const LOCKMGR_SLEEP_FAILERS: SleepFailers = SleepFailers::Counted;
}

impl Tuning for Standard {}

/// As `T`, but that waiters sleep at once.
#[derive(Debug)]
pub struct NotAdaptive<T: Tuning = Standard>(PhantomData<T>);

impl<T: Tuning> Tuning for NotAdaptive<T> {
    const LOCK_PRE_READ: bool = T::LOCK_PRE_READ;
    const UNLOCK_PRE_READ: bool = T::UNLOCK_PRE_READ;
    const HARD_PRE_READ: bool = T::HARD_PRE_READ;
    const CAS_VALUE: CasValue = T::CAS_VALUE;
    const ADAPTIVE: bool = false;
    const BACKOFF: Backoff = T::BACKOFF;
    const FOLLOW_OWNER: FollowOwner = T::FOLLOW_OWNER;
    const WAITER_CAS_FAIL: WaiterCasFail = T::WAITER_CAS_FAIL;
    const RELEASE_ORDER: ReleaseOrder = T::RELEASE_ORDER;
    const READER_WAIT: ReaderWait = T::READER_WAIT;
    const SPINNER_BIT: SpinnerBit = T::SPINNER_BIT;
    const SX_PRECEDENCE: Precedence = T::SX_PRECEDENCE;
    const SX_STALE_BITS: StaleBits = T::SX_STALE_BITS;
    const LOCKMGR_ADAPTIVE: bool = T::LOCKMGR_ADAPTIVE;
    const LOCKMGR_SLEEP_FAILERS: SleepFailers = T::LOCKMGR_SLEEP_FAILERS;
}

/// Presets of the time before `fcmpset`. What differs among them: the pre-reads of `lock`, of `unlock` and of waiters; what a
/// waiter goes by after an attempt that failed; and its back-off.
macro_rules! until_2016 {
    ($($(#[$doc:meta])* $name:ident: $lock:literal, $unlock:literal, $hard:literal, $cas_value:ident, $backoff:ident;)*) => {
        $($(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Tuning for $name {
            const LOCK_PRE_READ: bool = $lock;
            const UNLOCK_PRE_READ: bool = $unlock;
            const HARD_PRE_READ: bool = $hard;
            const CAS_VALUE: CasValue = CasValue::$cas_value;
            const BACKOFF: Backoff = Backoff::$backoff;
            const FOLLOW_OWNER: FollowOwner = FollowOwner::Same;
            const WAITER_CAS_FAIL: WaiterCasFail = Fcmpset2017::WAITER_CAS_FAIL;
            const RELEASE_ORDER: ReleaseOrder = Fcmpset2017::RELEASE_ORDER;
            const READER_WAIT: ReaderWait = Fcmpset2017::READER_WAIT;
            const SPINNER_BIT: SpinnerBit = Fcmpset2017::SPINNER_BIT;
            const SX_PRECEDENCE: Precedence = Fcmpset2017::SX_PRECEDENCE;
            const LOCKMGR_ADAPTIVE: bool = Fcmpset2017::LOCKMGR_ADAPTIVE;
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

/// What came after the pre-read, of March 2017: the fast paths write at once, waiters go by what a failed write has found,
/// and back off exponentially.
#[derive(Debug)]
pub struct Fcmpset2017;

impl Tuning for Fcmpset2017 {
    const WAITER_CAS_FAIL: WaiterCasFail = WaiterCasFail::Restart;
    const RELEASE_ORDER: ReleaseOrder = ReleaseOrder::CollectFirst;
    const READER_WAIT: ReaderWait = ReaderWait::OnePause;
    const SPINNER_BIT: SpinnerBit = SpinnerBit::Cleared;
    const SX_PRECEDENCE: Precedence = Precedence::Readers;
    const LOCKMGR_ADAPTIVE: bool = false;
}

/// June 2018: the last reader leaves a writer's mark (May 2018), waiters try again under the chain's lock and pause for each
/// reader (December 2017), and at an sx writers go first. What came later: those who wait for a lockmgr may spin.
#[derive(Debug)]
pub struct KeptSpinner2018;

impl Tuning for KeptSpinner2018 {
    const LOCKMGR_ADAPTIVE: bool = false;
}

/// The present one, by a name of its own beside the dated ones.
pub type Current = Standard;
