//! Several threads count words in a hash map, whose shards have a spin lock each.
//!
//! ```text
//! cargo run --release -p nearlock --example shard_counters
//! ```
//!
//! Critical sections are short: they find a counter, and add to it. A few words are far more
//! frequent than the others. So their shards are contended, however many shards there are.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::available_parallelism;
use std::time::Duration;

use nearlock::linux::{MappedSpinLockGuard, SpinLock, SpinLockGuard};
use nearlock::process::{LockEvent, events};

const RUN: Duration = Duration::from_millis(300);
const VOCABULARY: [&str; 16] = [
    "the", "lock", "of", "a", "waiter", "is", "in", "its", "queue", "until", "holder", "and", "word", "node",
    "tail", "pending",
];

/// Aligned to a cache line. Otherwise holders of one shard would disturb waiters of the next one.
#[derive(Default)]
#[repr(align(64))]
struct Shard(SpinLock<HashMap<&'static str, u64>>);

#[derive(Default)]
struct Counters {
    shards: [Shard; 8],
}

impl Counters {
    /// The counter of a word. Its shard is locked.
    fn counter(&self, word: &'static str) -> MappedSpinLockGuard<'_, u64> {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        let shard = &self.shards[hasher.finish() as usize % self.shards.len()];
        SpinLockGuard::map(shard.0.lock(), |counters| counters.entry(word).or_insert(0))
    }

    /// All counters, the largest first.
    fn into_sorted(self) -> Vec<(&'static str, u64)> {
        let shards = self.shards.into_iter();
        let mut counters: Vec<_> = shards.flat_map(|shard| shard.0.into_inner()).collect();
        counters.sort_unstable_by_key(|(word, count)| (std::cmp::Reverse(*count), *word));
        counters
    }
}

/// A random word. The first words of the vocabulary are the most frequent.
fn word(state: &mut u64) -> &'static str {
    // Source: Knuth, "The art of computer programming", volume 2, MMIX' linear congruential
    // generator.
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let uniform = (*state >> 40) as f64 / (1_u64 << 24) as f64;
    VOCABULARY[(uniform * uniform * uniform * VOCABULARY.len() as f64) as usize]
}

/// Counts words until it is told to stop. Returns the number of words.
fn count(counters: &Counters, thread: u64, stop: &AtomicBool) -> u64 {
    let mut state = thread;
    let mut words = 0;
    while !stop.load(Relaxed) {
        *counters.counter(word(&mut state)) += 1;
        words += 1;
    }
    words
}

fn main() {
    // Not more threads than processors: a lock that is first come, first served would wait for
    // threads that have no processor.
    let threads = available_parallelism().map_or(1, |processors| processors.get().min(8)) as u64;
    let (counters, stop) = (Counters::default(), AtomicBool::new(false));
    let waits = || events()[LockEvent::Slowpath as usize];
    let before = waits();
    let words: u64 = std::thread::scope(|scope| {
        let (counters, stop) = (&counters, &stop);
        let threads: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || count(counters, thread, stop))).collect();
        std::thread::sleep(RUN);
        stop.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("counting does not panic")).sum()
    });
    let waits = waits() - before;

    let counters = counters.into_sorted();
    for (word, count) in &counters[..counters.len().min(5)] {
        println!("{count:9}  {word}");
    }
    let counted: u64 = counters.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, words, "a word was lost");
    println!("{counted:9}  words by {threads} threads in {RUN:?}; {waits} times the lock was not free");
}
