//! context1: two threads alternately wake each other up, as in UnixBench's pipe-based context
//! switching.
//!
//! ```text
//! loop {  think
//!         lock                        (of all pairs, or of some)
//!         insert: read and write a few lines, the first last
//!         unlock
//!         wake the partner
//!         sleep until woken  }        (one thread of a pair is awake at a time)
//! ```
//! The original consists of two processes and two pipes. A number goes to and fro, and round trips
//! are counted. Each hop briefly takes several locks of the kernel (wait queue, sleeper, run
//! queue), wakes up the other process and sleeps. Here a hop takes one lock. The lines represent
//! the list heads and neighbours that such an insertion writes.
//!
//! The first line is read at the beginning of a section and written at its end, in two steps. So
//! any two sections that overlap lose an update. At the end the line must contain the number of
//! hops. Source: UnixBench's `context1`, from the description in its manual.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::parking::Parker;
use nearlock_core::platform::{Atomic, Park, Work};
use nearlock_core::raw::RawLock;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::lines::LockedLines;
use crate::locktorture::OwnLine;
use crate::sections::WorkLength;
use crate::{LINES_MAX, Observer};

/// The parkers of a pair's two threads.
#[repr(C)]
pub struct Pair<P: Park> {
    parkers: [OwnLine<Parker<P>>; 2],
    over: OwnLine<P::U32>,
}

impl<P: Park> Default for Pair<P> {
    fn default() -> Self {
        Self { parkers: Default::default(), over: OwnLine(Atomic::new(0)) }
    }
}

/// The parameters of a hop.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Work inside a section, in addition to its lines.
    pub section: WorkLength,
    /// Lines that a section reads and writes: 1 to [`LINES_MAX`].
    pub lines: usize,
    /// Average work between wake-up and lock. Each length is drawn from half to one and a half of
    /// this.
    pub think: WorkLength,
}

/// One of the two threads of a pair. The first thread begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The thread that begins.
    First,
    /// The thread that sleeps at first.
    Second,
}

/// One of the two threads of a pair.
pub struct Partner<'a, P: Park, L: RawLock> {
    shared: &'a LockedLines<P, L>,
    pair: &'a Pair<P>,
    side: Side,
    node: &'a L::Node,
    params: Params,
    rng: Xoshiro256PlusPlus,
}

impl<'a, P: Park + Work, L: RawLock> Partner<'a, P, L> {
    /// A thread whose random numbers follow from `seed`. The node and its side of the pair belong
    /// exclusively to it.
    ///
    /// # Panics
    ///
    /// If there are no lines, or more than [`LINES_MAX`].
    pub fn new(
        shared: &'a LockedLines<P, L>,
        pair: &'a Pair<P>,
        side: Side,
        node: &'a mut L::Node,
        params: Params,
        seed: u64,
    ) -> Self {
        assert!((1..=LINES_MAX).contains(&params.lines), "{} lines", params.lines);
        Self { shared, pair, side, node, params, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Alternates with the partner until the observer of either thread ends the run.
    pub fn run(&mut self, observer: &mut impl Observer) {
        let Pair { parkers: [first, second], over } = self.pair;
        let (mine, partners) = match self.side {
            Side::First => (first, second),
            Side::Second => (second, first),
        };
        if self.side == Side::Second {
            mine.0.park();
        }
        // Relaxed: the partner's token orders its accesses before this load.
        while over.0.load(Relaxed) == 0 {
            self.hop(observer);
            let goes_on = observer.goes_on();
            if !goes_on {
                over.0.store(1, Relaxed);
            }
            partners.0.unpark();
            if !goes_on {
                return;
            }
            mine.0.park();
        }
    }

    fn hop(&mut self, observer: &mut impl Observer) {
        self.params.think.vary((self.rng.next_u64() >> 32) as u32).pass::<P>();
        let Params { section, lines, .. } = self.params;
        // SAFETY: the node was borrowed exclusively, so it is this thread's own and stays in place.
        unsafe { self.shared.section(self.node, lines, observer, || section.pass::<P>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_collection::classic::mcs::McsLock;
    use nearlock_collection::controls::Busted;
    use nearlock_os::Os;

    /// Continues for this many hops.
    struct Times(u64);
    impl Observer for Times {
        fn goes_on(&mut self) -> bool {
            self.0 -= 1;
            self.0 > 0
        }
    }

    /// Number of hops of both sides of `pairs` pairs.
    fn hops<L: RawLock>(pairs: usize, each: [u64; 2], params: Params) -> u64 {
        let shared = LockedLines::<Os, L>::default();
        let places: Vec<Pair<Os>> = (0..pairs).map(|_| Pair::default()).collect();
        std::thread::scope(|scope| {
            for pair in &places {
                for (side, times) in [Side::First, Side::Second].into_iter().zip(each) {
                    let shared = &shared;
                    scope.spawn(move || {
                        let mut node = L::Node::default();
                        let mut partner = Partner::new(shared, pair, side, &mut node, params, 1);
                        partner.run(&mut Times(times));
                    });
                }
            }
        });
        shared.sections()
    }

    const SHORT: Params =
        Params { section: WorkLength { ns: 0, turns: 10 }, lines: 3, think: WorkLength { ns: 0, turns: 10 } };

    #[test]
    fn every_hop_leaves_its_mark_and_either_observer_ends_both_threads() {
        // The threads alternate. When one of them makes its last hop, the other has made as many
        // hops, or one less.
        assert_eq!(hops::<McsLock<Os>>(3, [100, 1000], SHORT), 3 * (100 + 99));
        assert_eq!(hops::<McsLock<Os>>(3, [1000, 100], SHORT), 3 * (100 + 100));
    }

    #[test]
    fn sections_that_overlap_lose_updates() {
        // Sections are so long that even on one CPU a thread is preempted in a section.
        let params = Params { section: WorkLength { ns: 0, turns: 200_000 }, ..SHORT };
        let lost = (0..100).any(|_| hops::<Busted<Os>>(3, [10, 10], params) < 57);
        assert!(lost);
    }

    #[test]
    #[should_panic(expected = "0 lines")]
    fn a_section_without_lines_is_refused() {
        let mut node = <McsLock<Os> as RawLock>::Node::default();
        let (shared, pair) = (LockedLines::<Os, McsLock<Os>>::default(), Pair::default());
        Partner::new(&shared, &pair, Side::First, &mut node, Params { lines: 0, ..SHORT }, 1);
    }
}
