//! Asymmetric fences: the properties that the models of locks rely on. The models do not assume
//! more.

#![cfg(target_pointer_width = "64")]

use nearlock_collection::subjects::Subject;
use nearlock_core::platform::AsymFence;
use nearlock_model::evidence::Evidence;
use nearlock_model::loom::Loom;
use nearlock_model::model::Depth;
use nearlock_model::mutate::{Half, Outcome, Site, Stores, failure_of, outcome_of, record};
use nearlock_model::parts::dekker;
use nearlock_model::subjects::models_of;

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

/// This many executions of each model show its fences, and are tried first without one of them.
/// Most models reach a fence in the first ten.
const FEW: usize = 1_000;
/// This many are tried of a model that has not failed in [`FEW`]: as many as the evidence tries.
const MANY: usize = 100_000;

/// If either side of the fence is dropped, a waiter of the lock sleeps forever. The lock's own
/// models find this, at first in a few executions of each.
fn loses_a_wake_up_without_either_side(lock: &str) {
    let few = Depth { executions_max: Some(FEW), ..Depth::default() };
    let models = models_of(Subject::named(lock).expect("is on the list"));
    let recorded: Vec<_> = models.iter().map(|model| (model, record(model, few).1)).collect();
    for side in ["light fence", "heavy fence"] {
        let is_that = |site: &&Site| site.half == Half::Whole && site.operation == side;
        let reach_it = recorded.iter().any(|(_, sites)| sites.iter().any(|site| is_that(&site)));
        assert!(reach_it, "{lock}: no model reaches a {side}");
        let without = |executions_max| {
            recorded.iter().find_map(|(model, sites)| {
                let site = sites.iter().find(is_that)?;
                match outcome_of(model, Some(*site), Stores::Ordered, Some(executions_max)) {
                    Outcome::Fails(how) => Some((&model.name, how)),
                    Outcome::Holds | Outcome::Unsettled => None,
                }
            })
        };
        let (model, how) =
            without(FEW).or_else(|| without(MANY)).unwrap_or_else(|| panic!("{lock}: no {side} is missed"));
        assert_eq!(how, "an execution without end", "{model}: no {side}");
    }
}

#[test]
fn without_either_side_the_mutex_loses_a_wake_up() {
    loses_a_wake_up_without_either_side("near-mutex");
}

#[test]
fn without_either_side_the_condition_variable_loses_a_wake_up() {
    loses_a_wake_up_without_either_side("near-condvar");
    loses_a_wake_up_without_either_side("near-condvar-all");
}
