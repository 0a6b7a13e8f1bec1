use super::*;
use crate::testing::{
    NOW_NS, OTHER, OneThread, PROCESSORS_OF_PROCESS, SHORTAGES, SHORTAGES_SEEN, SPINS_MAX, THIRD, THREAD_ID,
};

/// The number of releases until the next visit, including the release that visits.
fn releases_to_look(hints: &Hints<OneThread>) -> usize {
    (1..).find(|_| hints.is_time_to_look()).unwrap()
}

#[test]
fn looks_come_after_about_the_same_time_however_often_there_are_releases() {
    for release_ns in [4, 100, 1000, 20_000] {
        let hints = Hints::<OneThread>::default();
        NOW_NS.set(1_000_000);
        let mut between_ns = 0;
        for _ in 0..40 {
            hints.looked(Some(0), Hints::<OneThread>::now());
            between_ns = releases_to_look(&hints) as u64 * release_ns;
            NOW_NS.set(NOW_NS.get() + between_ns);
        }
        let unit_ns = u64::from(LOOK_UNITS) << UNIT_SHIFT;
        let most_ns = (unit_ns * 2 + 1024).max(2 * release_ns);
        assert!(
            between_ns <= most_ns + release_ns,
            "{between_ns} ns between looks, releases each {release_ns} ns"
        );
        assert!(between_ns >= unit_ns / 4, "{between_ns} ns between looks, releases each {release_ns} ns");
    }
}

#[test]
fn it_is_monopolised_until_it_has_stayed_free_several_times() {
    let hints = Hints::<OneThread>::default();
    assert_eq!(hints.holders(), Holders::Several);
    hints.note_retaken();
    for _ in 0..DOUBTS {
        assert_eq!(hints.holders(), Holders::One);
        hints.note_shared();
    }
    assert_eq!(hints.holders(), Holders::Several);
    hints.note_shared();
    assert_eq!(hints.holders(), Holders::Several);
}

/// The other threads may all be asleep, or have no processor.
#[test]
fn a_thread_that_looks_again_and_again_need_not_monopolise() {
    let hints = Hints::<OneThread>::default();
    let look_as = |thread| {
        THREAD_ID.set(thread);
        hints.looked(Some(LOOK_UNITS), Hints::<OneThread>::now());
    };
    for _ in 0..100 {
        look_as(OTHER);
        look_as(THIRD);
    }
    assert!(!hints.may_have_one_holder() && !hints.has_one_looker());
    for _ in 0..100 {
        look_as(THIRD);
        assert!(hints.has_one_looker() && hints.may_have_one_holder());
        assert_eq!(hints.holders(), Holders::Several);
    }
    hints.note_retaken();
    look_as(OTHER);
    assert_eq!((hints.has_one_looker(), hints.holders()), (false, Holders::One));
}

/// No thread spins then, so no thread finds that out.
#[test]
fn a_thread_that_looks_again_and_again_monopolises_where_one_thread_runs_at_a_time() {
    let hints = Hints::<OneThread>::default();
    SPINS_MAX.set(0);
    let looks_as = |thread, times: u32| {
        THREAD_ID.set(thread);
        (0..times).for_each(|_| _ = hints.looked(Some(LOOK_UNITS), Hints::<OneThread>::now()));
        hints.holders()
    };
    assert_eq!(looks_as(OTHER, 1), Holders::Several);
    assert_eq!(looks_as(THIRD, 2), Holders::Several);
    assert_eq!(looks_as(OTHER, 2), Holders::Several);
    assert_eq!(looks_as(OTHER, 1), Holders::One);
    hints.note_shared();
    assert_eq!(looks_as(THIRD, 1), Holders::One);
    (0..DOUBTS).for_each(|_| hints.note_shared());
    assert_eq!(hints.holders(), Holders::Several);
    assert_eq!(looks_as(THIRD, 2), Holders::One);
}

/// Visits the chain after this time, in units, as two threads that exchange the mutex.
fn visit_after(hints: &Hints<OneThread>, units: u32, first_units: u32) {
    NOW_NS.set(NOW_NS.get() + (u64::from(units) << UNIT_SHIFT));
    THREAD_ID.set(if THREAD_ID.get() == OTHER { THIRD } else { OTHER });
    hints.looked(Some(first_units), Hints::<OneThread>::now());
}

#[test]
fn releases_are_rare_while_the_first_waits_long_for_each() {
    let hints = Hints::<OneThread>::default();
    let visits_until = |units: u32, first_units: u32, is_rare: bool| {
        (0..1000)
            .take_while(|_| hints.is_spinning_futile() != is_rare)
            .map(|_| visit_after(&hints, units, first_units))
            .count()
    };
    assert!((1..10).contains(&visits_until(200, 150, true)));
    hints.note_retaken();
    assert_eq!(hints.holders(), Holders::Several, "spinning is not for long sections");
    assert!((1..10).contains(&visits_until(40, 40, false)), "shorter sections");
    assert_eq!(hints.holders(), Holders::One);
    assert_eq!(visits_until(1000, 10, true), 1000, "seldom released, since no thread waits");
    assert!((1..10).contains(&visits_until(200, 150, true)));
    assert_eq!(visits_until(1, 150, false), 1, "there are several releases between two visits");
}

#[test]
fn spinning_is_futile_for_long_sections_of_holders_without_a_processor() {
    let hints = Hints::<OneThread>::default();
    let find = |places: &[HolderPlace], times: usize| {
        (0..times).flat_map(|_| places).for_each(|place| hints.note_holder(*place));
    };
    find(&[HolderPlace::Here], 100);
    assert!(!hints.is_spinning_futile(), "sections are short");
    (0..8).for_each(|_| visit_after(&hints, 20, 20));
    assert!(hints.is_spinning_futile());
    find(&[HolderPlace::Unknown], 1000);
    assert!(hints.is_spinning_futile());
    find(&[HolderPlace::Elsewhere], 100);
    assert!(!hints.is_spinning_futile());
    let (rarely, often) = ([HolderPlace::Elsewhere; 6], [HolderPlace::Elsewhere; 4]);
    find(&[&rarely[..], &[HolderPlace::Here]].concat(), 100);
    assert!(!hints.is_spinning_futile());
    find(&[&often[..], &[HolderPlace::Here]].concat(), 100);
    assert!(hints.is_spinning_futile());
    (0..20).for_each(|_| visit_after(&hints, 20, 2));
    assert!(!hints.is_spinning_futile(), "sections are short again");
}

/// A holder is away for 20 ms. Then the waiters get the mutex one after the other, as they wake up.
#[test]
fn releases_stay_rare_if_waiters_pass_the_mutex_on_after_each_long_wait() {
    let hints = Hints::<OneThread>::default();
    let wait = |units: u32, is_parked: bool| {
        NOW_NS.set(NOW_NS.get() + (u64::from(units) << UNIT_SHIFT));
        hints.looked((!is_parked).then_some(units), Hints::<OneThread>::now());
    };
    let away = || {
        hints.resume();
        wait(20_000, false);
        (0..7).for_each(|_| wait(LOOK_UNITS, true));
    };
    (0..4).for_each(|_| away());
    for _ in 0..10 {
        away();
        assert!(hints.is_spinning_futile());
    }
    let until_short = |is_parked| {
        let visits = (0..1000).take_while(|_| hints.is_spinning_futile());
        visits.map(|_| wait(LOOK_UNITS, is_parked)).count()
    };
    let parked = until_short(true);
    assert!((10..100).contains(&parked), "a queue that never empties: {parked} visits");
    (0..4).for_each(|_| away());
    let spun = until_short(false);
    assert!((1..10).contains(&spun), "{spun} visits");
}

#[test]
fn short_waits_end_futile_spinning_however_little_they_are_shorter() {
    for (units, is_parked) in (0..LONG_UNITS).flat_map(|units| [(units, false), (units, true)]) {
        let hints = Hints::<OneThread>::default();
        let wait = |units: u32, is_parked: bool| {
            NOW_NS.set(NOW_NS.get() + (u64::from(units.max(1)) << UNIT_SHIFT));
            hints.looked((!is_parked).then_some(units), Hints::<OneThread>::now());
        };
        (0..20).for_each(|_| hints.note_holder(HolderPlace::Here));
        (0..20).for_each(|_| wait(20, false));
        assert!(hints.is_spinning_futile());
        (0..200).for_each(|_| wait(units, is_parked));
        assert!(!hints.is_spinning_futile(), "{units} units, {is_parked}");
    }
}

#[test]
fn processors_are_short_while_the_holders_of_many_chains_lack_them() {
    let hints = Hints::<OneThread>::default();
    let is_short = || hints.are_processors_short(Hints::<OneThread>::now);
    let next_period = || NOW_NS.set(NOW_NS.get() + (1 << (PERIOD_SHIFT + UNIT_SHIFT)));
    let (many, fewer) = (
        PROCESSORS_OF_PROCESS * SHORTAGES_PER_PROCESSOR,
        PROCESSORS_OF_PROCESS * SHORTAGES_PER_PROCESSOR - 1,
    );
    NOW_NS.set(1 << 40);
    SHORTAGES_SEEN.set(many);
    assert!(!is_short(), "nothing is known");
    (0..8).for_each(|_| visit_after(&hints, 20, 20));
    assert!(!is_short(), "no holder lacks a processor");
    (0..100).for_each(|_| hints.note_holder(HolderPlace::Here));
    assert!(SHORTAGES.with_borrow(|noted| noted.is_empty()));
    for (seen, expected) in [(many, true), (fewer, false), (0, false), (many + 7, true)] {
        next_period();
        SHORTAGES_SEEN.set(seen);
        assert_eq!(is_short(), expected, "{seen}");
        SHORTAGES_SEEN.set(many - seen.min(many));
        assert_eq!(is_short(), expected, "it is noted once in a period");
        assert!(hints.is_spinning_futile());
    }
    let noted = SHORTAGES.take();
    assert!(noted.len() == 4 && noted.is_sorted_by(|before, after| before + 1 == *after), "{noted:?}");
    next_period();
    (0..20).for_each(|_| visit_after(&hints, 200, 200));
    assert!(!is_short(), "releases are rare");
}

#[test]
fn a_first_without_a_stamp_has_waited_since_the_visit_before() {
    let hints = Hints::<OneThread>::default();
    NOW_NS.set(1_000_000);
    let looked = |first_units| hints.looked(first_units, Hints::<OneThread>::now());
    assert_eq!(looked(None), 0, "there was no visit before");
    NOW_NS.set(NOW_NS.get() + 20 * 1024);
    assert_eq!(looked(None), 20);
    NOW_NS.set(NOW_NS.get() + 20 * 1024);
    assert_eq!((looked(Some(7)), looked(Some(7))), (7, 0));
    hints.resume();
    assert_eq!((hints.read().last_ago_ns, looked(Some(7))), (None, 7));
    hints.resume();
    assert_eq!(looked(None), 0);
}

#[test]
fn releases_are_counted_across_a_visit() {
    let hints = Hints::<OneThread>::default();
    NOW_NS.set(1_000_000);
    for visit_after_ns in [0, 8 * 1024] {
        (0..6).for_each(|_| _ = hints.looked(Some(0), Hints::<OneThread>::now()));
        // Five releases are left until the visit.
        while hints.releases() & LEFT > 5 {
            assert!(!hints.is_time_to_look());
        }
        let before = hints.releases();
        assert_eq!(hints.releases_since(before), 0);
        assert_eq!(releases_to_look(&hints), 6);
        assert_eq!(hints.releases_since(before), 5);
        NOW_NS.set(NOW_NS.get() + visit_after_ns);
        hints.looked(Some(0), Hints::<OneThread>::now());
        (0..3).for_each(|_| assert!(!hints.is_time_to_look()));
        assert_eq!(hints.releases_since(before), 6 + 3);
    }
}

#[test]
fn a_single_long_wait_makes_no_release_rare_for_long() {
    let hints = Hints::<OneThread>::default();
    visit_after(&hints, 1 << 20, 1 << 19);
    for _ in 0..4 {
        visit_after(&hints, 20, 20);
    }
    assert!(!hints.is_spinning_futile());
}
