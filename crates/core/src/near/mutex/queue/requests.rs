//! What a queue tells the releases of its mutex: wake requests, attention and hints.

use core::sync::atomic::Ordering::Relaxed;

use super::{DEQUEUED, GRANTED, REQUEST, RESTING, WaitQueue};
use crate::near::NearPlatform;
use crate::near::attention::{Attention, Strength};
use crate::near::mutex::filter::Count;
use crate::near::mutex::hints::Holders;
use crate::parking::Waiter;
use crate::platform::Atomic;

impl<P: NearPlatform> WaitQueue<'_, P> {
    /// The mutex's count in the chain's filter.
    pub(super) fn count(&self) -> &Count<P> {
        self.chain.beside().filter.at(P::place_in_chain(self.chain.address()))
    }

    /// The attention word of the chain.
    fn attention(&self) -> Attention<'_, P> {
        Attention::of(self.chain.address())
    }

    /// Which threads release the mutex.
    pub(in crate::near::mutex) fn holders(&self) -> Holders {
        self.chain.beside().hints.holders()
    }

    /// Notes that a release visits the chain. A chain that is seldom visited becomes weak, since
    /// the strong fences of releases cost more than they save.
    ///
    /// Not noted, which saves a reading of the clock: the first visit since the queue was empty, if
    /// its only waiter leaves at once.
    pub(in crate::near::mutex) fn looked(&self) {
        let hints = &self.chain.beside().hints;
        let first = self.first();
        if hints.is_first_visit() && first.is_some_and(|first| self.leaves_alone(first)) {
            return;
        }
        let unstamped = first.filter(|first| !Self::has_stamp(first));
        let waited = first.map_or(0, |first| Self::first_for_units(first, self.now()));
        let waited = hints.looked(unstamped.is_none().then_some(waited), self.now());
        if let Some(first) = unstamped {
            self.stamp(first, self.now().wrapping_sub(waited));
        }
        if !hints.is_visited_often() {
            self.weaken();
        }
    }

    /// Whether the first is the only waiter, was parked when it became first, and is dequeued by
    /// the release that visits the chain. That is the rule for a thread that was notified by the
    /// holder while no thread waited for the mutex. It tells nothing about releases.
    fn leaves_alone(&self, first: &Waiter<P>) -> bool {
        !Self::has_stamp(first)
            && Self::is_to_compete(first, self.holders())
            && self.count().read().waiters() == 1
    }

    /// s -> s|REQUEST. Relaxed, since the thread whose request must be seen passes a fence, or
    /// releases the mutex itself.
    pub(super) fn raise(&self, first: &Waiter<P>) {
        let note = first.note.load(Relaxed);
        if note & REQUEST == 0 {
            first.note.store(note | REQUEST, Relaxed);
            self.count().add_request();
        }
    }

    /// s|REQUEST -> s.
    pub(super) fn lower(&self, waiter: &Waiter<P>) {
        let note = waiter.note.load(Relaxed);
        if note & REQUEST != 0 {
            waiter.note.store(note & !REQUEST, Relaxed);
            self.count().remove_request();
        }
    }

    /// Makes a wake request for the first in the queue, which does not rest any more. Returns which
    /// fence of releases it can rely on.
    pub(in crate::near::mutex) fn request(&self, first: &Waiter<P>) -> Strength {
        self.end_rest(first);
        if first.note.load(Relaxed) & GRANTED == 0 {
            self.raise(first);
        }
        self.attention().read().strength()
    }

    /// since|n -> since|n|RESTING, if the waiter is still in the queue: releases do not look after
    /// it until it ends that.
    pub(in crate::near::mutex) fn rest(&self, first: &Waiter<P>) {
        let note = first.note.load(Relaxed);
        if note & (GRANTED | DEQUEUED | REQUEST | RESTING) == 0 {
            first.note.store(note | RESTING, Relaxed);
            self.unwatch();
            if !Self::has_stamp(first) {
                self.stamp(first, self.now());
            }
        }
    }

    /// since|n|RESTING -> since|n.
    pub(in crate::near::mutex) fn end_rest(&self, first: &Waiter<P>) {
        let note = first.note.load(Relaxed);
        if note & RESTING != 0 {
            first.note.store(note & !RESTING, Relaxed);
            self.watch();
        }
    }

    /// Whether the waiter rests. For the waiter of another thread, the chain must be locked.
    pub(in crate::near::mutex) fn is_resting(waiter: &Waiter<P>) -> bool {
        waiter.note.load(Relaxed) & RESTING != 0
    }

    /// One more first does not rest.
    pub(super) fn watch(&self) {
        self.attention().watch();
        self.chain.beside().hints.resume();
    }

    /// One first less does not rest.
    pub(super) fn unwatch(&self) {
        self.attention().unwatch();
    }

    /// Whether a queue of the chain has a first that does not rest.
    pub(in crate::near::mutex) fn is_watched(&self) -> bool {
        self.attention().read().is_watched()
    }

    /// Notes a release that has found no such first.
    pub(in crate::near::mutex) fn calm(&self) {
        match self.chain.beside().hints.is_visited_often() {
            true => self.attention().calm(),
            false => self.weaken(),
        }
    }

    /// Makes the chain weak, unless a waiter may rely on its strength.
    fn weaken(&self) {
        let is_strong = self.attention().read().strength() == Strength::Strong;
        if is_strong && !self.chain.beside().filter.has_requests() {
            self.attention().weaken();
        }
    }

    /// Makes the chain become strong, as [`Attention::begin_strong`].
    pub(in crate::near::mutex) fn begin_strong(self) -> bool {
        self.attention().begin_strong()
    }

    /// Makes the chain strong, as [`Attention::become_strong`].
    pub(in crate::near::mutex) fn become_strong(self) {
        self.attention().become_strong();
    }
}
