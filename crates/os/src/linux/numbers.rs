//! Numbers that the kernel and the C library take.
//!
//! The crates `linux-raw-sys` and `libc` have them, but take long to compile (`cargo xtask
//! compile-time`). So only the tests depend on `libc`, and compare every number with it when they
//! are compiled. `cargo check -p nearlock-os --tests --target TARGET` compares the numbers of
//! another architecture.
//!
//! Source of the numbers: the crate `linux-raw-sys` 0.12.1, which is generated from the headers
//! that Linux has for programs. Their meaning is in the manual pages of Linux: syscalls(2),
//! errno(3), futex(2), membarrier(2), mmap(2), open(2).

use core::ffi::{c_int, c_long};

/// The architectures that have numbers of their own, in the order of the columns below.
#[derive(Clone, Copy)]
enum Architecture {
    X86_64,
    Arm,
    PowerPc64,
    S390x,
    Mips64,
    Sparc64,
    /// The numbers that all newer architectures share: aarch64, loongarch64, riscv64.
    Shared,
}

/// That of this program.
const THIS: usize = if cfg!(target_arch = "x86_64") {
    Architecture::X86_64
} else if cfg!(target_arch = "arm") {
    Architecture::Arm
} else if cfg!(target_arch = "powerpc64") {
    Architecture::PowerPc64
} else if cfg!(target_arch = "s390x") {
    Architecture::S390x
} else if cfg!(any(target_arch = "mips64", target_arch = "mips64r6")) {
    Architecture::Mips64
} else if cfg!(target_arch = "sparc64") {
    Architecture::Sparc64
} else {
    Architecture::Shared
} as usize;

/// Declares numbers, and compares them with those of `libc`.
macro_rules! numbers {
    ($($type:ident { $($(#[$if:meta])* $name:ident = $value:expr,)+ })+) => {
        $($($(#[$if])*
        #[cfg_attr(miri, allow(dead_code, reason = "the interpreter has no such call"))]
        pub const $name: $type = $value;)+)+

        /// Fails when it is compiled.
        #[cfg(test)]
        #[test]
        fn numbers_are_those_of_libc() {
            $($($(#[$if])* const _: () = assert!($name == libc::$name, stringify!($name));)+)+
        }
    };
}

numbers! {
    c_long {
        //                       X86_64, Arm, PowerPc64, S390x, Mips64, Sparc64, Shared
        SYS_close =             [3,      6,   6,         6,     5003,   6,       57][THIS],
        SYS_futex =             [202,    240, 221,       238,   5194,   142,     98][THIS],
        SYS_getcpu =            [309,    345, 302,       311,   5271,   308,     168][THIS],
        SYS_gettid =            [186,    224, 207,       236,   5178,   143,     178][THIS],
        SYS_membarrier =        [324,    389, 365,       356,   5318,   351,     283][THIS],
        SYS_openat =            [257,    322, 286,       288,   5247,   284,     56][THIS],
        SYS_read =              [0,      3,   3,         3,     5000,   3,       63][THIS],
        SYS_sched_getaffinity = [204,    242, 223,       240,   5196,   260,     123][THIS],
        SYS_tgkill =            [234,    268, 250,       241,   5225,   211,     131][THIS],
        #[cfg(target_arch = "arm")]
        SYS_mmap2 = 192,
    }
    c_int {
        //                       X86_64, Arm, PowerPc64, S390x, Mips64, Sparc64, Shared
        ENOSYS =                [38,     38,  38,        38,    89,     90,      38][THIS],
        ETIMEDOUT =             [110,    110, 110,       110,   145,    60,      110][THIS],
        MAP_ANONYMOUS =         [0x20,   0x20, 0x20,     0x20,  0x800,  0x20,    0x20][THIS],
        O_CLOEXEC = [0x8_0000, 0x8_0000, 0x8_0000, 0x8_0000, 0x8_0000, 0x40_0000, 0x8_0000][THIS],
        // The same everywhere.
        EACCES = 13,
        EAGAIN = 11,
        EFAULT = 14,
        EINTR = 4,
        EINVAL = 22,
        EPERM = 1,
        ESRCH = 3,
        AT_FDCWD = -100,
        CLOCK_MONOTONIC = 1,
        FUTEX_PRIVATE_FLAG = 0x80,
        FUTEX_WAIT = 0,
        FUTEX_WAKE = 1,
        MAP_PRIVATE = 0x2,
        MEMBARRIER_CMD_GLOBAL = 0x1,
        MEMBARRIER_CMD_PRIVATE_EXPEDITED = 0x8,
        MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = 0x10,
        O_RDONLY = 0,
        PROT_READ = 0x1,
        PROT_WRITE = 0x2,
        STDERR_FILENO = 2,
        // A number of the C libraries, the same in all that Linux has.
        _SC_NPROCESSORS_ONLN = 84,
    }
}
