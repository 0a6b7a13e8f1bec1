//! The queue nodes of the CPUs.
//!
//! As in Linux, each CPU has a set of nodes, which the task that runs on the CPU uses. A task that
//! leaves its CPU while it uses nodes keeps the set. Other tasks that queue on the CPU meanwhile
//! use a spare set.

use std::alloc::Layout;

use nearlock_core::platform::NodeId;

use crate::arena::{Arena, LINE};

/// Sets of nodes. Each node has a line of its own.
pub struct Nodes {
    /// The offset of each set: first the sets of the CPUs, then the spare ones.
    offsets: Vec<usize>,
    /// Whether the set of each CPU is lent to a task.
    lent: Vec<bool>,
    /// Spare sets that are not lent.
    spare: Vec<u32>,
}

/// The result of a request for a set of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// This set is lent.
    Set(u32),
    /// There is no free set. One has to be added.
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

    /// Allocates another set.
    fn add(&mut self, arena: &Arena) -> u32 {
        let line = Layout::from_size_align(LINE, LINE).expect("a line is a layout");
        self.offsets.push(arena.take(line));
        for _ in 1..NodeId::NESTING {
            arena.take(line);
        }
        self.offsets.len() as u32 - 1
    }

    /// Lends the set of a CPU, or a spare one if that is lent.
    pub fn lend(&mut self, cpu: u32) -> Lent {
        if !std::mem::replace(&mut self.lent[cpu as usize], true) {
            return Lent::Set(cpu);
        }
        self.spare.pop().map_or(Lent::None, Lent::Set)
    }

    /// Adds a spare set and lends it. `None` if lock words could not name the set.
    pub fn lend_new(&mut self, arena: &Arena) -> Option<u32> {
        (self.offsets.len() < NodeId::SLOTS as usize).then(|| self.add(arena))
    }

    /// Takes a set back from a task.
    pub fn give_back(&mut self, set: u32) {
        match self.lent.get_mut(set as usize) {
            Some(lent) => *lent = false,
            None => self.spare.push(set),
        }
    }

    /// The offset of a node.
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
