//! The lines by which tasks show what they hold of locks that are biased to them.

use std::alloc::Layout;
use std::cell::RefCell;

use nearlock_core::near::biased::{Owner, OwnerLine, OwnerLines, PLACES};
use nearlock_core::platform::NodeId;
use nearlock_core::schedule::Schedule;

use crate::arena::{Arena, LINE};
use crate::machine::with;
use crate::platform::Sim;

/// Where the lines lie, by task; 0: it has none yet. (There the first node of the first CPU lies.)
#[derive(Default)]
pub struct Lines(RefCell<Vec<usize>>);

impl Lines {
    /// Where the line of a task lies, if it has one.
    fn known(&self, task: u32) -> Option<usize> {
        self.0.borrow().get(task as usize).copied().filter(|offset| *offset > 0)
    }

    /// Gives a task its line.
    fn make(&self, task: u32, arena: &Arena) {
        let offset = arena.take(Layout::from_size_align(LINE, LINE).expect("a line is a layout"));
        let mut offsets = self.0.borrow_mut();
        let tasks = offsets.len().max(task as usize + 1);
        offsets.resize(tasks, 0);
        offsets[task as usize] = offset;
    }
}

/// The line of a task, if it has one.
fn line_of(number: u32) -> Option<*const OwnerLine<Sim>> {
    const { assert!(size_of::<OwnerLine<Sim>>() == LINE) };
    with(|inner| Some(inner.arena().at(inner.owner_lines().known(number - 1)?).cast_const().cast()))
}

// SAFETY: a task has its number and its line, which is never taken back, for ever.
unsafe impl OwnerLines for Sim {
    fn owner() -> Option<Owner<Self>> {
        let number = Self::thread_id().get();
        line_of(number).map(|line| Owner { number, line })
    }

    /// In the memory of the socket where the task is.
    fn register() -> Option<Owner<Self>> {
        let number = Self::thread_id().get();
        if number <= NodeId::SLOTS && line_of(number).is_none() {
            with(|inner| {
                inner.owner_lines().make(number - 1, inner.arena());
                inner.cover_new_lines_here();
            });
        }
        Self::owner()
    }

    fn line(number: u32) -> *const OwnerLine<Self> {
        line_of(number).expect("its task has registered")
    }

    /// By the line of the lock, so that neighbours have different places.
    fn place_of(lock: *const ()) -> usize {
        with(|inner| inner.line_of(lock.cast())) % PLACES
    }
}
