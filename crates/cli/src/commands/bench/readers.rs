//! What `--full` measures with `--read-percent`: the situations of the gates of reader-writer
//! locks.

use nearlock_bench::bench::{
    Candidate, Mode, Point, RwGrid, WRITER_SECTION_NS, WRITER_THINK_NS, WRITER_THREADS, Waiters,
};

/// The modes.
pub const MODES: [Mode; 5] =
    [Mode::Uncontended, Mode::Parallel, Mode::Free, Mode::Oversubscribed, Mode::Writer];

/// The lock whose gates they are, and its baseline. These are measured in all situations.
pub const LOCK: &str = "near-rwlock";
pub const BASELINE: &str = "parking-lot-0.13-rwlock";
/// A lock of the list that is shown beside the peers.
pub const OTHER: &str = "rwsem";
/// The control: no lock at all. It is only measured where all sections read, and fails elsewhere.
pub const CONTROL: &str = "lock-none";

/// The situations of the grid in which other locks are measured too. In all of them, the locks
/// would take an hour.
const SHOWN_THREADS: [usize; 3] = [2, 8, 32];
const SHOWN_SECTION_NS: u64 = 100;
const SHOWN_THINK_NS: u64 = 500;

/// A writer's sections in [`Mode::Uncontended`].
const WRITES: u64 = 0;
/// All sections read.
const READS: u64 = 100;

/// The given percentages that are measured in this mode.
pub fn percents(mode: Mode, given: &[u64]) -> Vec<Option<u64>> {
    let given_if = |fits: fn(u64) -> bool| given.iter().copied().filter(|&percent| fits(percent)).collect();
    let percents: Vec<u64> = match mode {
        // A writer without readers does not depend on the percentage.
        Mode::Uncontended => {
            let reader: Vec<u64> = given_if(|percent| percent == READS);
            [WRITES].into_iter().chain(reader).collect()
        }
        Mode::Parallel => given_if(|percent| percent == READS),
        Mode::Writer => return vec![None],
        _ => given_if(|percent| percent != READS),
    };
    percents.into_iter().map(Some).collect()
}

/// Numbers of threads and lengths of work that no flag chooses.
pub struct Defaults {
    pub threads: &'static [usize],
    pub section_ns: &'static [u64],
    pub think_ns: &'static [u64],
}

/// The numbers and lengths of this mode.
pub fn defaults(mode: Mode) -> Defaults {
    match mode {
        Mode::Parallel => Defaults {
            threads: &RwGrid::READERS,
            section_ns: &RwGrid::READERS_SECTION_NS,
            think_ns: &RwGrid::READERS_THINK_NS,
        },
        Mode::Writer => writer(),
        _ => Defaults {
            threads: &RwGrid::THREADS,
            section_ns: &RwGrid::SECTION_NS,
            think_ns: &RwGrid::THINK_NS,
        },
    }
}

/// The numbers and lengths of [`Mode::Writer`].
pub fn writer() -> Defaults {
    Defaults { threads: &WRITER_THREADS, section_ns: &WRITER_SECTION_NS, think_ns: &WRITER_THINK_NS }
}

/// Whether a lock is measured for comparison. With more threads than CPUs, locks whose waiters only
/// spin take long, or starve.
pub fn is_shown(lock: Candidate, mode: Mode, point: Point) -> bool {
    let reads_only = mode == Mode::Parallel && point.read_percent == Some(READS);
    if lock.name() == CONTROL {
        return reads_only;
    }
    if matches!(lock, Candidate::Peer(peer) if peer.waiters == Waiters::Stay) && mode.is_crowded() {
        return false;
    }
    matches!(mode, Mode::Uncontended | Mode::Writer)
        || reads_only
        || SHOWN_THREADS.contains(&point.threads)
            && (point.section_ns, point.think_ns) == (SHOWN_SECTION_NS, SHOWN_THINK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Candidate {
        Candidate::named(name).expect("is in a list")
    }

    #[test]
    fn locks_for_comparison_are_measured_in_some_situations() {
        let reads = |threads| Point { threads, section_ns: 0, think_ns: 0, read_percent: Some(100) };
        let mixed = |threads, section_ns| Point {
            threads,
            section_ns,
            think_ns: SHOWN_THINK_NS,
            read_percent: Some(90),
        };
        let [none, std, spin] = [CONTROL, "std-rwlock", "spin-rwlock"].map(named);
        for (mode, point, expected) in [
            (Mode::Parallel, reads(2), [true, true, true]),
            (Mode::Uncontended, Point { read_percent: Some(0), ..Point::ALONE }, [false, true, true]),
            (Mode::Free, mixed(2, SHOWN_SECTION_NS), [false, true, true]),
            (Mode::Oversubscribed, mixed(8, SHOWN_SECTION_NS), [false, true, false]),
            (Mode::Oversubscribed, mixed(8, 0), [false, false, false]),
            (Mode::Oversubscribed, mixed(16, SHOWN_SECTION_NS), [false, false, false]),
            (Mode::Writer, Point { threads: 8, ..Point::ALONE }, [false, true, false]),
        ] {
            let found = [none, std, spin].map(|lock| is_shown(lock, mode, point));
            assert_eq!(found, expected, "{} {point}", mode.name());
        }
        assert!(named(LOCK).has_readers() && named(BASELINE).has_readers() && named(OTHER).has_readers());
    }

    #[test]
    fn each_percentage_has_its_modes() {
        let of = |mode| percents(mode, &[100, 99, 0]);
        assert_eq!(of(Mode::Uncontended), [Some(0), Some(100)]);
        assert_eq!(of(Mode::Parallel), [Some(100)]);
        assert_eq!(of(Mode::Free), [Some(99), Some(0)]);
        assert_eq!(of(Mode::Writer), [None]);
        assert_eq!(percents(Mode::Uncontended, &[50]), [Some(0)]);
    }
}
