use std::boxed::Box;

use super::*;
use crate::near::rwlock::mode::{COUNTED_MODE, FENCED, MODE};
use crate::platform::Atomic;
use crate::raw::{RawLock, RawRwLock};
use crate::schedule::{Schedule, ThreadId};
use crate::testing::{NOW_NS, OneThread, PAUSES, THREAD_ID, TRANSFER_NS, acting, meanwhile, set};
use core::sync::atomic::Ordering::Relaxed;

type Lock = NearRwLock<OneThread>;

const READER: ThreadId = ThreadId::new(2).unwrap();
const USUAL: u32 = USUAL_SETTING as u32;

fn is_fenced(lock: &Lock) -> bool {
    lock.mode.load(Relaxed) & MODE == FENCED
}

/// This thread does so many reads.
fn reads(lock: &Lock, number: u32) {
    for _ in 0..number {
        // SAFETY: released at once; also below.
        unsafe {
            lock.lock_shared(&());
            lock.unlock_shared(&());
        }
    }
}

fn writes(lock: &Lock, number: u32) {
    for _ in 0..number {
        // SAFETY: as above.
        unsafe {
            lock.lock(&());
            lock.unlock(&());
        }
    }
}

/// A lock that never becomes biased.
fn lock() -> Lock {
    set(Setting::NearRwBiasedReads, u64::from(u32::MAX));
    Lock::new()
}

#[test]
fn a_lock_with_more_reads_than_the_price_is_fenced_although_some_writes_follow_each_other() {
    let lock = lock();
    reads(&lock, 20 * USUAL);
    assert!(is_fenced(&lock));
    for round in 0..100 {
        writes(&lock, 3);
        assert!(is_fenced(&lock), "round {round}");
        reads(&lock, 4 * USUAL);
    }
}

#[test]
fn a_lock_with_fewer_reads_than_the_price_is_counted_although_some_follow_each_other() {
    let lock = lock();
    for round in 0..100 {
        reads(&lock, USUAL + USUAL / 2);
        assert!(!is_fenced(&lock), "round {round}");
        writes(&lock, 3);
    }
    reads(&lock, 100 * USUAL);
    assert!(is_fenced(&lock));
    for _ in 0..100 {
        writes(&lock, 1);
        reads(&lock, USUAL / 2);
    }
    assert!(!is_fenced(&lock), "the spare reads are spent");
}

#[test]
fn the_setting_that_stands_for_never_and_that_for_always_do() {
    for (setting, fenced) in
        [(u64::MAX, false), (1 << 16, false), (NEVER, false), (NEVER - 1, true), (0, true)]
    {
        set(Setting::NearRwFencedReads, setting);
        let lock = lock();
        if setting >= NEVER {
            lock.set_price(4, 0);
        }
        reads(&lock, if setting == 0 { 2 } else { 200_000 });
        assert_eq!(is_fenced(&lock), fenced, "{setting}");
        if setting == 0 || !fenced {
            writes(&lock, 10);
            assert_eq!(is_fenced(&lock), fenced, "{setting}, after writes");
        }
    }
}

/// A reader has a lock, and others read it one after the other while this thread watches for a
/// microsecond: so many. Returns the pace and the price.
fn watched(transfer_ns: u32, number: u32) -> (Pace, u32, Lock) {
    let lock = lock();
    reads(&lock, 1);
    acting(READER, || reads(&lock, 1));
    let (pace, price) = watches(&lock, transfer_ns, number);
    (pace, price, lock)
}

fn watches(lock: &Lock, transfer_ns: u32, number: u32) -> (Pace, u32) {
    TRANSFER_NS.set(transfer_ns);
    // SAFETY: released below.
    acting(READER, || unsafe { lock.lock_shared(&()) });
    assert!(lock.mutex.is_open());
    let shared: &'static Lock = {
        // SAFETY: what others do is over when this returns.
        unsafe { &*core::ptr::from_ref(lock) }
    };
    meanwhile(move || {
        NOW_NS.set(NOW_NS.get() + u64::from(WATCH_NS));
        acting(READER, || {
            for _ in 0..number {
                // SAFETY: the reader has the lock.
                unsafe {
                    shared.unlock_shared(&());
                    shared.lock_shared(&());
                }
            }
        });
    });
    let pace = lock.watch();
    // SAFETY: locked above.
    acting(READER, || unsafe { lock.unlock_shared(&()) });
    (pace, lock.spent.load(Relaxed) >> PRICE_SHIFT & PRICE_MAX)
}

#[test]
fn the_price_grows_with_the_time_that_a_line_takes_and_falls_with_the_length_of_sections() {
    // In a microsecond: 87 sections of 10 ns, 8 of 105 ns, none that has ended.
    let cases = [
        (22, 95, Pace::Fast, 60..70),
        (130, 87, Pace::Fast, 255..256),
        (22, 9, Pace::Medium, 5..8),
        (130, 8, Pace::Medium, 32..40),
        (22, 1, Pace::Slow, 4..5),
        (22, 0, Pace::Slow, 59..60),
        (130, 0, Pace::Slow, 59..60),
        // Not known: as between near cores.
        (0, 50, Pace::Fast, 40..60),
    ];
    for (transfer_ns, number, pace, prices) in cases {
        let (seen, price, _) = watched(transfer_ns, number);
        assert_eq!(seen, pace, "{transfer_ns} ns, {number} sections");
        assert!(prices.contains(&price), "{transfer_ns} ns, {number} sections: {price}");
    }
}

#[test]
fn one_reader_without_a_processor_does_not_set_the_least_price() {
    let (_, price, lock) = watched(22, 95);
    writes(&lock, 3);
    let (_, next) = watches(&lock, 22, 0);
    assert!(next < price && next > price * 7 / 8, "{price}, {next}");
    writes(&lock, 1);
    let (_, next) = watches(&lock, 22, 70);
    let (_, last) = watches(&lock, 130, 60);
    assert!(last > 2 * price, "it grows at once: {last}");
    assert!(next < price, "and falls at once if reads have ended: {next}");
}

#[test]
fn a_thread_that_has_lost_its_processor_sets_no_price() {
    let lock = lock();
    reads(&lock, 1);
    // SAFETY: released below.
    acting(READER, || unsafe { lock.lock_shared(&()) });
    meanwhile(|| NOW_NS.set(NOW_NS.get() + 4_000_000));
    assert_eq!(lock.watch(), Pace::Medium);
    assert_eq!(lock.are_slow(), None);
    // SAFETY: locked above.
    acting(READER, || unsafe { lock.unlock_shared(&()) });
}

#[test]
fn a_price_ends_while_the_lock_stays_fenced() {
    let (_, price, lock) = watched(22, 9);
    assert!(price < USUAL);
    reads(&lock, 1000);
    assert!(is_fenced(&lock));
    for _ in 0..1000 {
        writes(&lock, 1);
        reads(&lock, 20);
    }
    assert!(is_fenced(&lock), "20 reads pay for a write");
    for _ in 0..20_000 {
        writes(&lock, 1);
        reads(&lock, 20);
    }
    assert_eq!((lock.are_slow(), is_fenced(&lock)), (None, false));
}

#[test]
fn a_setting_takes_effect_although_a_price_is_known() {
    let (_, price, lock) = watched(22, 9);
    assert!(price < 10);
    set(Setting::NearRwFencedReads, u64::MAX);
    reads(&lock, 1000);
    assert!(!is_fenced(&lock));
    set(Setting::NearRwFencedReads, 64);
    reads(&lock, 1000);
    assert!(is_fenced(&lock));
}

#[test]
fn writes_of_a_counted_lock_do_not_change_the_price() {
    let (_, price, lock) = watched(22, 9);
    for _ in 0..10_000 {
        // A counted reader, for which a writer waits.
        lock.count_reader();
        let shared: &'static Lock = {
            // SAFETY: what others do is over when this returns.
            unsafe { &*core::ptr::from_ref(&lock) }
        };
        meanwhile(move || Lock::discount_reader(shared));
        writes(&lock, 1);
    }
    assert!(!is_fenced(&lock));
    assert_eq!(lock.spent.load(Relaxed) >> PRICE_SHIFT & PRICE_MAX, price);
}

#[test]
fn a_reader_does_not_watch_a_writer() {
    let lock = lock();
    reads(&lock, 1);
    // SAFETY: released below.
    acting(READER, || unsafe { lock.lock(&()) });
    PAUSES.take();
    // SAFETY: it does not get the lock.
    assert!(!unsafe { lock.try_lock_shared(&()) });
    let shared: &'static Lock = {
        // SAFETY: what others do is over when this returns.
        unsafe { &*core::ptr::from_ref(&lock) }
    };
    // SAFETY: locked above.
    meanwhile(move || acting(READER, || unsafe { shared.unlock(&()) }));
    reads(&lock, 1);
    let watch = OneThread::pauses_in(WATCH_NS);
    assert!(PAUSES.take().iter().all(|pauses| *pauses < watch));
}

#[test]
fn a_writer_that_has_the_lock_is_not_a_slow_reader() {
    let lock = Box::new(lock());
    reads(&lock, 1);
    // SAFETY: released below.
    acting(READER, || unsafe { lock.lock(&()) });
    assert_eq!((lock.watch(), lock.are_slow()), (Pace::Medium, None));
    // SAFETY: locked above.
    acting(READER, || unsafe { lock.unlock(&()) });
    assert_eq!(lock.mode.load(Relaxed) & MODE, COUNTED_MODE);
    assert_eq!(THREAD_ID.get().get(), 1);
}

/// No reader finds another one if only one reads at a time.
#[test]
fn a_writer_that_finds_a_reader_sets_an_unknown_price() {
    let lock = lock();
    reads(&lock, 1);
    acting(READER, || reads(&lock, 1));
    TRANSFER_NS.set(22);
    // SAFETY: released below.
    acting(READER, || unsafe { lock.lock_shared(&()) });
    let shared: &'static Lock = {
        // SAFETY: what others do is over when this function returns.
        unsafe { &*core::ptr::from_ref(&lock) }
    };
    meanwhile(move || {
        NOW_NS.set(NOW_NS.get() + u64::from(WATCH_NS));
        // SAFETY: the reader has the lock.
        acting(READER, || unsafe { shared.unlock_shared(&()) });
        acting(READER, || reads(shared, 8));
    });
    writes(&lock, 1);
    let price = lock.spent.load(Relaxed) >> PRICE_SHIFT & PRICE_MAX;
    assert!((5..8).contains(&price), "{price}");
}

#[test]
fn a_reader_gives_way_to_a_writer_for_which_enough_reads_pay() {
    let lock = lock();
    reads(&lock, 1);
    acting(READER, || reads(&lock, 1));
    lock.set_price(8, 0);
    let reads_alone = || {
        // SAFETY: released below.
        acting(READER, || unsafe { lock.lock_shared(&()) });
        let is_alone = lock.mutex.is_open();
        // SAFETY: locked above.
        acting(READER, || unsafe { lock.unlock_shared(&()) });
        is_alone
    };
    assert!(lock.begins_to_wait());
    assert!(reads_alone(), "few reads");
    reads(&lock, 8);
    assert!(!reads_alone());
    lock.ends_to_wait();
    assert!(reads_alone(), "no writer waits");
}
