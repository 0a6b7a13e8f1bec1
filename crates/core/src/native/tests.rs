use super::*;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::Barrier;

#[test]
fn a_wait_ends_when_another_thread_writes() {
    let (number, pointer) = (AtomicU64::new(0), AtomicPtr::<u8>::new(ptr::null_mut()));
    // Ordering: Release and Acquire, so that what one thread wrote before is visible to the other.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            Native::<Spin>::wait_until(&number, Acquire, |v| v == 1);
            pointer.store(ptr::without_provenance_mut(8), Release);
        });
        number.store(1, Release);
        let seen: *mut u8 = Native::<Spin>::wait_until(&pointer, Acquire, |v: *mut u8| !v.is_null());
        assert_eq!(seen.addr(), 8);
    });
}

/// Dekker's pattern. One run shows little. Miri lets loads return old values on purpose, with
/// many seeds.
#[test]
fn of_two_sides_of_a_fence_one_sees_the_other() {
    for _ in 0..50 {
        let [x, y, seen] = [const { AtomicU32::new(0) }; 3];
        let come = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                come.wait();
                x.store(1, Relaxed);
                Native::<Spin>::light();
                seen.fetch_add(y.load(Relaxed), Relaxed);
            });
            come.wait();
            y.store(1, Relaxed);
            Native::<Spin>::heavy();
            seen.fetch_add(x.load(Relaxed), Relaxed);
        });
        assert!(seen.into_inner() > 0);
    }
}

#[test]
fn narrow_accesses_change_their_part_of_the_word_only() {
    let word = AtomicU32::new(0xa1b2_c3d4);
    // Ordering: as locks pass it. One thread alone sees no difference.
    word.store_low_byte(0x11, Release);
    assert_eq!(word.load(Relaxed), 0xa1b2_c311);
    word.store_low_byte(0, Release);
    assert_eq!(word.load(Relaxed), 0xa1b2_c300);
    word.store_low_half(0x2233, Relaxed);
    assert_eq!(word.load(Relaxed), 0xa1b2_2233);
    // Ordering: as above.
    assert_eq!(word.swap_high_half(0x4455, Acquire), 0xa1b2);
    assert_eq!(word.load(Relaxed), 0x4455_2233);
    assert_eq!(word.swap_low_byte(0x66, Acquire), 0x33);
    assert_eq!(word.load(Relaxed), 0x4455_2266);
}

#[test]
fn a_bounded_wait_gives_up() {
    let word = AtomicU32::new(5);
    assert_eq!(Native::<Spin>::wait_until_bounded(&word, Relaxed, 3, |v| v == 6), 5);
    assert_eq!(Native::<Spin>::wait_until_bounded(&word, Relaxed, 0, |v| v == 5), 5);
}

#[test]
fn without_an_operating_system_a_sleeper_wakes_for_no_reason() {
    let word = AtomicU32::new(5);
    Native::<Spin>::park(&word, 5);
    Native::<Spin>::unpark(&word, 1);
    assert_eq!(word.load(Relaxed), 5);
}
