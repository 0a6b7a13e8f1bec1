//! The barrier.

use std::fmt;

use crate::near::{Condvar, Mutex};

/// Lets a number of threads wait for each other, any number of times. It has the methods of
/// [`std::sync::Barrier`], over the [`Mutex`] and the [`Condvar`] of this crate.
///
/// Space: 40 bytes on a 64-bit system.
///
/// Waiting: as for a [`Condvar`]. The last thread to arrive does not wait. It wakes one of the
/// others, which wakes the next one when it has the mutex, and so on.
///
/// Fairness: each thread that has arrived returns, also if other threads arrive for the next time
/// meanwhile.
///
/// Ordering: what each thread did before it arrived happens before the return of each of them.
///
/// ```
/// use nearlock::Barrier;
///
/// let barrier = Barrier::new(3);
/// let leaders: u32 = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| barrier.wait().is_leader())).collect();
///     threads.into_iter().map(|thread| u32::from(thread.join().unwrap())).sum()
/// });
/// assert_eq!(leaders, 1);
/// ```
pub struct Barrier {
    threads: usize,
    state: Mutex<State>,
    /// The generation has changed.
    all_arrived: Condvar,
}

struct State {
    /// How many threads of this generation have arrived.
    arrived: usize,
    /// How often all threads have arrived.
    generation: usize,
}

/// What [`Barrier::wait`] returns: whether the thread is the leader.
///
/// ```
/// let result = nearlock::Barrier::new(1).wait();
/// assert!(result.is_leader());
/// ```
pub struct BarrierWaitResult(bool);

impl Barrier {
    /// Creates a barrier for this number of threads. With 0, as with 1, no thread waits.
    #[inline]
    pub const fn new(n: usize) -> Self {
        let state = State { arrived: 0, generation: 0 };
        Self { threads: n, state: Mutex::new(state), all_arrived: Condvar::new() }
    }

    /// Waits until as many threads have arrived as the barrier is for. One of them is the leader.
    /// Then the barrier can be used again.
    #[inline]
    pub fn wait(&self) -> BarrierWaitResult {
        let mut state = self.state.lock();
        state.arrived += 1;
        if state.arrived < self.threads {
            let generation = state.generation;
            self.all_arrived.wait_while(&mut state, |state| state.generation == generation);
            return BarrierWaitResult(false);
        }
        state.arrived = 0;
        state.generation = state.generation.wrapping_add(1);
        self.all_arrived.notify_all();
        BarrierWaitResult(true)
    }
}

/// Never blocks. Says nothing about the state.
impl fmt::Debug for Barrier {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}

impl BarrierWaitResult {
    /// Whether this is the leader: exactly one of the threads that waited together.
    #[must_use]
    #[inline]
    pub const fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for BarrierWaitResult {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.is_leader()).finish()
    }
}
