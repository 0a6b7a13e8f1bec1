// A cache that evicts the entry that was not used for the longest time. `Mutex` is the lock that is
// measured: in a program, `use nearlock::Mutex;`.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

pub struct Cache<K, V> {
    entries: Mutex<Entries<K, V>>,
    capacity: usize,
}

/// The data that the lock protects.
struct Entries<K, V> {
    /// The values by key, with the time of the last use.
    values: HashMap<K, (V, u64)>,
    /// The keys by that time.
    keys: BTreeMap<u64, K>,
    /// Counts uses.
    now: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Cache<K, V> {
    pub fn new(capacity: usize) -> Self {
        let entries = Entries { values: HashMap::new(), keys: BTreeMap::new(), now: 0 };
        Self { entries: Mutex::new(entries), capacity }
    }

    /// The value of this key. If it is not there, `make` computes it, without the lock. If several
    /// threads do so at the same time, all get the value of the first that returns.
    pub fn get(&self, key: &K, make: impl FnOnce(&K) -> V) -> V {
        if let Some(value) = self.entries.lock().find(key) {
            return value;
        }
        let value = make(key);
        self.entries.lock().keep(key, value, self.capacity)
    }

    pub fn len(&self) -> usize {
        self.entries.lock().values.len()
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Entries<K, V> {
    fn find(&mut self, key: &K) -> Option<V> {
        let (value, used) = self.values.get_mut(key)?;
        self.now += 1;
        self.keys.remove(used);
        *used = self.now;
        self.keys.insert(self.now, key.clone());
        Some(value.clone())
    }

    fn keep(&mut self, key: &K, value: V, capacity: usize) -> V {
        if let Some(kept) = self.find(key) {
            return kept;
        }
        if self.values.len() == capacity
            && let Some((_, oldest)) = self.keys.pop_first()
        {
            self.values.remove(&oldest);
        }
        self.now += 1;
        self.values.insert(key.clone(), (value.clone(), self.now));
        self.keys.insert(self.now, key.clone());
        value
    }
}
