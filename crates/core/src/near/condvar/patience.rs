//! Whether a waiter of a condition variable looks for its notification before it parks.
//!
//! ```text
//! patience   bits 24-31 the processor of the thread that notified last, as in its mark
//!            0-3 paid: how often looking has paid off lately
//!
//!  paid  n -> min(n + PAID, 15)   a look has ended with the notification
//!        n -> max(n - 1, 0)       a look has ended without it
//! ```
//! A sleep and a wake-up take some microseconds of processor time, and longer until the thread
//! runs. Threads that exchange messages through a short queue often notify each other sooner. So a
//! waiter *looks* for its notification, for `LOOK_NS`, as long as that pays off in at least one of
//! three waits. Otherwise it parks at once, and one of `WAITS_PER_PROBE` waiters looks to find out
//! whether that has changed. It does not do that if the last notification came from its own
//! processor, since a notifier there cannot run while the waiter looks. The condition variables of
//! a chain share the word. A waiter that looks reads only its own record, so it takes no cache line
//! from another thread.
//!
//! A waiter does not look if the platform knows that only one thread of the process can run.
//!
//! Source: own. The two outcomes and the saturating number are those of a branch predictor: Smith,
//! "A study of branch prediction strategies", ISCA 1981. A look costs at most about as much as it
//! can save: Karlin, Li, Manasse, Owicki, "Empirical studies of competitive spinning for a
//! shared-memory multiprocessor", SOSP 1991.

use crate::parking::Waiter;
use crate::platform::{Atomic, Park, Platform, Random};
use crate::schedule::{Mark, Schedule, Spin};

/// How long a waiter looks, in ns. About the processor time of a sleep and a wake-up. With 0.5 us,
/// a bounded channel between eight threads seldom learns to look. With 5 us, it does so at once,
/// but each look that does not pay off costs as much (tried: docs/internals/tuning-mutex.md). At 0
/// no waiter looks.
const LOOK_NS: u32 = 3000;
/// The delay between two reads of the waiter's own record, in ns. The value was chosen; no
/// comparison with others is kept. The record stays in the cache of the waiter until it is
/// notified.
const STRIDE_NS: u32 = 20;
/// A look that has paid off counts for so many that have not. At 1, waiters look if that pays off
/// in half of the waits. At 15, they look for a while after each that has.
const PAID: u32 = 2;
/// From this number on all waiters look. In the middle, so that a change of the situation needs a
/// few looks in either direction.
const LOOKS_FROM: u32 = 8;
const MOST: u32 = 15;
/// The bits of a [`Mark`] that have the processor.
const PROCESSOR: u32 = 255 << 24;
/// While looking does not pay off, one of so many waiters looks. The value was chosen. It costs a
/// waiter `LOOK_NS` divided by this in the mean: 47 ns. A sleep and a wake-up take some
/// microseconds (`nearlock bench --mode condvar`). At 1 each waiter looks. At a million a channel
/// never learns to look.
const WAITS_PER_PROBE: u32 = 64;

/// See the [module](self). All zero: waiters park at once.
#[repr(transparent)]
pub struct Patience<P: Platform>(P::U32);

impl<P: Platform> Patience<P> {
    fn paid(&self) -> u32 {
        self.0.load_hint() & MOST
    }

    /// Notes the outcome of a look.
    fn note(&self, has_paid_off: bool) {
        let paid = self.paid();
        let now = if has_paid_off { (paid + PAID).min(MOST) } else { paid.saturating_sub(1) };
        self.set(self.0.load_hint() & PROCESSOR | now);
    }

    /// Notes that a thread with this mark notifies a waiter.
    pub(in crate::near) fn notified_by(&self, notifier: Mark) {
        self.set(notifier.word() & PROCESSOR | self.paid());
    }

    fn set(&self, word: u32) {
        if word != self.0.load_hint() {
            self.0.store_hint(word);
        }
    }
}

impl<P: Park + Random + Schedule> Patience<P> {
    /// Whether a waiter looks although looking does not pay off.
    fn probes(&self) -> bool {
        let notifier = Mark::from_word(self.0.load_hint() & PROCESSOR);
        let is_here = notifier.is_some_and(|notifier| notifier.is_same_processor(P::mark()));
        !is_here && P::random_u32() % WAITS_PER_PROBE == 1
    }

    /// Looks for the waiter's signal for a while, if that has paid off lately. It has paid off if
    /// the waiter `is_notified` then, and not, for example, cancelled.
    pub(in crate::near) fn look(&self, waiter: &Waiter<P>, is_notified: impl Fn() -> bool) {
        if self.paid() < LOOKS_FROM && !self.probes() {
            return;
        }
        let (mut spin, mut looked_ns) = (Spin::default(), 0);
        while !waiter.is_signalled() && looked_ns < LOOK_NS {
            if P::should_give_way(&mut spin) {
                return;
            }
            let pauses = P::pauses_in(STRIDE_NS);
            P::pause(pauses, 0);
            spin.paused(pauses);
            looked_ns += STRIDE_NS;
        }
        self.note(is_notified());
    }
}

impl<P: Platform> Default for Patience<P> {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;
    use crate::testing::{OTHER, OneThread, PAUSES, PROCESSOR, RANDOM, SPINS_MAX, left_by_others, meanwhile};

    /// Whether a waiter looks that is signalled or not.
    fn looks(patience: &Patience<OneThread>, is_signalled: bool) -> bool {
        let waiter = Waiter::<OneThread>::default();
        PAUSES.take();
        if is_signalled {
            let waiter = ptr::from_ref(&waiter);
            // SAFETY: it is called in the look below, or never.
            meanwhile(move || assert!(unsafe { &*waiter }.wake().is_none()));
        }
        patience.look(&waiter, || waiter.is_signalled());
        let has_looked = !PAUSES.take().is_empty();
        // A signal that was not looked for does not come any more.
        left_by_others();
        has_looked
    }

    #[test]
    fn waiters_look_as_long_as_it_pays_off_in_one_of_three_waits() {
        SPINS_MAX.set(u32::MAX);
        let patience = Patience::<OneThread>::default();
        assert!(!looks(&patience, true), "it has not paid off yet");
        RANDOM.set(1);
        for _ in 0..LOOKS_FROM / PAID {
            assert!(looks(&patience, true), "a probe");
        }
        RANDOM.set(0);
        for wait in 0..100 {
            assert!(looks(&patience, wait % 3 == 0), "wait {wait}");
        }
        let idle = (0..100).take_while(|_| looks(&patience, false)).count();
        assert!(idle <= 8, "{idle} looks have not paid off");
        assert!(!looks(&patience, true));
    }

    /// The notifier can hardly run while the waiter looks.
    #[test]
    fn no_waiter_probes_that_was_last_notified_from_its_own_processor() {
        SPINS_MAX.set(u32::MAX);
        PROCESSOR.set(Some(3));
        RANDOM.set(1);
        let patience = Patience::<OneThread>::default();
        let notified_on = |processor| patience.notified_by(Mark::new(OTHER, processor));
        for (processor, probes) in [(Some(3), false), (Some(4), true), (None, true)] {
            notified_on(processor);
            assert_eq!(looks(&patience, true), probes, "{processor:?}");
        }
        while patience.paid() < LOOKS_FROM {
            assert!(looks(&patience, true));
        }
        notified_on(Some(3));
        assert!(looks(&patience, true), "looking pays off");
    }

    #[test]
    fn a_look_that_ends_for_another_reason_has_not_paid_off() {
        let patience = Patience::<OneThread>(Atomic::new(LOOKS_FROM));
        let waiter = Waiter::<OneThread>::default();
        assert!(waiter.wake().is_none());
        patience.look(&waiter, || false);
        assert_eq!(patience.0.load_hint(), LOOKS_FROM - 1);
    }

    #[test]
    fn a_look_that_the_platform_ends_is_no_outcome() {
        SPINS_MAX.set(0);
        let patience = Patience::<OneThread>(Atomic::new(LOOKS_FROM));
        assert!(!looks(&patience, false) && patience.0.load_hint() == LOOKS_FROM);
    }
}
