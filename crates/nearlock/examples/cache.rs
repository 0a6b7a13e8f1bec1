//! A cache that several threads share. It evicts the least recently used entry. One line chooses
//! the lock.
//!
//! ```text
//! cargo run --release -p nearlock --example cache
//! ```
//!
//! A lookup changes the order of use, so readers write, too. This is why the lock is a mutex, and
//! not a reader-writer lock. Values are computed without the lock. If several threads miss the same
//! key at the same time, the cache keeps the value of the first thread that returns with one.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::thread::available_parallelism;

/// The lock. Others are possible: `nearlock::linux::SpinLock`, `nearlock::linux::CnaLock`,
/// `nearlock::freebsd::Mtx`, `nearlock::classic::McsLock`, or `parking_lot::Mutex`.
use nearlock::Mutex as Lock;

/// The data that the lock protects.
struct Entries<K, V> {
    /// The values by key, with the time of the last use.
    values: HashMap<K, (V, u64)>,
    /// The keys by that time.
    keys: BTreeMap<u64, K>,
    /// Counts uses.
    now: u64,
    hits: u64,
}

struct Cache<K, V> {
    entries: Lock<Entries<K, V>>,
    capacity: usize,
}

impl<K: Hash + Eq + Clone, V: Clone> Entries<K, V> {
    fn find(&mut self, key: &K) -> Option<V> {
        let (value, used) = self.values.get_mut(key)?;
        self.now += 1;
        self.hits += 1;
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

impl<K: Hash + Eq + Clone, V: Clone> Cache<K, V> {
    fn new(capacity: usize) -> Self {
        let entries = Entries { values: HashMap::new(), keys: BTreeMap::new(), now: 0, hits: 0 };
        Self { entries: Lock::new(entries), capacity }
    }

    fn get(&self, key: &K, make: impl FnOnce(&K) -> V) -> V {
        if let Some(value) = self.entries.lock().find(key) {
            return value;
        }
        let value = make(key);
        self.entries.lock().keep(key, value, self.capacity)
    }
}

const LOOKS_EACH: u64 = 20_000;
const KEYS: u64 = 300;

/// The number of steps from `start + 1` to 1 in the Collatz sequence.
fn steps(start: &u64) -> usize {
    let next = |number: &u64| Some(if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 });
    std::iter::successors(Some(start + 1), next).take_while(|number| *number != 1).count()
}

fn main() {
    let cache = Cache::new(256);
    let threads = available_parallelism().map_or(2, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let cache = &cache;
            scope.spawn(move || {
                for look in 0..LOOKS_EACH {
                    // Small keys are used more often.
                    let at_random = (look + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                    let key = at_random % KEYS * (at_random / KEYS % KEYS) / KEYS;
                    assert_eq!(cache.get(&key, steps), steps(&key));
                }
            });
        }
    });
    let entries = cache.entries.lock();
    assert!(entries.values.len() <= 256 && entries.values.len() == entries.keys.len());
    println!("{} looks, {} of them hits", threads * LOOKS_EACH, entries.hits);
}
