//! The tables of chains, and of their attention words, in simulated memory.

use std::alloc::Layout;
use std::cell::Cell;

use nearlock_core::near::attention::QUIET;

use super::Inner;
use crate::arena::LINE;

/// Chains of a table. FreeBSD has 128 of one kind and 256 of the other.
const CHAINS: usize = 128;
/// Cache lines per chain.
pub(crate) const CHAIN_LINES: usize = 2;

impl Inner {
    /// The memory of the chain in a table that belongs to the lock at this address. It is zero at
    /// first. All tables are in the memory of the first socket.
    pub fn chain(&self, table: usize, lock: *const u8) -> *mut u8 {
        let begin = self.table(&self.chains[table], CHAINS * CHAIN_LINES * LINE);
        self.arena.at(begin + self.chain_index(lock) * CHAIN_LINES * LINE)
    }

    /// The attention word of the chain that belongs to the lock at this address. It is
    /// [`QUIET`] at first, since the light side of the fence is free.
    pub fn attention(&self, lock: *const u8) -> *mut u8 {
        let word = |begin, index| self.arena.at(begin + index * size_of::<u32>());
        let begin = self.attention.get().unwrap_or_else(|| {
            let begin = self.table(&self.attention, CHAINS * size_of::<u32>());
            for index in 0..CHAINS {
                // SAFETY: a word of the table, which no task knows yet. Lines are aligned.
                unsafe { word(begin, index).cast::<u32>().write(QUIET) };
            }
            begin
        });
        word(begin, self.chain_index(lock))
    }

    fn chain_index(&self, lock: *const u8) -> usize {
        self.line_of(lock) % CHAINS
    }

    /// The offset of a table of this size.
    pub(super) fn table(&self, offset: &Cell<Option<usize>>, size: usize) -> usize {
        offset.get().unwrap_or_else(|| {
            let layout = Layout::from_size_align(size, LINE).expect("lines are a layout");
            let begin = self.arena.take(layout);
            self.engine.borrow_mut().cover_new_lines(0);
            offset.set(Some(begin));
            begin
        })
    }
}
