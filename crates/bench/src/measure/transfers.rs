//! Line transfers from one core to another: every operation on every state of a line.
//!
//! ```text
//! holder           own              own        own
//! reader                            read
//! measurer                                     read
//! holder                            read       read
//! measurer         time             time       time
//!                  `load_modified`  `load_     `store_shared`,
//!                  ...               shared`   ...
//! ```
//! A line is shared only after the holder has read it again. Some processors pass a modified line
//! to its first reader together with the right to write it, because such a reader usually writes
//! the line next.
//!
//! The cores take turns on a few hundred lines. In its turn a core accesses all of the lines before
//! the next core begins. Each sample is the mean of two such sequences: one with lines from the
//! measurer's NUMA node, and one with lines from the holder's. Only loads from memory have one
//! sequence, with the holder's lines.

use std::collections::BTreeMap;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use nearlock_core::lockstat::Unwatched;
use nearlock_core::native::Wait;
use nearlock_core::platform::{Clock, Platform};
use nearlock_os::Os;
use nearlock_workload::locktorture::OwnLine;

use super::MeasureError;
use super::lines::{Lines, Timed};
use super::memory::CAN_FLUSH;
use super::threads::{Conditions, Rank, on_cpu, on_cpus};

/// An operation and the state of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Load of a line that the holder has modified.
    LoadModified,
    /// Load of a line that holder and reader have. Without a reader, the measurer had it too and
    /// has evicted it from its own caches.
    LoadShared,
    /// Load of a line that no cache has, from the memory of the holder's NUMA node.
    LoadMemory,
    /// Store to a line that the measurer itself has modified, until the store is visible: the cost
    /// of this wait.
    StoreOwned,
    /// Store to a line that the holder has modified, until it is visible.
    StoreModified,
    /// Store to a line that holder and measurer have, until it is visible.
    StoreShared,
    /// Atomic on a line that the holder has modified.
    AtomicModified,
    /// Atomic on a line that holder and measurer have.
    AtomicShared,
    /// Atomic on a line that the holder has modified and that the measurer has then loaded. If such
    /// a load also obtains the right to write, the atomic is as fast as on the measurer's own line.
    AtomicLoaded,
    /// Half of the round trip of a word that measurer and holder alternately change by
    /// compare-and-swap.
    PingPong,
}

/// Operations in which the cores take turns.
const BY_TURNS: [Kind; 9] = [
    Kind::LoadModified,
    Kind::LoadShared,
    Kind::LoadMemory,
    Kind::StoreOwned,
    Kind::StoreModified,
    Kind::StoreShared,
    Kind::AtomicModified,
    Kind::AtomicShared,
    Kind::AtomicLoaded,
];

/// The CPUs of the threads that take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cast {
    /// The CPU whose accesses are timed.
    pub measurer: u32,
    /// The CPU that has the lines before.
    pub holder: u32,
    /// A CPU near the holder, on another core.
    pub reader: Option<u32>,
    /// Without a reader: bytes to load until the measurer's own caches have evicted everything
    /// else. `None` if that is useless, because the measurer's cache domain would still have the
    /// lines.
    pub displace: Option<usize>,
}

/// Samples in ns, by operation.
pub type Samples = BTreeMap<Kind, Vec<f64>>;

const MEASURER: usize = 0;
const HOLDER: usize = 1;
const READER: usize = 2;

/// A thread's operation on all lines in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Own,
    Read,
    Flush,
    Displace,
    Time(Timed),
}

/// The sequence of threads and their operations; `None` if these threads cannot produce the state.
fn script(kind: Kind, cast: &Cast) -> Option<Vec<(usize, Act)>> {
    use Act::{Displace, Flush, Own, Read, Time};
    use Timed::{Atomic, Load, Store};
    Some(match kind {
        Kind::LoadModified => vec![(HOLDER, Own), (MEASURER, Time(Load))],
        Kind::LoadShared if cast.reader.is_some() => {
            vec![(HOLDER, Own), (READER, Read), (HOLDER, Read), (MEASURER, Time(Load))]
        }
        Kind::LoadShared => {
            cast.displace?;
            let shared = [(HOLDER, Own), (MEASURER, Read), (HOLDER, Read)];
            shared.into_iter().chain([(MEASURER, Displace), (MEASURER, Time(Load))]).collect()
        }
        Kind::LoadMemory if !CAN_FLUSH => return None,
        Kind::LoadMemory => vec![(MEASURER, Flush), (MEASURER, Time(Load))],
        Kind::StoreOwned => vec![(MEASURER, Own), (MEASURER, Time(Store))],
        Kind::StoreModified => vec![(HOLDER, Own), (MEASURER, Time(Store))],
        Kind::StoreShared => vec![(HOLDER, Own), (MEASURER, Read), (HOLDER, Read), (MEASURER, Time(Store))],
        Kind::AtomicModified => vec![(HOLDER, Own), (MEASURER, Time(Atomic))],
        Kind::AtomicShared => vec![(HOLDER, Own), (MEASURER, Read), (HOLDER, Read), (MEASURER, Time(Atomic))],
        Kind::AtomicLoaded => vec![(HOLDER, Own), (MEASURER, Read), (MEASURER, Time(Atomic))],
        Kind::PingPong => return None,
    })
}

/// Turns of waiting before a waiter yields: about 100 us.
const PATIENCE: u32 = 5_000;

/// Spins for a long time, then yields. The awaited thread may have lost its CPU to other threads.
/// Another process that measures may even keep that CPU until the waiter yields.
#[derive(Debug)]
pub struct LongSpin;

impl Wait for LongSpin {
    type Hooks = Unwatched;

    fn turn(turn: u32) {
        if turn < PATIENCE { spin_loop() } else { nearlock_os::sched_yield() }
    }
}

/// The current turn, and the lines.
struct Stage<'a> {
    cast: &'a Cast,
    rounds: usize,
    clock_ns: f64,
    /// Lines of the measurer's and of the holder's NUMA node.
    homes: &'a [Lines; 2],
    /// Number of turns that have ended.
    ended: OwnLine<AtomicU64>,
}

/// Takes `rounds` samples of each operation between these CPUs.
pub fn measure(cast: &Cast, rounds: usize, conditions: Conditions) -> Result<Samples, MeasureError> {
    let Conditions { clock_ns, priority } = conditions;
    let lines = |cpu| on_cpu(cpu, Rank::Foremost, priority, Lines::new);
    let homes = [lines(cast.measurer)?, lines(cast.holder)?];
    let stage = Stage { cast, rounds, clock_ns, homes: &homes, ended: OwnLine::default() };
    let cpus: Vec<u32> = [cast.measurer, cast.holder].into_iter().chain(cast.reader).collect();
    let mut samples = on_cpus(&cpus, Rank::Foremost, priority, &|thread| stage.play(thread))?;
    Ok(samples.swap_remove(MEASURER))
}

/// As [`measure`], for one core alone: loads from memory. In ns.
pub fn measure_memory(cpu: u32, rounds: usize, conditions: Conditions) -> Result<Vec<f64>, MeasureError> {
    on_cpu(cpu, Rank::Foremost, conditions.priority, || {
        let lines = Lines::new();
        let once = |_| {
            lines.flush();
            lines.time(Timed::Load, conditions.clock_ns)
        };
        (0..if CAN_FLUSH { rounds } else { 0 }).map(once).collect()
    })
}

impl Stage<'_> {
    /// All turns of one thread.
    fn play(&self, thread: usize) -> Samples {
        let scratch =
            (thread == MEASURER).then(|| vec![1_u64; self.cast.displace.unwrap_or(0) / size_of::<u64>()]);
        let scratch = scratch.unwrap_or_default();
        let mut samples = Samples::new();
        let mut turn = 0;
        for _ in 0..self.rounds {
            for kind in BY_TURNS {
                let Some(script) = script(kind, self.cast) else { continue };
                // Loads from memory use the holder's lines, because the distance to its NUMA node
                // is measured.
                let homes = if kind == Kind::LoadMemory { &self.homes[1..] } else { self.homes };
                let mut times = Vec::with_capacity(homes.len());
                for lines in homes {
                    for &(actor, act) in &script {
                        turn += 1;
                        if actor == thread {
                            self.wait_for_turn(turn);
                            times.extend(perform(act, lines, &scratch, self.clock_ns));
                            // Ordering: Release, pairs with the Acquire of `wait_for_turn`: this
                            // turn's accesses to the lines happen before the next turn.
                            self.ended.0.store(turn, Release);
                        }
                    }
                }
                if thread == MEASURER && times.len() == homes.len() {
                    let mean = times.iter().sum::<f64>() / times.len() as f64;
                    samples.entry(kind).or_default().push(mean);
                }
            }
        }
        if thread != READER {
            self.wait_for_turn(turn + 1);
            let passes = (0..self.rounds).map(|round| self.ping_pong(thread, round)).collect();
            samples.insert(Kind::PingPong, passes);
        }
        samples
    }

    fn wait_for_turn(&self, turn: u64) {
        // Ordering: Acquire, pairs with the Release at the end of a turn: all accesses to the lines
        // before that have happened before.
        <Os<LongSpin>>::wait_until(&self.ended.0, Acquire, |ended| ended + 1 == turn);
    }

    /// Passes a word of each home to and fro. Returns the time of one pass, in ns.
    fn ping_pong(&self, thread: usize, round: usize) -> f64 {
        const ROUND_TRIPS: usize = 64;
        let first = 2 * ROUND_TRIPS * round;
        let began = <Os>::now_ns();
        for lines in self.homes {
            let word = lines.word(0);
            for trip in 0..ROUND_TRIPS {
                pass(word, first + 2 * trip + thread);
            }
        }
        let ns = <Os>::now_ns() - began;
        (ns as f64 - self.clock_ns) / (2 * ROUND_TRIPS * self.homes.len()) as f64
    }
}

/// Sets the word to `expected + 1` as soon as it is `expected`.
fn pass(word: &AtomicUsize, expected: usize) {
    let mut failures = 0;
    while word.compare_exchange(expected, expected + 1, Relaxed, Relaxed).is_err() {
        failures += 1;
        if failures > PATIENCE {
            nearlock_os::sched_yield();
        }
    }
}

/// Performs an operation. Returns the time of an access if the operation is timed.
fn perform(act: Act, lines: &Lines, scratch: &[u64], clock_ns: f64) -> Option<f64> {
    const WORDS_PER_LINE: usize = 8;
    match act {
        Act::Own => lines.own(),
        Act::Read => lines.read(),
        Act::Flush => lines.flush(),
        Act::Displace => _ = black_box(scratch.iter().step_by(WORDS_PER_LINE).sum::<u64>()),
        Act::Time(timed) => return Some(lines.time(timed, clock_ns)),
    }
    None
}
