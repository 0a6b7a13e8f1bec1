//! The parts of the series of 2013, as switches.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::classic::mcs::{McsTuning, SelfGranted};
use crate::events::LockEvent;
use crate::platform::{Atomic, Platform};
use crate::tuning::Standard;

/// When a writer spins for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterSpin {
    /// Never: it sleeps at once.
    Never,
    /// Before it queues, so that the queue has no part in it (from version 5 of the series on).
    BeforeQueue,
    /// In the queue (until version 4).
    Queued,
}

/// The switches of [`RwsemXadd`](super::RwsemXadd).
pub trait XaddTuning: Send + Sync + 'static {
    /// Whether a writer's `try_lock` reads the count before it tries to write it.
    const TRY_PRE_READ: bool = true;
    /// Whether a waker reads the count before it adds a reader to it in advance, so that it does not if a writer
    /// is active.
    const WAKE_PRE_READ: bool = true;
    /// When a writer spins.
    const WRITER_SPIN: WriterSpin = WriterSpin::BeforeQueue;
    /// Whether it spins while no writer is known to hold the lock, which may mean that readers do. The series did;
    /// the kernel stopped it in July 2014.
    const SPINS_WITHOUT_OWNER: bool = true;
    /// Whether a release leaves the waking to another one that is about it.
    const SINGLE_WAKER: bool = true;
    /// The queue of spinners: with the optimisation of the MCS lock, or without.
    type Spinners: McsTuning;

    /// Does `wake`, or sees to it that whoever is about it does it once more.
    #[doc(hidden)] // public for a test that puts in what the first form of it did
    fn wake_alone<P: Platform>(waking: &P::U32, wake: impl Fn()) {
        // * -> 2
        // Ordering: Release, pairs with the Acquire below: whoever wakes sees the count that we have left.
        if waking.swap(WAKE_AGAIN, Release) != IDLE {
            P::count(LockEvent::RwsemWakeSkipped);
            return;
        }
        loop {
            // 2 -> 1
            // Ordering: Acquire, pairs with the Release above, of all that have come so far.
            waking.swap(WAKING, Acquire);
            wake();
            // 1 -> 0. Relaxed: whoever comes next wakes under `wait_lock`.
            if waking.compare_exchange(WAKING, IDLE, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }
}

/// Nobody wakes.
const IDLE: u32 = 0;
const WAKING: u32 = 1;
const WAKE_AGAIN: u32 = 2;

/// The whole series.
impl XaddTuning for Standard {
    type Spinners = Standard;
}

/// Without the series: Linux 3.10 to 3.12.
#[derive(Debug)]
pub struct Base;

impl XaddTuning for Base {
    const TRY_PRE_READ: bool = false;
    const WAKE_PRE_READ: bool = false;
    const WRITER_SPIN: WriterSpin = WriterSpin::Never;
    const SINGLE_WAKER: bool = false;
    type Spinners = Standard;
}

/// The pre-reads alone.
#[derive(Debug)]
pub struct PreRead;

impl XaddTuning for PreRead {
    const WRITER_SPIN: WriterSpin = WriterSpin::Never;
    const SINGLE_WAKER: bool = false;
    type Spinners = Standard;
}

/// Spinning alone.
#[derive(Debug)]
pub struct Spins;

impl XaddTuning for Spins {
    const TRY_PRE_READ: bool = false;
    const WAKE_PRE_READ: bool = false;
    const SINGLE_WAKER: bool = false;
    type Spinners = Standard;
}

/// The single waker alone.
#[derive(Debug)]
pub struct SingleWaker;

impl XaddTuning for SingleWaker {
    const TRY_PRE_READ: bool = false;
    const WAKE_PRE_READ: bool = false;
    const WRITER_SPIN: WriterSpin = WriterSpin::Never;
    type Spinners = Standard;
}

/// All but the single waker.
#[derive(Debug)]
pub struct PreReadSpin;

impl XaddTuning for PreReadSpin {
    const SINGLE_WAKER: bool = false;
    type Spinners = Standard;
}

/// The same, with writers that spin in the queue.
#[derive(Debug)]
pub struct PreReadSpinQueued;

impl XaddTuning for PreReadSpinQueued {
    const WRITER_SPIN: WriterSpin = WriterSpin::Queued;
    const SINGLE_WAKER: bool = false;
    type Spinners = Standard;
}

/// The whole series, with writers that spin only for a writer (July 2014).
#[derive(Debug)]
pub struct OwnerKnown;

impl XaddTuning for OwnerKnown {
    const SPINS_WITHOUT_OWNER: bool = false;
    type Spinners = Standard;
}

/// All but the pre-reads.
#[derive(Debug)]
pub struct NoPreRead;

impl XaddTuning for NoPreRead {
    const TRY_PRE_READ: bool = false;
    const WAKE_PRE_READ: bool = false;
    type Spinners = Standard;
}

/// All but spinning.
#[derive(Debug)]
pub struct NoSpin;

impl XaddTuning for NoSpin {
    const WRITER_SPIN: WriterSpin = WriterSpin::Never;
    type Spinners = Standard;
}

/// All but the optimisation of the spinners' queue.
#[derive(Debug)]
pub struct SelfGrantedSpinners;

impl XaddTuning for SelfGrantedSpinners {
    type Spinners = SelfGranted;
}
