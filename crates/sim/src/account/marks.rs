//! Marks that tasks make: the region that they are in, and how they wait.

use std::ops::Range;

use nearlock_core::lockstat::Waited;

use super::{REGIONS, SLOW_PATH, SPINNING, Times};
use crate::engine::Engine;
use crate::machine::with;

/// A region that the calling task is in until this value is dropped. The task then returns to the
/// region in which it was before.
#[must_use = "the region ends when this is dropped"]
#[derive(Debug)]
pub struct Inside {
    outer: u8,
}

/// Marks that the calling task enters a region.
///
/// # Panics
///
/// If the region does not exist.
pub fn enter(region: usize) -> Inside {
    assert!(region < REGIONS, "region {region} of {REGIONS}");
    Inside { outer: with(|inner| inner.engine.borrow_mut().enter_region(region as u8)) }
}

/// How the calling task has waited for locks so far, in virtual time. This is always counted, since
/// counting takes no virtual time.
pub fn waited() -> Waited {
    with(|inner| inner.task(|task| task.account.waited))
}

/// Counts one more look of the calling task, which continues to wait awake.
pub(crate) fn turn() {
    with(|inner| inner.task(|task| task.account.waited.turns += 1));
}

/// Counts the time since `began_ps` as sleep of the calling task.
pub(crate) fn slept_since(began_ps: u64) {
    with(|inner| {
        let slept_ps = inner.now_ps() - began_ps;
        inner.task(|task| {
            task.account.waited.sleeps += 1;
            task.account.waited.slept_ns += slept_ps / 1000;
        });
    });
}

/// Marks that the calling task spins, if it is in a slow path, and counts a turn of the spin loop.
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
    /// Moves the current task to this region. Returns the region in which it was.
    fn enter_region(&mut self, region: u8) -> u8 {
        let now_ps = self.now_ps;
        self.current_task().account.enter_region(region, now_ps)
    }

    /// Moves the current task to the spinning region if it is in a slow path. Returns the region in
    /// which it was.
    fn spin_in_region(&mut self) -> u8 {
        let region = self.current_task().account.region;
        if usize::from(region) == SLOW_PATH { self.enter_region(SPINNING as u8) } else { region }
    }

    /// The sum of the times of some tasks.
    pub fn times(&self, tasks: Range<usize>, now_ps: u64) -> Times {
        let mut sum = Times::default();
        self.tasks[tasks].iter().for_each(|task| task.account.add_to(&mut sum, now_ps));
        let in_ns = [&mut sum.on_cpu_ns, &mut sum.waiting_ns, &mut sum.asleep_ns];
        in_ns.into_iter().chain(&mut sum.regions_ns).for_each(|time| *time /= 1000);
        sum
    }
}
