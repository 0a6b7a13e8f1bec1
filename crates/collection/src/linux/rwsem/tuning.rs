//! The switches: steps in the semaphore's history.

switches! {
    /// The switches of [`Rwsem`](super::Rwsem).
    pub trait RwsemTuning;
    SWITCHES from 56;

    /// Whether writers spin before they queue, one at a time.
    fn writer_spin("writer-spin") -> bool as flag = true;
    /// Whether they spin for readers too, for as long as the next three switches say. After that
    /// time, no thread spins until the readers have gone.
    fn reader_owned_spin("reader-owned-spin") -> bool as flag = true;
    /// How long a writer spins for readers, in ns, whatever their number. Source: 10 us (Linux
    /// 5.3).
    fn reader_spin_base_ns("reader-spin-base-ns") -> u64 as number(0, 1 << 30) = 10_000;
    /// How much longer it spins for each reader, in ns. Source: half a us (Linux 5.3).
    fn reader_spin_each_ns("reader-spin-each-ns") -> u64 as number(0, 1 << 20) = 500;
    /// How many readers count for that, at most. Source: 25 us in total (Linux 5.3).
    fn reader_spin_readers("reader-spin-readers") -> u64 as number(0, 1 << 20) = 30;
    /// Whether readers spin for a writer too (Linux 5.3 to 5.10). This splits groups of readers
    /// that could hold the lock together.
    fn reader_spin("reader-spin") -> bool as flag = false;
    /// Whether a reader that finds sleepers, but no writer, goes ahead of them (Linux 5.11), unless
    /// other readers hold the lock already.
    fn reader_steal("reader-steal") -> bool as flag = true;
    /// After how long, in ns, a waiter may ask that no thread overtakes the first waiter any more.
    /// `None`: never. 0: at its first failed attempt. Source: 4 ms (Linux 5.3: HZ / 250).
    fn handoff_ns("handoff-ns") -> Option<u64> as optional(1 << 40) = Some(4_000_000);
    /// Whether a first waiter that no thread may overtake spins on while the owner runs (Long,
    /// 2020).
    fn handoff_spin("handoff-spin") -> bool as flag = true;
    /// How many readers are let in at a time, at most; at least 1. Source: 2^8 (Linux 5.3).
    fn wake_readers_max("wake-readers") -> u64 as number(1, 1 << 20) = 1 << 8;
    /// Whether readers behind writers are let in together with the first.
    fn readers_past_writers("readers-past-writers") -> bool as flag = true;
}

crate::tuning! {
    /// No thread spins.
    pub struct NoSpin: RwsemTuning {
        writer_spin: bool = false;
        handoff_spin: bool = false;
    }
}

crate::tuning! {
    /// Writers spin for a writer only.
    pub struct NoSpinForReaders: RwsemTuning {
        reader_owned_spin: bool = false;
    }
}

crate::tuning! {
    /// Waiters can be overtaken for ever.
    pub struct NoHandoff: RwsemTuning {
        handoff_ns: Option<u64> = None;
    }
}

crate::tuning! {
    /// Readers come in up to the next writer only, as until Linux 5.2.
    pub struct LeadingReaders: RwsemTuning {
        readers_past_writers: bool = false;
    }
}

crate::tuning! {
    /// Readers queue whenever there are sleepers.
    pub struct NoReaderSteal: RwsemTuning {
        reader_steal: bool = false;
    }
}

crate::tuning! {
    /// Readers spin, and do not go ahead of sleepers otherwise: Linux 5.3 to 5.10.
    pub struct SpinningReaders: RwsemTuning {
        reader_spin: bool = true;
        reader_steal: bool = false;
    }
}
