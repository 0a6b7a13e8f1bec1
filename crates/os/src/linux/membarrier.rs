//! Fences in every thread of the process: membarrier(2).
//!
//! ```text
//!  EXPEDITED   interrupts the processors that run the process: some microseconds.
//!              Needs a registration
//!     | EPERM: not registered, as a process made by fork may be: REGISTER, then one more attempt
//!     | ENOMEM, EINTR ...: may pass: up to ATTEMPTS_MAX attempts, with a yield between two
//!     v refused, or no attempt left
//!  GLOBAL      waits for all processors of the machine: some milliseconds. Needs no registration
//!     | ENOMEM, EINTR ...: as above
//!     v refused, or no attempt left
//!  the process aborts
//! ```
//! Both commands have the same effect on the memory of the process. A kernel that was started with
//! `nohz_full` has no GLOBAL.
//!
//! Source: membarrier(2).

use core::ffi::c_int;

use super::{c, die, sched_yield};

/// A command of membarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
enum Command {
    Register = c::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
    Expedited = c::MEMBARRIER_CMD_PRIVATE_EXPEDITED,
    Global = c::MEMBARRIER_CMD_GLOBAL,
}

/// The kernel's answer: an error number, if the command has failed.
type Answer = Result<(), c_int>;

/// How often a command is tried whose failure may pass. At 1, a lack of memory that lasts for a
/// microsecond costs a GLOBAL, which takes milliseconds. At a thousand, each fence makes as many
/// calls where the failure lasts.
const ATTEMPTS_MAX: u32 = 16;

/// Whether the same call fails again, however long the thread waits.
fn is_refusal(error: c_int) -> bool {
    // The errors that the manual page names, and that filters of system calls usually return.
    matches!(error, c::EPERM | c::EACCES | c::EINVAL | c::ENOSYS)
}

/// Tries a command until it succeeds, is refused, or all attempts are spent.
fn insist(command: Command, call: &mut impl FnMut(Command) -> Answer, pause: &mut impl FnMut()) -> Answer {
    for _ in 1..ATTEMPTS_MAX {
        match call(command) {
            Err(error) if !is_refusal(error) => pause(),
            answer => return answer,
        }
    }
    call(command)
}

/// Executes a fence in every thread of the process, by one of the ways drawn above. If all fail,
/// returns the answer to the last one.
fn fence(mut call: impl FnMut(Command) -> Answer, mut pause: impl FnMut()) -> Answer {
    let mut insist = |command| insist(command, &mut call, &mut pause);
    let expedited = match insist(Command::Expedited) {
        Err(c::EPERM) => insist(Command::Register).and_then(|()| insist(Command::Expedited)),
        answer => answer,
    };
    expedited.or_else(|_| insist(Command::Global))
}

fn call(command: Command) -> Answer {
    // SAFETY: the commands have no conditions. Without flags no processor number is needed.
    let result = unsafe { c::syscall(c::SYS_membarrier, command as c_int, 0, 0) };
    if result == 0 { Ok(()) } else { Err(c::errno()) }
}

/// Registers the process for [`membarrier`]. Returns whether the kernel accepts.
pub fn register_membarrier() -> bool {
    // Miri has no such call.
    !cfg!(miri) && insist(Command::Register, &mut call, &mut sched_yield).is_ok()
}

/// A full fence in every thread of the process. To be called after [`register_membarrier`] has
/// succeeded in some thread. Aborts the process if the kernel refuses all ways.
pub fn membarrier() {
    if fence(call, sched_yield).is_err() {
        abort();
    }
}

/// Aborts the process. Other threads rely on the fence: without it two threads could hold a lock at
/// the same time.
#[cold]
fn abort() -> ! {
    let message = b"nearlock: the kernel first permitted membarrier(2), and refuses it now: cannot continue.\n\
        nearlock: Let the filter of system calls (seccomp) of this thread allow membarrier, or install it before\n\
        nearlock: any lock is used: locks need no membarrier if it is refused from the beginning.\n";
    die(message);
}

#[cfg(test)]
mod tests;
