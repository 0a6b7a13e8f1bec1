use std::vec;
use std::vec::Vec;

use super::Command::{Expedited, Global, Register};
use super::*;

/// A kernel that answers by a rule, and the calls that were made to it.
struct Kernel<F> {
    answer: F,
    calls: Vec<Command>,
}

impl<F: FnMut(Command, usize) -> Answer> Kernel<F> {
    /// The rule gets the command, and how often it has been called before.
    fn new(answer: F) -> Self {
        Self { answer, calls: vec![] }
    }

    /// The result of a fence, and how often its thread has paused.
    fn fence(&mut self) -> (Answer, usize) {
        let mut pauses = 0;
        let call = |command| {
            let before = self.calls.iter().filter(|&&earlier| earlier == command).count();
            self.calls.push(command);
            (self.answer)(command, before)
        };
        (fence(call, || pauses += 1), pauses)
    }

    fn count(&self, command: Command) -> usize {
        self.calls.iter().filter(|&&call| call == command).count()
    }
}

const ALL: usize = ATTEMPTS_MAX as usize;

#[test]
fn a_registered_process_makes_one_call() {
    let mut kernel = Kernel::new(|_, _| Ok(()));
    assert_eq!(kernel.fence(), (Ok(()), 0));
    assert_eq!(kernel.calls, [Expedited]);
}

#[test]
fn a_lack_of_memory_that_passes_is_waited_for() {
    for passing in [libc::ENOMEM, libc::EINTR, libc::EAGAIN, libc::EBUSY] {
        let mut kernel = Kernel::new(|_, before| if before < 2 { Err(passing) } else { Ok(()) });
        assert_eq!(kernel.fence(), (Ok(()), 2));
        assert_eq!(kernel.calls, [Expedited; 3]);
    }
}

#[test]
fn a_lack_of_memory_that_stays_is_avoided_by_the_other_command() {
    let mut kernel = Kernel::new(|command, _| if command == Global { Ok(()) } else { Err(libc::ENOMEM) });
    assert_eq!(kernel.fence(), (Ok(()), ALL - 1));
    assert_eq!((kernel.count(Expedited), kernel.count(Global)), (ALL, 1));
    assert_eq!(kernel.count(Register), 0, "the process is registered");
}

#[test]
fn a_forked_process_registers_again() {
    let mut is_registered = false;
    let mut kernel = Kernel::new(|command, _| match command {
        Register => {
            is_registered = true;
            Ok(())
        }
        Expedited if !is_registered => Err(libc::EPERM),
        _ => Ok(()),
    });
    assert_eq!(kernel.fence(), (Ok(()), 0));
    assert_eq!(kernel.calls, [Expedited, Register, Expedited]);
}

/// A filter of system calls that was installed after the registration does this.
#[test]
fn a_refused_command_is_not_repeated_and_the_other_one_is_used() {
    for refusal in [libc::ENOSYS, libc::EINVAL, libc::EACCES] {
        let mut kernel = Kernel::new(|command, _| if command == Global { Ok(()) } else { Err(refusal) });
        assert_eq!(kernel.fence(), (Ok(()), 0));
        assert_eq!(kernel.calls, [Expedited, Global]);
    }
    // EPERM may mean that the process is not registered.
    let mut kernel = Kernel::new(|command, _| if command == Global { Ok(()) } else { Err(libc::EPERM) });
    assert_eq!(kernel.fence(), (Ok(()), 0));
    assert_eq!(kernel.calls, [Expedited, Register, Global]);
    // The same after the process has been registered again.
    let mut kernel = Kernel::new(|command, _| if command == Expedited { Err(libc::EPERM) } else { Ok(()) });
    assert_eq!(kernel.fence(), (Ok(()), 0));
    assert_eq!(kernel.calls, [Expedited, Register, Expedited, Global]);
}

#[test]
fn temporary_failures_are_waited_for_in_every_command() {
    let mut kernel = Kernel::new(|command, before| match (command, before) {
        (Expedited, 0) => Err(libc::EPERM),
        (Register, 0) | (Global, 0..3) => Err(libc::EINTR),
        (Expedited, _) => Err(libc::ENOMEM),
        _ => Ok(()),
    });
    assert_eq!(kernel.fence(), (Ok(()), 1 + (ALL - 1) + 3));
    assert_eq!((kernel.count(Register), kernel.count(Global)), (2, 4));
}

#[test]
fn a_fence_fails_if_every_command_does() {
    let mut kernel = Kernel::new(|_, _| Err(libc::EPERM));
    assert_eq!(kernel.fence(), (Err(libc::EPERM), 0));
    assert_eq!(kernel.calls, [Expedited, Register, Global]);
    // The kernel has no GLOBAL, and lacks memory for the other command.
    let mut kernel =
        Kernel::new(|command, _| if command == Global { Err(libc::EINVAL) } else { Err(libc::ENOMEM) });
    assert_eq!(kernel.fence(), (Err(libc::EINVAL), ALL - 1));
    let mut kernel = Kernel::new(|_, _| Err(libc::EINTR));
    assert_eq!(kernel.fence(), (Err(libc::EINTR), 2 * (ALL - 1)), "it does not go on for ever");
}

#[cfg(not(miri))]
mod native {
    use std::env;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::FromRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::string::String;

    use super::*;
    use crate::fences;

    /// Makes the kernel answer this command with an error, in the calling thread. Returns whether
    /// that is possible.
    fn refuse(command: Command, error: c_int) -> bool {
        let step =
            |code: u32, k: u32, if_not: u8| libc::sock_filter { code: code as u16, jt: 0, jf: if_not, k };
        let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let answer = libc::BPF_RET | libc::BPF_K;
        // Offsets in `seccomp_data`: the number is its first word, and the arguments begin at 16.
        // The lower half of an argument comes first, as on all processors on which this test runs.
        let mut steps = [
            step(load, 0, 0),
            step(equal, libc::SYS_membarrier as u32, 3),
            step(load, 16, 0),
            step(equal, command as u32, 1),
            step(answer, libc::SECCOMP_RET_ERRNO | error as u32, 0),
            step(answer, libc::SECCOMP_RET_ALLOW, 0),
        ];
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: the program is readable during the call.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) == 0
        }
    }

    /// The exit status of a child that cannot install a filter.
    const NO_FILTER: c_int = 77;

    /// Calls `act` in a child. Returns the status of the child, and its standard error.
    fn forked(act: impl FnOnce()) -> (c_int, String) {
        let mut ends = [0; 2];
        // SAFETY: two descriptors are written.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the child calls nothing that depends on the state of another thread at the fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let no_dump = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the descriptors are open, and the limit is readable.
            unsafe {
                libc::dup2(ends[1], libc::STDERR_FILENO);
                libc::setrlimit(libc::RLIMIT_CORE, &raw const no_dump);
            }
            act();
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: open, and owned by nothing else in this process.
        let [mut says, unused] = ends.map(|end| unsafe { File::from_raw_fd(end) });
        drop(unused);
        let mut said = String::new();
        says.read_to_string(&mut said).unwrap();
        let mut status = 0;
        // SAFETY: the status is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        (status, said)
    }

    fn exit(code: c_int) {
        // SAFETY: called in a child, which has nothing to clean up.
        unsafe { libc::_exit(code) };
    }

    fn refuse_or_exit(command: Command, error: c_int) {
        if !refuse(command, error) {
            exit(NO_FILTER);
        }
        if call(command) != Err(error) {
            exit(1);
        }
    }

    /// Whether the tests below can run here; prints the reason if not.
    fn can_be_tried(status: c_int) -> bool {
        let has_filter = !(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == NO_FILTER);
        if !has_filter {
            std::eprintln!("not tried: a process here cannot filter its system calls");
        }
        has_filter
    }

    fn has_commands() -> bool {
        let has_both = fences::register_membarrier() && call(Global) == Ok(());
        if !has_both {
            std::eprintln!("not tried: the kernel does not offer membarrier, or not both of its commands");
        }
        has_both
    }

    #[test]
    fn a_process_continues_if_its_expedited_fences_fail() {
        if !has_commands() {
            return;
        }
        for error in [libc::ENOMEM, libc::EPERM, libc::ENOSYS] {
            let (status, said) = forked(|| {
                refuse_or_exit(Expedited, error);
                fences::heavy();
                exit(7);
            });
            if can_be_tried(status) {
                assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}: {said}");
            }
        }
    }

    /// The library works before `main`. So what it decides then cannot take into account the
    /// filters that a program installs.
    #[test]
    fn a_filter_before_the_first_fence_is_respected() {
        const NAME: &str = "linux::membarrier::tests::native::a_filter_before_the_first_fence_is_respected";
        const CHILD: &str = "NEARLOCK_TEST_FILTERED";
        if env::var_os(CHILD).is_some() {
            for command in [Register, Expedited, Global] {
                refuse_or_exit(command, libc::EPERM);
            }
            fences::light();
            fences::heavy();
            exit(7);
        }
        // A process that has executed no fence.
        let mut test = std::process::Command::new(env::current_exe().unwrap());
        let ended = test.args(["--exact", NAME, "--nocapture"]).env(CHILD, "").output().unwrap();
        // A process under QEMU cannot start a program that would have to be emulated too.
        const NOT_STARTED: c_int = 127;
        if ended.status.code() == Some(NOT_STARTED) {
            std::eprintln!("not tried: a process here cannot start itself");
        } else if can_be_tried(ended.status.into_raw()) {
            assert_eq!(ended.status.code(), Some(7), "{}", String::from_utf8_lossy(&ended.stderr));
        }
    }

    #[test]
    fn a_process_whose_fences_all_fail_says_what_can_be_done() {
        if !has_commands() {
            return;
        }
        let (status, said) = forked(|| {
            refuse_or_exit(Expedited, libc::EPERM);
            refuse_or_exit(Global, libc::EPERM);
            fences::heavy();
        });
        if can_be_tried(status) {
            assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT, "{status:#x}");
            assert!(said.contains("seccomp") && said.contains("allow membarrier"), "{said}");
        }
    }
}
