//! What tasks say of themselves: in which region they are, and how they wait.

use std::ops::Range;

use nearlock_core::lockstat::Waited;

use super::{REGIONS, SLOW_PATH, SPINNING, Times};
use crate::engine::Engine;
use crate::machine::with;

/// The calling task is in a region until this is dropped; then it is in the one where it was
/// before.
#[must_use = "the region ends when this is dropped"]
#[derive(Debug)]
pub struct Inside {
    outer: u8,
}

/// Marks that the calling task is in a region.
///
/// # Panics
///
/// If there is no such region.
pub fn enter(region: usize) -> Inside {
    assert!(region < REGIONS, "region {region} of {REGIONS}");
    Inside { outer: with(|inner| inner.engine.borrow_mut().enter_region(region as u8)) }
}

/// How the calling task has waited for locks so far, in virtual time. Always counted, since that
/// takes none.
pub fn waited() -> Waited {
    with(|inner| inner.task(|task| task.account.waited))
}

/// The calling task has looked once more, and goes on waiting awake.
pub(crate) fn turn() {
    with(|inner| inner.task(|task| task.account.waited.turns += 1));
}

/// The calling task has slept since then.
pub(crate) fn slept_since(began_ps: u64) {
    with(|inner| {
        let slept_ps = inner.now_ps() - began_ps;
        inner.task(|task| {
            task.account.waited.sleeps += 1;
            task.account.waited.slept_ns += slept_ps / 1000;
        });
    });
}

/// Marks that the calling task spins, if it is in a slow path. A turn.
pub(crate) fn spin() -> Inside {
    turn();
    Inside { outer: with(|inner| inner.engine.borrow_mut().spin_in_region()) }
}

impl Drop for Inside {
    fn drop(&mut self) {
        with(|inner| inner.engine.borrow_mut().enter_region(self.outer));
    }
}

impl Engine {
    /// The current task is in this region from now on. Returns where it was.
    fn enter_region(&mut self, region: u8) -> u8 {
        let now_ps = self.now_ps;
        self.current_task().account.enter_region(region, now_ps)
    }

    /// The current task spins from now on, if it is in a slow path. Returns where it was.
    fn spin_in_region(&mut self) -> u8 {
        let region = self.current_task().account.region;
        if usize::from(region) == SLOW_PATH { self.enter_region(SPINNING as u8) } else { region }
    }

    /// The times of some tasks together.
    pub fn times(&self, tasks: Range<usize>, now_ps: u64) -> Times {
        let mut sum = Times::default();
        self.tasks[tasks].iter().for_each(|task| task.account.add_to(&mut sum, now_ps));
        let in_ns = [&mut sum.on_cpu_ns, &mut sum.waiting_ns, &mut sum.asleep_ns];
        in_ns.into_iter().chain(&mut sum.regions_ns).for_each(|time| *time /= 1000);
        sum
    }
}
