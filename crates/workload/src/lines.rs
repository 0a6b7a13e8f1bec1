//! What sections read and write beside their lock: a few lines, each of which moves to whoever is
//! inside.

use core::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{Atomic, Platform};
use nearlock_core::raw::RawLock;

use crate::Observer;
use crate::locktorture::OwnLine;

/// More lines than any section touches.
pub const LINES_MAX: usize = 16;

/// So many lines, of which a section touches the first ones. All accesses are relaxed: the lock
/// orders its holders.
#[repr(C)]
pub(crate) struct Lines<P: Platform>([OwnLine<P::U64>; LINES_MAX]);

impl<P: Platform> Default for Lines<P> {
    fn default() -> Self {
        Self(core::array::from_fn(|_| OwnLine(Atomic::new(0))))
    }
}

impl<P: Platform> Lines<P> {
    /// Reads and writes each of the first `lines`.
    pub(crate) fn touch(&self, lines: usize) {
        touch::<P>(&self.0[..lines]);
    }

    /// A writer's section of so many lines, 1 or more, that does `work`. It reads the first line
    /// when it enters and writes it, one more, when it leaves, so that any two that overlap
    /// lose an update: see [`written`](Self::written).
    pub(crate) fn write(&self, lines: usize, work: impl FnOnce()) {
        let n = self.0[0].0.load(Relaxed);
        touch::<P>(&self.0[1..lines]);
        work();
        self.0[0].0.store(n + 1, Relaxed);
    }

    /// A reader's section of so many lines, 1 or more, that does `work`. Whether no writer has been
    /// there meanwhile.
    pub(crate) fn read(&self, lines: usize, work: impl FnOnce()) -> bool {
        let n = self.0[0].0.load(Relaxed);
        for line in &self.0[1..lines] {
            line.0.load(Relaxed);
        }
        work();
        self.0[0].0.load(Relaxed) == n
    }

    /// How many writers' sections left their mark. Exact once all threads have ended.
    pub(crate) fn written(&self) -> u64 {
        self.0[0].0.load(Relaxed)
    }
}

/// A lock and the lines that it protects, each on cache lines of its own.
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
    /// A section of so many lines that does `work`.
    ///
    /// # Safety
    ///
    /// The node is the calling thread's own, not in use, and stays in place.
    pub(crate) unsafe fn section(
        &self,
        node: &L::Node,
        lines: usize,
        observer: &mut impl Observer,
        work: impl FnOnce(),
    ) {
        observer.waiting();
        // SAFETY: the caller's promise.
        unsafe { self.lock.0.lock(node) };
        observer.acquired();
        self.lines.write(lines, work);
        observer.releasing();
        // SAFETY: locked above with this node.
        unsafe { self.lock.0.unlock(node) };
    }
}

impl<P: Platform, L> LockedLines<P, L> {
    /// How many sections left their mark. Exact once all threads have ended.
    pub fn sections(&self) -> u64 {
        self.lines.written()
    }
}

fn touch<P: Platform>(lines: &[OwnLine<P::U64>]) {
    for line in lines {
        line.0.store(line.0.load(Relaxed).wrapping_add(1), Relaxed);
    }
}
