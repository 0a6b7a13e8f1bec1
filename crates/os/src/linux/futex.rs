//! The futex calls.
//!
//! On x86-64 and aarch64 the instruction of the system call is part of the caller. When the kernel
//! switches threads, it clears what a processor has learned about returns. So each function that
//! returns between the system call and the lock costs 10 ns. That is MEASURED on an AMD EPYC
//! (family 26 model 2): `perf record -e cpu-clock:u` of two threads that notify each other. The
//! call leaves `errno` alone, too. Programs expect that of an unlock.
//!
//! Source: Linux, syscall(2), "Architecture calling conventions"; futex(2).

use core::ffi::{c_int, c_long};
use core::ptr;
use core::sync::atomic::AtomicU32;
use core::time::Duration;

use super::c;
use crate::futex::WaitResult;

/// See [`futex::wait`](crate::futex::wait).
#[inline(always)]
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> WaitResult {
    // A timeout of more seconds than the kernel can count means no limit.
    let timeout = timeout.and_then(|timeout| {
        let tv_sec = timeout.as_secs().try_into().ok()?;
        Some(c::timespec { tv_sec, tv_nsec: timeout.subsec_nanos() as c_long })
    });
    let limit = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY:
    // * the word is a live, aligned 32-bit word;
    // * the limit is null or a live time of the kernel's layout.
    let result = unsafe { call(word.as_ptr(), c::FUTEX_WAIT | c::FUTEX_PRIVATE_FLAG, expected, limit) };
    match result {
        Ok(_) => WaitResult::Woken,
        Err(c::EAGAIN) => WaitResult::Mismatch,
        Err(c::ETIMEDOUT) => WaitResult::TimedOut,
        Err(error) => {
            debug_assert_eq!(error, c::EINTR, "futex wait");
            WaitResult::Interrupted
        }
    }
}

/// See [`futex::wake`](crate::futex::wake).
#[inline(always)]
pub fn futex_wake(word: *const AtomicU32, n: u32) -> u32 {
    // The kernel takes a signed number.
    let n = n.min(i32::MAX as u32);
    let word = word.cast::<u32>().cast_mut();
    // SAFETY: a private wake-up uses only the address, and reads nothing there.
    let woken = unsafe { call(word, c::FUTEX_WAKE | c::FUTEX_PRIVATE_FLAG, n, ptr::null()) };
    // The waiter may have woken up before, and may have freed the word. The kernel then finds no
    // sleeper, but Miri rejects the address.
    debug_assert!(woken.is_ok() || cfg!(miri) && woken == Err(c::EFAULT), "futex wake");
    woken.unwrap_or(0)
}

/// Makes the system call. Returns the number of its error instead of setting `errno`.
///
/// Safety: the kernel may read the word, as this operation does; the limit is null or alive.
#[inline(always)]
unsafe fn call(word: *mut u32, op: c_int, value: u32, limit: *const c::timespec) -> Result<u32, c_int> {
    // SAFETY: the caller's.
    result_of(unsafe { system_call(word, op, value, limit) })
}

/// The result of a system call: a number, or that of an error with a minus sign.
#[inline(always)]
fn result_of(result: isize) -> Result<u32, c_int> {
    if result < 0 { Err(-result as c_int) } else { Ok(result as u32) }
}

/// Safety: as [`call`].
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
#[inline(always)]
unsafe fn system_call(word: *mut u32, op: c_int, value: u32, limit: *const c::timespec) -> isize {
    let result;
    // SAFETY: the caller's. The kernel changes no other registers than these, and no memory.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") c::SYS_futex as isize => result,
            in("rdi") word,
            in("rsi") op as isize,
            in("rdx") u64::from(value),
            in("r10") limit,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Safety: as [`call`].
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64", not(miri)))]
#[inline(always)]
unsafe fn system_call(word: *mut u32, op: c_int, value: u32, limit: *const c::timespec) -> isize {
    let result;
    // SAFETY: the caller's. The kernel changes no memory, and no registers but those that a
    // function may change: beside the result, parts of the vector registers of SVE.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") c::SYS_futex as isize,
            inlateout("x0") word => result,
            in("x1") op as isize,
            in("x2") u64::from(value),
            in("x3") limit,
            clobber_abi("C"),
            options(nostack)
        );
    }
    result
}

/// By the C library, where the call is not written here.
///
/// Safety: as [`call`].
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
)))]
unsafe fn system_call(word: *mut u32, op: c_int, value: u32, limit: *const c::timespec) -> isize {
    // SAFETY: the caller's.
    match unsafe { c::syscall(c::SYS_futex, word, op, value, limit) } {
        -1 => -(c::errno() as isize),
        result => result as isize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs read `errno` after they have unlocked.
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_pointer_width = "64", not(miri)))]
    #[test]
    fn errno_stays() {
        // SAFETY: the calling thread's own.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { errno.write(12345) };
        let word = AtomicU32::new(1);
        assert_eq!(futex_wake(&word, 1), 0);
        assert_eq!(futex_wait(&word, 2, None), WaitResult::Mismatch);
        while futex_wait(&word, 1, Some(Duration::from_nanos(1))) != WaitResult::TimedOut {}
        // SAFETY: as above.
        assert_eq!(unsafe { errno.read() }, 12345);
    }

    #[test]
    fn an_error_is_told_from_a_number() {
        assert_eq!([result_of(0), result_of(3)], [Ok(0), Ok(3)]);
        assert_eq!(result_of(-(c::EINTR as isize)), Err(c::EINTR));
    }
}
