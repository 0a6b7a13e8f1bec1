use super::*;
use crate::Exclusive;
use nearlock_collection::classic::mcs::McsLock;
use nearlock_collection::controls::Busted;
use nearlock_os::Os;

/// Continues for this many steps and rounds.
#[derive(Default)]
struct Turns {
    left: u64,
    jobs: f64,
    waits: u64,
    acquisitions: u64,
    lock: usize,
}

impl Observer for Turns {
    fn turns_to(&mut self, lock: usize) {
        self.lock = lock;
    }
    fn waiting(&mut self) {
        self.waits += 1;
    }
    fn acquired(&mut self) {
        self.acquisitions += 1;
    }
    fn acquired_shared(&mut self) {
        self.acquisitions += 1;
    }
    fn progressed(&mut self, jobs: f64) {
        self.jobs += jobs;
    }
    fn goes_on(&mut self) -> bool {
        self.left -= 1;
        self.left > 0
    }
}

fn work_length(turns: u64) -> WorkLength {
    WorkLength { ns: 0, turns }
}

const SHORT: Params = Params {
    locking_percent: 50,
    rounds: 3,
    round: WorkLength { ns: 0, turns: 100 },
    sections: 5,
    root_sections: 0,
    root: Root::Last,
    end_sections: 0,
    end_step: WorkLength { ns: 0, turns: 1 },
    jobs: 0,
    section: WorkLength { ns: 0, turns: 20 },
    long_every: 0,
    long_section: WorkLength { ns: 0, turns: 2000 },
    read_section: WorkLength { ns: 0, turns: 20 },
    sleep_inside_percent: 0,
    sleep_inside_ns: 0,
    lines: 3,
    read_percent: 20,
    steps: 4,
    step: WorkLength { ns: 0, turns: 100 },
    sleep_percent: 0,
    sleep_ns: 0,
    spinlock: WorkLength { ns: 0, turns: 10 },
    updates: 0,
};

/// Counts of users, and of the data that their sections incremented.
struct Found {
    tally: Tally,
    /// Number of writers' sections by lock, and then of the root's lock, if it is not one of them.
    written: Vec<u64>,
    /// Number of sections of the spinlock.
    spins: u64,
    /// Number of updates of the counter.
    updates: u64,
}

/// Runs this many users with this many locks.
fn users<G: Gate>(users: u64, turns: u64, locks: usize, params: Params) -> Found {
    let guarded: Vec<Guarded<Os, G>> = (0..locks).map(|_| Guarded::default()).collect();
    let rest = CommonState::<Os>::default();
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        let begun: Vec<_> = (0..users)
            .map(|seed| {
                let (guarded, rest) = (&guarded, &rest);
                scope.spawn(move || {
                    let mut node = G::Node::default();
                    let mut observer = Turns { left: turns, ..Turns::default() };
                    let tally = User::new(guarded, rest, &mut node, params, seed).run(&mut observer);
                    assert_eq!(tally.reads + tally.writes, observer.acquisitions);
                    assert_eq!(observer.waits, observer.acquisitions);
                    assert!(observer.lock < locks + usize::from(params.root == Root::Rwsem));
                    tally
                })
            })
            .collect();
        for user in begun {
            let tally = user.join().expect("no user panics");
            all.writes += tally.writes;
            all.reads += tally.reads;
            all.spins += tally.spins;
            all.updates += tally.updates;
            all.torn += tally.torn;
        }
    });
    let written = guarded.iter().map(Guarded::written).chain([rest.written()]).collect();
    Found { tally: all, written, spins: rest.sections(), updates: rest.updates() }
}

#[test]
fn every_section_leaves_its_mark() {
    let Found { tally, written, spins, .. } = users::<Exclusive<McsLock<Os>>>(3, 200, 2, SHORT);
    assert_eq!((written.iter().sum(), spins), (tally.writes, tally.spins));
    assert_eq!((tally.spins, tally.torn), (600, 0));
    // A fifth of the sections only reads.
    assert!(tally.reads > 0 && tally.reads < tally.writes, "{tally:?}");
}

#[test]
fn a_locking_job_ends_with_sections_of_its_own() {
    let params = Params { locking_percent: 100, end_sections: 7, ..SHORT };
    // 12 rounds include four ends of a job of three rounds, independent of the first round.
    let Found { tally, written, .. } = users::<Exclusive<McsLock<Os>>>(1, 12, 2, params);
    assert_eq!(tally.writes + tally.reads, 12 * params.sections + 4 * 7);
    assert_eq!(written.iter().sum::<u64>(), tally.writes);
}

#[test]
fn users_begin_in_the_midst_of_their_jobs_unless_they_end() {
    let ends = |jobs| {
        let params = Params { locking_percent: 100, end_sections: 7, jobs, ..SHORT };
        // With one round each, only users that begin at the last of three rounds reach the end of a
        // job.
        let Found { tally, .. } = users::<Exclusive<McsLock<Os>>>(30, 1, 2, params);
        (tally.writes + tally.reads - 30 * params.sections) / 7
    };
    assert!((5..=15).contains(&ends(0)), "a third of 30: {}", ends(0));
    assert_eq!(ends(1), 0);
}

#[test]
fn the_counter_is_updated_in_each_step_and_before_each_section() {
    for (locking_percent, updates) in [(0, 3), (100, 2)] {
        let params = Params { locking_percent, updates, spinlock: WorkLength::default(), ..SHORT };
        let found = users::<Exclusive<McsLock<Os>>>(3, 50, 1, params);
        let stretches = if locking_percent == 0 { 150 } else { found.tally.writes + found.tally.reads };
        assert_eq!((found.updates, found.tally.updates), (stretches * updates, stretches * updates));
    }
}

#[test]
fn users_sleep_within_sections_and_between_them() {
    let params = Params {
        sleep_inside_percent: 20,
        sleep_inside_ns: 1_000,
        sleep_percent: 20,
        sleep_ns: 1_000,
        spinlock: WorkLength::default(),
        ..SHORT
    };
    let Found { tally, written, spins, .. } = users::<Exclusive<McsLock<Os>>>(3, 50, 1, params);
    assert_eq!((written.iter().sum(), spins, tally.spins), (tally.writes, 0, 0));
}

#[test]
fn the_roots_lock_has_its_share_of_a_round_whichever_it_is() {
    for root in [Root::Last, Root::Rwsem] {
        let params =
            Params { locking_percent: 100, read_percent: 0, sections: 3, root_sections: 6, root, ..SHORT };
        let locks = if root == Root::Last { 3 } else { 2 };
        let Found { tally, written, .. } = users::<Exclusive<McsLock<Os>>>(3, 50, locks, params);
        assert_eq!(tally.writes, 3 * 50 * 9, "{root:?}");
        assert_eq!(written[2..].iter().sum::<u64>(), 3 * 50 * 6, "{root:?}: {written:?}");
        assert_eq!(written[..2].iter().sum::<u64>(), 3 * 50 * 3, "{root:?}: {written:?}");
    }
}

#[test]
fn users_that_end_do_so_after_their_jobs_and_with_a_round() {
    let params = Params { locking_percent: 0, jobs: 120, read_percent: 0, ..SHORT };
    let Found { tally, written, .. } = users::<Exclusive<McsLock<Os>>>(2, u64::MAX, 1, params);
    assert_eq!((tally.spins, tally.writes), (2 * 120 * params.steps, 2 * params.sections));
    assert_eq!(written.iter().sum::<u64>(), tally.writes);
}

#[test]
fn sections_that_overlap_lose_updates() {
    // Sections are so long that even on one CPU a thread is preempted in a section.
    let params = Params { locking_percent: 100, section: work_length(200_000), read_percent: 0, ..SHORT };
    let lost = (0..100).any(|_| {
        let Found { tally, written, .. } = users::<Exclusive<Busted<Os>>>(3, 4, 1, params);
        written[0] < tally.writes
    });
    assert!(lost);
}

/// Writers exclude each other. Readers exclude no thread.
#[derive(Default)]
struct Torn(McsLock<Os>);

// SAFETY: the guarantees are those of the lock inside.
unsafe impl RawLock for Torn {
    type Node = <McsLock<Os> as RawLock>::Node;
    unsafe fn lock(&self, node: &Self::Node) {
        // SAFETY: by the caller's promise, also below.
        unsafe { self.0.lock(node) };
    }
    unsafe fn unlock(&self, node: &Self::Node) {
        // SAFETY: as above.
        unsafe { self.0.unlock(node) };
    }
}

// SAFETY: it does not keep its promise to readers. It is a control.
unsafe impl Gate for Torn {
    unsafe fn lock_shared(&self, _node: &Self::Node) {}
    unsafe fn unlock_shared(&self, _node: &Self::Node) {}
}

#[test]
fn readers_that_overlap_writers_see_it() {
    let params = Params {
        locking_percent: 100,
        read_percent: 50,
        read_section: work_length(200_000),
        section: work_length(1_000),
        ..SHORT
    };
    let torn = (0..100).any(|_| users::<Torn>(3, 4, 1, params).tally.torn > 0);
    assert!(torn);
}

#[test]
fn turns_add_up_to_jobs() {
    let (guarded, rest) = ([Guarded::<Os, Exclusive<McsLock<Os>>>::default()], CommonState::<Os>::default());
    for locking_percent in [0, 30, 100] {
        let params = Params { locking_percent, steps: 4, rounds: 3, ..SHORT };
        let mut node = Default::default();
        // A list has 100 jobs: `locking_percent` with three rounds, and the others with four steps.
        let turns = locking_percent * 3 + (100 - locking_percent) * 4;
        let mut observer = Turns { left: 20 * turns, ..Turns::default() };
        let mut user = User::new(&guarded, &rest, &mut node, params, 1);
        let tally = user.run(&mut observer);
        // A start within a list changes this by less than one list.
        assert!((observer.jobs - 2000.0).abs() < 20.0, "{locking_percent}: {}", observer.jobs);
        assert_eq!(tally.spins, 20 * turns);
    }
}

#[test]
#[should_panic(expected = "0 lines")]
fn a_section_without_lines_is_refused() {
    let (guarded, rest) = ([Guarded::<Os, Exclusive<McsLock<Os>>>::default()], CommonState::<Os>::default());
    let mut node = Default::default();
    User::new(&guarded, &rest, &mut node, Params { lines: 0, ..SHORT }, 1);
}

#[test]
fn one_of_so_many_sections_is_long_and_of_a_length_of_its_own() {
    let (guarded, rest) = ([Guarded::<Os, Exclusive<McsLock<Os>>>::default()], CommonState::default());
    let mut node = Default::default();
    let params = Params { long_every: 4, ..SHORT };
    let mut user = User::new(&guarded, &rest, &mut node, params, 1);
    let drawn: Vec<u64> = (0..4000).map(|_| user.inside().turns).collect();
    let (short, long): (Vec<u64>, Vec<u64>) = drawn.into_iter().partition(|&turns| turns == 20);
    assert!((800..1200).contains(&long.len()), "{} of {}", long.len(), long.len() + short.len());
    assert!(long.iter().all(|turns| (1000..=3000).contains(turns)));
    let mean = long.iter().sum::<u64>() as f64 / long.len() as f64;
    assert!((1900.0..2100.0).contains(&mean), "{mean}");
    user.params.long_every = 0;
    assert!((0..1000).all(|_| user.inside().turns == 20));
}
