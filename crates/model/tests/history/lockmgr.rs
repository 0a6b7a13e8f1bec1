//! FreeBSD's lockmgr.

use nearlock_collection::freebsd::lockmgr::Operation;
use nearlock_collection::freebsd::tuning::{NotAdaptive, SleepFailers, Tuning};
use nearlock_core::tuning::Standard;
use nearlock_model::lockmgr::Deed::{self, Read, TryUpgrade, WriteUnlessSleeping};
use nearlock_model::lockmgr::{deeds, held_at_first};
use nearlock_model::loom::Loom;
use nearlock_model::model::Model;
use nearlock_model::mutate::Half;

use crate::{NO_END, Place, SECTIONS, caught, caught_without};

const NAME: &str = "freebsd-lockmgr";

/// The lock is shared at first.
fn shared<T: Tuning>(deeds: &'static [Deed], preemptions: usize) -> Model {
    held_at_first::<Loom, T>(NAME, Operation::Shared, deeds, Some(preemptions))
}

#[test]
fn lockmgr_sharers_behind_waiters_that_fail() {
    nearlock_core::tuning! {
        /// Waiters do not spin, and those that fail after their sleep are not counted.
        struct Ignorant: Tuning {
            adaptive: bool = false;
            lockmgr_sleep_failers: SleepFailers = SleepFailers::Ignored;
        }
    }
    const DEEDS: &[Deed] = &[WriteUnlessSleeping, Read];
    let (today, bug) = (shared::<NotAdaptive>(DEEDS, 2), shared::<Ignorant>(DEEDS, 2));
    caught("lockmgr_sharers_behind_waiters_that_fail", &today, &bug, NO_END);
}

#[test]
fn lockmgr_upgrade_without_acquire() {
    let place = Place { file: "freebsd/lockmgr/shared.rs", function: "upgrade_sole", operation: "exchange" };
    let model = deeds::<Loom, Standard>(NAME, &[TryUpgrade, Read], Some(3));
    caught_without("lockmgr_upgrade_without_acquire", Half::Acquire, place, &model, SECTIONS);
}
