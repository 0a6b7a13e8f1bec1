//! Ordinary and asymmetric fences: their effects, and those of membarrier, on the store buffers of
//! a machine.
//!
//! An ordinary full fence ends when the stores that its task had buffered are visible. A light
//! fence does nothing. A heavy fence ends when every store that any task had buffered by then is
//! visible. The stores of its own task are visible before. A task whose load has missed them had
//! therefore buffered its own store before. The interrupts cost time only for the caller, not for
//! the interrupted tasks.

use crate::engine::Engine;
use crate::machine::{spend_ps, with};

/// The time between two looks at the buffers, in ps.
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
    /// The number of stores that each task has buffered since it began.
    fn buffered(&self) -> Vec<u64> {
        self.tasks.iter().map(|task| task.buffer.drained + task.buffer.len() as u64).collect()
    }

    /// Whether this many stores of each task are visible.
    fn have_drained(&self, stores: &[u64]) -> bool {
        self.tasks.iter().zip(stores).all(|(task, stores)| task.buffer.drained >= *stores)
    }
}
