//! Jobs: users that run one job after another. Some jobs take kernel locks. This is the common
//! frame of AIM7, exim, and the page-fault and mapping benchmarks. The laboratory defines their
//! constants.
//!
//! ```text
//! user:         loop {  list of 100 jobs, shuffled; each is one of two kinds  }
//!               or a fixed number of jobs and one more round, and then the user ends
//!
//! quiet job:    steps {  compute;  give way;  perhaps sleep  }
//! locking job:  rounds {  sections {  compute;  one of K locks, at random, or the root's
//!                                     lock, for a reader or a writer
//!                                     lines: read, or read and write; the first at both ends
//!                                     work of the section; perhaps sleep
//!                                     unlock  }
//!                         give way;  perhaps sleep  }
//!               at the end, sections with little between them except giving way: the job
//!               releases its resources
//! both:         in each step or round, one short section of a spinlock that all users share
//!               updates of a counter that all users share, spread over the computation
//! ```
//! The population is closed: a user begins its next job when it has finished one. A locking job's
//! round represents one or a few system calls, such as a fork and the child's exit. The same user
//! does the child's part, because its parent waits for it. The spinlock and the counter represent
//! other parts of a kernel that do not scale. The spinlock is a ticket lock, like those of Linux
//! until 2015, and lets the users through one by one. The counter represents data that is shared
//! without a lock (counts of references, of pages, of files). All users make progress, but each of
//! them is slower the more users there are.
//!
//! The root's lock is a lock of another kind that the same rounds take, always as writers. It
//! represents the other locks of a kernel in which the type of one lock was changed. It is an
//! additional lock of the users, or a reader-writer semaphore of 2013 ([`Root`]).
//!
//! A writer reads the first line at the beginning of its section, and writes the value plus one at
//! its end. So any two sections that overlap lose an update. At the end the line must contain the
//! number of writers' sections. A reader must find it unchanged. Source: the behaviour of AIM7,
//! from `README.aim7` and the workfiles of the re-aim sources.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_collection::classic::ticket::TicketLock;
use nearlock_collection::linux::rwsem_xadd::{Base, RwsemXadd};
use nearlock_core::platform::{Atomic, AtomicInt, Park, Platform, Priority, Work};
use nearlock_core::raw::RawLock;
use nearlock_core::schedule::Schedule;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::lines::Lines;
use crate::locktorture::OwnLine;
use crate::sections::WorkLength;
use crate::{Exclusive, Gate, LINES_MAX, Observer};

/// Number of jobs of a user's list. It is re-aim's default.
pub const LIST: usize = 100;

/// A lock and the data that it protects, each on its own cache lines.
#[repr(C)]
pub struct Guarded<P: Platform, G> {
    gate: OwnLine<G>,
    lines: Lines<P>,
}

impl<P: Platform, G: Gate> Default for Guarded<P, G> {
    fn default() -> Self {
        Self { gate: OwnLine(G::default()), lines: Lines::default() }
    }
}

impl<P: Platform, G> Guarded<P, G> {
    /// Number of writers' sections that incremented the first line. Exact once all users have
    /// ended.
    pub fn written(&self) -> u64 {
        self.lines.written()
    }
}

/// The root's lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Root {
    /// The last of the users' locks, which is of the same type as the others.
    #[default]
    Last,
    /// A reader-writer semaphore of Linux 3.10, independent of the type of the other locks.
    Rwsem,
}

/// Other state that all users share: a spinlock and the line that it protects, a counter, and a
/// lock that may be the root's.
#[repr(C)]
pub struct CommonState<P: Platform> {
    spinlock: OwnLine<TicketLock<P>>,
    line: OwnLine<P::U64>,
    counter: OwnLine<P::U64>,
    root: Guarded<P, Exclusive<RwsemXadd<P, Base>>>,
}

impl<P: Park + Schedule + Priority> Default for CommonState<P> {
    fn default() -> Self {
        let zero = || OwnLine(Atomic::new(0));
        Self { spinlock: OwnLine::default(), line: zero(), counter: zero(), root: Guarded::default() }
    }
}

impl<P: Platform> CommonState<P> {
    /// Number of sections of the spinlock that incremented its line. Exact once all users have
    /// ended.
    pub fn sections(&self) -> u64 {
        self.line.0.load(Relaxed)
    }

    /// Number of updates of the counter. Exact once all users have ended.
    pub fn updates(&self) -> u64 {
        self.counter.0.load(Relaxed)
    }

    /// Number of sections of the root's lock that incremented its first line, if that lock is not
    /// one of the users' locks. Exact once all users have ended.
    pub fn written(&self) -> u64 {
        self.root.written()
    }
}

/// The parameters of jobs. Each length is drawn from half to one and a half of its value every
/// time, except the lengths of sections. Of those, only the lengths of long sections are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Number of jobs in 100 that take the locks.
    pub locking_percent: u64,
    /// Rounds of a locking job.
    pub rounds: u64,
    /// Work of a round outside its sections.
    pub round: WorkLength,
    /// Sections of a round.
    pub sections: u64,
    /// Additional sections of a round that take the root's lock.
    pub root_sections: u64,
    /// The root's lock.
    pub root: Root,
    /// Sections at the end of a locking job, one after the other, as when a process ends and
    /// releases its resources. The user may yield after each.
    pub end_sections: u64,
    /// Work between two of these sections.
    pub end_step: WorkLength,
    /// Number of jobs after which a user ends, with one more round; 0: it never ends. Users that
    /// end all begin at the start of their lists, and so end together. Other users begin somewhere
    /// in their lists, like users that have been running for a while.
    pub jobs: u64,
    /// Work inside a writer's section, in addition to its lines.
    pub section: WorkLength,
    /// One writers' section in this many is long; 0: no section is long.
    pub long_every: u64,
    /// Work inside a long section, instead of `section`.
    pub long_section: WorkLength,
    /// Work inside a reader's section.
    pub read_section: WorkLength,
    /// Number of writers' sections in 100 that sleep inside.
    pub sleep_inside_percent: u64,
    /// Time of this sleep, in ns.
    pub sleep_inside_ns: u64,
    /// Lines that a section touches: 1 to [`LINES_MAX`].
    pub lines: usize,
    /// Number of sections in 100 that only read.
    pub read_percent: u64,
    /// Steps of a quiet job.
    pub steps: u64,
    /// Work of a step.
    pub step: WorkLength,
    /// Number of steps and rounds in 100 that end with a sleep.
    pub sleep_percent: u64,
    /// Time of this sleep, in ns.
    pub sleep_ns: u64,
    /// Work inside a section of the spinlock. With no work at all, there are no such sections.
    pub spinlock: WorkLength,
    /// Number of updates of the counter in each step, and before each section. They are spread
    /// evenly over the work.
    pub updates: u64,
}

impl Params {
    /// Whether the last of the users' locks is the root's.
    pub fn has_root_among_locks(&self) -> bool {
        self.root_sections > 0 && self.root == Root::Last
    }
}

/// A user's counts, in addition to its observer's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of writers' sections.
    pub writes: u64,
    /// Number of readers' sections.
    pub reads: u64,
    /// Number of sections of the spinlock.
    pub spins: u64,
    /// Number of updates of the counter.
    pub updates: u64,
    /// Number of readers' sections in which a writer wrote.
    pub torn: u64,
}

/// One user.
pub struct User<'a, P: Platform, G: Gate> {
    guarded: &'a [Guarded<P, G>],
    common: &'a CommonState<P>,
    node: &'a G::Node,
    params: Params,
    list: [bool; LIST],
    tally: Tally,
    rng: Xoshiro256PlusPlus,
}

impl<'a, P: Work + Park + Schedule + Priority, G: Gate> User<'a, P, G> {
    /// A user whose random numbers follow from `seed`. The node belongs exclusively to it.
    ///
    /// # Panics
    ///
    /// If there are no locks, or if the only lock is the root's. If there are no lines, or more
    /// than [`LINES_MAX`]. If jobs have no steps or no rounds, or if rounds have no sections.
    pub fn new(
        guarded: &'a [Guarded<P, G>],
        common: &'a CommonState<P>,
        node: &'a mut G::Node,
        params: Params,
        seed: u64,
    ) -> Self {
        assert!(guarded.len() > usize::from(params.has_root_among_locks()), "no locks");
        assert!((1..=LINES_MAX).contains(&params.lines), "{} lines", params.lines);
        assert!(params.steps > 0 && params.rounds > 0 && params.sections > 0, "jobs without work");
        let list = core::array::from_fn(|job| (job as u64) < params.locking_percent);
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { guarded, common, node, params, list, tally: Tally::default(), rng }
    }

    /// Runs jobs until the observer ends the run, or until the user ends. The observer is asked
    /// after each step and round.
    pub fn run(&mut self, observer: &mut impl Observer) -> Tally {
        self.shuffle();
        let Params { jobs, end_sections, rounds, .. } = self.params;
        let mut next = if jobs == 0 { self.below(LIST as u64) as usize } else { 0 };
        // Start within the first locking job. Otherwise all users would reach its end at the same
        // time.
        let mut begun = if jobs == 0 && end_sections > 0 { self.below(rounds) } else { 0 };
        let mut done = 0;
        loop {
            let goes_on = if self.list[next] {
                self.locking(core::mem::take(&mut begun), observer)
            } else {
                self.quiet(observer)
            };
            if !goes_on {
                return self.tally;
            }
            done += 1;
            if done == self.params.jobs {
                self.round(observer);
                observer.progressed(0.0);
                return self.tally;
            }
            next += 1;
            if next == LIST {
                next = 0;
                self.shuffle();
            }
        }
    }

    /// Source: Fisher and Yates.
    fn shuffle(&mut self) {
        for last in (1..LIST).rev() {
            let other = self.below(last as u64 + 1) as usize;
            self.list.swap(last, other);
        }
    }

    fn quiet(&mut self, observer: &mut impl Observer) -> bool {
        let steps = self.params.steps;
        (0..steps).all(|_| {
            self.compute(self.params.step);
            self.end_of_turn(observer, 1.0 / steps as f64)
        })
    }

    /// A locking job of which `begun` rounds are already done.
    fn locking(&mut self, begun: u64, observer: &mut impl Observer) -> bool {
        let rounds = self.params.rounds;
        (begun + 1..=rounds).all(|n| {
            self.round(observer);
            if n == rounds {
                self.take_apart(observer);
            }
            self.end_of_turn(observer, 1.0 / rounds as f64)
        })
    }

    /// The sections at the end of a locking job. All of them run, even if the observer would end
    /// the run meanwhile.
    fn take_apart(&mut self, observer: &mut impl Observer) {
        for _ in 0..self.params.end_sections {
            self.pass(self.params.end_step);
            self.section(observer);
            P::may_give_way();
        }
    }

    /// One round. The root's sections are spread evenly among the others.
    fn round(&mut self, observer: &mut impl Observer) {
        let Params { sections, root_sections, round, .. } = self.params;
        let all = sections + root_sections;
        for n in 0..all {
            self.compute(round.divided(all));
            if (n + 1) * root_sections / all > n * root_sections / all {
                self.root_section(observer);
            } else {
                self.section(observer);
            }
        }
    }

    /// The end of each step and round. Returns whether to continue.
    fn end_of_turn(&mut self, observer: &mut impl Observer, share_of_job: f64) -> bool {
        if self.params.spinlock != WorkLength::default() {
            self.spinlock();
        }
        observer.progressed(share_of_job);
        P::may_give_way();
        self.sleep(self.params.sleep_percent, self.params.sleep_ns);
        observer.goes_on()
    }

    /// Number of locks without the root's.
    fn locks(&self) -> usize {
        self.guarded.len() - usize::from(self.params.has_root_among_locks())
    }

    fn section(&mut self, observer: &mut impl Observer) {
        let lock = self.below(self.locks() as u64) as usize;
        let is_reader = self.below(100) < self.params.read_percent;
        observer.turns_to(lock);
        observer.waiting();
        if is_reader {
            self.read(&self.guarded[lock], observer);
        } else {
            // SAFETY: the node was borrowed exclusively, so it is this user's own and stays in
            // place.
            unsafe { self.write(&self.guarded[lock], self.node, observer) };
        }
    }

    fn root_section(&mut self, observer: &mut impl Observer) {
        let lock = self.locks();
        observer.turns_to(lock);
        observer.waiting();
        match self.params.root {
            // SAFETY: as in `section`.
            Root::Last => unsafe { self.write(&self.guarded[lock], self.node, observer) },
            // SAFETY: this lock has no node.
            Root::Rwsem => unsafe { self.write(&self.common.root, &(), observer) },
        }
    }

    /// Safety: the node belongs to this user, and is not in use.
    unsafe fn write<H: Gate>(
        &mut self,
        Guarded { gate, lines }: &Guarded<P, H>,
        node: &H::Node,
        observer: &mut impl Observer,
    ) {
        // SAFETY: by the caller's promise. The node stays in place.
        unsafe { gate.0.lock(node) };
        observer.acquired();
        lines.write(self.params.lines, || {
            self.inside().pass::<P>();
            self.sleep(self.params.sleep_inside_percent, self.params.sleep_inside_ns);
        });
        observer.releasing();
        // SAFETY: locked above with this node.
        unsafe { gate.0.unlock(node) };
        self.tally.writes += 1;
    }

    /// Work of a writer's next section.
    fn inside(&mut self) -> WorkLength {
        let Params { section, long_every, long_section, .. } = self.params;
        if long_every == 0 || self.below(long_every) > 0 {
            return section;
        }
        long_section.vary(self.draw())
    }

    fn read(&mut self, Guarded { gate, lines }: &Guarded<P, G>, observer: &mut impl Observer) {
        // SAFETY: as in `section`.
        unsafe { gate.0.lock_shared(self.node) };
        observer.acquired_shared();
        let is_whole = lines.read(self.params.lines, || self.params.read_section.pass::<P>());
        self.tally.torn += u64::from(!is_whole);
        observer.releasing_shared();
        // SAFETY: locked above with this node.
        unsafe { gate.0.unlock_shared(self.node) };
        self.tally.reads += 1;
    }

    fn spinlock(&mut self) {
        let CommonState { spinlock, line, .. } = self.common;
        // SAFETY: a ticket lock has no node, and is unlocked below.
        unsafe { spinlock.0.lock(&()) };
        // Relaxed: the lock orders its holders.
        let n = line.0.load(Relaxed);
        self.params.spinlock.pass::<P>();
        line.0.store(n + 1, Relaxed);
        // SAFETY: locked above.
        unsafe { spinlock.0.unlock(&()) };
        self.tally.spins += 1;
    }

    /// Work of a step, or work before a section.
    fn compute(&mut self, work: WorkLength) {
        let Params { updates, .. } = self.params;
        if updates == 0 {
            return self.pass(work);
        }
        for _ in 0..updates {
            self.pass(work.divided(updates));
            self.common.counter.0.fetch_add(1, Relaxed);
        }
        self.tally.updates += updates;
    }

    /// Sleeps with this probability.
    fn sleep(&mut self, percent: u64, ns: u64) {
        if percent > 0 && self.below(100) < percent {
            P::sleep_ns(WorkLength::of_ns(ns).vary(self.draw()).ns);
        }
    }

    fn pass(&mut self, work_length: WorkLength) {
        work_length.vary(self.draw()).pass::<P>();
    }

    fn draw(&mut self) -> u32 {
        (self.rng.next_u64() >> 32) as u32
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.next_u64() % n
    }
}

#[cfg(test)]
mod tests;
