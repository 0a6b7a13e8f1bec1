//! The one list of locks. It feeds the model checkers, the torture test, the simulator and the
//! benchmark: a lock that is listed here is in all of them.

mod capability;

use crate::classic::{clh, cohort, glibc_mutex, hmcs, mcs, parking_lot_mutex, std_mutex, tas, ticket, ttas};
use crate::controls;
use crate::freebsd::{lockmgr, mtx, rw, spin_mtx, sx, thread_lock, tuning as freebsd};
use crate::linux::{cna, cna_v13, counter_mutex, mutex, qspinlock, rwsem, rwsem_xadd};
use crate::near::condvar::monitor;
use crate::near::mutex as near;
use crate::platform::Platform;
use crate::raw::{RawRwLock, RawTimedLock, RawTimedRwLock, RawTryLock};
use crate::settings::Setting;

pub use capability::EveryCapability;

/// Where a lock comes from, and whether it means to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// From the literature.
    Classic,
    /// From the Linux kernel.
    Linux,
    /// From the FreeBSD kernel.
    FreeBsd,
    /// This project's own.
    Near,
    /// Broken on purpose: must be named to be used, and must then be found out.
    Control,
}

/// What a lock promises to a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// Nothing: others may overtake it for ever.
    Unbounded,
    /// First come, first served.
    Fifo,
    /// Overtaken only for a threshold in ns at a time (0: for ever), by waiters of one NUMA node; a few times where
    /// there are several others.
    Threshold(Setting),
    /// Overtaken only for so many hand-overs at a time, within one NUMA node: as many times as there are others.
    PassLimit(Setting),
}

impl Fairness {
    /// In a word or two.
    pub const fn name(self) -> &'static str {
        match self {
            Fairness::Unbounded => "none",
            Fairness::Fifo => "first come, first served",
            Fairness::Threshold(_) => "threshold",
            Fairness::PassLimit(_) => "pass limit",
        }
    }
}

/// A lock of the list.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// One sentence.
    pub summary: &'static str,
    /// What it promises to a waiter. (What a control promises, it breaks.)
    pub fairness: Fairness,
    /// The run-time settings that it obeys.
    pub settings: &'static [Setting],
    /// Whether readers may hold it together: there is a [`visit_rw`](Self::visit_rw).
    pub is_rw: bool,
    /// Whether its waiters may give up: there is a [`visit_timed`](Self::visit_timed).
    pub is_timed: bool,
    index: usize,
}

/// Something to be done with a lock whose type is chosen by name.
pub trait LockVisitor<P: Platform> {
    /// What it comes to.
    type Output;
    /// Does it with lock type `L`.
    fn visit<L: RawTryLock>(self) -> Self::Output;
}

/// As [`LockVisitor`], for locks with readers.
pub trait RwLockVisitor<P: Platform> {
    /// What it comes to.
    type Output;
    /// Does it with lock type `L`.
    fn visit<L: RawRwLock>(self) -> Self::Output;
}

/// As [`LockVisitor`], for locks whose waiters may give up.
pub trait TimedLockVisitor<P: Platform> {
    /// What it comes to.
    type Output;
    /// Does it with lock type `L`.
    fn visit<L: RawTimedLock<Platform = P>>(self) -> Self::Output;
}

/// As [`LockVisitor`], for locks with readers whose waiters may give up.
pub trait TimedRwLockVisitor<P: Platform> {
    /// What it comes to.
    type Output;
    /// Does it with lock type `L`.
    fn visit<L: RawTimedRwLock<Platform = P>>(self) -> Self::Output;
}

/// What a row of [`subjects`] is, by the words in its brackets.
macro_rules! kind {
    (is_rw $(timed)?) => {
        false
    };
    (is_rw rw $(timed)?) => {
        true
    };
    (is_timed $(rw)?) => {
        false
    };
    (is_timed $(rw)? timed) => {
        true
    };
    (visit_rw $visitor:ident $lock:ty; $(timed)?) => {
        None
    };
    (visit_rw $visitor:ident $lock:ty; rw $(timed)?) => {
        Some($visitor::visit::<$lock>)
    };
    (visit_timed $visitor:ident $lock:ty; $(rw)?) => {
        None
    };
    (visit_timed $visitor:ident $lock:ty; $(rw)? timed) => {
        Some($visitor::visit::<$lock>)
    };
    (visit_timed_rw $visitor:ident $lock:ty; rw timed) => {
        Some($visitor::visit::<$lock>)
    };
    (visit_timed_rw $visitor:ident $lock:ty; $(rw)? $(timed)?) => {
        None
    };
}

/// A row for each lock. In brackets: `rw` if it has readers, then `timed` if its waiters may give up.
macro_rules! subjects {
    ($($name:literal $family:ident $([$($kind:ident)*])? $lock:path, $summary:literal,
        $fairness:ident$(($limit:ident))?, $settings:expr;)*) => {
        /// All locks, those that work first, in the order of the documentation.
        pub const SUBJECTS: &[Subject] = &{
            let mut index = 0;
            [$(Subject {
                name: $name,
                family: Family::$family,
                summary: $summary,
                fairness: Fairness::$fairness$((Setting::$limit))?,
                settings: $settings,
                is_rw: kind!(is_rw $($($kind)*)?),
                is_timed: kind!(is_timed $($($kind)*)?),
                index: { index += 1; index - 1 },
            },)*]
        };

        impl Subject {
            /// Does something with the lock type that this subject stands for, on platform `P`.
            pub fn visit<P: EveryCapability, V: LockVisitor<P>>(&self, visitor: V) -> V::Output {
                let by_index: &[fn(V) -> V::Output] = &[$(V::visit::<$lock>,)*];
                by_index[self.index](visitor)
            }

            /// As [`visit`](Self::visit), if the lock has readers.
            pub fn visit_rw<P: EveryCapability, V: RwLockVisitor<P>>(&self, visitor: V) -> Option<V::Output> {
                let by_index: &[Option<fn(V) -> V::Output>] = &[$(kind!(visit_rw V $lock; $($($kind)*)?),)*];
                by_index[self.index].map(|visit| visit(visitor))
            }

            /// As [`visit`](Self::visit), if the lock's waiters may give up.
            pub fn visit_timed<P: EveryCapability, V: TimedLockVisitor<P>>(&self, visitor: V) -> Option<V::Output> {
                let by_index: &[Option<fn(V) -> V::Output>] = &[$(kind!(visit_timed V $lock; $($($kind)*)?),)*];
                by_index[self.index].map(|visit| visit(visitor))
            }

            /// As [`visit`](Self::visit), if the lock has readers, and its waiters may give up.
            pub fn visit_timed_rw<P: EveryCapability, V: TimedRwLockVisitor<P>>(
                &self,
                visitor: V,
            ) -> Option<V::Output> {
                let by_index: &[Option<fn(V) -> V::Output>] =
                    &[$(kind!(visit_timed_rw V $lock; $($($kind)*)?),)*];
                by_index[self.index].map(|visit| visit(visitor))
            }
        }
    };
}

const CNA_SETTINGS: &[Setting] =
    &[Setting::CnaThresholdNs, Setting::CnaShuffleReduction, Setting::CnaPriorityWaiters];

const CNA_V13_SETTINGS: &[Setting] = &[
    Setting::CnaV13ThresholdNs,
    Setting::CnaV13TickHz,
    Setting::CnaV13ShuffleReduction,
    Setting::CnaV13PriorityWaiters,
];

const MUTEX_SETTINGS: &[Setting] = &[Setting::SpinBudgetNs];

const SPIN_LIMIT_SETTINGS: &[Setting] = &[Setting::FreebsdSpinLimit];

const SPIN_SETTINGS: &[Setting] =
    &[Setting::FreebsdSpinLimit, Setting::FreebsdDelayBase, Setting::FreebsdDelayMax];

const BACKOFF_SETTINGS: &[Setting] =
    &[Setting::SpinBudgetNs, Setting::FreebsdDelayBase, Setting::FreebsdDelayMax];

const READERS_SETTINGS: &[Setting] =
    &[Setting::SpinBudgetNs, Setting::FreebsdDelayLoops, Setting::FreebsdDelayRetries];

const READERS_BACKOFF_SETTINGS: &[Setting] = &[
    Setting::SpinBudgetNs,
    Setting::FreebsdDelayBase,
    Setting::FreebsdDelayMax,
    Setting::FreebsdDelayLoops,
    Setting::FreebsdDelayRetries,
];

subjects! {
    "tas" Classic tas::TasLock<P>,
        "test-and-set: one word, and every look at it is a swap", Unbounded, &[];
    "ttas" Classic ttas::TtasLock<P>,
        "test-and-test-and-set: one word, everybody spins on it", Unbounded, &[];
    "ttas-no-preread" Classic ttas::TtasLock<P, ttas::NoPreRead>,
        "ttas that tries before it reads, and reads only between attempts", Unbounded, &[];
    "ticket" Classic ticket::TicketLock<P>,
        "two counters in one word, everybody spins on it", Fifo, &[];
    "mcs" Classic mcs::McsLock<P>,
        "queue lock: each waiter spins on its own node", Fifo, &[];
    "mcs-self-granted" Classic mcs::McsLock<P, mcs::SelfGranted>,
        "mcs whose holder grants itself the lock that it finds free, as Linux did until 2014", Fifo, &[];
    "clh" Classic clh::ClhLock<P>,
        "queue lock: each waiter spins on the node of the one before it", Fifo, &[];
    "hmcs" Classic hmcs::HmcsLock<P>,
        "an MCS queue per NUMA node, and an MCS lock that they compete for", PassLimit(HmcsLocalPassLimit),
        &[Setting::HmcsLocalPassLimit];
    "cohort" Classic cohort::CohortLock<P>,
        "lock cohorting, C-TKT-MCS: an MCS lock per NUMA node under a ticket lock",
        PassLimit(CohortLocalPassLimit), &[Setting::CohortLocalPassLimit];
    "glibc-mutex" Classic glibc_mutex::GlibcMutex<P>,
        "the C library's mutex: one word, and waiters that sleep at once", Unbounded, &[];
    "std-mutex-protocol" Classic std_mutex::StdMutex<P>,
        "how std's mutex of Rust works on Linux: glibc-mutex whose waiters look 100 times first", Unbounded, &[];
    "parking-lot-0.12-protocol" Classic parking_lot_mutex::ParkingLotMutex<P, parking_lot_mutex::EventuallyFair>,
        "how parking_lot 0.12's mutex works: waiters yield, sleep in a table, and now and then it is handed over",
        Unbounded, &[];
    "parking-lot-0.13-protocol" Classic parking_lot_mutex::ParkingLotMutex<P>,
        "how parking_lot 0.13's mutex works: the same, but free before anybody is woken, and never handed over",
        Unbounded, &[];
    "qspinlock" Linux qspinlock::QSpinLock<P>,
        "Linux' queued spinlock: 4 bytes, one pending waiter, an MCS queue", Fifo, &[];
    "qspinlock-whole-word" Linux qspinlock::QSpinLock<P, qspinlock::Fifo, qspinlock::WholeWord>,
        "qspinlock that writes its word only as a whole", Fifo, &[];
    "qspinlock-steal-once" Linux qspinlock::QSpinLock<P, qspinlock::Fifo, qspinlock::StealOnce>,
        "qspinlock whose newcomers try once to take the lock ahead of the queue", Unbounded, &[];
    "qspinlock-steal" Linux qspinlock::QSpinLock<P, qspinlock::Fifo, qspinlock::StealHybrid>,
        "qspinlock whose newcomers take the lock ahead of a queue whose head does not look", Unbounded, &[];
    "qspinlock-park" Linux qspinlock::QSpinLock<P, qspinlock::Fifo, qspinlock::ParkOnly>,
        "qspinlock whose waiters sleep after a while", Fifo, &[];
    "qspinlock-preemptible" Linux qspinlock::QSpinLock<P, qspinlock::Fifo, qspinlock::Preemptible>,
        "qspinlock for more threads than processors: newcomers steal, waiters sleep", Unbounded, &[];
    "qspinlock-preemptible-late" Linux qspinlock::QSpinLock<P, qspinlock::Fifo, qspinlock::WaitLate>,
        "qspinlock-preemptible whose waiters do not sleep early, as soon as the one before does", Unbounded, &[];
    "qspinlock-preemptible-head" Linux qspinlock::QSpinLock<P, qspinlock::Fifo, qspinlock::WakefulHead>,
        "qspinlock-preemptible whose head does not sleep", Unbounded, &[];
    "cna" Linux cna::CnaLock<P>,
        "CNA in its final form: the NUMA-aware qspinlock", Threshold(CnaThresholdNs), CNA_SETTINGS;
    "cna-preemptible" Linux qspinlock::QSpinLock<P, cna::Cna, qspinlock::Preemptible>,
        "CNA for more threads than processors: newcomers steal, waiters sleep", Unbounded, CNA_SETTINGS;
    "cna-v13" Linux cna_v13::CnaV13Lock<P>,
        "CNA, the NUMA-aware qspinlock of the published tables", Threshold(CnaV13ThresholdNs), CNA_V13_SETTINGS;
    "cna-v13-no-sro" Linux cna_v13::CnaV13Lock<P, cna::NoShuffleReduction>,
        "cna-v13 without the shuffle reduction", Threshold(CnaV13ThresholdNs), CNA_V13_SETTINGS;
    "linux-counter-mutex" Linux [timed] counter_mutex::CounterMutex<P>,
        "Linux' mutex until 4.8, of 3.7.10 with both pre-reads: waiters spin, then sleep", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-no-preread" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::Crowd, counter_mutex::NoPreRead>,
        "linux-counter-mutex that swaps before it reads: 3.7.10 as it was", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-spinner-preread" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::Crowd, counter_mutex::SpinnerPreRead>,
        "linux-counter-mutex with the pre-read of spinners only", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-waiter-preread" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::Crowd, counter_mutex::WaiterPreRead>,
        "linux-counter-mutex with the pre-read of waiters only", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-marked-preread" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::Crowd, counter_mutex::MarkedPreRead>,
        "linux-counter-mutex whose waiters leave the swap out at -1 only", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-exchange" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::Crowd, counter_mutex::Exchange>,
        "linux-counter-mutex for processors that cannot count", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-unlock-first" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::Crowd, counter_mutex::UnlockFirst>,
        "linux-counter-mutex whose unlock does not wait for the queue's lock", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-queue" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::InTurns<P>>,
        "linux-counter-mutex whose spinners queue for each turn: 3.10", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-queue-no-preread" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::InTurns<P>, counter_mutex::NoPreRead>,
        "linux-counter-mutex-queue that swaps before it reads: what the queue does by itself", Unbounded,
        MUTEX_SETTINGS;
    "linux-counter-mutex-queue-held" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::OneSpins<P>>,
        "linux-counter-mutex whose spinners queue once", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-queue-held-no-preread" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::OneSpins<P>, counter_mutex::NoPreRead>,
        "linux-counter-mutex-queue-held that swaps before it reads", Unbounded, MUTEX_SETTINGS;
    "linux-counter-mutex-no-spin" Linux [timed]
        counter_mutex::CounterMutex<P, counter_mutex::Nobody>,
        "linux-counter-mutex whose waiters sleep at once", Unbounded, &[];
    "rwsem-xadd" Linux [rw] rwsem_xadd::RwsemXadd<P>,
        "Linux' reader-writer semaphore of 2013, with all of the series of October 2013", Unbounded, MUTEX_SETTINGS;
    "rwsem-xadd-base" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::Base>,
        "rwsem-xadd without the series: Linux 3.10", Unbounded, &[];
    "rwsem-xadd-preread" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::PreRead>,
        "rwsem-xadd-base whose writers and wakers read before they write", Unbounded, &[];
    "rwsem-xadd-spin" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::Spins>,
        "rwsem-xadd-base whose writers spin before they queue", Unbounded, MUTEX_SETTINGS;
    "rwsem-xadd-single-waker" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::SingleWaker>,
        "rwsem-xadd-base of which one release wakes at a time", Unbounded, &[];
    "rwsem-xadd-preread-spin" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::PreReadSpin>,
        "rwsem-xadd without the single waker", Unbounded, MUTEX_SETTINGS;
    "rwsem-xadd-preread-spin-queued" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::PreReadSpinQueued>,
        "rwsem-xadd-preread-spin whose writers spin in the queue", Unbounded, MUTEX_SETTINGS;
    "rwsem-xadd-no-preread" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::NoPreRead>,
        "rwsem-xadd whose writers and wakers write before they read", Unbounded, MUTEX_SETTINGS;
    "rwsem-xadd-no-spin" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::NoSpin>,
        "rwsem-xadd whose writers sleep at once", Unbounded, &[];
    "rwsem-xadd-self-granted" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::SelfGrantedSpinners>,
        "rwsem-xadd whose first spinner writes its own node: the MCS lock until January 2014", Unbounded, MUTEX_SETTINGS;
    "rwsem-xadd-owner-known" Linux [rw] rwsem_xadd::RwsemXadd<P, rwsem_xadd::OwnerKnown>,
        "rwsem-xadd whose writers spin only for writers: the kernel since July 2014", Unbounded, MUTEX_SETTINGS;
    "linux-mutex" Linux [timed] mutex::LinuxMutex<P>,
        "Linux' mutex since 4.9: one waiter at a time spins, the others sleep, and are handed it", Unbounded,
        MUTEX_SETTINGS;
    "linux-mutex-no-handoff" Linux [timed] mutex::LinuxMutex<P, mutex::NoHandOver>,
        "linux-mutex that is never handed over: others may take it for ever", Unbounded, MUTEX_SETTINGS;
    "linux-mutex-no-waiter-spin" Linux [timed] mutex::LinuxMutex<P, mutex::SleepyWaiter>,
        "linux-mutex whose waiters do not spin any more once they have slept", Unbounded, MUTEX_SETTINGS;
    "linux-mutex-no-osq" Linux [timed] mutex::LinuxMutex<P, mutex::NoSpinnerQueue>,
        "linux-mutex whose newcomers all spin on its word", Unbounded, MUTEX_SETTINGS;
    "linux-mutex-heedless" Linux [timed] mutex::LinuxMutex<P, mutex::HeedlessSpinning>,
        "linux-mutex whose waiters spin whether the owner sleeps or not", Unbounded, MUTEX_SETTINGS;
    "linux-mutex-no-spin" Linux [timed] mutex::LinuxMutex<P, mutex::NoSpinning>,
        "linux-mutex whose waiters sleep at once", Unbounded, &[];
    "rwsem" Linux [rw timed] rwsem::Rwsem<P>,
        "Linux' reader-writer semaphore since 5.11: spinning writers, and a hand-over after 4 ms", Unbounded, MUTEX_SETTINGS;
    "rwsem-no-spin" Linux [rw timed] rwsem::Rwsem<P, rwsem::NoSpin>,
        "rwsem whose writers sleep at once", Unbounded, &[];
    "rwsem-no-handoff" Linux [rw timed] rwsem::Rwsem<P, rwsem::NoHandoff>,
        "rwsem whose waiters may be overtaken for ever", Unbounded, MUTEX_SETTINGS;
    "rwsem-leading-readers" Linux [rw timed] rwsem::Rwsem<P, rwsem::LeadingReaders>,
        "rwsem whose readers come in up to the next writer only", Unbounded, MUTEX_SETTINGS;
    "rwsem-no-reader-steal" Linux [rw timed] rwsem::Rwsem<P, rwsem::NoReaderSteal>,
        "rwsem whose readers queue wherever somebody sleeps", Unbounded, MUTEX_SETTINGS;
    "rwsem-reader-spin" Linux [rw timed] rwsem::Rwsem<P, rwsem::SpinningReaders>,
        "rwsem whose readers spin too: Linux 5.3 to 5.9", Unbounded, MUTEX_SETTINGS;
    "rwsem-no-spin-for-readers" Linux [rw timed] rwsem::Rwsem<P, rwsem::NoSpinForReaders>,
        "rwsem whose writers spin for a writer only", Unbounded, MUTEX_SETTINGS;
    "freebsd-mtx" FreeBsd mtx::Mtx<P>,
        "FreeBSD's mutex: waiters spin with back-off while the owner runs, and all are woken", Unbounded, BACKOFF_SETTINGS;
    "freebsd-mtx-no-preread" FreeBsd mtx::Mtx<P, freebsd::Era2014>,
        "freebsd-mtx of FreeBSD 10.1: its waiters write before they read, and do not back off", Unbounded, MUTEX_SETTINGS;
    "freebsd-mtx-hard-preread" FreeBsd mtx::Mtx<P, freebsd::PreReadHardPath>,
        "freebsd-mtx-no-preread whose waiters read before they write", Unbounded, MUTEX_SETTINGS;
    "freebsd-mtx-lock-preread" FreeBsd mtx::Mtx<P, freebsd::PreReadLock>,
        "freebsd-mtx-hard-preread whose lock reads before it writes, and whose unlock does not", Unbounded, MUTEX_SETTINGS;
    "freebsd-mtx-fast-preread" FreeBsd mtx::Mtx<P, freebsd::PreReadFastPath>,
        "freebsd-mtx-no-preread whose fast paths read before they write", Unbounded, MUTEX_SETTINGS;
    "freebsd-mtx-preread" FreeBsd mtx::Mtx<P, freebsd::PreReadEverywhere>,
        "freebsd-mtx-no-preread with all pre-reads: the patch of November 2015", Unbounded, MUTEX_SETTINGS;
    "freebsd-mtx-preloaded" FreeBsd mtx::Mtx<P, freebsd::Preloaded>,
        "freebsd-mtx-preread that keeps the value read, and sleeps when it has lost a race", Unbounded, MUTEX_SETTINGS;
    "freebsd-mtx-linear-backoff" FreeBsd mtx::Mtx<P, freebsd::LinearBackoff2016>,
        "freebsd-mtx-preread with the random back-off of August 2016", Unbounded, MUTEX_SETTINGS;
    "freebsd-mtx-fcmpset" FreeBsd mtx::Mtx<P, freebsd::Fcmpset2017>,
        "freebsd-mtx of 2017: no pre-read, a failed write says what it has found", Unbounded, BACKOFF_SETTINGS;
    "freebsd-mtx-no-spin" FreeBsd mtx::Mtx<P, freebsd::NotAdaptive>,
        "freebsd-mtx whose waiters sleep at once", Unbounded, &[];
    "freebsd-spin-mtx" FreeBsd spin_mtx::SpinMtx<P>,
        "FreeBSD's spin mutex: waiters back off outside of the section", Unbounded, SPIN_SETTINGS;
    "freebsd-spin-mtx-no-preread" FreeBsd spin_mtx::SpinMtx<P, freebsd::Era2014>,
        "freebsd-spin-mtx of FreeBSD 10.1: no pre-read, no back-off", Unbounded, SPIN_LIMIT_SETTINGS;
    "freebsd-spin-mtx-hard-preread" FreeBsd spin_mtx::SpinMtx<P, freebsd::PreReadHardPath>,
        "freebsd-spin-mtx-no-preread whose waiters read before they write", Unbounded, SPIN_LIMIT_SETTINGS;
    "freebsd-spin-mtx-fast-preread" FreeBsd spin_mtx::SpinMtx<P, freebsd::PreReadFastPath>,
        "freebsd-spin-mtx-no-preread whose fast path reads before it writes", Unbounded, SPIN_LIMIT_SETTINGS;
    "freebsd-spin-mtx-preread" FreeBsd spin_mtx::SpinMtx<P, freebsd::PreReadEverywhere>,
        "freebsd-spin-mtx-no-preread with the pre-reads of November 2015", Unbounded, SPIN_LIMIT_SETTINGS;
    "freebsd-spin-mtx-fcmpset" FreeBsd spin_mtx::SpinMtx<P, freebsd::Fcmpset2017>,
        "freebsd-spin-mtx of 2017: no pre-read, a failed write says what it has found", Unbounded, SPIN_SETTINGS;
    "freebsd-thread-lock" FreeBsd thread_lock::ThreadLock<P>,
        "freebsd-spin-mtx behind a pointer that may change: FreeBSD's thread_lock", Unbounded, SPIN_SETTINGS;
    "freebsd-rw" FreeBsd [rw] rw::Rw<P>,
        "FreeBSD's reader-writer lock: waiters spin for those who run, writers go first", Unbounded,
        READERS_BACKOFF_SETTINGS;
    "freebsd-rw-no-preread" FreeBsd [rw] rw::Rw<P, freebsd::Era2014>,
        "freebsd-rw of FreeBSD 10.1: its writers write before they read, and nobody backs off", Unbounded,
        READERS_SETTINGS;
    "freebsd-rw-hard-preread" FreeBsd [rw] rw::Rw<P, freebsd::PreReadHardPath>,
        "freebsd-rw-no-preread whose waiting writers read before they write", Unbounded, READERS_SETTINGS;
    "freebsd-rw-lock-preread" FreeBsd [rw] rw::Rw<P, freebsd::PreReadLock>,
        "freebsd-rw-hard-preread whose writers read before they write, and do not when they unlock", Unbounded,
        READERS_SETTINGS;
    "freebsd-rw-fast-preread" FreeBsd [rw] rw::Rw<P, freebsd::PreReadFastPath>,
        "freebsd-rw-no-preread whose writers' fast paths read before they write", Unbounded, READERS_SETTINGS;
    "freebsd-rw-preread" FreeBsd [rw] rw::Rw<P, freebsd::PreReadEverywhere>,
        "freebsd-rw-no-preread with all pre-reads: the patch of November 2015", Unbounded, READERS_SETTINGS;
    "freebsd-rw-fcmpset" FreeBsd [rw] rw::Rw<P, freebsd::Fcmpset2017>,
        "freebsd-rw of 2017: no pre-read, a failed write says what it has found", Unbounded, READERS_BACKOFF_SETTINGS;
    "freebsd-sx" FreeBsd [rw timed] sx::Sx<P>,
        "FreeBSD's shared-exclusive lock: freebsd-rw for long sections, whose waiters may give up", Unbounded,
        READERS_BACKOFF_SETTINGS;
    "freebsd-sx-no-preread" FreeBsd [rw timed] sx::Sx<P, freebsd::Era2014>,
        "freebsd-sx of FreeBSD 10.1: writers write before they read, and readers go first", Unbounded,
        READERS_SETTINGS;
    "freebsd-sx-hard-preread" FreeBsd [rw timed] sx::Sx<P, freebsd::PreReadHardPath>,
        "freebsd-sx-no-preread whose waiting writers read before they write", Unbounded, READERS_SETTINGS;
    "freebsd-sx-lock-preread" FreeBsd [rw timed] sx::Sx<P, freebsd::PreReadLock>,
        "freebsd-sx-hard-preread whose writers read before they write, and do not when they unlock", Unbounded,
        READERS_SETTINGS;
    "freebsd-sx-fast-preread" FreeBsd [rw timed] sx::Sx<P, freebsd::PreReadFastPath>,
        "freebsd-sx-no-preread whose writers' fast paths read before they write", Unbounded, READERS_SETTINGS;
    "freebsd-sx-preread" FreeBsd [rw timed] sx::Sx<P, freebsd::PreReadEverywhere>,
        "freebsd-sx-no-preread with all pre-reads: the patch of November 2015", Unbounded, READERS_SETTINGS;
    "freebsd-sx-fcmpset" FreeBsd [rw timed] sx::Sx<P, freebsd::Fcmpset2017>,
        "freebsd-sx of 2017: no pre-read, a failed write says what it has found", Unbounded, READERS_BACKOFF_SETTINGS;
    "freebsd-lockmgr" FreeBsd [rw timed] lockmgr::LockMgr<P>,
        "FreeBSD's lock of files and buffers: freebsd-sx with fewer spinners, for those who may not wait, drain or disown",
        Unbounded, BACKOFF_SETTINGS;
    "freebsd-lockmgr-no-preread" FreeBsd [rw timed] lockmgr::LockMgr<P, freebsd::Era2014>,
        "freebsd-lockmgr of FreeBSD 10.1: exclusive waiters write before they read, and nobody spins", Unbounded, &[];
    "freebsd-lockmgr-preread" FreeBsd [rw timed] lockmgr::LockMgr<P, freebsd::PreReadEverywhere>,
        "freebsd-lockmgr-no-preread with the pre-reads of November 2015, all of them in its loops", Unbounded, &[];
    "freebsd-lockmgr-fcmpset" FreeBsd [rw timed] lockmgr::LockMgr<P, freebsd::Fcmpset2017>,
        "freebsd-lockmgr of 2017: it writes at once, and a failed write says what it has found", Unbounded, &[];
    "freebsd-lockmgr-no-adaptive" FreeBsd [rw timed] lockmgr::LockMgr<P, freebsd::NotAdaptive>,
        "freebsd-lockmgr whose waiters sleep at once, as until 2020", Unbounded, &[];
    "near-mutex" Near [timed] near::NearMutex<P>,
        "this project's mutex: released by a plain store; one waiter looks, the others sleep, and it gets its turn",
        Unbounded, MUTEX_SETTINGS;
    "near-condvar" Near [timed] monitor::Monitor<P>,
        "near-mutex and its condition variable as a lock: an unlock notifies one waiter", Unbounded, MUTEX_SETTINGS;
    "near-condvar-all" Near [timed] monitor::Monitor<P, monitor::All>,
        "near-condvar whose unlock notifies all waiters", Unbounded, MUTEX_SETTINGS;
    "lock-busted" Control controls::Busted<P>,
        "excludes nobody", Unbounded, &[];
    "lock-lost-wakeup" Control controls::LostWakeup<P>,
        "deadlocks: its unlock wakes nobody", Unbounded, &[];
    "lock-after-you" Control controls::AfterYou<P>,
        "livelocks: two waiters give way to each other for ever", Unbounded, &[];
    "lock-lifo" Control controls::Lifo<P>,
        "starves: last come, first served", Fifo, &[];
    "lock-busted-rw" Control [rw] controls::BustedRw<P>,
        "lets readers in beside a writer", Unbounded, &[];
    "lock-lost-cancel" Control [timed] controls::LostCancel<P>,
        "deadlocks: a waiter that is woken and gives up wakes nobody in its stead", Unbounded, &[];
    "lock-lost-notification" Control [timed] monitor::Monitor<P, monitor::One, controls::LostNotification<P>>,
        "deadlocks: a wait for a condition that gives up keeps the notification that it was sent", Unbounded, &[];
}

impl Subject {
    /// The lock of this name.
    pub fn named(name: &str) -> Option<&'static Subject> {
        SUBJECTS.iter().find(|subject| subject.name == name)
    }

    /// The locks that mean to work.
    pub fn working() -> impl Iterator<Item = &'static Subject> {
        SUBJECTS.iter().filter(|subject| subject.family != Family::Control)
    }
}

#[cfg(test)]
mod tests;
