//! Declarations of the C library's functions that are used here.
//!
//! The crate `libc` has all of them, but takes long to compile (`cargo xtask compile-time`). So
//! only the tests depend on it, and compare every declaration with it. The numbers that the
//! functions take are in `numbers.rs`.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr;

pub use super::numbers::*;

/// A time as the kernel and the C library's function `clock_gettime` use it. Source: futex(2).
#[repr(C)]
#[allow(non_camel_case_types, reason = "named as elsewhere")]
pub struct timespec {
    pub tv_sec: c_long,
    pub tv_nsec: c_long,
}

/// Declares functions of the C library.
macro_rules! functions {
    ($($(#[$if:meta])* $name:ident: fn($($parameter:ident: $type:ty),* $(; $more:tt)?) -> $result:ty;)+) => {
        unsafe extern "C" {
            $($(#[$if])* pub fn $name($($parameter: $type),* $(, $more)?) -> $result;)+
        }

        #[cfg(test)]
        #[test]
        fn functions_are_declared_as_in_libc() {
            $($(#[$if])* let _: unsafe extern "C" fn($($type),* $(, $more)?) -> $result = libc::$name;)+
        }
    };
}

/// A function that is called at a fork.
type Handler = Option<unsafe extern "C" fn()>;
/// A function that is called at the end of a thread, with its value.
type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

functions! {
    __errno_location: fn() -> *mut c_int;
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    getauxval: fn(entry: core::ffi::c_ulong) -> core::ffi::c_ulong;
    getpid: fn() -> c_int;
    #[cfg(miri)]
    gettid: fn() -> c_int;
    // On 32 bits the C libraries differ in the width of an offset.
    #[cfg(target_pointer_width = "64")]
    mmap: fn(
        address: *mut c_void, bytes: usize, protection: c_int, flags: c_int, file: c_int, offset: i64
    ) -> *mut c_void;
    munmap: fn(address: *mut c_void, bytes: usize) -> c_int;
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    prctl: fn(option: c_int; ...) -> c_int;
    pthread_atfork: fn(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    pthread_key_create: fn(key: *mut c_uint, destructor: Destructor) -> c_int;
    pthread_key_delete: fn(key: c_uint) -> c_int;
    pthread_setspecific: fn(key: c_uint, value: *const c_void) -> c_int;
    sched_getcpu: fn() -> c_int;
    sched_yield: fn() -> c_int;
    syscall: fn(number: c_long; ...) -> c_long;
    sysconf: fn(name: c_int) -> c_long;
    write: fn(file: c_int, bytes: *const c_void, count: usize) -> isize;
}

unsafe extern "C" {
    // Its time is of another type in `libc`, with the same layout.
    pub fn clock_gettime(clock: c_int, time: *mut timespec) -> c_int;
}

/// The number of the calling thread's last error. (`std` has it too, in a type with a destructor.)
pub fn errno() -> c_int {
    // SAFETY: the variable belongs to the thread.
    unsafe { *__errno_location() }
}

/// Maps this many zeroed bytes. Returns null if that fails.
pub fn map_zeroed(bytes: usize) -> *mut c_void {
    let (anywhere, no_file) = (ptr::null_mut::<c_void>(), -1);
    let (protection, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping touches no memory in use.
    #[cfg(target_pointer_width = "64")]
    let memory = unsafe { mmap(anywhere, bytes, protection, flags, no_file, 0) };
    #[cfg(not(target_pointer_width = "64"))]
    let memory: *mut c_void = {
        // SAFETY: as above.
        let address = unsafe { syscall(SYS_mmap2, anywhere, bytes, protection, flags, no_file, 0) };
        ptr::with_exposed_provenance_mut(address as usize)
    };
    // -1: the call has failed.
    if memory.addr() == usize::MAX { ptr::null_mut() } else { memory }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn times_are_those_of_libc() {
        let _: unsafe extern "C" fn(c_int, *mut libc::timespec) -> c_int = libc::clock_gettime;
        assert_eq!(size_of::<timespec>(), size_of::<libc::timespec>());
        assert_eq!(offset_of!(timespec, tv_sec), offset_of!(libc::timespec, tv_sec));
        assert_eq!(offset_of!(timespec, tv_nsec), offset_of!(libc::timespec, tv_nsec));
    }

    #[test]
    fn no_mapping_is_null() {
        assert!(map_zeroed(usize::MAX & !4095).is_null());
    }
}
