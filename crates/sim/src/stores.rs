//! A store buffer.

use crate::access::Access;

/// Stores that are not visible to other tasks yet.
#[derive(Debug, Default)]
pub struct StoreBuffer {
    /// The stores, oldest first. The first `left` of them are visible already.
    stores: Vec<Access>,
    left: usize,
    /// How many stores have become visible since the machine was created.
    pub drained: u64,
}

/// How many visible stores may remain in the vector until they are removed.
const LEFT_MAX: usize = 64;

impl StoreBuffer {
    pub fn len(&self) -> usize {
        self.stores.len() - self.left
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, store: Access) {
        self.stores.push(store);
    }

    pub fn oldest(&self) -> Option<&Access> {
        self.stores.get(self.left)
    }

    /// Removes the oldest store, which has become visible.
    pub fn drain_oldest(&mut self) {
        self.left += 1;
        self.drained += 1;
        if self.left == self.stores.len() {
            self.stores.clear();
            self.left = 0;
        } else if self.left == LEFT_MAX {
            self.stores.drain(..LEFT_MAX);
            self.left = 0;
        }
    }

    /// The newest store that touches a byte of `access`.
    pub fn newest_on(&self, access: &Access) -> Option<&Access> {
        self.stores[self.left..].iter().rev().find(|store| store.overlaps(*access))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Operation;

    #[test]
    fn stores_leave_in_their_order_and_the_newest_is_found() {
        let store =
            |offset, operand| Access { offset, width: 4, operation: Operation::Store, operand, expected: 0 };
        let mut buffer = StoreBuffer::default();
        for i in 0..1_000 {
            buffer.push(store(i as u32 % 4 * 4, i));
            if i % 8 != 0 {
                buffer.drain_oldest();
            }
        }
        assert_eq!((buffer.len(), buffer.drained), (125, 875));
        assert_eq!(buffer.oldest().map(|store| store.operand), Some(875));
        assert_eq!(buffer.newest_on(&store(4, 0)).map(|store| store.operand), Some(997));
        assert_eq!(buffer.newest_on(&store(16, 0)).map(|store| store.operand), None);
        while !buffer.is_empty() {
            buffer.drain_oldest();
        }
        assert_eq!(buffer.drained, 1_000);
        assert!(buffer.oldest().is_none() && buffer.newest_on(&store(4, 0)).is_none());
    }
}
