//! The steps of the semaphore's history, as switches.

use crate::tuning::Standard;

/// How long a writer spins for readers, as they say nothing of when they will be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderSpin {
    /// In ns, for any.
    pub base_ns: u64,
    /// In ns, for each reader more.
    pub each_ns: u64,
    /// How many readers count, at most.
    pub readers_max: u64,
}

/// The switches of [`Rwsem`](super::Rwsem).
pub trait RwsemTuning: Send + Sync + 'static {
    /// Whether writers spin before they queue, one at a time.
    const WRITER_SPIN: bool = true;
    /// How long they do so for readers; `None`: not at all. When the time is over, nobody does until the readers have
    /// gone. Source: 10 us, half a us for each reader, and 25 us at most (Linux 5.3).
    const READER_OWNED_SPIN: Option<ReaderSpin> =
        Some(ReaderSpin { base_ns: 10_000, each_ns: 500, readers_max: 30 });
    /// Whether readers spin for a writer too (Linux 5.3 to 5.10). It splits groups of readers that could go together.
    const READER_SPIN: bool = false;
    /// Whether a reader that finds sleepers, but nobody who writes, goes ahead of them (Linux 5.10), unless
    /// other readers have it already.
    const READER_STEAL: bool = true;
    /// After how long, in ns, a waiter may ask that nobody overtake the first any more; `None`: never. 0: at its first
    /// failed attempt. Source: 4 ms (Linux 5.3: HZ / 250).
    const HANDOFF_NS: Option<u64> = Some(4_000_000);
    /// Whether a first waiter for whom nobody may overtake spins on, as long as the owner runs (Linux 5.12).
    const HANDOFF_SPIN: bool = true;
    /// How many readers are let in at a time, at most; at least 1. Source: 2^8 (Linux 5.3).
    const WAKE_READERS_MAX: u64 = 1 << 8;
    /// Whether readers behind writers are let in together with the first.
    const READERS_PAST_WRITERS: bool = true;
}

/// Linux 5.11 and later.
impl RwsemTuning for Standard {}

/// Nobody spins.
#[derive(Debug)]
pub struct NoSpin;

impl RwsemTuning for NoSpin {
    const WRITER_SPIN: bool = false;
    const HANDOFF_SPIN: bool = false;
}

/// Writers spin for a writer only.
#[derive(Debug)]
pub struct NoSpinForReaders;

impl RwsemTuning for NoSpinForReaders {
    const READER_OWNED_SPIN: Option<ReaderSpin> = None;
}

/// Waiters can be overtaken for ever.
#[derive(Debug)]
pub struct NoHandoff;

impl RwsemTuning for NoHandoff {
    const HANDOFF_NS: Option<u64> = None;
}

/// Readers come in up to the next writer only, as until Linux 5.2.
#[derive(Debug)]
pub struct LeadingReaders;

impl RwsemTuning for LeadingReaders {
    const READERS_PAST_WRITERS: bool = false;
}

/// Readers queue wherever somebody sleeps.
#[derive(Debug)]
pub struct NoReaderSteal;

impl RwsemTuning for NoReaderSteal {
    const READER_STEAL: bool = false;
}

/// Readers spin, and do not go ahead of sleepers otherwise: Linux 5.3 to 5.9.
#[derive(Debug)]
pub struct SpinningReaders;

impl RwsemTuning for SpinningReaders {
    const READER_SPIN: bool = true;
    const READER_STEAL: bool = false;
}
