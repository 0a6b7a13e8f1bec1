//! Type-erased locks: the locks of the list in the simulator, behind pointers to their operations.
//! A workload is compiled once for all locks of a size, and not for each lock. A change of a
//! workload compiles no lock again.
//!
//! A cell has locks of one type, and runs on one thread. While the cell runs, the thread knows the
//! operations of these locks ([`CurrentLock`]). An erased lock has the size and the alignment of
//! the lock itself, because the simulation includes the data next to it on its cache line.

use std::alloc::Layout;
use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use nearlock_collection::subjects::{LockVisitor, Subject};
use nearlock_core::raw::{RawLock, RawRwLock, RawTryLock};
use nearlock_sim::{LINE, Sim};
use nearlock_workload::Gate;

/// The operations on a lock, and on a node, of which only the address is known.
struct Operations {
    layout: Layout,
    make: unsafe fn(*mut u8),
    make_node: unsafe fn(*mut u8),
    lock: unsafe fn(*const u8, *const u8),
    unlock: unsafe fn(*const u8, *const u8),
    /// The same as the two above if the lock has no readers.
    lock_shared: unsafe fn(*const u8, *const u8),
    unlock_shared: unsafe fn(*const u8, *const u8),
}

impl Operations {
    /// The operations of a lock.
    const fn of<L: RawLock>() -> Self {
        const { assert!(size_of::<L::Node>() <= size_of::<Node>() && align_of::<L::Node>() <= align_of::<Node>()) }
        Self {
            layout: Layout::new::<L>(),
            // SAFETY: upheld by the caller. The first two functions get room for a lock or a node.
            // The others get a lock and a node that were made there, and what `RawLock` requires.
            make: |room| unsafe { room.cast::<L>().write(L::default()) },
            // SAFETY: as above. The same holds below.
            make_node: |room| unsafe { room.cast::<L::Node>().write(L::Node::default()) },
            // SAFETY: as above.
            lock: |lock, node| unsafe { (*lock.cast::<L>()).lock(&*node.cast::<L::Node>()) },
            // SAFETY: as above.
            unlock: |lock, node| unsafe { (*lock.cast::<L>()).unlock(&*node.cast::<L::Node>()) },
            // SAFETY: as above.
            lock_shared: |lock, node| unsafe { (*lock.cast::<L>()).lock(&*node.cast::<L::Node>()) },
            // SAFETY: as above.
            unlock_shared: |lock, node| unsafe { (*lock.cast::<L>()).unlock(&*node.cast::<L::Node>()) },
        }
    }

    /// The operations of a lock with readers.
    const fn with_readers<L: RawRwLock>() -> Self {
        Self {
            // SAFETY: as in `of`.
            lock_shared: |lock, node| unsafe { (*lock.cast::<L>()).lock_shared(&*node.cast::<L::Node>()) },
            // SAFETY: as in `of`.
            unlock_shared: |lock, node| unsafe {
                (*lock.cast::<L>()).unlock_shared(&*node.cast::<L::Node>())
            },
            ..Self::of::<L>()
        }
    }
}

struct OperationsOf;

impl LockVisitor<Sim> for OperationsOf {
    type Output = &'static Operations;

    fn visit<L: RawTryLock>(self) -> &'static Operations {
        const { &Operations::of::<L>() }
    }

    fn visit_rw<L: RawRwLock>(self) -> &'static Operations {
        const { &Operations::with_readers::<L>() }
    }
}

thread_local! {
    static OPERATIONS: Cell<Option<&'static Operations>> = const { Cell::new(None) };
}

fn operations() -> &'static Operations {
    OPERATIONS.get().expect("this thread has a current lock")
}

/// As long as this lives, the erased locks that this thread makes are of one type.
pub struct CurrentLock {
    before: Option<&'static Operations>,
    /// It ends on the thread where it began.
    not_send: PhantomData<*mut ()>,
}

impl CurrentLock {
    /// Makes a lock of the list the current one of this thread.
    ///
    /// # Safety
    ///
    /// Until this is dropped the thread uses no erased lock and no [`Node`] that was made before.
    /// Erased locks and nodes that are made meanwhile are used by this thread alone, and not after
    /// this is dropped. If the thread has several of these, the last one is dropped first.
    pub unsafe fn new(lock: &Subject) -> Self {
        let before = OPERATIONS.replace(Some(lock.visit::<Sim, _>(OperationsOf)));
        Self { before, not_send: PhantomData }
    }
}

impl Drop for CurrentLock {
    fn drop(&mut self) {
        OPERATIONS.set(self.before);
    }
}

/// A queue node of any lock.
#[repr(C, align(64))]
pub struct Node(UnsafeCell<[MaybeUninit<u8>; 128]>);

// SAFETY: it contains a node of the current lock, which is `Send` and `Sync`.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Default for Node {
    /// Creates a node of the current lock.
    ///
    /// # Panics
    ///
    /// If there is no current lock.
    fn default() -> Self {
        let node = Self(UnsafeCell::new([MaybeUninit::uninit(); 128]));
        // SAFETY: there is room (`Operations::of`). It may be moved: nothing points to a node that
        // is in no acquisition.
        unsafe { (operations().make_node)(node.0.get().cast()) };
        node
    }
}

/// A lock of any type that has the size and the alignment of `R`.
#[repr(transparent)]
pub struct Erased<R>(UnsafeCell<MaybeUninit<R>>);

// SAFETY: it contains a lock, which is `Send` and `Sync`.
unsafe impl<R> Send for Erased<R> {}
// SAFETY: as above.
unsafe impl<R> Sync for Erased<R> {}

impl<R> Default for Erased<R> {
    /// Creates a lock of the current type.
    ///
    /// # Panics
    ///
    /// If there is no current lock, or if it does not fit into `R`.
    fn default() -> Self {
        let Operations { layout, make, .. } = operations();
        assert!(
            layout.size() <= size_of::<R>() && layout.align() <= align_of::<R>(),
            "{layout:?} does not fit"
        );
        let lock = Self(UnsafeCell::new(MaybeUninit::uninit()));
        // SAFETY: the current lock fits, and may be moved as long as no thread holds it.
        unsafe { make(lock.at().cast_mut()) };
        lock
    }
}

impl<R> Erased<R> {
    fn at(&self) -> *const u8 {
        self.0.get().cast_const().cast()
    }
}

impl Node {
    fn at(&self) -> *const u8 {
        self.0.get().cast_const().cast()
    }
}

// SAFETY: the operations are those of the current lock.
unsafe impl<R: 'static> RawLock for Erased<R> {
    type Node = Node;

    unsafe fn lock(&self, node: &Node) {
        // SAFETY: made in `default`, of the lock that is still the current one. The rest is upheld
        // by the caller. The same holds below.
        unsafe { (operations().lock)(self.at(), node.at()) };
    }

    unsafe fn unlock(&self, node: &Node) {
        // SAFETY: as above.
        unsafe { (operations().unlock)(self.at(), node.at()) };
    }
}

// SAFETY: the operations are those of the current lock. One without readers locks exclusively
// instead (`Operations::of`).
unsafe impl<R: 'static> Gate for Erased<R> {
    unsafe fn lock_shared(&self, node: &Node) {
        // SAFETY: as in `lock`.
        unsafe { (operations().lock_shared)(self.at(), node.at()) };
    }

    unsafe fn unlock_shared(&self, node: &Node) {
        // SAFETY: as in `lock`.
        unsafe { (operations().unlock_shared)(self.at(), node.at()) };
    }
}

/// An operation on an erased lock.
pub trait InRoom {
    /// The result of the operation.
    type Output;
    /// Performs the operation with room `R`.
    fn with<R: 'static>(self) -> Self::Output;
}

/// Room of a lock with several cache lines, aligned to two of them.
#[repr(C, align(128))]
struct Lines<const N: usize>([u8; N]);

/// Performs an operation on an erased lock that has the size and alignment of the current lock. If
/// there is no such room, and the lock has its cache lines to itself, it gets more cache lines than
/// it needs. The data next to it is on other cache lines in both cases.
///
/// # Panics
///
/// If there is no current lock, or no room for one of its size.
pub fn in_room<V: InRoom>(visitor: V) -> V::Output {
    in_room_for(operations().layout, visitor)
}

fn in_room_for<V: InRoom>(lock: Layout, visitor: V) -> V::Output {
    macro_rules! rooms {
        ($($room:ty),* $(,)?) => {
            $(if lock == Layout::new::<$room>() {
                return visitor.with::<$room>();
            })*
        };
    }
    type Largest = Lines<1152>;
    rooms!(u32, u64, [u32; 2], [u32; 3], [u64; 2], [u64; 3], [u64; 4], [u64; 5], [u64; 6], Largest);
    if lock.align().is_multiple_of(LINE) && lock.size() <= size_of::<Largest>() {
        return visitor.with::<Largest>();
    }
    panic!("no room for a lock of {} bytes, aligned to {}", lock.size(), lock.align());
}

#[cfg(test)]
mod tests {
    use nearlock_collection::subjects::SUBJECTS;

    use super::*;

    struct Sizes;

    impl InRoom for Sizes {
        type Output = [usize; 2];
        fn with<R: 'static>(self) -> [usize; 2] {
            [size_of::<Erased<R>>(), align_of::<Erased<R>>()]
        }
    }

    impl LockVisitor<Sim> for Sizes {
        type Output = ();
        fn visit<L: RawTryLock>(self) {
            let (size, align) = (size_of::<L>(), align_of::<L>());
            let room = in_room_for(Layout::new::<L>(), self);
            // A lock that has its cache lines to itself may get more than it needs.
            let more_lines = align.is_multiple_of(LINE)
                && room[0].is_multiple_of(LINE)
                && room[0] >= size
                && room[1].is_multiple_of(align);
            assert!(more_lines || room == [size, align], "{room:?} for {size} and {align}");
        }
    }

    #[test]
    fn a_lock_on_lines_of_its_own_has_lines_enough() {
        #[repr(align(64))]
        struct NineLines(#[expect(dead_code, reason = "its size counts")] [u8; 9 * LINE]);
        assert_eq!(in_room_for(Layout::new::<NineLines>(), Sizes), [1152, 128]);
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn no_lock_is_made_where_it_does_not_fit() {
        let lock = Subject::named("ticket").expect("is on the list");
        // SAFETY: this thread has no other erased lock, and makes none.
        let _current = unsafe { CurrentLock::new(lock) };
        let _ = Erased::<u8>::default();
    }

    #[test]
    fn data_next_to_a_lock_is_next_to_its_room() {
        for subject in SUBJECTS {
            subject.visit::<Sim, _>(Sizes);
        }
    }
}
