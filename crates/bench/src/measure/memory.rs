//! Memory of the NUMA node whose CPU touches it first, in one large page if the system provides
//! one.

use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

use nearlock_topology::NumberList;

/// Bytes of a large page. A region is aligned to it.
const LARGE_PAGE: usize = 2 << 20;

/// Whether programs can drop a line from all caches on this processor.
pub const CAN_FLUSH: bool = cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)));

/// Waits until earlier stores are visible to all cores, and lets no later access begin before that.
/// A fence alone does not suffice: the processor may request the lines of later stores before the
/// fence has completed.
#[inline(always)]
pub fn wait_for_stores() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: every x86-64 has the instructions (SSE2).
        unsafe {
            core::arch::x86_64::_mm_mfence();
            core::arch::x86_64::_mm_lfence();
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: barriers affect only the time.
        unsafe { core::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        // Ordering: SeqCst, a full fence, the closest portable equivalent. Pairs with nothing.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

/// Words that are initially 0.
pub struct Memory {
    base: NonNull<u8>,
    bytes: usize,
    mapping: Mapping,
}

// SAFETY: the memory belongs to the value, wherever the value is, and all accesses to it are
// atomic.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates this many bytes, without touching them.
    ///
    /// # Panics
    ///
    /// If the system has no memory. It could not start threads either.
    pub fn zeroed(bytes: usize) -> Self {
        let mapping = Mapping::new(bytes.next_multiple_of(LARGE_PAGE) + LARGE_PAGE);
        let start = mapping.start.as_ptr();
        let base = start.wrapping_add(start.align_offset(LARGE_PAGE));
        let memory = Self { base: NonNull::new(base).expect("within the mapping"), bytes, mapping };
        memory.mapping.ask_for_large_pages(memory.base, bytes.next_multiple_of(LARGE_PAGE));
        memory
    }

    /// The word at this offset, a multiple of its size.
    ///
    /// # Panics
    ///
    /// If there is no such word.
    #[inline(always)]
    pub fn word(&self, offset: usize) -> &AtomicUsize {
        assert!(offset < self.bytes && offset.is_multiple_of(size_of::<usize>()));
        // SAFETY:
        // * the offset is within the mapping, which lives as long as `self`, and aligned;
        // * the memory was zeroed by the system, and all accesses to it are atomic.
        unsafe { AtomicUsize::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Writes the line at this offset back and drops it from all caches of the machine, if
    /// [`CAN_FLUSH`]. The flush may still be in progress on return: use a fence.
    pub fn flush(&self, offset: usize) {
        let word = self.word(offset).as_ptr();
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            // SAFETY: the line is mapped, and every x86-64 has the instruction (SSE2).
            unsafe { core::arch::x86_64::_mm_clflush(word.cast()) };
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        {
            // SAFETY: the line is mapped. Cleaning and dropping it changes no value. Linux permits
            // the instruction in programs.
            unsafe { core::arch::asm!("dc civac, {}", in(reg) word, options(nostack, preserves_flags)) };
        }
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        {
            let _ = word;
        }
    }
}

/// Pages of this process.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

#[cfg(target_os = "linux")]
impl Mapping {
    fn new(bytes: usize) -> Self {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let (readable, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the system's choice touches no memory in use.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, readable, private) };
        let start = start.ok().and_then(|start| NonNull::new(start.cast())).expect("the system has memory");
        Self { start, bytes }
    }

    fn ask_for_large_pages(&self, base: NonNull<u8>, bytes: usize) {
        use rustix::mm::{Advice, madvise};
        // A system without large pages refuses the advice. The memory then has small pages.
        // SAFETY: the range is within the mapping, and the advice changes no contents.
        let _ = unsafe { madvise(base.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and has this size, and no borrow of it is left.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Mapping {
    fn layout(bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(bytes, 4096).expect("a size of ours is a layout")
    }

    fn new(bytes: usize) -> Self {
        // SAFETY: the size is not 0.
        let start = unsafe { std::alloc::alloc_zeroed(Self::layout(bytes)) };
        Self { start: NonNull::new(start).expect("the system has memory"), bytes }
    }

    fn ask_for_large_pages(&self, _base: NonNull<u8>, _bytes: usize) {}
}

#[cfg(not(target_os = "linux"))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and no borrow of it is left.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
    }
}

/// Total size of the private caches of this CPU's core, all levels together, in bytes.
pub fn private_cache_bytes(cpu: u32) -> usize {
    /// For systems that do not report it: more than most cores have.
    const USUAL: usize = 2 << 20;
    let core = std::path::PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}"));
    let text = |name: &str| std::fs::read_to_string(core.join(name)).ok();
    let list = |name: &str| NumberList::parse(&text(name)?);
    let siblings = list("topology/thread_siblings_list").unwrap_or_else(|| NumberList::from_iter([cpu]));
    let bytes = (0..CACHES_MAX).filter_map(|index| {
        let shared = list(&format!("cache/index{index}/shared_cpu_list"))?;
        let is_private = shared.iter().all(|other| siblings.contains(other));
        let size = bytes(&text(&format!("cache/index{index}/size"))?)?;
        is_private.then_some(size)
    });
    match bytes.sum() {
        0 => USUAL,
        bytes => bytes,
    }
}

/// Limit of the numbers of a CPU's caches.
const CACHES_MAX: usize = 16;

/// Parses a size in the kernel's notation: `32K`, `1M`.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(number) => (number, 1 << 20),
            None => (text, 1),
        },
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_kernel_are_bytes() {
        assert_eq!(["32K\n", "2M", "512"].map(bytes), [Some(32 << 10), Some(2 << 20), Some(512)]);
        assert_eq!(["", "K", "-1K", "big"].map(bytes), [None; 4]);
        assert!(private_cache_bytes(0) > 0);
    }
}
