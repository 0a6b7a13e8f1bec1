//! Asymmetric fences: what the models of locks rely on, and that they do not promise more.

#![cfg(target_pointer_width = "64")]

use nearlock_core::platform::AsymFence;
use nearlock_model::evidence::Evidence;
use nearlock_model::loom::Loom;
use nearlock_model::model::Depth;
use nearlock_model::mutate::{Half, failure_of};
use nearlock_model::parts::dekker;

const LIGHT: fn() = <Loom as AsymFence>::light;
const HEAVY: fn() = <Loom as AsymFence>::heavy;

#[test]
fn a_heavy_fence_is_ordered_against_every_other() {
    dekker::<Loom>("heavy and light", HEAVY, &[LIGHT]).check();
    dekker::<Loom>("light and heavy", LIGHT, &[HEAVY]).check();
    dekker::<Loom>("two heavy", HEAVY, &[HEAVY]).check();
    dekker::<Loom>("heavy and two light", HEAVY, &[LIGHT, LIGHT]).check();
}

#[test]
fn each_asymmetric_fence_is_a_place_of_its_own() {
    fn light() {
        Loom::light();
    }
    fn heavy() {
        Loom::heavy();
    }
    let model = dekker::<Loom>("heavy and light, each missing once", heavy, &[light]);
    let evidence = Evidence::gather(&[model], Depth::default(), |_| ());
    assert_eq!(evidence.mutants.len(), 2);
    assert!(evidence.mutants.iter().all(|m| m.site.half == Half::Whole && m.caught().is_some()));
}

fn no_fence() {}

#[test]
fn without_the_heavy_fence_both_may_miss_the_other() {
    let how = failure_of(&dekker::<Loom>("light alone", LIGHT, &[no_fence as fn()]), None);
    assert!(how.is_some_and(|how| how.contains("neither sees")));
}

#[test]
fn two_light_fences_order_nothing() {
    let how = failure_of(&dekker::<Loom>("two light", LIGHT, &[LIGHT]), None);
    assert!(how.is_some_and(|how| how.contains("neither sees")));
}
