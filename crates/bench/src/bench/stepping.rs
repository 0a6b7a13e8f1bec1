//! Counts the instructions that a function executes, and the atomic read-modify-writes among them.
//! The processor stops after each instruction (the trap flag), and a signal handler inspects the
//! next one.
//!
//! The count covers everything that runs, including the peers' machine code and libraries. It costs
//! some microseconds per instruction, which does not matter here. For x86-64 with Linux.

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use libc::{REG_RIP, SA_RESTART, SA_SIGINFO, SIGTRAP, sigaction, siginfo_t, ucontext_t};

/// The trap flag in the processor's flags register.
const TRAP: u32 = 1 << 8;

static INSTRUCTIONS: AtomicU64 = AtomicU64::new(0);
static ATOMICS: AtomicU64 = AtomicU64::new(0);
/// Only one thread at a time is counted.
static COUNTING: Mutex<()> = Mutex::new(());

/// Counts of executed instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Number of instructions.
    pub instructions: u64,
    /// Number of atomic read-modify-writes among them.
    pub atomics: u64,
}

/// Counts what the calling thread executes in `work`. The counts include a constant number of
/// instructions around it. `None` if the system does not support traps.
pub fn executed(work: &mut dyn FnMut()) -> Option<Executed> {
    let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = || Executed { instructions: INSTRUCTIONS.load(Relaxed), atomics: ATOMICS.load(Relaxed) };
    // SAFETY: all zeros is a valid value of this structure of numbers, a set and a pointer.
    let (mut ours, mut theirs) = unsafe { std::mem::zeroed::<(sigaction, sigaction)>() };
    ours.sa_sigaction = on_trap as *const () as usize;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    // SAFETY: both structures are local, and the handler does only what a signal handler may do.
    if unsafe { sigaction(SIGTRAP, &raw const ours, &raw mut theirs) } != 0 {
        return None;
    }
    let before = seen();
    set_trap_flag();
    work();
    clear_trap_flag();
    let after = seen();
    // SAFETY: this restores the previous action.
    unsafe { sigaction(SIGTRAP, &raw const theirs, std::ptr::null_mut()) };
    let executed = Executed {
        instructions: after.instructions - before.instructions,
        atomics: after.atomics - before.atomics,
    };
    (executed.instructions > 0).then_some(executed)
}

#[inline(always)]
fn set_trap_flag() {
    // SAFETY: traps have a handler, and the processor enters it with the flag off. The stack
    // pointer is restored.
    unsafe { std::arch::asm!("pushfq", "or dword ptr [rsp], {trap}", "popfq", trap = const TRAP) };
}

#[inline(always)]
fn clear_trap_flag() {
    // SAFETY: the stack pointer is restored.
    unsafe { std::arch::asm!("pushfq", "and dword ptr [rsp], {rest}", "popfq", rest = const !TRAP as i32) };
}

/// Called before the next instruction is executed.
extern "C" fn on_trap(_signal: c_int, _info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the interrupted thread's context. The next instruction is readable,
    // since it is about to be executed.
    let is_atomic = unsafe {
        let context = &*context.cast::<ucontext_t>();
        is_atomic(context.uc_mcontext.gregs[REG_RIP as usize] as *const u8)
    };
    INSTRUCTIONS.fetch_add(1, Relaxed);
    ATOMICS.fetch_add(u64::from(is_atomic), Relaxed);
}

/// Whether an instruction is an atomic read-modify-write. Such an instruction has a lock prefix, or
/// it exchanges a register with memory, which needs no prefix.
///
/// Source: Intel's Software Developer's Manual, volume 2, 2.1 and "XCHG".
///
/// # Safety
///
/// There is a whole instruction at `code`.
unsafe fn is_atomic(mut code: *const u8) -> bool {
    const LOCK: u8 = 0xf0;
    const EXCHANGE: [u8; 2] = [0x86, 0x87];
    const REGISTER_OPERAND: u8 = 0b11;
    // SAFETY: the instruction is complete: more bytes follow a prefix, and an exchange has a byte
    // of operands.
    unsafe {
        loop {
            match *code {
                LOCK => return true,
                // Other prefixes, and REX prefixes.
                0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3 => code = code.add(1),
                opcode => return EXCHANGE.contains(&opcode) && *code.add(1) >> 6 != REGISTER_OPERAND,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn atomic_instructions_are_known() {
        for (code, expected) in [
            (&[0xf0, 0x0f, 0xb1, 0x0f][..], true),
            (&[0x87, 0x07], true),
            (&[0x48, 0x87, 0x07], true),
            (&[0x66, 0x87, 0x07], true),
            (&[0x87, 0xc0], false),
            (&[0xf3, 0x90], false),
            (&[0x48, 0x89, 0x07], false),
        ] {
            // SAFETY: each is an instruction.
            assert_eq!(unsafe { is_atomic(code.as_ptr()) }, expected, "{code:x?}");
        }
    }

    #[test]
    fn code_that_runs_twice_counts_twice() {
        let word = AtomicU64::new(0);
        let count = |times: u64| {
            executed(&mut || {
                for _ in 0..black_box(times) {
                    word.fetch_add(1, Relaxed);
                }
            })
        };
        // Emulated processors may not have traps.
        let (Some(none), Some(three), Some(six)) = (count(0), count(3), count(6)) else { return };
        assert_eq!([none.atomics, three.atomics, six.atomics], [0, 3, 6]);
        assert!(six.instructions >= three.instructions + 3 && three.instructions >= none.instructions + 3);
        assert_eq!(count(3), Some(three), "it counts the same each time");
        assert_eq!(word.into_inner(), 12);
    }
}
