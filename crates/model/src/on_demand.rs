//! Parts of an execution's state that only some models use.
//!
//! Locks differ in the parts that they use: queue nodes of one type, a chain, fences. Making all of
//! them in each execution took a quarter of the time of all models under loom. So the first
//! execution of a model makes all parts, and the later ones make those that have been used.
//!
//! A later execution may be the first to use a part. The part is then made at that moment, and the
//! execution is *late*. Loom assumes that the other threads do not know the part, and may report
//! races that do not exist. [`Model::search`](crate::model::Model) begins again after a late
//! execution, and discards its result.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The state that all parts of an instance share.
#[derive(Default)]
pub(crate) struct Demand {
    /// Whether the next execution makes only the used parts.
    is_known: Cell<bool>,
    /// Whether the current execution makes only the used parts.
    makes_used: Cell<bool>,
    is_late: Cell<bool>,
    slots: Cell<u32>,
}

impl Demand {
    /// Begins another model.
    pub(crate) fn forget(&self) {
        self.is_known.set(false);
    }

    /// Begins another execution, with threads in slots below `slots`.
    pub(crate) fn begin(&self, slots: u32) {
        self.makes_used.set(self.is_known.replace(true));
        self.is_late.set(false);
        self.slots.set(slots);
    }

    /// Whether the execution has made a part after its beginning.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late.get()
    }
}

/// A part; see the [module](self).
pub(crate) struct OnDemand<T: ?Sized> {
    made: RefCell<Option<Arc<T>>>,
    is_used: Cell<bool>,
}

impl<T: ?Sized> Default for OnDemand<T> {
    fn default() -> Self {
        Self { made: RefCell::default(), is_used: Cell::default() }
    }
}

impl<T: ?Sized> OnDemand<T> {
    /// Begins another execution. `make` has the number of slots.
    pub(crate) fn begin(&self, demand: &Demand, make: impl FnOnce(u32) -> Arc<T>) {
        if !demand.makes_used.get() {
            self.is_used.set(false);
        }
        let is_made = !demand.makes_used.get() || self.is_used.get();
        self.made.replace(is_made.then(|| make(demand.slots.get())));
    }

    /// The part of this execution.
    pub(crate) fn get(&self, demand: &Demand, make: impl FnOnce(u32) -> Arc<T>) -> Arc<T> {
        self.is_used.set(true);
        let mut made = self.made.borrow_mut();
        let late = || {
            demand.is_late.set(true);
            make(demand.slots.get())
        };
        made.get_or_insert_with(late).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(demand: &Demand, part: &OnDemand<u32>) {
        demand.begin(3);
        part.begin(demand, Arc::new);
    }

    #[test]
    fn a_part_is_made_at_first_and_while_it_is_used() {
        let (demand, used, unused) = (Demand::default(), OnDemand::default(), OnDemand::default());
        for _ in 0..2 {
            demand.forget();
            for is_first in [true, false, false] {
                begin(&demand, &used);
                unused.begin(&demand, Arc::new);
                assert_eq!(*used.get(&demand, |_| unreachable!("made already")), 3);
                assert_eq!(unused.made.borrow().is_some(), is_first);
                assert!(!demand.is_late());
            }
        }
    }

    #[test]
    fn an_execution_is_late_that_is_the_first_to_use_a_part() {
        let (demand, part) = (Demand::default(), OnDemand::default());
        begin(&demand, &part);
        begin(&demand, &part);
        assert_eq!(*part.get(&demand, Arc::new), 3);
        assert!(demand.is_late());
        begin(&demand, &part);
        assert!(part.made.borrow().is_some() && !demand.is_late());
    }
}
