//! Time-slice extensions: a thread that holds a lock asks the kernel for some more microseconds,
//! should its time be up just then.
//!
//! ```text
//! slice_ctrl of the thread's restartable-sequences area      byte 28 request | 29 granted
//!
//!  request  0 -> 1   `begin`, of the outermost section          1 -> 0   `end`; or the kernel, which grants
//!  granted  0 -> 1   the kernel: the thread goes on             1 -> 0   the kernel: it has had to leave all the same
//! ```
//! A thread whose `end` finds `granted` gives the processor back (`rseq_slice_yield`). Off at
//! first, and only for locks that ask (`nearlock::raw::Unpreempted`). It is a wish: the kernel may
//! refuse, and ends an extension after 5 to 50 us, or at a system call.
//!
//! It needs Linux 7.0, and a C library that registers an area of the kernel's feature size (glibc
//! 2.41). **What has been run**: the unit tests, with areas made up; on the kernels that were at
//! hand, older ones, only that they refuse.
//!
//! Source: the kernel's documentation, "Restartable Sequences", section "Scheduler time slice
//! extensions"; of the numbers, T. Gleixner, "rseq: Implement time slice extension mechanism",
//! version 6, December 2025; of the offset, M. Desnoyers, "rseq: slice ext: Ensure rseq feature
//! size differs from original rseq size", February 2026: with the control word the fields
//! fill 32 bytes, and a feature size of 33 says that it is there.

use core::cell::Cell;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU8, compiler_fence};
use std::thread_local;

use crate::sys;

/// What threads are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSlices {
    /// Leave when their time is up.
    Ordinary,
    /// Ask for more while they hold a lock of the kind that asks.
    Extended,
}

/// Two bytes of the area.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Control {
    request: AtomicU8,
    granted: AtomicU8,
}

static EXTENDED: AtomicBool = AtomicBool::new(false);

/// Whether the calling thread may ask, and where.
#[derive(Clone, Copy, Debug)]
enum Asks {
    /// Not tried yet.
    Unknown,
    /// The kernel has refused.
    Nowhere,
    /// Here, as long as the thread lives.
    At(*const Control),
}

thread_local! {
    static ASKS: Cell<Asks> = const { Cell::new(Asks::Unknown) };
    static DEPTH: Depth = const { Depth(Cell::new(0)) };
}

/// Says what threads are to do from now on. Returns whether the kernel offers extensions to the
/// calling thread; if not, nothing changes. Sections that are under way keep what they have asked
/// for.
pub fn set_time_slices(to: TimeSlices) -> bool {
    let offered = control().is_some();
    if offered {
        EXTENDED.store(to == TimeSlices::Extended, Relaxed);
    }
    offered
}

/// The caller's control word, if it may ask.
#[inline]
fn control() -> Option<&'static Control> {
    let asks = match ASKS.get() {
        Asks::Unknown => first_asked(),
        known => known,
    };
    match asks {
        // SAFETY: the thread's own area, which is there as long as the thread; the callers here do not keep
        // it.
        Asks::At(control) => Some(unsafe { &*control }),
        _ => None,
    }
}

#[cold]
fn first_asked() -> Asks {
    let asks = sys::slice_control().map_or(Asks::Nowhere, |control| Asks::At(control.cast_const().cast()));
    ASKS.set(asks);
    asks
}

/// The caller has taken a lock that asks.
#[inline]
pub fn begin_section() {
    if EXTENDED.load(Relaxed) {
        DEPTH.with(|depth| depth.begin(control()));
    }
}

/// The caller has released one.
#[inline]
pub fn end_section() {
    DEPTH.with(|depth| depth.end(control, sys::rseq_slice_yield));
}

/// How many sections a thread is in that have asked, or would have if it could. Fewer than it is
/// in, if they have been told to only since.
struct Depth(Cell<u32>);

impl Depth {
    #[inline]
    fn begin(&self, control: Option<&Control>) {
        let depth = self.0.get();
        self.0.set(depth + 1);
        if let Some(control) = control.filter(|_| depth == 0) {
            control.request.store(1, Relaxed);
            // Ordering: SeqCst, for the compiler alone: the request before the section. The kernel looks at
            // it when it interrupts this very thread.
            compiler_fence(SeqCst);
        }
    }

    #[inline]
    fn end<'a>(&self, control: impl FnOnce() -> Option<&'a Control>, yield_slice: impl FnOnce()) {
        let Some(depth) = self.0.get().checked_sub(1) else { return };
        self.0.set(depth);
        if let Some(control) = Some(depth).filter(|depth| *depth == 0).and_then(|_| control()) {
            // Ordering: SeqCst, for the compiler alone, as in `begin`: the section before the end of the
            // request.
            compiler_fence(SeqCst);
            control.request.store(0, Relaxed);
            // It may be revoked right now: then the call has nothing to do, and does nothing.
            if control.granted.load(Relaxed) != 0 {
                yield_slice();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread with an area, in so many sections, one in the other; what the kernel does
    /// meanwhile; and how often the thread has given the processor back.
    fn yields(sections: u32, meanwhile: impl FnOnce(&Control)) -> u32 {
        let (depth, control, yields) = (Depth(Cell::new(0)), Control::default(), Cell::new(0));
        let requested = || control.request.load(Relaxed) == 1;
        for _ in 0..sections {
            depth.begin(Some(&control));
            assert!(requested());
        }
        meanwhile(&control);
        for section in 1..=sections {
            let before = requested();
            depth.end(|| Some(&control), || yields.set(yields.get() + 1));
            assert_eq!(requested(), section < sections && before, "until the last has ended");
        }
        assert_eq!(depth.0.get(), 0);
        yields.get()
    }

    fn grant(control: &Control) {
        control.request.store(0, Relaxed);
        control.granted.store(1, Relaxed);
    }

    #[test]
    fn a_request_lasts_as_long_as_the_outermost_section() {
        assert_eq!(yields(1, |_| ()), 0);
        assert_eq!(yields(3, |_| ()), 0);
    }

    #[test]
    fn what_was_granted_is_given_back_once_at_the_end() {
        assert_eq!(yields(1, grant), 1);
        assert_eq!(yields(3, grant), 1);
        let revoke = |control: &Control| {
            grant(control);
            control.granted.store(0, Relaxed);
        };
        assert_eq!(yields(2, revoke), 0);
    }

    #[test]
    fn without_an_area_nothing_is_asked() {
        let depth = Depth(Cell::new(0));
        depth.begin(None);
        depth.end(|| None, || unreachable!("nothing was granted"));
        depth.end(|| unreachable!("in no section"), || ());
        assert_eq!(depth.0.get(), 0);
    }

    /// Whatever this kernel offers.
    #[test]
    fn the_switch_says_whether_it_does_anything() {
        let offered = set_time_slices(TimeSlices::Extended);
        assert_eq!(EXTENDED.load(Relaxed), offered);
        for _ in 0..3 {
            begin_section();
            begin_section();
            end_section();
            end_section();
        }
        assert_eq!(set_time_slices(TimeSlices::Ordinary), offered);
        assert!(!EXTENDED.load(Relaxed));
        end_section();
    }
}
