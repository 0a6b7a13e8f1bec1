//! Simulated memory.
//!
//! All shared values lie in one block of real memory. The real layout of types thus decides which
//! words share a line. Lines are named by offsets, not by addresses.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

/// Size of a cache line, in bytes.
pub const LINE: usize = 64;
const PAGE: usize = 4096;

/// A block of memory that is given out piece by piece and never reclaimed.
pub struct Arena {
    block: NonNull<u8>,
    /// Bytes of the block before its first page boundary.
    lead: usize,
    size: usize,
    used: Cell<usize>,
}

impl Arena {
    /// An arena of `size` bytes, all zero, with no pieces given out.
    pub fn new(size: usize) -> Rc<Self> {
        let layout = Self::layout(size);
        // SAFETY: the layout is not empty.
        let block = unsafe { alloc_zeroed(layout) };
        let Some(block) = NonNull::new(block) else { handle_alloc_error(layout) };
        let lead = block.addr().get().next_multiple_of(PAGE) - block.addr().get();
        Rc::new(Self { block, lead, size, used: Cell::new(0) })
    }

    /// The requested size plus one page, so that the block can be aligned inside. Allocators return
    /// large zeroed blocks without touching them, but not aligned ones.
    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size + PAGE, 1).expect("a sensible size of simulated memory")
    }

    /// Takes memory for `layout` that begins on a line of its own, and returns its offset.
    pub fn take(&self, layout: Layout) -> usize {
        assert!(layout.align() <= PAGE, "simulated memory is aligned to {PAGE} bytes at most");
        let at = self.used.get().next_multiple_of(layout.align().max(LINE));
        let end = at + layout.size().max(1);
        assert!(end <= self.size, "out of simulated memory: {} bytes are not enough", self.size);
        self.used.set(end.next_multiple_of(LINE));
        at
    }

    /// Bytes given out so far, in whole lines.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// The address of an offset.
    pub fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < self.size);
        // SAFETY: the offset lies within the block.
        unsafe { self.block.as_ptr().add(self.lead + offset) }
    }

    /// The offset of an address, if it lies in memory that has been given out.
    pub fn offset_of(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.block.as_ptr().addr() + self.lead);
        (offset < self.used.get()).then_some(offset)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the block was allocated in `new` with the same layout.
        unsafe { dealloc(self.block.as_ptr(), Self::layout(self.size)) };
    }
}

/// A value in simulated memory. Keeps that memory alive.
pub struct Placed<T: ?Sized> {
    value: NonNull<T>,
    _arena: Rc<Arena>,
}

impl<T> Placed<T> {
    pub(crate) fn new(arena: &Rc<Arena>, value: T) -> Self {
        let at = arena.at(arena.take(Layout::new::<T>())).cast::<T>();
        // SAFETY: `take` returned this place, which has the type's size and alignment.
        unsafe { at.write(value) };
        Self { value: NonNull::new(at).expect("within a block"), _arena: Rc::clone(arena) }
    }
}

impl<T> Placed<[T]> {
    pub(crate) fn slice(arena: &Rc<Arena>, len: usize, make: impl Fn() -> T) -> Self {
        let layout = Layout::array::<T>(len).expect("a sensible length");
        let at = arena.at(arena.take(layout)).cast::<T>();
        for i in 0..len {
            // SAFETY: `take` returned room for `len` values.
            unsafe { at.add(i).write(make()) };
        }
        let value = NonNull::slice_from_raw_parts(NonNull::new(at).expect("within a block"), len);
        Self { value, _arena: Rc::clone(arena) }
    }
}

impl<T: ?Sized> Deref for Placed<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the constructor wrote the value, and this object owns it until it is dropped.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for Placed<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the value is borrowed exclusively.
        unsafe { self.value.as_mut() }
    }
}

impl<T: ?Sized> Drop for Placed<T> {
    fn drop(&mut self) {
        // SAFETY: the value is valid and is not used again.
        unsafe { self.value.drop_in_place() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_begin_on_lines_of_their_own_at_repeatable_offsets() {
        for _ in 0..2 {
            let arena = Arena::new(1 << 16);
            assert_eq!(arena.take(Layout::new::<u32>()), 0);
            assert_eq!(arena.take(Layout::new::<[u64; 9]>()), 64);
            assert_eq!(arena.take(Layout::new::<u8>()), 192);
            assert_eq!(arena.offset_of(arena.at(65).addr()), Some(65));
            assert_eq!(arena.offset_of(arena.at(256).addr()), None, "not given out yet");
        }
    }

    #[test]
    fn placed_values_are_dropped_and_outlive_the_handle_to_the_arena() {
        let arena = Arena::new(1 << 12);
        let witness = Rc::new(());
        let placed = Placed::new(&arena, Rc::clone(&witness));
        let slice = Placed::slice(&arena, 3, || Rc::clone(&witness));
        drop(arena);
        assert_eq!(Rc::strong_count(&witness), 5);
        assert_eq!(slice.len(), 3);
        drop((placed, slice));
        assert_eq!(Rc::strong_count(&witness), 1);
    }
}
