//! Fences, ordinary and asymmetric: what they, and membarrier, do to the store buffers of a
//! machine.
//!
//! An ordinary full fence ends when the stores that its task had buffered are visible. A light
//! fence is nothing. A heavy one ends when every store that any task had buffered by then is
//! visible: by then its own task's stores already were, so a task whose load has missed them had
//! buffered its own store before. The interrupts cost the caller its time, and the interrupted
//! tasks nothing.

use crate::engine::Engine;
use crate::machine::{spend_ps, with};

/// Between two looks at the buffers, in ps.
const LOOK_PS: u64 = 10_000;

/// A full fence in the calling task.
pub fn full() {
    wait(|engine| engine.tasks[engine.current as usize].buffer.is_empty());
}

/// A full fence in every task of the machine.
pub fn heavy() {
    spend_ps(with(|inner| inner.engine.borrow().heavy_fence_ps));
    full();
    let buffered = with(|inner| inner.engine.borrow().buffered());
    wait(|engine| engine.have_drained(&buffered));
}

fn wait(done: impl Fn(&Engine) -> bool) {
    while !with(|inner| done(&inner.engine.borrow())) {
        spend_ps(LOOK_PS);
    }
}

impl Engine {
    /// How many stores each task has buffered since it began.
    fn buffered(&self) -> Vec<u64> {
        self.tasks.iter().map(|task| task.buffer.drained + task.buffer.len() as u64).collect()
    }

    /// Whether so many stores of each task are visible.
    fn have_drained(&self, stores: &[u64]) -> bool {
        self.tasks.iter().zip(stores).all(|(task, stores)| task.buffer.drained >= *stores)
    }
}
