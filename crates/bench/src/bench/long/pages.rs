//! Memory whose first access is a page fault, again and again.

#[cfg(target_os = "linux")]
pub use linux::Pages;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::c_void;
    use std::ptr;

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    /// The size of a page, or a multiple of it on machines with larger pages. An access in each of
    /// these parts touches a page.
    const PAGE_BYTES: usize = 4096;

    /// Private memory of one thread.
    pub struct Pages {
        start: *mut c_void,
        bytes: usize,
    }

    impl Pages {
        /// Maps this many pages.
        ///
        /// # Panics
        ///
        /// If the system has no memory for them.
        pub fn map(pages: usize) -> Self {
            let bytes = pages * PAGE_BYTES;
            // SAFETY: a new mapping, at a place that the kernel chooses.
            let start = unsafe {
                mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
            };
            Self { start: start.expect("there is memory for a few pages"), bytes }
        }

        /// Writes to each page. After [`discard`](Self::discard), each write is a page fault.
        pub fn touch(&mut self) {
            for offset in (0..self.bytes).step_by(PAGE_BYTES) {
                // SAFETY: inside the mapping, which only this thread accesses.
                unsafe { self.start.cast::<u8>().add(offset).write_volatile(1) };
            }
        }

        /// Gives the memory back, and keeps the addresses.
        pub fn discard(&mut self) {
            // SAFETY: the mapping is this value's own, and its contents do not matter. An error
            // only means that the next accesses are no page faults.
            _ = unsafe { madvise(self.start, self.bytes, Advice::LinuxDontNeed) };
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            // SAFETY: the mapping is this value's own, and is not used any more.
            _ = unsafe { munmap(self.start, self.bytes) };
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn discarded_pages_are_zero_again() {
            let mut pages = Pages::map(2);
            // SAFETY: inside the mapping.
            let last = |pages: &Pages| unsafe { pages.start.cast::<u8>().add(PAGE_BYTES).read_volatile() };
            pages.touch();
            assert_eq!(last(&pages), 1);
            pages.discard();
            assert_eq!(last(&pages), 0);
        }
    }
}

/// Systems without page faults on request: the allocator decides whether the memory is fresh.
#[cfg(not(target_os = "linux"))]
pub struct Pages(Vec<u8>);

#[cfg(not(target_os = "linux"))]
impl Pages {
    pub fn map(pages: usize) -> Self {
        Self(vec![0; pages * 4096])
    }

    pub fn touch(&mut self) {
        self.0.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    }

    pub fn discard(&mut self) {
        self.0 = vec![0; self.0.len()];
    }
}
