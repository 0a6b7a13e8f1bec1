//! The protocol of `near-rwlock` in a few words, with one mode less. It is for faults that no
//! platform can put into the lock itself. Each thread has a slot, in which it publishes that it
//! reads.
//!
//! ```text
//! mutex      held by the writer
//! announced  1 while there is a writer
//! bias       1: readers look only here after they have published; a writer clears it first
//! used       1: readers may be in slots; if it is 0, and bias too, a writer enters without a look
//! slot       1 while the thread reads, or tries to
//! want       1: a writer sleeps until the slot is left
//! left       how often such a slot was left
//!
//!  reader   slot 0 -> 1, the light side, then bias is still 1: in
//!           slot 0 -> 1, a fence, announced is 0: in, if used is 1, or after used -> 1, a fence,
//!           and another look at announced. The first such reader sets used, the next one bias
//!           slot -> 0, the light side, want 1 -> 0: wakes the writer
//!  writer   announced -> 1, a fence, bias and used are 0: in
//!           otherwise bias -> 0, the heavy side, all slots are 0, and bias is: used -> 0, in
//!           a slot is 1: its want -> 1, the heavy side, another look. It sleeps if all slots that
//!           are 1 then were found, and marked, before
//! ```

use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use nearlock_core::platform::{AsymFence, Atomic, AtomicInt, Park, Platform};
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_model::engine::Engine;
use nearlock_model::loom::{Loom, LoomU32};

/// The faults of the forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The writer passes no fence after its announcement.
    NoFence,
    /// The writer clears `used` before it looks at the slots.
    ClearsBeforeLook,
    /// The writer marks the slots after its second look.
    MarksAfterLook,
    /// The writer sleeps whichever slots it finds at its second look.
    SleepsOnAny,
    /// A reader that has seen the bias, and then published, does not look again.
    NoSecondLook,
}

/// One form of the lock.
pub trait Form: Send + Sync + 'static {
    const FAULT: Fault;
}

/// How the lock begins.
pub trait Start: Send + Sync + 'static {
    const BIAS: u32;
    const USED: u32;
}

/// As a new lock.
pub struct Fresh;
impl Start for Fresh {
    const BIAS: u32 = 0;
    const USED: u32 = 0;
}

/// With the bias, as after some reads.
pub struct Biased;
impl Start for Biased {
    const BIAS: u32 = 1;
    const USED: u32 = 1;
}

const THREADS: usize = 3;

/// For each thread, whether it was found in its slot.
type Found = [bool; THREADS];

/// See the module.
pub struct Lines<F, S> {
    mutex: LoomU32,
    announced: LoomU32,
    bias: LoomU32,
    used: LoomU32,
    slots: [LoomU32; THREADS],
    wants: [LoomU32; THREADS],
    left: LoomU32,
    form: PhantomData<(F, S)>,
}

impl<F, S: Start> Default for Lines<F, S> {
    fn default() -> Self {
        let zero = || LoomU32::new(0);
        let zeros = || std::array::from_fn(|_| LoomU32::new(0));
        Self {
            mutex: zero(),
            announced: zero(),
            bias: LoomU32::new(S::BIAS),
            used: LoomU32::new(S::USED),
            slots: zeros(),
            wants: zeros(),
            left: zero(),
            form: PhantomData,
        }
    }
}

fn own_index() -> usize {
    Loom::thread().slot.expect("a thread with a slot") as usize
}

impl<F: Form, S: Start> Lines<F, S> {
    fn has(fault: Fault) -> bool {
        F::FAULT == fault
    }

    /// Enters as a reader, or leaves the slot again.
    fn enters(&self) -> bool {
        let own = own_index();
        // Ordering: Acquire, pairs with the Release where it is set: the writers that reader came
        // after happen before us; also below.
        if self.bias.load(Acquire) != 0 {
            self.slots[own].store(1, Relaxed);
            // Dekker's pattern, with `finds_all`.
            Loom::light();
            if Self::has(Fault::NoSecondLook) || self.bias.load(Acquire) != 0 {
                return true;
            }
        } else {
            self.slots[own].store(1, Relaxed);
            // Ordering: SeqCst, for Dekker's pattern, with `announce`.
            Loom::fence(SeqCst);
            if self.enters_fenced() {
                return true;
            }
        }
        self.leave(own);
        false
    }

    fn enters_fenced(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`; also below.
        if self.announced.load(Acquire) != 0 {
            return false;
        }
        if self.used.load(Relaxed) != 0 {
            // Ordering: Release, pairs with the Acquire in `enters`.
            self.bias.store(1, Release);
            return true;
        }
        self.used.store(1, Relaxed);
        // Ordering: SeqCst, as above, with `used` in place of the slot.
        Loom::fence(SeqCst);
        self.announced.load(Acquire) == 0
    }

    fn leave(&self, own: usize) {
        // Ordering: Release, pairs with the Acquire in `found`.
        self.slots[own].store(0, Release);
        // Dekker's pattern, with `sleeps`.
        Loom::light();
        if self.wants[own].load(Relaxed) != 0 {
            self.wants[own].swap(0, Relaxed);
            self.left.fetch_add(1, Relaxed);
            Loom::unpark(&self.left, u32::MAX);
        }
    }

    /// Takes the mutex if it is free.
    fn takes(&self) -> bool {
        // Ordering: Acquire, pairs with the Release in `unlock`.
        self.mutex.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Announces the writer. Returns whether it is in.
    fn announce(&self) -> bool {
        self.announced.store(1, Relaxed);
        if !Self::has(Fault::NoFence) {
            // Ordering: SeqCst, for Dekker's pattern, with `enters`.
            Loom::fence(SeqCst);
        }
        self.bias.load(Relaxed) == 0 && self.used.load(Relaxed) == 0
    }

    fn found(&self) -> Found {
        // Ordering: Acquire, pairs with the Release in `leave`.
        std::array::from_fn(|thread| self.slots[thread].load(Acquire) != 0)
    }

    /// Looks at the slots of all readers. Enters if there is none.
    fn finds_all(&self) -> Found {
        if Self::has(Fault::ClearsBeforeLook) {
            self.used.swap(0, Relaxed);
        }
        if self.bias.swap(0, Relaxed) != 0 {
            // Dekker's pattern, with `enters`.
            Loom::heavy();
        }
        self.found()
    }

    /// Whether the writer is in that has found these readers. A reader that was in may have set the
    /// bias.
    fn is_in(&self, found: Found) -> bool {
        let is_in = found == Found::default() && self.bias.load(Relaxed) == 0;
        if is_in {
            self.used.swap(0, Relaxed);
        }
        is_in
    }

    fn mark(&self, found: Found) {
        for (want, _) in self.wants.iter().zip(found).filter(|(_, is_found)| *is_found) {
            want.fetch_or(1, Relaxed);
        }
    }

    /// Sleeps until a slot is left, if that wakes the writer.
    fn sleep(&self, found: Found) {
        let left = self.left.load(Relaxed);
        if !Self::has(Fault::MarksAfterLook) {
            self.mark(found);
        }
        // Dekker's pattern, with `leave`.
        Loom::heavy();
        let again = self.found();
        self.mark(again);
        let is_known = again.iter().zip(found).all(|(again, before)| before || !again);
        if again != Found::default() && (is_known || Self::has(Fault::SleepsOnAny)) {
            Loom::park(&self.left, left);
        }
    }
}

// SAFETY: as for `near-rwlock`, without a fault. With one, none.
unsafe impl<F: Form, S: Start> RawLock for Lines<F, S> {
    type Node = ();
    unsafe fn lock(&self, _node: &()) {
        while !self.takes() {
            Loom::wait_until(&self.mutex, Relaxed, |mutex| mutex == 0);
        }
        if self.announce() {
            return;
        }
        let mut turn = 0;
        loop {
            let found = self.finds_all();
            if self.is_in(found) {
                return;
            }
            if found != Found::default() {
                self.sleep(found);
            }
            Loom::cpu_relax(turn);
            turn += 1;
        }
    }
    unsafe fn unlock(&self, _node: &()) {
        // Ordering: Release, pairs with the Acquires in `enters_fenced` and `takes`; also below.
        self.announced.store(0, Release);
        self.mutex.store(0, Release);
    }
}

// SAFETY: as above.
unsafe impl<F: Form, S: Start> RawTryLock for Lines<F, S> {
    unsafe fn try_lock(&self, node: &()) -> bool {
        if !self.takes() {
            return false;
        }
        let is_in = self.announce() || self.is_in(self.finds_all());
        if !is_in {
            // SAFETY: no reader or writer is kept out by this thread any more.
            unsafe { self.unlock(node) };
        }
        is_in
    }
}

// SAFETY: as above.
unsafe impl<F: Form, S: Start> RawRwLock for Lines<F, S> {
    unsafe fn lock_shared(&self, _node: &()) {
        while !self.enters() {
            Loom::wait_until(&self.announced, Relaxed, |announced| announced == 0);
        }
    }
    unsafe fn try_lock_shared(&self, _node: &()) -> bool {
        self.enters() || self.enters()
    }
    unsafe fn unlock_shared(&self, _node: &()) {
        self.leave(own_index());
    }
    unsafe fn downgrade(&self, _node: &()) {
        unreachable!("no model does so");
    }
}
