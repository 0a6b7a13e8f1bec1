//! The queue nodes of the CPUs.
//!
//! A CPU has a set of nodes, which the task that runs on it uses, as in Linux. A task that leaves
//! its CPU while it has nodes in use keeps the set; whoever else queues there meanwhile has a spare
//! one.

use std::alloc::Layout;

use nearlock_core::platform::NodeId;

use crate::arena::{Arena, LINE};

/// Sets of nodes, each node on a line of its own.
pub struct Nodes {
    /// Where they lie: those of the CPUs, then the spare ones.
    offsets: Vec<usize>,
    /// Whether somebody has the set of a CPU.
    lent: Vec<bool>,
    /// Spare sets that nobody has.
    spare: Vec<u32>,
}

/// What became of the wish for a set of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// It is this one.
    Set(u32),
    /// There is none: one has to be added.
    None,
}

impl Nodes {
    pub fn new() -> Self {
        Self { offsets: Vec::new(), lent: Vec::new(), spare: Vec::new() }
    }

    /// Adds the set of the next CPU.
    pub fn add_cpu(&mut self, arena: &Arena) {
        self.add(arena);
        self.lent.push(false);
    }

    /// Takes memory for a further set.
    fn add(&mut self, arena: &Arena) -> u32 {
        let line = Layout::from_size_align(LINE, LINE).expect("a line is a layout");
        self.offsets.push(arena.take(line));
        for _ in 1..NodeId::NESTING {
            arena.take(line);
        }
        self.offsets.len() as u32 - 1
    }

    /// Lends the set of a CPU, or else a spare one.
    pub fn lend(&mut self, cpu: u32) -> Lent {
        if !std::mem::replace(&mut self.lent[cpu as usize], true) {
            return Lent::Set(cpu);
        }
        self.spare.pop().map_or(Lent::None, Lent::Set)
    }

    /// Makes a spare set and lends it; `None` if lock words could not name it.
    pub fn lend_new(&mut self, arena: &Arena) -> Option<u32> {
        (self.offsets.len() < NodeId::SLOTS as usize).then(|| self.add(arena))
    }

    /// A task has no use for a set any more.
    pub fn give_back(&mut self, set: u32) {
        match self.lent.get_mut(set as usize) {
            Some(lent) => *lent = false,
            None => self.spare.push(set),
        }
    }

    /// Where a node lies.
    pub fn offset(&self, id: NodeId) -> usize {
        self.offsets[id.slot as usize] + id.level as usize * LINE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_is_lent_is_not_lent_again() {
        let arena = Arena::new(1 << 14);
        let mut nodes = Nodes::new();
        (0..2).for_each(|_| nodes.add_cpu(&arena));
        assert_eq!((nodes.lend(1), nodes.lend(1)), (Lent::Set(1), Lent::None));
        assert_eq!(nodes.lend_new(&arena), Some(2));
        nodes.give_back(2);
        assert_eq!((nodes.lend(1), nodes.lend(0)), (Lent::Set(2), Lent::Set(0)));
        nodes.give_back(1);
        assert_eq!(nodes.lend(1), Lent::Set(1));
        let at = |slot, level| nodes.offset(NodeId { slot, level });
        assert_eq!((at(0, 1), at(1, 0), at(2, 3)), (LINE, 4 * LINE, 11 * LINE));
    }
}
