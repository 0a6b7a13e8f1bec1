//! A kernel's futex: threads of a process sleep on words of their memory.
//!
//! ```text
//! bucket   waiters: the number of threads that sleep here or are about to | lock | queue
//!          (on its own cache line; for the sleepers of some words)
//!
//! wait:  increment `waiters`; lock
//!        if the word is as expected: enter the queue, unlock, sleep until removed from it
//!        otherwise: unlock, decrement `waiters`
//! wake:  if `waiters` is 0: return
//!        lock; remove the first waiters for the word, subtract them from `waiters`; unlock
//!        wake the removed waiters
//! ```
//! A kernel finds the bucket of a word by a hash. Words that share a bucket wait for each other's
//! sections of the bucket's lock, even if no other thread takes the locks that the words belong to.
//! Here the code that makes a bucket determines which words share it.
//!
//! 1. The queue, including its members, changes only under the lock.
//! 2. A waiter increments the count before it reads the word. A waker changes the word before it
//!    reads the count. Both have a full barrier between the two steps. So either the waker sees the
//!    waiter, or the waiter sees the new word.
//! 3. After incrementing the count, a waiter reads the word under the lock. So a waker that takes
//!    the lock finds the waiter in the queue, or the waiter will not sleep.
//!
//! The lock is any lock. In Linux it is a spinlock, so a contended mutex of a program causes a
//! contended spinlock of the kernel. Source: the futex of Linux since 3.14 (Bueso, January 2014),
//! from descriptions in own words; "Futexes Are Tricky".

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use nearlock_collection::classic::glibc_mutex::Futex;
use nearlock_core::parking::{Signal, WaitList, Waiter, WakeList};
use nearlock_core::platform::{Atomic, AtomicInt, Park, Platform, Work};
use nearlock_core::raw::RawLock;

use crate::sections::WorkLength;

/// See the [module](self).
#[repr(C, align(64))]
pub struct Bucket<P: Platform, L> {
    waiters: P::U32,
    lock: L,
    queue: WaitList<P>,
}

impl<P: Platform, L: Default> Default for Bucket<P, L> {
    fn default() -> Self {
        Self { waiters: Atomic::new(0), lock: L::default(), queue: WaitList::default() }
    }
}

impl<P: Park, L: RawLock> Bucket<P, L> {
    /// Runs `f` with the lock held.
    fn locked<R>(&self, node: &L::Node, f: impl FnOnce() -> R) -> R {
        // SAFETY: the node belongs to the caller and is in no other acquisition, and unlock follows
        // lock.
        unsafe {
            self.lock.lock(node);
            let r = f();
            self.lock.unlock(node);
            r
        }
    }

    fn wait(&self, node: &L::Node, word: &P::U32, expected: u32) {
        P::with_record(|waiter: &Waiter<P>| {
            // Relaxed: the barrier orders it.
            self.waiters.fetch_add(1, Relaxed);
            // Ordering: SeqCst, pairs with the fence in `wake`: invariant 2.
            P::fence(SeqCst);
            let sleeps = self.locked(node, || {
                let sleeps = word.load(Relaxed) == expected;
                if sleeps {
                    waiter.mark.store(address(word), Relaxed);
                    // SAFETY: this thread holds the lock. The record is new, and stays until the
                    // grant. After the grant it is in no queue.
                    unsafe { self.queue.push(waiter) };
                }
                sleeps
            });
            if sleeps {
                while waiter.park() != Signal::Granted {}
            } else {
                self.waiters.fetch_sub(1, Relaxed);
            }
        });
    }

    fn wake(&self, node: &L::Node, word: *const P::U32, n: u32) {
        // Ordering: SeqCst, pairs with the fence in `wait`: invariant 2.
        P::fence(SeqCst);
        if self.waiters.load(Relaxed) == 0 {
            return;
        }
        let mut wake_list = WakeList::EMPTY;
        self.locked(node, || {
            let (mut at, mut left) = (self.queue.first(), n);
            while !at.is_null() && left > 0 {
                // SAFETY: the waiter is in the queue and this thread holds its lock, so the waiter
                // is alive until the grant.
                let (waiter, next) = unsafe { (&*at, self.queue.after(at)) };
                if waiter.mark.load(Relaxed) == address(word) {
                    // SAFETY: as above.
                    unsafe {
                        self.queue.remove(at);
                        wake_list.push(at);
                    }
                    left -= 1;
                }
                at = next;
            }
            self.waiters.fetch_sub(n - left, Relaxed);
        });
        wake_list.grant();
    }
}

fn address<W>(word: *const W) -> u64 {
    word.addr() as u64
}

/// A thread's interface to a bucket.
pub struct Calls<'a, P: Platform, L: RawLock> {
    bucket: &'a Bucket<P, L>,
    node: &'a L::Node,
    call: WorkLength,
}

impl<'a, P: Platform, L: RawLock> Calls<'a, P, L> {
    /// Calls for this bucket, with a node for its lock. Each call takes the time `call`, in
    /// addition to its work in the bucket. That is the time into the kernel and back.
    pub fn new(bucket: &'a Bucket<P, L>, node: &'a mut L::Node, call: WorkLength) -> Self {
        Self { bucket, node, call }
    }
}

impl<P: Park + Work, L: RawLock> Futex<P> for Calls<'_, P, L> {
    fn wait(&self, word: &P::U32, expected: u32) {
        self.call.pass::<P>();
        self.bucket.wait(self.node, word, expected);
    }

    fn wake(&self, word: *const P::U32, n: u32) {
        self.call.pass::<P>();
        self.bucket.wake(self.node, word, n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_collection::classic::glibc_mutex::GlibcMutex;
    use nearlock_collection::classic::mcs::McsLock;
    use nearlock_os::Os;
    use std::cell::Cell;

    type Mcs = McsLock<Os>;
    type Node = <Mcs as RawLock>::Node;
    type Word = <Os as Platform>::U32;

    const AT_ONCE: WorkLength = WorkLength { ns: 0, turns: 0 };

    fn waiters(bucket: &Bucket<Os, Mcs>) -> u32 {
        bucket.waiters.load(Relaxed)
    }

    #[test]
    fn a_thread_that_finds_another_value_does_not_sleep() {
        let (bucket, word, mut node) = (Bucket::<Os, Mcs>::default(), Word::new(7), Node::default());
        let futex = Calls::new(&bucket, &mut node, AT_ONCE);
        futex.wait(&word, 8);
        futex.wake(&raw const word, 3);
        assert!(waiters(&bucket) == 0 && bucket.queue.is_empty());
    }

    /// Runs `waker` while one thread sleeps on each word, or is about to.
    fn asleep(bucket: &Bucket<Os, Mcs>, words: &[Word], waker: impl FnOnce(&Calls<'_, Os, Mcs>)) {
        std::thread::scope(|scope| {
            for word in words {
                scope.spawn(|| {
                    let mut node = Node::default();
                    Calls::new(bucket, &mut node, AT_ONCE).wait(word, 0);
                });
            }
            while (waiters(bucket) as usize) < words.len() {
                std::thread::yield_now();
            }
            waker(&Calls::new(bucket, &mut Node::default(), AT_ONCE));
        });
        assert!(waiters(bucket) == 0 && bucket.queue.is_empty());
    }

    #[test]
    fn a_wake_up_takes_out_the_given_number_and_only_of_its_word() {
        let (bucket, words) = (Bucket::default(), [const { Word::new(0) }; 2]);
        asleep(&bucket, &words, |futex| {
            // Repeat the wake-up: a thread that has incremented the count may still have to read
            // the word.
            while waiters(&bucket) > 1 {
                futex.wake(&raw const words[1], 1);
            }
            futex.wake(&raw const words[1], 9);
            assert_eq!(waiters(&bucket), 1, "the other sleeps on");
            while waiters(&bucket) > 0 {
                futex.wake(&raw const words[0], 9);
            }
        });
    }

    #[test]
    fn a_mutex_in_it_excludes_and_wakes() {
        const THREADS: u64 = 4;
        const SECTIONS: u64 = if cfg!(miri) { 20 } else { 20_000 };
        struct Guarded(Cell<u64>);
        // SAFETY: only the holder of the mutex accesses it.
        unsafe impl Sync for Guarded {}
        let (bucket, mutex) = (Bucket::<Os, Mcs>::default(), GlibcMutex::<Os>::new());
        let guarded = Guarded(Cell::new(0));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let (bucket, mutex, guarded) = (&bucket, &mutex, &guarded);
                scope.spawn(move || {
                    let mut node = Node::default();
                    let futex = Calls::new(bucket, &mut node, AT_ONCE);
                    for turn in 0..SECTIONS {
                        // SAFETY: unlock follows lock, and all threads use the same bucket.
                        unsafe {
                            mutex.lock_in(&futex);
                            let n = guarded.0.get();
                            if turn % 64 == 0 {
                                std::thread::yield_now();
                            }
                            guarded.0.set(n + 1);
                            mutex.unlock_in(&futex);
                        }
                    }
                });
            }
        });
        assert_eq!(guarded.0.get(), THREADS * SECTIONS);
        assert_eq!(waiters(&bucket), 0);
    }
}
