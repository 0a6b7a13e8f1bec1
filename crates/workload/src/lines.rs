//! Data that sections read and write in addition to their lock: a few cache lines, each of which
//! moves to the holder.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, Platform};
use nearlock_core::raw::RawLock;

use crate::locktorture::OwnLine;
use crate::{Gate, Observer};

/// Limit of the number of lines of a section.
pub const LINES_MAX: usize = 16;

/// Cache lines, of which a section touches the first ones. All accesses are relaxed, because the
/// lock orders its holders.
#[repr(C)]
pub(crate) struct Lines<P: Platform>([OwnLine<P::U64>; LINES_MAX]);

impl<P: Platform> Default for Lines<P> {
    fn default() -> Self {
        Self(core::array::from_fn(|_| OwnLine(Atomic::new(0))))
    }
}

impl<P: Platform> Lines<P> {
    /// Reads and writes each of the first `lines` lines.
    pub(crate) fn touch(&self, lines: usize) {
        touch::<P>(&self.0[..lines]);
    }

    /// A writer's section of this many lines, 1 or more, that does `work`. It reads the first line
    /// at its beginning, and writes the value plus one at its end. So any two sections that overlap
    /// lose an update: see [`written`](Self::written).
    pub(crate) fn write(&self, lines: usize, work: impl FnOnce()) {
        let n = self.0[0].0.load(Relaxed);
        touch::<P>(&self.0[1..lines]);
        work();
        self.0[0].0.store(n + 1, Relaxed);
    }

    /// A reader's section of this many lines, 1 or more, that does `work`. Returns whether there
    /// was no writer at the same time.
    pub(crate) fn read(&self, lines: usize, work: impl FnOnce()) -> bool {
        let n = self.0[0].0.load(Relaxed);
        for line in &self.0[1..lines] {
            line.0.load(Relaxed);
        }
        work();
        self.0[0].0.load(Relaxed) == n
    }

    /// Number of writers' sections that incremented the first line. Exact once all threads have
    /// ended.
    pub(crate) fn written(&self) -> u64 {
        self.0[0].0.load(Relaxed)
    }
}

/// A lock and the lines that it protects, each on its own cache lines.
#[repr(C)]
pub struct LockedLines<P: Platform, L> {
    lock: OwnLine<L>,
    lines: Lines<P>,
}

impl<P: Platform, L: RawLock> Default for LockedLines<P, L> {
    fn default() -> Self {
        Self { lock: OwnLine(L::default()), lines: Lines::default() }
    }
}

impl<P: Platform, L: RawLock> LockedLines<P, L> {
    /// A section of this many lines that does `work`.
    ///
    /// # Safety
    ///
    /// The node belongs to the calling thread, is not in use, and stays in place.
    ///
    /// # Panics
    ///
    /// If there are more than [`LINES_MAX`] lines, or none.
    pub unsafe fn section(
        &self,
        node: &L::Node,
        lines: usize,
        observer: &mut impl Observer,
        work: impl FnOnce(),
    ) {
        observer.waiting();
        // SAFETY: by the caller's promise.
        unsafe { self.lock.0.lock(node) };
        observer.acquired();
        self.lines.write(lines, work);
        observer.releasing();
        // SAFETY: locked above with this node.
        unsafe { self.lock.0.unlock(node) };
    }
}

impl<P: Platform, G: Gate> LockedLines<P, G> {
    /// A reader's section of this many lines that does `work`. Returns whether there was no writer
    /// at the same time.
    ///
    /// # Safety
    ///
    /// As for [`section`](Self::section).
    ///
    /// # Panics
    ///
    /// As [`section`](Self::section).
    pub unsafe fn shared_section(
        &self,
        node: &G::Node,
        lines: usize,
        observer: &mut impl Observer,
        work: impl FnOnce(),
    ) -> bool {
        observer.waiting();
        // SAFETY: by the caller's promise.
        unsafe { self.lock.0.lock_shared(node) };
        observer.acquired_shared();
        let is_whole = self.lines.read(lines, work);
        observer.releasing_shared();
        // SAFETY: locked above with this node.
        unsafe { self.lock.0.unlock_shared(node) };
        is_whole
    }
}

impl<P: Platform, L> LockedLines<P, L> {
    /// Number of sections that incremented the first line. Exact once all threads have ended.
    pub fn sections(&self) -> u64 {
        self.lines.written()
    }
}

fn touch<P: Platform>(lines: &[OwnLine<P::U64>]) {
    for line in lines {
        line.0.store(line.0.load(Relaxed).wrapping_add(1), Relaxed);
    }
}
