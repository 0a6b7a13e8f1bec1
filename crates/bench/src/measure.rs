//! This machine as a machine file of the simulator.
//!
//! | module | what |
//! |---|---|
//! | `layout` | the CPUs that the process may use, as a symmetric machine |
//! | `threads` | threads pinned to CPUs, with priority over other threads |
//! | `lines`, `memory` | cache lines, and timed accesses to them |
//! | `transfers` | line transfers between cores |
//! | `local` | operations inside a core |
//! | `system`, `tick` | costs of the operating system |
//! | `figure` | one figure that represents many samples |
//! | `book` | all figures, and the machine description that they give |
//!
//! Everything is measured in many short pieces, so that an interruption spoils only one piece.

mod book;
mod figure;
mod layout;
mod lines;
mod local;
mod memory;
mod system;
pub(crate) mod threads;
mod tick;
mod transfers;

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use nearlock_os::register_membarrier;
use nearlock_sim::spec::{MachineSpec, MeasuredFigure, SpecError};
use nearlock_topology as topology;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::bench::{Calibration, TestBed};
use book::Book;
use layout::{Core, Layout};
pub use threads::Priority;
use threads::{Conditions, Rank};
use transfers::{Cast, Kind, Samples};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Enough for reproducible figures: about ten seconds.
    Full,
    /// Enough for a check that measuring works: about a second. The figures are rough.
    Quick,
}

/// Reason why a machine was not measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A thread could not be pinned to a CPU.
    #[error(
        "a thread cannot be pinned to CPU {cpu}: {source}; measuring needs a system that permits this, as Linux"
    )]
    Pin {
        /// The system's number of the CPU.
        cpu: u32,
        /// The system's error.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("a thread cannot be started: {source}")]
    Spawn {
        /// The system's error.
        source: io::Error,
    },
    /// All samples of a quantity were disturbed.
    #[error("no sample of {what} was usable: measure again while the machine is quieter")]
    Disturbed {
        /// The quantity.
        what: &'static str,
    },
    /// `progress` broke.
    #[error("interrupted")]
    Interrupted,
    /// The figures do not give a valid machine description.
    #[error("the figures give no valid machine; measure again, with less other load: {0}")]
    NoMachine(SpecError),
}

/// A figure with its key, unit and meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its key in the machine file, or a name that only this report uses.
    pub key: String,
    /// The unit.
    pub unit: &'static str,
    /// The figure.
    pub figure: MeasuredFigure,
    /// The meaning of the figure.
    pub meaning: &'static str,
}

/// A measured machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The machine description, with its [`measured`](MachineSpec::measured) table.
    pub machine: MachineSpec,
    /// All figures, in the order in which they were measured.
    pub rows: Vec<Row>,
}

/// Numbers of samples.
struct Amounts {
    /// Number of passes. Each pass measures everything inside processors with new threads and new
    /// memory.
    passes: usize,
    /// Samples over each distance in a pass, in all its pairs together.
    transfers: usize,
    /// Largest number of pairs of cores of a distance.
    pairs: usize,
    /// Samples in a pass of each operation inside a core, on each of [`CORES`].
    local: usize,
    /// Samples of each cost of the operating system.
    system: usize,
    /// Time for which the clock is watched.
    watch: Duration,
}

/// Largest number of cores whose insides are measured.
const CORES: usize = 4;
/// Seed of the drawn pairs, so that each run measures the same pairs.
const SEED: u64 = 1;

impl Amounts {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Full => Self {
                passes: 4,
                transfers: 400,
                pairs: 8,
                local: 100,
                system: 1000,
                watch: Duration::from_millis(900),
            },
            Effort::Quick => Self {
                passes: 1,
                transfers: 24,
                pairs: 2,
                local: 40,
                system: 60,
                watch: Duration::from_millis(200),
            },
        }
    }
}

/// Measures the part of the machine that the process may use, and calls it `name`. Before each
/// step, `progress` gets a description of the step, and can end the measurement. `priority` is
/// asked for, and may be refused.
///
/// # Errors
///
/// See [`MeasureError`]. Missing features of a machine (no second core, no membarrier) are not
/// errors. The machine file then lacks the figures, and its notes say so.
pub fn run(
    name: &str,
    effort: Effort,
    priority: Priority,
    mut progress: impl FnMut(&str) -> ControlFlow<()>,
) -> Result<Measurement, MeasureError> {
    let mut progress = |step: &str| match progress(step) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(MeasureError::Interrupted),
    };
    let amounts = Amounts::of(effort);
    let topology = topology::HostTopology::of_this_process();
    let machine = TestBed::this();
    let layout = Layout::of(&topology);
    let conditions = Conditions { clock_ns: Calibration::measure().clock_ns, priority };
    let mut book = Book::new(&layout, topology.quota.map(|quota| quota.cpus()));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let distances = layout.distances();
    let casts: Vec<_> =
        (0..distances.len()).map(|distance| casts(&layout, distance, amounts.pairs, &mut random)).collect();
    for pass in 1..=amounts.passes {
        progress(&format!("cores, pass {pass} of {}", amounts.passes))?;
        for core in spread(&layout.cores, CORES) {
            book.local.push(local::measure(core.cpus[0], amounts.local, conditions)?);
        }
        for (distance, (casts, name)) in casts.iter().zip(&distances).enumerate() {
            progress(&format!("lines over distance {name}, pass {pass} of {}", amounts.passes))?;
            add_pairs(&mut book.transfers[distance], casts, amounts.transfers, conditions)?;
        }
        if let Some(cast) = siblings(&layout) {
            progress("lines between hardware threads")?;
            add_pairs(&mut book.siblings, &[cast], amounts.transfers / 4, conditions)?;
        }
        if layout.cores.len() == 1 {
            progress("memory")?;
            let samples = transfers::measure_memory(layout.cores[0].cpus[0], amounts.transfers, conditions)?;
            book.transfers[0].entry(Kind::LoadMemory).or_default().extend(samples);
        }
    }
    book.has_readers = casts.iter().map(|casts| casts.iter().any(|cast| cast.reader.is_some())).collect();
    of_system(&mut book, &layout, &amounts, conditions, &mut progress)?;
    book.close(name, &machine, priority.permitted())
}

/// Measures the costs of the operating system.
fn of_system(
    book: &mut Book,
    layout: &Layout,
    amounts: &Amounts,
    conditions: Conditions,
    progress: &mut impl FnMut(&str) -> Result<(), MeasureError>,
) -> Result<(), MeasureError> {
    let first = layout.cores[0].cpus[0];
    progress("futex and scheduler")?;
    book.futex_call = system::futex_call(first, amounts.system, conditions)?;
    book.switch = system::futex_hand_over([first; 2], Rank::Batch, amounts.system, conditions)?;
    if let Some(other) = layout.cpus().iter().find(|&cpu| cpu != first) {
        // Prefer another core to another hardware thread of this core.
        let other = layout.cores.get(1).map_or(other, |core| core.cpus[0]);
        book.wake = system::wake([first, other], amounts.system, conditions)?;
        book.hand_over = system::futex_hand_over([first, other], Rank::Foremost, amounts.system, conditions)?;
        if register_membarrier() {
            progress("membarrier")?;
            book.heavy_fence = system::heavy_fence([first, other], amounts.system, conditions)?;
        }
    }
    progress("timer tick")?;
    let gaps = tick::watch(first, amounts.watch, conditions.priority)?;
    book.tick = tick::find(&gaps, amounts.watch);
    Ok(())
}

/// Adds samples of these pairs.
fn add_pairs(
    all: &mut Samples,
    casts: &[Cast],
    samples: usize,
    conditions: Conditions,
) -> Result<(), MeasureError> {
    for cast in casts {
        let each = samples.div_ceil(casts.len());
        for (kind, samples) in transfers::measure(cast, each, conditions)? {
            all.entry(kind).or_default().extend(samples);
        }
    }
    Ok(())
}

/// At most `most` elements, evenly spread.
fn spread<T>(all: &[T], most: usize) -> impl Iterator<Item = &T> {
    all.iter().step_by(all.len().div_ceil(most).max(1))
}

/// At most `most` pairs of cores at this distance, drawn at random.
fn casts(layout: &Layout, distance: usize, most: usize, random: &mut Xoshiro256PlusPlus) -> Vec<Cast> {
    let apart = |a: &Core, b: &Core| a != b && layout.distance(a, b) == distance;
    let mut pairs: Vec<(&Core, &Core)> = layout
        .cores
        .iter()
        .flat_map(|a| layout.cores.iter().filter(move |b| apart(a, b)).map(move |b| (a, b)))
        .collect();
    let drawn = pairs.len().min(most);
    for place in 0..drawn {
        let left = (pairs.len() - place) as u64;
        pairs.swap(place, place + (random.next_u64() % left) as usize);
    }
    pairs.truncate(drawn);
    pairs.into_iter().map(|(measurer, holder)| cast(layout, distance, measurer, holder)).collect()
}

fn cast(layout: &Layout, distance: usize, measurer: &Core, holder: &Core) -> Cast {
    let near = |core: &&Core| core.domain == holder.domain;
    let as_far = |core: &&Core| layout.distance(core, measurer) == distance;
    let others = || layout.cores.iter().filter(|core| ![measurer, holder].contains(core));
    let reader = others().find(near).or_else(|| others().find(as_far)).map(|core| core.cpus[0]);
    let displace = (distance == 0).then(|| memory::private_cache_bytes(measurer.cpus[0]) * 4);
    Cast { measurer: measurer.cpus[0], holder: holder.cpus[0], reader, displace }
}

/// Two hardware threads of one core.
fn siblings(layout: &Layout) -> Option<Cast> {
    let [measurer, holder] = *layout.cores.first()?.cpus.first_chunk()?;
    Some(Cast { measurer, holder, reader: None, displace: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_topology::{LastLevelCache, NumaNode, NumberList};

    /// Two sockets, each with two caches of `cores` cores with two hardware threads each.
    fn machine(cores: u32) -> Layout {
        let cpus = |from: u32, to: u32| (2 * from * cores..2 * to * cores).collect::<NumberList>();
        let node = |number: u32| NumaNode {
            number,
            cpus: cpus(2 * number, 2 * number + 2),
            distances: if number == 0 { vec![10, 20] } else { vec![20, 10] },
        };
        Layout::of(&topology::HostTopology {
            possible: cpus(0, 4),
            online: cpus(0, 4),
            allowed: cpus(0, 4),
            nodes: vec![node(0), node(1)],
            cores: (0..4 * cores).map(|core| NumberList::from_iter([2 * core, 2 * core + 1])).collect(),
            last_level_caches: (0..4).map(|n| LastLevelCache { level: 3, cpus: cpus(n, n + 1) }).collect(),
            quota: None,
        })
    }

    fn core(layout: &Layout, cpu: u32) -> &Core {
        layout.cores.iter().find(|core| core.cpus.contains(&cpu)).expect("it is described")
    }

    #[test]
    fn threads_of_a_cast_are_on_cores_that_are_as_far_apart_as_asked() {
        let layout = machine(3);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        for distance in 0..layout.distances().len() {
            let casts = casts(&layout, distance, 5, &mut random);
            assert_eq!(casts.len(), 5);
            for cast in &casts {
                let [measurer, holder] = [cast.measurer, cast.holder].map(|cpu| core(&layout, cpu));
                assert_eq!(layout.distance(measurer, holder), distance);
                let reader = core(&layout, cast.reader.expect("three cores to a cache"));
                assert!(reader != measurer && reader != holder && reader.domain == holder.domain, "{cast:?}");
                assert_eq!(casts.iter().filter(|other| *other == cast).count(), 1, "drawn once");
            }
        }
        let siblings = siblings(&layout).expect("two threads to a core");
        assert_eq!(core(&layout, siblings.measurer), core(&layout, siblings.holder));
    }

    #[test]
    fn without_a_near_core_the_reader_is_as_far_away_or_missing() {
        let layout = machine(1);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        assert!(casts(&layout, 0, 5, &mut random).is_empty(), "one core to a cache");
        assert!(casts(&layout, 1, 9, &mut random).iter().all(|cast| cast.reader.is_none()));
        let far = casts(&layout, 2, 99, &mut random);
        assert_eq!(far.len(), 8, "all pairs");
        for cast in far {
            let [measurer, reader] = [cast.measurer, cast.reader.expect("the holder's neighbour")];
            assert_eq!(layout.distance(core(&layout, measurer), core(&layout, reader)), 2);
        }
    }

    #[test]
    fn elements_are_spread_evenly() {
        let spread = |all: &[u32], most| spread(all, most).copied().collect::<Vec<_>>();
        assert_eq!(spread(&[0, 1, 2, 3, 4, 5, 6, 7], 4), [0, 2, 4, 6]);
        assert_eq!(spread(&[0, 1, 2, 3, 4], 4), [0, 2, 4]);
        assert_eq!(spread(&[7], 4), [7]);
    }
}
