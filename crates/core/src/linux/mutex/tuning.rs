//! When waiters spin, and when the mutex is handed over, as switches.

use crate::tuning::Standard;

/// When a waiter spins rather than sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spinning {
    /// Never: it sleeps at once.
    Never,
    /// As long as the owner is not known to sleep.
    UnlessOwnerSleeps,
    /// Whatever the owner does. If it sleeps, spinning costs a processor that the owner may need.
    Always,
}

/// The switches of [`LinuxMutex`](super::LinuxMutex).
pub trait MutexTuning: Send + Sync + 'static {
    /// When a waiter spins. Each time for as long as the platform allows: natively `spin.budget-ns`.
    const SPINNING: Spinning = Spinning::UnlessOwnerSleeps;
    /// Whether newcomers that spin do so one at a time, and the others wait in a queue of their own ([`osq`](crate::linux::osq)).
    const SPINNER_QUEUE: bool = true;
    /// Whether the first of the sleepers spins too when it has been woken in vain, besides the first of the spinners.
    const WAITER_SPINS: bool = true;
    /// Whether the first of the sleepers is handed the mutex when it has been woken in vain. If not, others may take it
    /// for ever; if so, the mutex is idle then until that one runs.
    const HAND_OVER: bool = true;
    /// Whether a newcomer that has spun for long enough yields before it queues. As in the kernel, where the
    /// scheduler says when it is enough: others shall run first, and the mutex not be taken by one that does not.
    const YIELDS_BEFORE_QUEUE: bool = false;
}

impl MutexTuning for Standard {}

/// Waiters sleep at once.
#[derive(Debug)]
pub struct NoSpinning;

impl MutexTuning for NoSpinning {
    const SPINNING: Spinning = Spinning::Never;
}

/// Waiters spin even if the owner sleeps.
#[derive(Debug)]
pub struct HeedlessSpinning;

impl MutexTuning for HeedlessSpinning {
    const SPINNING: Spinning = Spinning::Always;
}

/// All newcomers spin on the word.
#[derive(Debug)]
pub struct NoSpinnerQueue;

impl MutexTuning for NoSpinnerQueue {
    const SPINNER_QUEUE: bool = false;
}

/// Newcomers spin, and the first of the sleepers does not.
#[derive(Debug)]
pub struct SleepyWaiter;

impl MutexTuning for SleepyWaiter {
    const WAITER_SPINS: bool = false;
}

/// The mutex is never handed over.
#[derive(Debug)]
pub struct NoHandOver;

impl MutexTuning for NoHandOver {
    const HAND_OVER: bool = false;
}

/// Newcomers yield when they have spun for long enough.
#[derive(Debug)]
pub struct YieldsBeforeQueue;

impl MutexTuning for YieldsBeforeQueue {
    const YIELDS_BEFORE_QUEUE: bool = true;
}
