//! Which threads run: the basis on which waiters spin while the owner of a lock runs, and sleep
//! when it does not.
//!
//! A kernel knows which thread runs on which processor. Here a platform says what it knows. The
//! simulator knows everything. With an operating system, the platform knows only that a thread
//! sleeps in a lock, so that a budget of time bounds the spinning.

use core::num::NonZeroU32;
use core::sync::atomic::Ordering;

use crate::platform::{Atomic, Platform};

/// Names a thread in lock words. Unique among the threads that are alive. It may name another
/// thread later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(NonZeroU32);

impl ThreadId {
    /// Ids are below 2 to this power, so that a lock word has room for flags beside one.
    pub const BITS: u32 = 28;

    /// The id of this number; `None` for 0, which names no thread.
    pub const fn new(number: u32) -> Option<Self> {
        debug_assert!(number >> Self::BITS == 0);
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number: 1 to 2^28 - 1.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// A thread, as the word of a lock names its holder.
///
/// ```text
/// bits 24-31  the processor on which the thread ran when it last noted that: modulo 255, counted
///             from 1; 0: not known
/// bits 1-23   the number of the thread; 0: not known. In an open word, the number of its line of
///             readers
/// bit  0      1; 0 in an open word
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u32);

impl Mark {
    const NUMBER: u32 = ((1 << 23) - 1) << 1;
    const PROCESSOR_SHIFT: u32 = 24;

    /// A thread of which nothing is known.
    pub const ANONYMOUS: Self = Self(1);

    /// This thread, on this processor if that is known. A number of 2^23 or more is left out.
    pub const fn new(thread: ThreadId, processor: Option<u32>) -> Self {
        let number = if thread.get() < 1 << 23 { thread.get() << 1 } else { 0 };
        let processor = match processor {
            Some(processor) => processor % 255 + 1,
            None => 0,
        };
        Self(1 | number | processor << Self::PROCESSOR_SHIFT)
    }

    /// The mark whose [`word`](Self::word) this is; `None` if it is 0.
    #[inline(always)]
    pub const fn from_word(word: u32) -> Option<Self> {
        if word == 0 { None } else { Some(Self(word)) }
    }

    /// The word of a lock that this thread holds: not 0.
    #[inline(always)]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// This thread, as the word of a lock that it holds open names it. `line` is the number of its
    /// line of readers, which is not 0 and below 2^23.
    #[inline(always)]
    pub const fn opened(self, line: u32) -> Self {
        Self(self.0 >> Self::PROCESSOR_SHIFT << Self::PROCESSOR_SHIFT | line << 1)
    }

    /// The number of the line, if the word is [open](Self::opened).
    #[inline(always)]
    pub const fn line(self) -> Option<u32> {
        if self.is_open() { Some((self.0 & Self::NUMBER) >> 1) } else { None }
    }

    /// Whether the word is [open](Self::opened).
    #[inline(always)]
    pub const fn is_open(self) -> bool {
        self.0 & 1 == 0
    }

    /// Whether the number of the thread is not known.
    pub const fn is_anonymous(self) -> bool {
        self.0 & Self::NUMBER == 0 || self.is_open()
    }

    /// Whether both name the same thread for sure.
    pub const fn is_same_thread(self, other: Self) -> bool {
        !self.is_anonymous() && !other.is_open() && self.0 & Self::NUMBER == other.0 & Self::NUMBER
    }

    /// Whether the thread has noted its processor.
    pub const fn has_processor(self) -> bool {
        self.0 >> Self::PROCESSOR_SHIFT != 0
    }

    /// Whether both threads were on one processor, as far as is known.
    pub const fn is_same_processor(self, other: Self) -> bool {
        self.has_processor() && self.0 >> Self::PROCESSOR_SHIFT == other.0 >> Self::PROCESSOR_SHIFT
    }
}

/// The known state of the owner of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerState {
    /// It has a processor.
    Running,
    /// It sleeps, or waits for a processor. Spinning for it is useless.
    Asleep,
    /// It may have a processor.
    Unknown,
}

/// Why spinning on an owner ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The owner does not run.
    OwnerSleeps,
    /// Another thread needs the caller's processor, or the caller has spun for long enough.
    GiveWay,
}

/// The state of one wait by spinning. A platform decides by it when the wait has lasted long
/// enough.
#[derive(Debug, Default)]
pub struct Spin {
    /// Looks so far.
    pub turns: u32,
    /// Looks and pauses since the platform last read its clock.
    pub since_clock: u32,
    /// When the spinning must end, in ns of the platform's clock; 0: not known yet.
    pub until_ns: u64,
}

impl Spin {
    /// Notes pauses that were made in addition to the turns.
    pub fn paused(&mut self, pauses: u32) {
        self.since_clock = self.since_clock.saturating_add(pauses);
    }
}

/// Critical sections in which a thread must not sleep. In a kernel these are the sections of its
/// spin locks, with interrupts off. They may be nested.
///
/// In models, the simulator and the unit tests, every section that is entered is left. There, a
/// thread that sleeps in a lock within a section is a fault, which
/// [`assert_may_sleep`](Self::assert_may_sleep) finds. In a program, safe code may forget a guard,
/// which leaves a section without an end. That costs the lock of this guard. It must not cost other
/// locks anything. So the `assert_may_sleep` of a platform for programs does nothing.
pub trait Sections: Platform {
    /// The caller enters a section.
    fn enter_section();
    /// The caller leaves the section that it entered last.
    fn leave_section();
    /// The number of sections that the caller is in. A section that never ends counts for ever.
    fn section_depth() -> u32;

    /// The caller is about to sleep in a lock.
    ///
    /// # Panics
    ///
    /// With debug assertions, if the caller is in a section, and the platform knows that for sure.
    #[track_caller]
    fn assert_may_sleep() {
        debug_assert!(Self::section_depth() == 0, "sleeps in the section of a spin lock");
    }
}

/// Knowledge about which threads run.
///
/// # Safety
///
/// - No two threads that are alive have the same [`thread_id`](Self::thread_id), and it is less
///   than 2^28. Locks with an owner identify the owner by that number.
/// - [`mark`](Self::mark) returns the mark that the same thread has [set](Self::set_mark). Before
///   that, it is anonymous or has the thread's number. By the mark, a lock knows whether the caller
///   holds it.
/// - [`processors`](Self::processors) is not 0.
/// - If [`spin_on_owner`](Self::spin_on_owner) returns `Ok` with a value, it has loaded the value
///   from the word, with that ordering, and `done` holds for it. A spinner relies on it for its
///   turn.
///
/// ```compile_fail,E0200
/// use nearlock_core::platform::Platform;
/// use nearlock_core::schedule::{OwnerState, Schedule, Spin, ThreadId};
/// # use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
/// # use nearlock_core::native::Native;
/// # use nearlock_core::platform::Atomic;
/// # struct Mine;
/// # // SAFETY: is the machine's.
/// # unsafe impl Platform for Mine {
/// #     type U32 = AtomicU32;
/// #     type U64 = AtomicU64;
/// #     type Ptr<T> = AtomicPtr<T>;
/// #     fn wait_until<V: Copy>(
/// #         word: &impl Atomic<V>,
/// #         order: Ordering,
/// #         done: impl Fn(V) -> bool,
/// #     ) -> V {
/// #         <Native>::wait_until(word, order, done)
/// #     }
/// #     fn wait_until_bounded<V: Copy>(
/// #         word: &impl Atomic<V>,
/// #         order: Ordering,
/// #         turns: u32,
/// #         done: impl Fn(V) -> bool,
/// #     ) -> V {
/// #         <Native>::wait_until_bounded(word, order, turns, done)
/// #     }
/// #     fn cpu_relax(turn: u32) {
/// #         <Native>::cpu_relax(turn);
/// #     }
/// #     fn fence(order: Ordering) {
/// #         <Native>::fence(order);
/// #     }
/// # }
///
/// impl Schedule for Mine {
///     fn thread_id() -> ThreadId {
///         ThreadId::new(1).unwrap()
///     }
///     fn owner_state(_thread: ThreadId) -> OwnerState {
///         OwnerState::Unknown
///     }
///     fn processors() -> u32 {
///         1
///     }
///     fn should_give_way(_spin: &mut Spin) -> bool {
///         true
///     }
/// }
/// ```
pub unsafe trait Schedule: Platform {
    /// The id of the calling thread. It may change only while the thread ends.
    fn thread_id() -> ThreadId;

    /// The mark of the calling thread: the one that it has [set](Self::set_mark) last. Until it has
    /// set one, and where the platform keeps no marks, it is [anonymous](Mark::ANONYMOUS). Makes no
    /// system call.
    #[inline(always)]
    fn mark() -> Mark {
        Mark::ANONYMOUS
    }

    /// Sets the mark of the calling thread, which has its number.
    fn set_mark(_mark: Mark) {}

    /// Notes that a group of locks lacks processors in this period. Each group notes that once in a
    /// period. Periods have consecutive numbers, which wrap around. Returns how many groups have
    /// noted it in this period or in the one before: the greater number, 0 where they are not
    /// counted.
    fn note_shortage(_period: u32) -> u32 {
        0
    }

    /// The processor on which the caller runs, or ran a moment ago; `None` if that is not known.
    fn processor() -> Option<u32> {
        None
    }

    /// The known state of a thread. A thread that has ended counts as asleep.
    fn owner_state(thread: ThreadId) -> OwnerState;

    /// The number of processors of the machine, at least 1. Back-off is tuned by it. Does not
    /// change.
    fn processors() -> u32;

    /// On how many processors threads of the process may run at the same time, at least 1. It may
    /// be less than [`processors`](Self::processors), and may change. May make system calls.
    fn processors_of_process() -> u32 {
        Self::processors()
    }

    /// Whether the caller should stop spinning. The caller asks at each turn of its own loop. It
    /// reports pauses in addition to the turns by [`Spin::paused`].
    fn should_give_way(spin: &mut Spin) -> bool;

    /// The number of pauses that take this time, and at least one: for delays that do not depend on
    /// the processor. A pause counts as 10 ns where it has not been measured.
    fn pauses_in(ns: u32) -> u32 {
        (ns / 10).max(1)
    }

    /// How long a cache line takes from one processor to another, in ns, as far as is known; 0: not
    /// known. Only speed and fairness may depend on it.
    fn transfer_ns() -> u32 {
        0
    }

    /// Sets that. Threads may do so at the same time: the last value stays.
    fn set_transfer_ns(_ns: u32) {}

    /// Leaves the processor once to other threads that are ready. A spinner may have the processor
    /// of the thread that it waits for.
    fn give_way() {
        Self::cpu_relax(u32::MAX);
    }

    /// The same by a program's system call, which takes its time even if no other thread is ready.
    fn sched_yield() {
        Self::give_way();
    }

    /// Spins until `done` holds for the word, and returns the value, or until there is reason to
    /// stop. The load that satisfies `done` has ordering `order`.
    #[track_caller]
    fn spin_on_owner<V: Copy>(
        spin: &mut Spin,
        word: &impl Atomic<V>,
        order: Ordering,
        owner: ThreadId,
        done: impl Fn(V) -> bool,
    ) -> Result<V, Stop> {
        loop {
            let v = word.load(order);
            if done(v) {
                return Ok(v);
            }
            if Self::owner_state(owner) == OwnerState::Asleep {
                return Err(Stop::OwnerSleeps);
            }
            let turn = spin.turns;
            if Self::should_give_way(spin) {
                return Err(Stop::GiveWay);
            }
            Self::cpu_relax(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::testing::{OneThread, set_owner_state};

    #[test]
    fn marks_tell_threads_and_processors_apart_if_they_know_them() {
        let thread = |number| ThreadId::new(number).unwrap();
        let (mine, moved) = (Mark::new(thread(7), Some(0)), Mark::new(thread(7), Some(254)));
        let others = [Mark::new(thread(8), Some(0)), Mark::new(thread(8), None), Mark::ANONYMOUS];
        assert!(mine.is_same_thread(moved) && !mine.is_same_processor(moved));
        assert!(mine.is_same_processor(others[0]) && mine.is_same_processor(mine));
        assert!(Mark::new(thread(1), Some(300)).is_same_processor(Mark::new(thread(2), Some(45))));
        for other in others {
            assert!(!mine.is_same_thread(other) && !other.is_same_thread(mine));
            assert_eq!(Mark::from_word(other.word()), Some(other));
        }
        assert!(!Mark::ANONYMOUS.is_same_thread(Mark::ANONYMOUS));
        assert!(!others[1].is_same_processor(others[1]), "not known");
        assert!(Mark::new(thread(1 << 23), Some(1)).is_anonymous(), "too large");
        assert!(!Mark::new(thread((1 << 23) - 1), Some(254)).is_anonymous());
    }

    #[test]
    fn spinning_on_an_owner_ends_for_each_of_its_reasons() {
        let word: <OneThread as Platform>::U32 = Atomic::new(1);
        let owner = ThreadId::new(7).unwrap();
        let spin = |done: fn(u32) -> bool| {
            OneThread::spin_on_owner(&mut Spin::default(), &word, Relaxed, owner, done)
        };
        assert_eq!(spin(|v| v == 1), Ok(1));
        assert_eq!(spin(|v| v == 2), Err(Stop::GiveWay));
        set_owner_state(owner, OwnerState::Asleep);
        assert_eq!(spin(|v| v == 2), Err(Stop::OwnerSleeps));
        assert_eq!(spin(|v| v == 1), Ok(1), "what is there is seen first");
    }
}
