//! The lines of readers, in simulated memory.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};

use super::Inner;
use crate::arena::LINE;

/// The number of words that count waiting readers, as natively.
const WAITING: usize = 256;

/// What the readers of reader-writer locks share.
#[derive(Default)]
pub(crate) struct Readers {
    /// The offset of the line of each task that has one.
    lines: RefCell<Vec<Option<usize>>>,
    /// The offset of the table of waiting readers, once a lock has asked for it.
    pub waiting: Cell<Option<usize>>,
    /// How many ids have been given out.
    ids: Cell<u64>,
}

impl Inner {
    /// The line of the running task, in the memory of its socket. The first call also returns a
    /// number for the line, which the caller has to make there.
    pub fn reader_line(&self) -> (*mut u8, Option<u32>) {
        let task = self.engine.borrow().current as usize;
        if let Some(offset) = self.readers.lines.borrow().get(task).copied().flatten() {
            return (self.arena.at(offset), None);
        }
        let offset = self.arena.take(Layout::from_size_align(LINE, LINE).expect("a line is a layout"));
        let home = self.socket_of_cpu(self.task(|task| task.cpu)) as u8;
        self.engine.borrow_mut().cover_new_lines(home);
        let mut lines = self.readers.lines.borrow_mut();
        let tasks = lines.len().max(task + 1);
        lines.resize(tasks, None);
        lines[task] = Some(offset);
        (self.arena.at(offset), Some(task as u32 + 1))
    }

    /// The lines of all tasks.
    pub fn reader_lines(&self) -> Vec<*mut u8> {
        self.readers.lines.borrow().iter().flatten().map(|offset| self.arena.at(*offset)).collect()
    }

    /// The number of readers that wait for locks with this id.
    pub fn waiting_readers(&self, id: u64) -> *mut u8 {
        let begin = self.table(&self.readers.waiting, WAITING * size_of::<u32>());
        self.arena.at(begin + id as usize % WAITING * size_of::<u32>())
    }

    /// The id of a lock.
    pub fn new_id(&self) -> u64 {
        self.readers.ids.set(self.readers.ids.get() + 1);
        self.readers.ids.get()
    }
}
