//! The table of the algorithms.

use super::{Algorithm, EveryCapability, Fairness, Family, LockVisitor, Subject};
use crate::classic::{
    clh, cohort, glibc_mutex, glibc_rwlock, hmcs, mcs, parking_lot_mutex, parking_lot_rwlock, std_mutex,
    std_rwlock, tas, ticket, ttas,
};
use crate::controls;
use crate::freebsd::{lockmgr, mtx, rw, spin_mtx, sx, thread_lock, tuning as freebsd};
use crate::linux::{cna, cna_v13, counter_mutex, mutex, qspinlock, rwsem, rwsem_xadd};
use crate::near::condvar::monitor;
use crate::near::mutex as near;
use crate::near::rwlock as near_rwlock;
use crate::settings::Setting;
use crate::tuning::{SwitchInfo, Switched, named};

/// Evaluates the words in the brackets of a row: whether the lock has readers, whether its waiters
/// may give up, and which function of a visitor is called.
macro_rules! kind {
    (is_rw) => {
        false
    };
    (is_rw timed) => {
        false
    };
    (is_rw rw $(timed)?) => {
        true
    };
    (is_timed) => {
        false
    };
    (is_timed rw) => {
        false
    };
    (is_timed $(rw)? timed) => {
        true
    };
    (visit $visitor:ident $lock:ty;) => {
        $visitor::visit::<$lock>
    };
    (visit $visitor:ident $lock:ty; timed) => {
        $visitor::visit_timed::<$lock>
    };
    (visit $visitor:ident $lock:ty; rw) => {
        $visitor::visit_rw::<$lock>
    };
    (visit $visitor:ident $lock:ty; rw timed) => {
        $visitor::visit_timed_rw::<$lock>
    };
}

/// Declares the algorithms. A row has a name and a family. In brackets, `rw` means that the lock
/// has readers, and `timed` after it that its waiters may give up. The type, a summary sentence,
/// the switches, the fairness, and the settings that the lock uses follow.
macro_rules! algorithms {
    ($($name:literal $family:ident $([$($kind:ident)*])? $lock:path, $summary:literal,
        $switches:expr, $fairness:expr, $settings:expr;)*) => {
        /// All algorithms in the order of the documentation, the working ones first.
        pub const ALGORITHMS: &[Algorithm] = &{
            let mut index = 0;
            [$(Algorithm {
                name: $name,
                family: Family::$family,
                summary: $summary,
                switches: $switches,
                fairness: $fairness,
                settings: $settings,
                is_rw: kind!(is_rw $($($kind)*)?),
                is_timed: kind!(is_timed $($($kind)*)?),
                index: { index += 1; index - 1 },
            },)*]
        };

        impl Subject {
            /// Calls the visitor with the type of the algorithm on platform `P`. Of the visitor's
            /// functions, the most specific one that the lock's capabilities permit is called. The
            /// switches are the platform instance's: the caller must have set them to those of this
            /// lock ([`switches`](Self::switches)).
            pub fn visit<P: EveryCapability, V: LockVisitor<P>>(&self, visitor: V) -> V::Output {
                let by_index: &[fn(V) -> V::Output] = &[$(kind!(visit V $lock; $($($kind)*)?),)*];
                by_index[self.algorithm.index](visitor)
            }
        }
    };
}

const fn none(_: &Subject) -> Fairness {
    Fairness::Unbounded
}

const fn fifo(_: &Subject) -> Fairness {
    Fairness::Fifo
}

/// The promise, or none if newcomers steal: then they may overtake a waiter for ever.
fn unless_stolen(lock: &Subject, promise: Fairness) -> Fairness {
    if lock.is_switched("stealing", "off") { promise } else { Fairness::Unbounded }
}

const fn no_settings(_: &Subject) -> &'static [Setting] {
    &[]
}

const fn cna_settings(_: &Subject) -> &'static [Setting] {
    &[Setting::CnaThresholdNs, Setting::CnaShuffleReduction, Setting::CnaPriorityWaiters]
}

const fn cna_v13_settings(_: &Subject) -> &'static [Setting] {
    &[
        Setting::CnaV13ThresholdNs,
        Setting::CnaV13TickHz,
        Setting::CnaV13ShuffleReduction,
        Setting::CnaV13PriorityWaiters,
    ]
}

const fn spin_budget(_: &Subject) -> &'static [Setting] {
    &[Setting::SpinBudgetNs]
}

/// The settings of waiters that spin before they sleep. None if the switch `key` is in the position
/// `never`.
fn spin_budget_unless(lock: &Subject, key: &str, never: &str) -> &'static [Setting] {
    if lock.is_switched(key, never) { &[] } else { spin_budget(lock) }
}

fn backs_off(lock: &Subject) -> bool {
    lock.is_switched("backoff", "exponential")
}

fn mtx_settings(lock: &Subject) -> &'static [Setting] {
    match (lock.is_switched("adaptive", "on"), backs_off(lock)) {
        (false, _) => &[],
        (true, false) => spin_budget(lock),
        (true, true) => &[Setting::SpinBudgetNs, Setting::FreebsdDelayBase, Setting::FreebsdDelayMax],
    }
}

fn spin_mtx_settings(lock: &Subject) -> &'static [Setting] {
    match backs_off(lock) {
        false => &[Setting::FreebsdSpinLimit],
        true => &[Setting::FreebsdSpinLimit, Setting::FreebsdDelayBase, Setting::FreebsdDelayMax],
    }
}

fn rw_settings(lock: &Subject) -> &'static [Setting] {
    match (lock.is_switched("adaptive", "on"), backs_off(lock)) {
        (false, _) => &[],
        (true, false) => &[Setting::SpinBudgetNs, Setting::FreebsdDelayLoops, Setting::FreebsdDelayRetries],
        (true, true) => &[
            Setting::SpinBudgetNs,
            Setting::FreebsdDelayBase,
            Setting::FreebsdDelayMax,
            Setting::FreebsdDelayLoops,
            Setting::FreebsdDelayRetries,
        ],
    }
}

fn lockmgr_settings(lock: &Subject) -> &'static [Setting] {
    if lock.is_switched("spins", "on") { mtx_settings(lock) } else { &[] }
}

/// The switches of a family that have these keys.
const fn some<const N: usize>(
    all: &'static [&'static SwitchInfo],
    keys: [&str; N],
) -> [&'static SwitchInfo; N] {
    let mut some = [all[0]; N];
    let mut i = 0;
    while i < N {
        some[i] = match named(all, keys[i]) {
            Some(switch) => switch,
            None => panic!("no such switch"),
        };
        i += 1;
    }
    some
}

/// The switches of two traits.
const fn both<const N: usize>(
    first: &'static [&'static SwitchInfo],
    second: &'static [&'static SwitchInfo],
) -> [&'static SwitchInfo; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [first[0]; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < first.len() { first[i] } else { second[i - first.len()] };
        i += 1;
    }
    all
}

const CNA_SWITCHES: &[&SwitchInfo] =
    &both::<{ qspinlock::SWITCHES.len() + cna::SWITCHES.len() }>(qspinlock::SWITCHES, cna::SWITCHES);

const PARKING_LOT_RWLOCK_SWITCHES: &[&SwitchInfo] =
    &some(parking_lot_mutex::SWITCHES, ["bucket", "rounds", "first-pauses"]);

const MTX_SWITCHES: &[&SwitchInfo] = &some(
    freebsd::SWITCHES,
    [
        "lock-preread",
        "unlock-preread",
        "hard-preread",
        "cas-value",
        "adaptive",
        "backoff",
        "follow-owner",
        "waiter-cas-fail",
        "release-order",
    ],
);

const SPIN_MTX_SWITCHES: &[&SwitchInfo] =
    &some(freebsd::SWITCHES, ["lock-preread", "hard-preread", "cas-value", "backoff"]);

const RW_SWITCHES: &[&SwitchInfo] = &both::<{ MTX_SWITCHES.len() + 2 }>(
    MTX_SWITCHES,
    &some(freebsd::SWITCHES, ["reader-wait", "spinner-bit"]),
);

const SX_SWITCHES: &[&SwitchInfo] =
    &both::<{ RW_SWITCHES.len() + 2 }>(RW_SWITCHES, &some(freebsd::SWITCHES, ["precedence", "stale-bits"]));

const LOCKMGR_SWITCHES: &[&SwitchInfo] = &some(
    freebsd::SWITCHES,
    [
        "hard-preread",
        "cas-value",
        "adaptive",
        "spins",
        "backoff",
        "follow-owner",
        "waiter-cas-fail",
        "sleep-failers",
    ],
);

type CounterMutex<P, S> = counter_mutex::CounterMutex<P, S, Switched<P>>;

algorithms! {
    "tas" Classic tas::TasLock<P>,
        "test-and-set: one word, and every look at it is a swap", &[], none, no_settings;
    "ttas" Classic ttas::TtasLock<P, Switched<P>>,
        "test-and-test-and-set: one word, all waiters spin on it", ttas::SWITCHES, none, no_settings;
    "ticket" Classic ticket::TicketLock<P>,
        "two counters in one word, all waiters spin on it", &[], fifo, no_settings;
    "mcs" Classic mcs::McsLock<P, Switched<P>>,
        "queue lock: each waiter spins on its own node", mcs::SWITCHES, fifo, no_settings;
    "clh" Classic clh::ClhLock<P>,
        "queue lock: each waiter spins on the node of its predecessor", &[], fifo, no_settings;
    "hmcs" Classic hmcs::HmcsLock<P>,
        "an MCS queue per NUMA node, and an MCS lock that they compete for",
        &[], |_| Fairness::PassLimit(Setting::HmcsLocalPassLimit), |_| &[Setting::HmcsLocalPassLimit];
    "cohort" Classic cohort::CohortLock<P>,
        "lock cohorting, C-TKT-MCS: an MCS lock per NUMA node under a ticket lock",
        &[], |_| Fairness::PassLimit(Setting::CohortLocalPassLimit), |_| &[Setting::CohortLocalPassLimit];
    "glibc-mutex" Classic glibc_mutex::GlibcMutex<P>,
        "the C library's mutex: one word, and waiters that sleep at once", &[], none, no_settings;
    "std-mutex-protocol" Classic std_mutex::StdMutex<P, Switched<P>>,
        "protocol of Rust's std mutex on Linux: glibc-mutex whose waiters look 100 times first",
        std_mutex::SWITCHES, none, no_settings;
    "parking-lot-0.13-protocol" Classic parking_lot_mutex::ParkingLotMutex<P, Switched<P>>,
        "protocol of parking_lot 0.13's mutex: waiters yield, then sleep in a table; no hand-over",
        parking_lot_mutex::SWITCHES, none, no_settings;
    "glibc-rwlock" Classic [rw] glibc_rwlock::GlibcRwLock<P>,
        "access pattern of the C library's reader-writer lock: one word of all readers, who go first",
        &[], none, no_settings;
    "std-rwlock-protocol" Classic [rw] std_rwlock::StdRwLock<P, Switched<P>>,
        "protocol of Rust's std RwLock on Linux: a count of readers; no reader overtakes a sleeping writer",
        std_mutex::SWITCHES, none, no_settings;
    "parking-lot-0.13-rwlock-protocol" Classic [rw] parking_lot_rwlock::ParkingLotRwLock<P, Switched<P>>,
        "protocol of parking_lot 0.13's RwLock: a count of readers; no reader overtakes a writer that has its turn",
        PARKING_LOT_RWLOCK_SWITCHES, none, no_settings;
    "qspinlock" Linux qspinlock::QSpinLock<P, qspinlock::Fifo, Switched<P>>,
        "Linux' queued spinlock: 4 bytes, one pending waiter, an MCS queue",
        qspinlock::SWITCHES, |lock| unless_stolen(lock, Fairness::Fifo), no_settings;
    "cna" Linux qspinlock::QSpinLock<P, cna::Cna<Switched<P>>, Switched<P>>,
        "CNA in its final form: the NUMA-aware qspinlock",
        CNA_SWITCHES, |lock| unless_stolen(lock, Fairness::Threshold(Setting::CnaThresholdNs)), cna_settings;
    "cna-v13" Linux qspinlock::QSpinLock<P, cna_v13::CnaV13<Switched<P>>, Switched<P>>,
        "CNA, the NUMA-aware qspinlock of the published tables",
        CNA_SWITCHES, |lock| unless_stolen(lock, Fairness::Threshold(Setting::CnaV13ThresholdNs)), cna_v13_settings;
    "linux-counter-mutex" Linux [timed] CounterMutex<P, counter_mutex::Crowd>,
        "Linux' mutex until 4.8, of 3.7.10 with both pre-reads: waiters spin, then sleep",
        counter_mutex::SWITCHES, none, spin_budget;
    "linux-counter-mutex-queue" Linux [timed] CounterMutex<P, counter_mutex::InTurns<P>>,
        "linux-counter-mutex whose spinners queue for each turn: 3.10",
        counter_mutex::SWITCHES, none, spin_budget;
    "linux-counter-mutex-queue-held" Linux [timed] CounterMutex<P, counter_mutex::OneSpins<P>>,
        "linux-counter-mutex whose spinners queue once", counter_mutex::SWITCHES, none, spin_budget;
    "linux-counter-mutex-no-spin" Linux [timed] CounterMutex<P, counter_mutex::Nobody>,
        "linux-counter-mutex whose waiters sleep at once", counter_mutex::SWITCHES, none, no_settings;
    "rwsem-xadd" Linux [rw] rwsem_xadd::RwsemXadd<P, Switched<P>>,
        "Linux' reader-writer semaphore of 2013, with all of the series of October 2013",
        rwsem_xadd::SWITCHES, none, |lock| spin_budget_unless(lock, "writer-spin", "never");
    "linux-mutex" Linux [timed] mutex::LinuxMutex<P, Switched<P>>,
        "Linux' mutex since 4.9: one waiter at a time spins, the others sleep; with hand-over",
        mutex::SWITCHES, none, |lock| spin_budget_unless(lock, "spinning", "never");
    "rwsem" Linux [rw timed] rwsem::Rwsem<P, Switched<P>>,
        "Linux' reader-writer semaphore since 5.11: spinning writers, and a hand-over after 4 ms",
        rwsem::SWITCHES, none, |lock| spin_budget_unless(lock, "writer-spin", "off");
    "freebsd-mtx" FreeBsd mtx::Mtx<P, Switched<P>>,
        "FreeBSD's mutex: waiters spin with back-off while the owner runs, and all are woken",
        MTX_SWITCHES, none, mtx_settings;
    "freebsd-spin-mtx" FreeBsd spin_mtx::SpinMtx<P, Switched<P>>,
        "FreeBSD's spin mutex: waiters back off outside of the section",
        SPIN_MTX_SWITCHES, none, spin_mtx_settings;
    "freebsd-thread-lock" FreeBsd thread_lock::ThreadLock<P, Switched<P>>,
        "freebsd-spin-mtx behind a pointer that may change: FreeBSD's thread_lock",
        SPIN_MTX_SWITCHES, none, spin_mtx_settings;
    "freebsd-rw" FreeBsd [rw] rw::Rw<P, Switched<P>>,
        "FreeBSD's reader-writer lock: waiters spin for running holders, writers go first",
        RW_SWITCHES, none, rw_settings;
    "freebsd-sx" FreeBsd [rw timed] sx::Sx<P, Switched<P>>,
        "FreeBSD's shared-exclusive lock: freebsd-rw for long sections, whose waiters may give up",
        SX_SWITCHES, none, rw_settings;
    "freebsd-lockmgr" FreeBsd [rw timed] lockmgr::LockMgr<P, Switched<P>>,
        "FreeBSD's lock of files and buffers: freebsd-sx with fewer spinners, plus no-wait, drain and disown",
        LOCKMGR_SWITCHES, none, lockmgr_settings;
    "near-mutex" Near [timed] near::NearMutex<P>,
        "this project's mutex: released by a plain store; the first waiter spins and gets its turn, the others sleep",
        &[], none, spin_budget;
    "near-condvar" Near [timed] monitor::Monitor<P, Switched<P>>,
        "near-mutex and its condition variable as a lock: an unlock notifies one waiter",
        monitor::SWITCHES, none, spin_budget;
    "near-rwlock" Near [rw timed] near_rwlock::NearRwLock<P>,
        "this project's reader-writer lock: its readers write to lines of their own; no reader overtakes a writer",
        &[], none, |_| &[Setting::SpinBudgetNs, Setting::NearRwFencedReads, Setting::NearRwBiasedReads];
    "lock-busted" Control controls::Busted<P>,
        "excludes no thread", &[], none, no_settings;
    "lock-lost-wakeup" Control controls::LostWakeup<P>,
        "deadlocks: its unlock wakes no thread", &[], none, no_settings;
    "lock-after-you" Control controls::AfterYou<P>,
        "livelocks: two waiters give way to each other for ever", &[], none, no_settings;
    "lock-lifo" Control controls::Lifo<P>,
        "starves: last come, first served", &[], fifo, no_settings;
    "lock-busted-rw" Control [rw] controls::BustedRw<P>,
        "lets readers in while a writer holds it", &[], none, no_settings;
    "lock-none" Control [rw] controls::NoLock<P>,
        "no lock at all: excludes no thread and costs nothing, the baseline of sections that only read", &[], none, no_settings;
    "lock-lost-cancel" Control [timed] controls::LostCancel<P>,
        "deadlocks: a woken waiter that gives up does not wake the next one", &[], none, no_settings;
    "lock-lost-notification" Control [timed] monitor::Monitor<P, crate::tuning::Standard, controls::LostNotification<P>>,
        "deadlocks: a wait for a condition that gives up keeps its notification", &[], none, no_settings;
}
