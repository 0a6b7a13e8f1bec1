//! Cache lines that move between cores, and the timed accesses to them.
//!
//! ```text
//! page 0   . X . . . . . . . w . . . . . . . X . ...
//! page 1   . . . X . . . . . . . w . . . . . . . X ...
//!  ...
//!
//! X  a line that moves: four in a page of 4 KiB, so that each set of a cache holds equally many
//! w  a line that is only touched, for the page's translation
//! ```
//! Each line holds the offset of the next one, in a random order over all pages. So an access
//! cannot begin before the previous one has ended, and no prefetcher can predict the order.

use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

use nearlock_core::platform::Clock;
use nearlock_os::Os;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::memory::{Memory, wait_for_stores};

/// Bytes of a moving line. On a processor with longer lines, fewer others move along.
const LINE: usize = 64;
const PAGE: usize = 4096;
const LINES_PER_PAGE: usize = PAGE / LINE;
/// Number of pages: as many as the smallest first-level translation buffers of today hold.
const PAGES: usize = LINES_PER_PAGE;
/// Moving lines in each page.
const PER_PAGE: usize = 4;
/// Number of moving lines: 16 KiB, half of the smallest first-level cache.
pub const LINES: usize = PAGES * PER_PAGE;
/// Distance from a page's first moving line to the line that is touched for the translation.
const TOUCHED: usize = LINES_PER_PAGE / PER_PAGE / 2;
/// Number of lines outside the pages, for words that two threads pass to each other.
const WORDS: usize = LINES_PER_PAGE;

/// Seed of the order, so that it is the same in each run.
const SEED: u64 = 0x6e65_6172_6c6f_636b;

/// A timed access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// A load that needs the previous load's value.
    Load,
    /// A store, and a wait until it is visible.
    Store,
    /// An atomic addition that needs the previous addition's value.
    Atomic,
}

/// The lines, in memory of the NUMA node of the thread that made them.
pub struct Lines {
    memory: Memory,
    /// Offsets of the lines in the order of their chain.
    order: Vec<usize>,
    /// Offsets of the lines that are touched.
    touched: Vec<usize>,
}

impl Lines {
    /// Allocates and first touches the lines in the calling thread.
    pub fn new() -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        // The first line differs by page, so that the lines are spread over all sets.
        let firsts = shuffled(LINES_PER_PAGE, &mut random);
        let at = |page: usize, line: usize| page * PAGE + line % LINES_PER_PAGE * LINE;
        let spots: Vec<usize> = (0..LINES)
            .map(|n| at(n / PER_PAGE, firsts[n / PER_PAGE] + n % PER_PAGE * (LINES_PER_PAGE / PER_PAGE)))
            .collect();
        let order: Vec<usize> = shuffled(LINES, &mut random).into_iter().map(|n| spots[n]).collect();
        let touched = (0..PAGES).map(|page| at(page, firsts[page] + TOUCHED)).collect();
        let lines = Self { memory: Memory::zeroed(PAGES * PAGE + WORDS * LINE), order, touched };
        for page in 0..=PAGES {
            lines.memory.word(page * PAGE).store(0, Relaxed);
        }
        lines.own();
        lines
    }

    /// A word on its own line, apart from the moving lines.
    pub fn word(&self, number: usize) -> &AtomicUsize {
        assert!(number < WORDS);
        self.memory.word(PAGES * PAGE + number * LINE)
    }

    /// Stores to each line, so that the caller's cache has it in the modified state.
    pub fn own(&self) {
        for (place, &offset) in self.order.iter().enumerate() {
            self.memory.word(offset).store(self.after(place), Relaxed);
        }
    }

    /// Loads each line, so that the caller's cache has a copy.
    pub fn read(&self) {
        for &offset in &self.order {
            black_box(self.memory.word(offset).load(Relaxed));
        }
    }

    /// Drops each line from all caches, if this processor can do that.
    pub fn flush(&self) {
        // Ordering: SeqCst, a full fence: stores of other threads to the lines are in the caches
        // before the flushes. Pairs with nothing: it affects only the time of the accesses.
        fence(SeqCst);
        self.order.iter().for_each(|&offset| self.memory.flush(offset));
        // Ordering: SeqCst, a full fence: the flushes have ended before the caller continues. Pairs
        // with nothing.
        fence(SeqCst);
    }

    /// Accesses each line once, in the order of the chain. Returns the time of one access in ns,
    /// without the cost of reading the clock, `clock_ns`.
    pub fn time(&self, timed: Timed, clock_ns: f64) -> f64 {
        self.touched.iter().for_each(|&offset| _ = black_box(self.memory.word(offset).load(Relaxed)));
        let first = self.order[0];
        // Ordering: SeqCst, a full fence: no earlier access is in progress. Pairs with nothing.
        fence(SeqCst);
        let began = <Os>::now_ns();
        match timed {
            Timed::Load => _ = black_box(self.chase(first, |word| word.load(Relaxed))),
            Timed::Store => self.store_each(),
            Timed::Atomic => {
                // Hide the 0 from the compiler, which would replace the addition of 0 by a fence
                // and a load.
                let nothing = black_box(0);
                black_box(self.chase(first, |word| word.fetch_add(nothing, Relaxed)));
            }
        }
        let ns = <Os>::now_ns() - began;
        (ns as f64 - clock_ns) / LINES as f64
    }

    #[inline(always)]
    fn chase(&self, first: usize, access: impl Fn(&AtomicUsize) -> usize) -> usize {
        (0..LINES).fold(first, |offset, _| access(self.memory.word(offset)))
    }

    fn store_each(&self) {
        for place in 0..LINES {
            self.memory.word(self.order[place]).store(self.after(place), Relaxed);
            wait_for_stores();
        }
    }

    /// The content of the line at this place of the chain.
    #[inline(always)]
    fn after(&self, place: usize) -> usize {
        self.order[(place + 1) % LINES]
    }
}

/// The numbers below `n` in a random order.
fn shuffled(n: usize, random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        numbers.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_chain_goes_through_all_lines_and_back() {
        let lines = Lines::new();
        let mut seen = BTreeSet::new();
        let mut offset = lines.order[0];
        while seen.insert(offset) {
            assert!(offset.is_multiple_of(LINE) && !lines.touched.contains(&offset));
            offset = lines.memory.word(offset).load(Relaxed);
        }
        assert_eq!((seen.len(), offset), (LINES, lines.order[0]));
        for timed in [Timed::Load, Timed::Store, Timed::Atomic] {
            assert!(lines.time(timed, 0.0) > 0.0);
        }
        assert_eq!(lines.chase(offset, |word| word.load(Relaxed)), offset, "as before");
    }

    #[test]
    fn each_set_holds_equally_many_lines() {
        let lines = Lines::new();
        let mut sets = [0; LINES_PER_PAGE];
        lines.order.iter().for_each(|offset| sets[offset / LINE % LINES_PER_PAGE] += 1);
        assert_eq!(sets, [PER_PAGE; LINES_PER_PAGE]);
    }

    #[test]
    fn flushed_lines_keep_their_values() {
        let lines = Lines::new();
        lines.flush();
        assert_eq!(lines.chase(lines.order[0], |word| word.load(Relaxed)), lines.order[0]);
    }
}
