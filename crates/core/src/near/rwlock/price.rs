//! Whether there are enough reads for the fenced mode. The terms are those of the [lock](super).
//!
//! A write costs more in the fenced mode than in the counted mode, and a read costs less. The
//! *price* of a write is the number of reads that make up for that. Each write *spends* so many of
//! the reads that there were. The others are *spare*. The lock becomes fenced when twice the price
//! is spare, and nearly `BATCH` more. It becomes counted when a write finds less than the price. So
//! a lock with a mean of more reads per write than the price is fenced, although some of its writes
//! follow each other.
//!
//! ```text
//! reads    bits 0-15  how many reads there were
//!          bits 16-31 how many of them had the mutex
//! spent    bits 0-15  up to this value of `reads` they are spent
//!          bits 16-23 the price, if the setting `fenced-reads` is 64; 0: it is the setting
//!          bits 24-31 for how long the price holds in the fenced mode, in groups of writes
//! ```
//! All this is a hint: threads write to both words at the same time, and the last value stays. A
//! lock that never becomes biased may have 65536 reads without a write. It may then seem to have
//! few for a while.
//!
//! **The price** depends on the lengths of sections, and on how far the processors are away from
//! each other. In the fenced mode, a write waits for the lines of the lock and of the readers, and
//! then the readers wait for that of the lock. That takes some multiple of the time that a cache
//! line takes from one processor to another. In the counted mode, threads that read for short times
//! use the lock one after the other. So the fenced mode saves a share of the time for which readers
//! have the lock, and the price falls with the lengths of sections. A thread that finds a reader
//! measures both, before it waits for its turn (`watch`).
//!
//! Source: own.

use super::{NearRwLock, RwLockPlatform};
use crate::near::mutex::{MONOPOLISED_NS, NEWCOMERS_PER_PROBE, NearMutex};
use crate::near::transfer::{timed, transfer_ns};
use crate::platform::Atomic;
use crate::schedule::Spin;
use crate::settings::Setting;

/// With this setting, and greater ones, the lock is never fenced: so many reads are never spare.
const NEVER: u64 = 32_761;
const SPENT: u32 = (1 << PRICE_SHIFT) - 1;
const PRICE_SHIFT: u32 = 16;
const PRICE_MAX: u32 = 255;
/// A read of a reader that has the mutex, in `reads`.
const ONE_ALONE: u32 = 1 << ALONE_SHIFT | 1;
const ALONE_SHIFT: u32 = 16;
const HOLDS_SHIFT: u32 = 24;
const HOLDS: u32 = !0 << HOLDS_SHIFT;
/// The number of bits by which writes are chosen: one of 16 shortens the time for which a price
/// holds, until it doubles. So that is some 4000 writes: a few milliseconds, against the turn of
/// 0.2 ms for which the lock is counted while the price is measured. No comparison with others is
/// kept. At 1 a lock with sections of 100 ns is counted for half of the time. At a great value the
/// lock is fenced for long after its sections have become short.
const HOLDS_WRITES_BITS: u32 = 4;
/// 2^32 divided by the golden ratio. Multiples of it have high bits that look random.
const SCATTER: u32 = 0x9e37_79b9;
/// How many prices stay spare after a write. The value was chosen; no comparison with others is
/// kept. The number of reads between two writes varies by its mean, and fenced reads are noted
/// `BATCH` at a time. At 1, a lock with a third more reads than the price becomes counted every few
/// writes. At a great value the lock is fenced for long after its reads have become few.
const SPARE_PRICES: u64 = 32;

/// How many reads of a thread are noted in the lock at a time, unless the setting is less. With 1,
/// each fenced read would write to the lock.
const BATCH: u64 = 16;

/// The price times the length of a section is so many transfers of a cache line. Measured with two
/// threads that do nothing in their sections (AMD EPYC, family 26 model 2). Where a line took 22
/// ns, the counted mode did more work with 95 % reads, and the fenced mode with 99 %. Where it took
/// 130 ns, the counted mode did more with 99 %. `nearlock bench --lock near-rwlock --threads 2
/// --section-ns 0,100 --think-ns 0 --read-percent 99,95,90 --set near-rwlock.fenced-reads=16` (and
/// other values). More threads can save more by reading at the same time. At 0 the price is
/// `LEAST_PRICE`.
const TRANSFERS: u64 = 30;
/// The setting to which `TRANSFERS` belongs. With another setting, all prices change by that
/// factor.
const USUAL_SETTING: u64 = 64;
/// The least price, if the setting is the usual one: with sections of 100 ns and fewer reads, the
/// counted mode does more work. The command is that of `TRANSFERS`, with 80 and 70 % reads.
const LEAST_PRICE: u64 = 4;

/// The price falls by one part in so many after a watch in which no read has ended. The value was
/// chosen; no comparison with others is kept. With 2, a reader that loses its processor in a short
/// section makes the lock fenced, if two threads see that. At a great value many threads watch a
/// lock whose sections have become long.
const FALLS_BY: u64 = 16;

/// For how long a thread watches a reader that it has found, in ns. The value was chosen; no
/// comparison with others is kept. It is short against a turn. At 100 there are few sections to be
/// counted, and the transfer of the line takes a great part. At a great value a thread that could
/// read at the same time waits for that.
const WATCH_NS: u32 = 1000;
/// A thread that has watched for longer has lost its processor meanwhile. The reader may have had
/// turns then with other threads between them.
const WATCH_MAX_NS: u64 = 2 * WATCH_NS as u64;
/// How fast readers that have the mutex follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// A second reader loses less time by taking the cache line than it gains by reading at once.
    Slow,
    Medium,
    /// Their sections last less than `MONOPOLISED_NS`: one thread uses the mutex again and again.
    Fast,
}

impl<P: RwLockPlatform> NearRwLock<P> {
    /// The setting.
    pub(super) fn fenced_reads() -> u64 {
        P::setting(Setting::NearRwFencedReads)
    }

    /// How many reads of a thread are noted in the lock at a time.
    #[inline(always)]
    pub(super) fn batch() -> u64 {
        Self::fenced_reads().min(BATCH)
    }

    #[inline(always)]
    fn price(spent: u32) -> u64 {
        match (spent >> PRICE_SHIFT & PRICE_MAX, Self::fenced_reads()) {
            (0, setting) | (_, setting @ NEVER..) => setting,
            (price, setting) => (setting * u64::from(price)).div_ceil(USUAL_SETTING),
        }
    }

    #[inline(always)]
    fn spare(reads: u32, spent: u32) -> u64 {
        (reads.wrapping_sub(spent) & SPENT).into()
    }

    /// How many reads stay spare after a write.
    fn spare_max(price: u64) -> u64 {
        price.saturating_sub(1).saturating_mul(SPARE_PRICES)
    }

    /// `reads` after one more read of a reader that has the mutex.
    #[inline(always)]
    pub(super) fn with_read_alone(reads: u32) -> u32 {
        reads.wrapping_add(ONE_ALONE)
    }

    /// Whether there are enough reads for the fenced mode, if this is their number. One is enough
    /// if the price is 1.
    #[inline(always)]
    pub(super) fn are_many(&self, reads: u32) -> bool {
        let spent = self.spent.load_hint();
        Self::spare(reads, spent) + 2 >= Self::price(spent).saturating_mul(2).saturating_add(Self::batch())
    }

    /// Whether there are enough for the biased mode: so many that the setting is reached although
    /// the write before has left the most that it can.
    pub(super) fn are_very_many(&self, reads: u32) -> bool {
        let spent = self.spent.load_hint();
        let enough = P::setting(Setting::NearRwBiasedReads);
        Self::spare(reads, spent) >= enough.saturating_add(Self::spare_max(Self::price(spent)))
    }

    /// Whether there are too few for a write.
    pub(super) fn has_few_reads(&self) -> bool {
        let (reads, spent) = (self.reads.load_hint(), self.spent.load_hint());
        Self::spare(reads, spent) < Self::price(spent)
    }

    /// Spends the reads for a write.
    #[inline(always)]
    pub(super) fn spend_reads(&self) {
        let (reads, spent) = (self.reads.load_hint(), self.spent.load_hint());
        if Self::spare(reads, spent) != 0 {
            self.spend(reads, spent);
        }
    }

    /// The same. The price holds for a number of writes, and then doubles: a lock that stays fenced
    /// does not measure it. So a lock with few reads becomes counted, and measures it again.
    pub(super) fn spend_in_fenced_mode(&self) {
        let (reads, spent) = (self.reads.load_hint(), self.spent.load_hint());
        let spent = match spent & HOLDS {
            0 => spent & SPENT | Self::next_price(spent) << PRICE_SHIFT | HOLDS,
            _ if reads.wrapping_mul(SCATTER) >> (u32::BITS - HOLDS_WRITES_BITS) == 0 => {
                spent - (1 << HOLDS_SHIFT)
            }
            _ => spent,
        };
        self.spend(reads, spent);
    }

    /// That of the usual setting if there is no price yet, and otherwise twice the price.
    fn next_price(spent: u32) -> u32 {
        match spent >> PRICE_SHIFT & PRICE_MAX {
            0 => USUAL_SETTING as u32,
            price => (2 * price).min(PRICE_MAX),
        }
    }

    /// Forgets the price, so that the next reader that finds another one measures it.
    pub(super) fn forget_price(&self) {
        self.spent.store_hint(self.spent.load_hint() & SPENT);
    }

    #[inline(always)]
    fn spend(&self, reads: u32, spent: u32) {
        let price = Self::price(spent);
        let spare = Self::spare(reads, spent).saturating_sub(price).min(Self::spare_max(price));
        self.spent.store_hint(spent & !SPENT | reads.wrapping_sub(spare as u32) & SPENT);
    }

    /// Whether a thread that finds a reader measures the price although it is known: one in so many
    /// does as probe a mutex. If each did, each would wait for `WATCH_NS`. If few did, they would
    /// notice a change late.
    pub(super) fn watches_again() -> bool {
        P::random_u32() % NEWCOMERS_PER_PROBE == 1
    }

    /// Counts for a while how many readers have the mutex, one after the other. The mutex is not
    /// read meanwhile, so its cache line stays with them. Sets the price.
    pub(super) fn watch(&self) -> Pace {
        let begin_ns = P::now_ns();
        let before = self.reads.load_hint();
        NearMutex::<P>::pause(WATCH_NS, &mut Spin::default());
        let passed_ns = P::now_ns().saturating_sub(begin_ns);
        let after = timed::<P>(before, || self.reads.load_hint());
        let reads = u64::from(after.wrapping_sub(before) >> ALONE_SHIFT);
        if passed_ns > WATCH_MAX_NS || reads == 0 && !self.mutex.is_open() {
            // In the second case a writer may have it.
            return Pace::Medium;
        }
        let transfer_ns = u64::from(transfer_ns::<P>());
        // The readers had to get the line back.
        let passed_ns = passed_ns.saturating_sub(transfer_ns).max(1);
        let price = (TRANSFERS * transfer_ns).saturating_mul(reads) / passed_ns;
        self.set_price(price, if reads == 0 { self.least_after_no_read() } else { 0 });
        match price {
            _ if price <= LEAST_PRICE => Pace::Slow,
            _ if passed_ns / reads < MONOPOLISED_NS => Pace::Fast,
            _ => Pace::Medium,
        }
    }

    /// The least price after a watch without a read that has ended. A reader that has lost its
    /// processor seems to read for long, and many threads may see that. So the price falls slowly.
    fn least_after_no_read(&self) -> u64 {
        let before = match self.spent.load_hint() >> PRICE_SHIFT & PRICE_MAX {
            0 => USUAL_SETTING,
            price => price.into(),
        };
        before.saturating_sub(before / FALLS_BY + 1)
    }

    /// Sets the price, but at least `least`.
    fn set_price(&self, price: u64, least: u64) {
        let price = price.max(LEAST_PRICE).max(least).min(PRICE_MAX.into()) as u32;
        self.spent.store_hint(self.spent.load_hint() & SPENT | price << PRICE_SHIFT | HOLDS);
    }

    /// Whether readers are [slow](Pace::Slow), if that is known.
    pub(super) fn are_slow(&self) -> Option<bool> {
        match self.spent.load_hint() >> PRICE_SHIFT & PRICE_MAX {
            0 => None,
            price => Some(u64::from(price) <= LEAST_PRICE),
        }
    }
}

#[cfg(test)]
mod tests;
