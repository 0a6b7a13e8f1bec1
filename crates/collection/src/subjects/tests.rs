use super::*;
use crate::classic::{mcs, parking_lot_mutex, ttas};
use crate::freebsd::tuning as freebsd;
use crate::linux::{cna, counter_mutex, mutex, qspinlock, rwsem, rwsem_xadd};
use crate::testing::{OneThread, switch};
use crate::tuning::{Standard, Switched, Values};
use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// Returns which of its functions was called, and for which type.
struct Seen;

fn seen<L>(how: &str) -> String {
    format!("{how} {}", core::any::type_name::<L>())
}

impl LockVisitor<OneThread> for Seen {
    type Output = String;
    fn visit<L: RawTryLock>(self) -> String {
        seen::<L>("plain")
    }
    fn visit_timed<L: RawTimedLock<Platform = OneThread>>(self) -> String {
        seen::<L>("timed")
    }
    fn visit_rw<L: RawRwLock>(self) -> String {
        seen::<L>("rw")
    }
    fn visit_timed_rw<L: RawTimedRwLock<Platform = OneThread>>(self) -> String {
        seen::<L>("timed rw")
    }
}

/// Locks and unlocks.
struct Used;

impl LockVisitor<OneThread> for Used {
    type Output = ();
    fn visit<L: RawTryLock>(self) {
        let (lock, node) = (L::default(), L::Node::default());
        // SAFETY: one thread, and unlock follows lock.
        unsafe {
            lock.lock(&node);
            lock.unlock(&node);
        }
    }
}

#[test]
fn names_and_types_are_of_one_lock_each() {
    let names: BTreeSet<_> = SUBJECTS.iter().map(|lock| lock.name).collect();
    assert_eq!(names.len(), SUBJECTS.len());
    let types: BTreeSet<_> = ALGORITHMS.iter().map(|algorithm| Subject::of(algorithm).visit(Seen)).collect();
    assert_eq!(types.len(), ALGORITHMS.len());
    assert_eq!(Subject::named("qspinlock").map(Subject::family), Some(Family::Linux));
    assert!(Subject::named("no such lock").is_none());
}

#[test]
fn a_lock_is_visited_as_what_it_is() {
    for lock in SUBJECTS {
        let how = match (lock.is_rw(), lock.is_timed()) {
            (false, false) => "plain",
            (false, true) => "timed",
            (true, false) => "rw",
            (true, true) => "timed rw",
        };
        assert_eq!(lock.visit(Seen).split(" nearlock").next(), Some(how), "{}", lock.name);
    }
    let kind = |name| Subject::named(name).map(|lock| (lock.is_rw(), lock.is_timed()));
    assert_eq!(kind("lock-busted-rw"), Some((true, false)));
    assert_eq!(kind("lock-lost-cancel"), Some((false, true)));
}

#[test]
fn each_lock_works_as_it_is_switched() {
    for lock in SUBJECTS {
        switch(lock.positions);
        lock.visit(Used);
    }
    switch(&[]);
}

#[test]
fn presets_follow_their_algorithms_and_differ_from_them() {
    let mut algorithm = "";
    for lock in SUBJECTS {
        if lock.name == lock.algorithm.name {
            assert!(lock.positions.is_empty());
            algorithm = lock.name;
        }
        assert_eq!(lock.algorithm.name, algorithm, "{}", lock.name);
        for position in lock.positions {
            let is_own = lock.algorithm.switches.iter().any(|own| own.index == position.switch.index);
            assert!(
                is_own && position.value != position.switch.default,
                "{}: {}",
                lock.name,
                position.switch.key
            );
        }
    }
    // A spin mutex has none of the switches that have changed since `fcmpset`.
    let differ = SUBJECTS.iter().filter(|lock| lock.name != "freebsd-spin-mtx-fcmpset");
    let positions: BTreeSet<_> = differ.clone().map(|lock| (lock.algorithm.name, lock.switches())).collect();
    assert_eq!(positions.len(), differ.count(), "two locks are the same");
}

#[test]
fn each_switch_has_a_place_of_its_own_and_its_default_is_one_of_its_values() {
    let mut places = BTreeSet::new();
    let lists = ALGORITHMS.iter().map(|algorithm| algorithm.switches);
    for switch in lists.clone().flatten() {
        places.insert((switch.index, switch.key));
        assert!(switch.index < SWITCHES_MAX, "{}", switch.key);
        let is_value = match switch.values {
            Values::Words(words) => switch.default < words.len() as u64,
            Values::Number { min, max } => (min..=max).contains(&switch.default),
            Values::OffOrNumber { max } => switch.default == crate::tuning::OFF || switch.default <= max,
        };
        assert!(is_value, "{}", switch.key);
    }
    let indices: BTreeSet<_> = places.iter().map(|(index, _)| index).collect();
    assert_eq!(indices.len(), places.len(), "two switches have one place");
    for switches in lists {
        let keys: BTreeSet<_> = switches.iter().map(|switch| switch.key).collect();
        assert_eq!(keys.len(), switches.len(), "an algorithm has two switches of one name");
    }
}

/// The values that a tuning type returns for some switches of a trait.
macro_rules! values {
    ($type:ty, $trait:path, { $($switch:ident),+ }) => {
        [$(format!("{:?}", <$type as $trait>::$switch())),+]
    };
}

/// Asserts that presets have the values of the types named after `is`.
macro_rules! same {
    ($trait:path, $switches:tt: $($name:literal is $type:ty),+ $(,)?) => {
        $({
            switch(Subject::named($name).expect("is on the list").positions);
            let of_preset = values!(Switched<OneThread>, $trait, $switches);
            assert_eq!(values!($type, $trait, $switches), of_preset, "{}", $name);
            switch(&[]);
        })+
    };
}

#[test]
fn presets_are_what_the_types_of_their_names_are() {
    same!(ttas::TtasTuning, { pre_read }: "ttas" is Standard, "ttas-no-preread" is ttas::NoPreRead);
    same!(mcs::McsTuning, { grants_itself }: "mcs" is Standard, "mcs-self-granted" is mcs::SelfGranted);
    same!(parking_lot_mutex::ParkingLotTuning, { unlock, bucket, rounds, first_pauses }:
        "parking-lot-0.13-protocol" is Standard,
        "parking-lot-0.12-protocol" is parking_lot_mutex::EventuallyFair);
    same!(qspinlock::QSpinTuning, {
        access, pending_turns_max, stealing, steal_turns_max, park_turns, wait_early, head_turns, park_head, head_stretches_max
    }:
        "qspinlock" is Standard,
        "qspinlock-whole-word" is qspinlock::WholeWord,
        "qspinlock-steal-once" is qspinlock::StealOnce,
        "qspinlock-steal" is qspinlock::StealHybrid,
        "qspinlock-park" is qspinlock::ParkOnly,
        "qspinlock-preemptible" is qspinlock::Preemptible,
        "cna-preemptible" is qspinlock::Preemptible,
        "qspinlock-preemptible-late" is qspinlock::WaitLate,
        "qspinlock-preemptible-head" is qspinlock::WakefulHead);
    same!(cna::CnaTuning, { shuffle_reduction }:
        "cna" is Standard, "cna-v13-no-sro" is cna::NoShuffleReduction);
    same!(counter_mutex::CounterMutexTuning, { fast_path, pre_read, spinner_pre_read, unlocks_first, wakes_last }:
        "linux-counter-mutex" is Standard,
        "linux-counter-mutex-no-preread" is counter_mutex::NoPreRead,
        "linux-counter-mutex-queue-no-preread" is counter_mutex::NoPreRead,
        "linux-counter-mutex-spinner-preread" is counter_mutex::SpinnerPreRead,
        "linux-counter-mutex-waiter-preread" is counter_mutex::WaiterPreRead,
        "linux-counter-mutex-marked-preread" is counter_mutex::MarkedPreRead,
        "linux-counter-mutex-exchange" is counter_mutex::Exchange,
        "linux-counter-mutex-unlock-first" is counter_mutex::UnlockFirst);
    same!(rwsem_xadd::XaddTuning, {
        try_pre_read, wake_pre_read, writer_spin, spins_without_owner, single_waker, self_granted_spinners
    }:
        "rwsem-xadd" is Standard,
        "rwsem-xadd-base" is rwsem_xadd::Base,
        "rwsem-xadd-single-waker" is rwsem_xadd::SingleWaker);
    same!(mutex::MutexTuning, { spinning, spinner_queue, waiter_spins, hand_over, yields_before_queue }:
        "linux-mutex" is Standard,
        "linux-mutex-no-handoff" is mutex::NoHandOver,
        "linux-mutex-no-waiter-spin" is mutex::SleepyWaiter,
        "linux-mutex-no-osq" is mutex::NoSpinnerQueue,
        "linux-mutex-heedless" is mutex::HeedlessSpinning,
        "linux-mutex-no-spin" is mutex::NoSpinning);
    same!(rwsem::RwsemTuning, {
        writer_spin, reader_owned_spin, reader_spin, reader_steal, handoff_ns, handoff_spin, wake_readers_max, readers_past_writers
    }:
        "rwsem" is Standard,
        "rwsem-no-spin" is rwsem::NoSpin,
        "rwsem-no-handoff" is rwsem::NoHandoff,
        "rwsem-leading-readers" is rwsem::LeadingReaders,
        "rwsem-no-reader-steal" is rwsem::NoReaderSteal,
        "rwsem-reader-spin" is rwsem::SpinningReaders,
        "rwsem-no-spin-for-readers" is rwsem::NoSpinForReaders);
}

#[test]
fn presets_of_freebsd_are_what_the_types_of_their_years_are() {
    macro_rules! years {
        ($switches:tt, $current:literal, $($name:literal is $type:ident),+) => {
            same!(freebsd::Tuning, $switches: $current is Standard, $($name is freebsd::$type),+);
        };
    }
    years!({ lock_pre_read, unlock_pre_read, hard_pre_read, cas_value, adaptive, backoff, follow_owner, waiter_cas_fail,
        release_order }, "freebsd-mtx",
        "freebsd-mtx-no-preread" is Era2014,
        "freebsd-mtx-hard-preread" is PreReadHardPath,
        "freebsd-mtx-lock-preread" is PreReadLock,
        "freebsd-mtx-fast-preread" is PreReadFastPath,
        "freebsd-mtx-preread" is PreReadEverywhere,
        "freebsd-mtx-preloaded" is Preloaded,
        "freebsd-mtx-linear-backoff" is LinearBackoff2016,
        "freebsd-mtx-fcmpset" is Fcmpset2017,
        "freebsd-mtx-no-spin" is NotAdaptive);
    years!({ lock_pre_read, hard_pre_read, cas_value, backoff }, "freebsd-spin-mtx",
        "freebsd-spin-mtx-no-preread" is Era2014,
        "freebsd-spin-mtx-hard-preread" is PreReadHardPath,
        "freebsd-spin-mtx-fast-preread" is PreReadFastPath,
        "freebsd-spin-mtx-preread" is PreReadEverywhere,
        "freebsd-spin-mtx-fcmpset" is Fcmpset2017);
    years!({ lock_pre_read, unlock_pre_read, hard_pre_read, cas_value, adaptive, backoff, follow_owner, waiter_cas_fail,
        release_order, reader_wait, spinner_bit, sx_precedence, sx_stale_bits }, "freebsd-sx",
        "freebsd-sx-no-preread" is Era2014,
        "freebsd-sx-hard-preread" is PreReadHardPath,
        "freebsd-sx-lock-preread" is PreReadLock,
        "freebsd-sx-fast-preread" is PreReadFastPath,
        "freebsd-sx-preread" is PreReadEverywhere,
        "freebsd-sx-fcmpset" is Fcmpset2017);
    years!({ lock_pre_read, unlock_pre_read, hard_pre_read, cas_value, backoff, waiter_cas_fail, release_order, reader_wait,
        spinner_bit }, "freebsd-rw",
        "freebsd-rw-no-preread" is Era2014,
        "freebsd-rw-fcmpset" is Fcmpset2017);
    years!({ hard_pre_read, cas_value, adaptive, backoff, waiter_cas_fail, lockmgr_adaptive, lockmgr_sleep_failers }, "freebsd-lockmgr",
        "freebsd-lockmgr-no-preread" is Era2014,
        "freebsd-lockmgr-preread" is PreReadEverywhere,
        "freebsd-lockmgr-fcmpset" is Fcmpset2017,
        "freebsd-lockmgr-no-adaptive" is NotAdaptive);
}

#[test]
fn what_a_lock_promises_and_obeys_follows_from_its_switches() {
    let of = |name: &str| Subject::named(name).expect("is on the list");
    assert_eq!(of("qspinlock").fairness(), Fairness::Fifo);
    assert_eq!(of("qspinlock-park").fairness(), Fairness::Fifo);
    assert_eq!(of("qspinlock-steal-once").fairness(), Fairness::Unbounded);
    assert_eq!(of("cna").fairness(), Fairness::Threshold(Setting::CnaThresholdNs));
    assert_eq!(of("cna-preemptible").fairness(), Fairness::Unbounded);
    assert_eq!(of("mcs").settings(), []);
    assert_eq!(of("cna").settings().len(), 3);
    assert_eq!(of("cna-v13").settings().len(), 4);
    assert_eq!(of("rwsem").settings(), [Setting::SpinBudgetNs]);
    assert_eq!(of("linux-mutex").settings(), [Setting::SpinBudgetNs]);
    assert_eq!(of("linux-mutex-no-spin").settings(), []);
    assert_eq!(of("rwsem-xadd-base").settings(), []);
    assert_eq!(of("freebsd-mtx-preread").settings(), [Setting::SpinBudgetNs]);
    assert_eq!(of("freebsd-mtx-no-spin").settings(), []);
    assert_eq!(of("freebsd-mtx-fcmpset").settings().len(), 3);
    assert_eq!(of("freebsd-lockmgr-fcmpset").settings(), []);
    for name in ["freebsd-rw", "freebsd-sx"] {
        let adaptive = of(name).algorithm.switch("adaptive").expect("has this switch");
        let off = adaptive.values.parse("off").expect("has this position");
        let positions = std::vec![Position { switch: adaptive, value: off }].leak();
        assert_eq!(Subject { positions, ..*of(name) }.settings(), [], "{name}");
    }
    for lock in SUBJECTS {
        let settings = lock.settings();
        for (place, setting) in settings.iter().enumerate() {
            assert!(!settings[..place].contains(setting), "{} obeys {setting:?} twice", lock.name);
        }
    }
}

#[test]
fn a_lock_has_its_own_settings_and_those_of_all_for_the_rest() {
    let lock = Subject { set: &[(Setting::CnaThresholdNs, 7)], ..*Subject::named("cna").unwrap() };
    let mut expected = Setting::DEFAULTS;
    expected[Setting::SpinBudgetNs as usize] = 5;
    let of_all = expected;
    expected[Setting::CnaThresholdNs as usize] = 7;
    assert_eq!(lock.settings_over(of_all), expected);
}

#[test]
fn promises_have_names_of_their_own() {
    let mut names: Vec<_> = SUBJECTS.iter().map(|lock| lock.fairness().name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, ["first come, first served", "none", "pass limit", "threshold"]);
}

#[test]
fn values_are_read_as_they_are_written() {
    let words = Values::Words(&["off", "on"]);
    assert_eq!([words.parse("off"), words.parse("on"), words.parse("o")], [Some(0), Some(1), None]);
    let number = Values::Number { min: 1, max: 20 };
    assert_eq!(
        ["0", "1", "20", "21", "", "-1", "x"].map(|text| number.parse(text)),
        [None, Some(1), Some(20), None, None, None, None]
    );
    let optional = Values::OffOrNumber { max: 20 };
    assert_eq!(
        ["off", "0", "21"].map(|text| optional.parse(text)),
        [Some(crate::tuning::OFF), Some(0), None]
    );
    for (values, texts) in [(words, ["off", "on"]), (number, ["1", "20"]), (optional, ["off", "20"])] {
        for text in texts {
            assert_eq!(values.show(values.parse(text).unwrap()).to_string(), text);
        }
    }
    assert_eq!(words.show(2).to_string(), "?");
    assert_eq!(words.to_string(), "off, on");
    assert_eq!(number.to_string(), "1 to 20");
    assert_eq!(optional.to_string(), "off, or 0 to 20");
}
