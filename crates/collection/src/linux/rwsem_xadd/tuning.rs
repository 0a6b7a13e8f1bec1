//! The switches: parts of the series of 2013.

use core::marker::PhantomData;

use crate::classic::mcs::McsTuning;

words! {
    /// When a writer spins for the lock.
    pub enum WriterSpin {
        /// Never: it sleeps at once.
        Never "never",
        /// Before it queues, so that the queue is not involved (since version 5 of the series).
        BeforeQueue "before-queue",
        /// In the queue (until version 4).
        Queued "queued",
    }
}

switches! {
    /// The switches of [`RwsemXadd`](super::RwsemXadd).
    pub trait XaddTuning;
    SWITCHES from 40;

    /// Whether a writer's `try_lock` reads the count before it tries to write it.
    fn try_pre_read("try-preread") -> bool as flag = true;
    /// Whether a waker reads the count before it adds a reader to it in advance. If a writer is
    /// active, it then adds none.
    fn wake_pre_read("wake-preread") -> bool as flag = true;
    /// When a writer spins.
    fn writer_spin("writer-spin") -> WriterSpin as word = WriterSpin::BeforeQueue;
    /// Whether a writer spins while no writer is known to hold the lock, which may mean that
    /// readers hold it. The series did; the kernel stopped it in July 2014.
    fn spins_without_owner("spins-without-owner") -> bool as flag = true;
    /// Whether a release leaves the wake-up to another release that is waking already.
    fn single_waker("single-waker") -> bool as flag = true;
    /// Whether the first spinner writes its own node: the MCS lock until January 2014.
    fn self_granted_spinners("self-granted-spinners") -> bool as flag = false;
}

/// The switches of the queue of spinners, which follow from those of the semaphore.
#[derive(Debug)]
pub struct Spinners<T>(PhantomData<T>);

// SAFETY: the semaphore's switch is constant, too.
unsafe impl<T: XaddTuning> McsTuning for Spinners<T> {
    #[inline(always)]
    fn grants_itself() -> bool {
        T::self_granted_spinners()
    }
}

crate::tuning! {
    /// Without the series: Linux 3.10 to 3.12.
    pub struct Base: XaddTuning {
        try_pre_read: bool = false;
        wake_pre_read: bool = false;
        writer_spin: WriterSpin = WriterSpin::Never;
        single_waker: bool = false;
    }
}

crate::tuning! {
    /// The single waker alone.
    pub struct SingleWaker: XaddTuning {
        try_pre_read: bool = false;
        wake_pre_read: bool = false;
        writer_spin: WriterSpin = WriterSpin::Never;
    }
}
