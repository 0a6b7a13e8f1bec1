//! Declarations of the C library's functions, and of the numbers that they and the kernel take.
//!
//! Numbers and types of the kernel are those of the crate `linux-raw-sys`. The functions are
//! declared here, with the numbers that belong to the C library. The crate `libc` has all of them,
//! but takes half as long to compile as all of nearlock (`cargo xtask compile-time`). So only the
//! tests depend on it: they compare every number and every declaration with `libc`.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr;

use linux_raw_sys::general::membarrier_cmd as membarrier;
use linux_raw_sys::{errno, general as kernel};

pub use kernel::timespec;

/// Uses `as`, because the kernel's numbers are unsigned, and most functions take signed ones.
macro_rules! numbers {
    ($($type:ident { $($name:ident = $value:expr,)+ })+) => {
        $($(#[allow(non_upper_case_globals, reason = "named as elsewhere")]
        #[cfg_attr(miri, allow(dead_code, reason = "the interpreter has no such call"))]
        pub const $name: $type = $value as $type;)+)+

        #[cfg(test)]
        #[test]
        fn numbers_are_those_of_libc() {
            $($(assert_eq!($name, libc::$name, stringify!($name));)+)+
        }
    };
}

numbers! {
    c_long {
        SYS_close = kernel::__NR_close,
        SYS_futex = kernel::__NR_futex,
        SYS_getcpu = kernel::__NR_getcpu,
        SYS_gettid = kernel::__NR_gettid,
        SYS_membarrier = kernel::__NR_membarrier,
        SYS_openat = kernel::__NR_openat,
        SYS_read = kernel::__NR_read,
        SYS_sched_getaffinity = kernel::__NR_sched_getaffinity,
        SYS_tgkill = kernel::__NR_tgkill,
    }
    c_int {
        EACCES = errno::EACCES,
        EAGAIN = errno::EAGAIN,
        EFAULT = errno::EFAULT,
        EINTR = errno::EINTR,
        EINVAL = errno::EINVAL,
        ENOSYS = errno::ENOSYS,
        EPERM = errno::EPERM,
        ESRCH = errno::ESRCH,
        ETIMEDOUT = errno::ETIMEDOUT,
        AT_FDCWD = kernel::AT_FDCWD,
        CLOCK_MONOTONIC = kernel::CLOCK_MONOTONIC,
        FUTEX_PRIVATE_FLAG = kernel::FUTEX_PRIVATE_FLAG,
        FUTEX_WAIT = kernel::FUTEX_WAIT,
        FUTEX_WAKE = kernel::FUTEX_WAKE,
        MAP_ANONYMOUS = kernel::MAP_ANONYMOUS,
        MAP_PRIVATE = kernel::MAP_PRIVATE,
        MEMBARRIER_CMD_GLOBAL = membarrier::MEMBARRIER_CMD_GLOBAL,
        MEMBARRIER_CMD_PRIVATE_EXPEDITED = membarrier::MEMBARRIER_CMD_PRIVATE_EXPEDITED,
        MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = membarrier::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
        O_CLOEXEC = kernel::O_CLOEXEC,
        O_RDONLY = kernel::O_RDONLY,
        PROT_READ = kernel::PROT_READ,
        PROT_WRITE = kernel::PROT_WRITE,
        STDERR_FILENO = kernel::STDERR_FILENO,
        // Numbers of the C libraries, the same in all of Linux.
        _SC_NPROCESSORS_ONLN = 84,
    }
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
        let address =
            unsafe { syscall(kernel::__NR_mmap2 as c_long, anywhere, bytes, protection, flags, no_file, 0) };
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
