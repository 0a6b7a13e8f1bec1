//! Time-slice extensions: a thread that holds a lock asks the kernel for a few more microseconds if
//! its time slice ends at that moment.
//!
//! ```text
//! slice_ctrl of the thread's restartable-sequences area      byte 28 request | 29 granted
//!
//!  request  0 -> 1   `begin` of the outermost section
//!           1 -> 0   `end`, or the kernel, which grants the request
//!  granted  0 -> 1   the kernel: the thread continues
//!           1 -> 0   the kernel: the thread had to leave the processor after all
//! ```
//! A thread whose `end` finds `granted` set gives the processor back (`rseq_slice_yield`).
//! Extensions are off at first, and only locks of one kind ask for them
//! (`nearlock::raw::Unpreempted`). A request is not a guarantee: the kernel may refuse it, and ends
//! an extension after 5 to 50 us, or at a system call.
//!
//! Extensions need Linux 7.0, and a C library that registers an area of the kernel's feature size
//! (glibc 2.41). **What has been run**: the unit tests, with areas that the tests make up. The
//! kernels at hand were older, so on them only the refusal was run.
//!
//! Source: the kernel's documentation, "Restartable Sequences", section "Scheduler time slice
//! extensions". The numbers are from T. Gleixner, "rseq: Implement time slice extension mechanism",
//! version 6, December 2025. The offset is from M. Desnoyers, "rseq: slice ext: Ensure rseq feature
//! size differs from original rseq size", February 2026. With the control word the fields fill 32
//! bytes, and a feature size of 33 tells that the word is there.

use core::cell::Cell;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU8, compiler_fence};
use std::thread_local;

use crate::sys;

/// What threads do when their time slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSlices {
    /// Leave the processor.
    Ordinary,
    /// Ask for more time while they hold a lock of the kind that asks.
    Extended,
}

/// The two control bytes of the area.
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
    /// Not known yet.
    Unknown,
    /// The kernel has refused.
    Nowhere,
    /// At this address, as long as the thread lives.
    At(*const Control),
}

thread_local! {
    static ASKS: Cell<Asks> = const { Cell::new(Asks::Unknown) };
    static DEPTH: Depth = const { Depth(Cell::new(0)) };
}

/// Sets what threads do from now on. Returns whether the kernel offers extensions to the calling
/// thread; if it does not, nothing changes. A section that has already begun keeps its request.
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
        // SAFETY: this is the thread's own area, which lives as long as the thread. The callers in
        // this module do not keep the reference.
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

/// The caller has locked a lock that asks for extensions.
#[inline]
pub fn begin_section() {
    if EXTENDED.load(Relaxed) {
        DEPTH.with(|depth| depth.begin(control()));
    }
}

/// The caller has unlocked such a lock.
#[inline]
pub fn end_section() {
    DEPTH.with(|depth| depth.end(control, sys::rseq_slice_yield));
}

/// The number of sections of a thread that have asked for an extension, or would have asked if the
/// thread could. The thread is in more sections than that if extensions were switched on after some
/// of them had begun.
struct Depth(Cell<u32>);

impl Depth {
    #[inline]
    fn begin(&self, control: Option<&Control>) {
        let depth = self.0.get();
        self.0.set(depth + 1);
        if let Some(control) = control.filter(|_| depth == 0) {
            control.request.store(1, Relaxed);
            // Ordering: SeqCst, for the compiler alone: the request comes before the section. The
            // kernel reads the request when it interrupts this same thread.
            compiler_fence(SeqCst);
        }
    }

    #[inline]
    fn end<'a>(&self, control: impl FnOnce() -> Option<&'a Control>, yield_slice: impl FnOnce()) {
        let Some(depth) = self.0.get().checked_sub(1) else { return };
        self.0.set(depth);
        if let Some(control) = Some(depth).filter(|depth| *depth == 0).and_then(|_| control()) {
            // Ordering: SeqCst, for the compiler alone, as in `begin`: the section comes before the
            // end of the request.
            compiler_fence(SeqCst);
            control.request.store(0, Relaxed);
            // The kernel may revoke the grant at this moment. Then the call has nothing to do, and
            // does nothing.
            if control.granted.load(Relaxed) != 0 {
                yield_slice();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enters this many nested sections as a thread that has an area, calls `meanwhile` in place of
    /// the kernel, and leaves the sections. Returns how often the thread has given the processor
    /// back.
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
    fn a_grant_is_given_back_once_at_the_end() {
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

    /// Holds whatever this kernel offers.
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
