//! A process that is confined to one processor does not spin.

#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

#[path = "helpers/emulator.rs"]
mod emulator;

use std::env;
use std::os::unix::process::CommandExt;
use std::{io, mem};

use nearlock_core::schedule::{Schedule, Spin};
use nearlock_os::Os;
use nearlock_topology::HostTopology;

use emulator::this_program;

/// Set in the environment of the process that is confined.
const CONFINED: &str = "NEARLOCK_TEST_CONFINED";

fn bind(thread: libc::pid_t, cpu: u32) -> io::Result<()> {
    // SAFETY: zero bytes are an empty set, which is readable, and its size is passed.
    let result = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(thread, size_of_val(&set), &set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether a thread would spin at all. A lock may begin a spin after others.
fn spins() -> bool {
    let begun = [0, 7].map(|turns| !<Os>::should_give_way(&mut Spin { turns, ..Spin::default() }));
    assert_eq!(begun[0], begun[1]);
    begun[0]
}

#[test]
fn a_process_with_one_processor_does_not_spin() {
    if env::var_os(CONFINED).is_some() {
        assert!(!spins(), "it spins on its only processor");
        return;
    }
    let cpu = HostTopology::of_this_process().allowed.iter().next().expect("a processor");
    let mut confined = this_program();
    confined.args(["--exact", "a_process_with_one_processor_does_not_spin"]).env(CONFINED, "1");
    // SAFETY: the closure makes only a system call, which is safe between fork and exec.
    unsafe { confined.pre_exec(move || bind(0, cpu)) };
    assert!(confined.status().expect("this test again").success());
}

/// Only the thread of this test is bound: the threads that it waits for run elsewhere.
#[test]
fn a_thread_that_is_bound_spins() {
    let machine = HostTopology::of_this_process();
    if env::var_os(CONFINED).is_some() || machine.parallelism() == 1 {
        return;
    }
    let cpu = machine.allowed.iter().next().expect("a processor");
    bind(0, cpu).expect("one of its processors");
    assert!(spins());
    // The same holds if the first thread has bound itself, once a thread elsewhere has been seen.
    // SAFETY: has no conditions.
    bind(unsafe { libc::getpid() }, cpu).expect("one of its processors");
    let other = machine.allowed.iter().nth(1).expect("another");
    let of_another = std::thread::spawn(move || {
        bind(0, other).expect("one of its processors");
        spins()
    });
    assert!(of_another.join().expect("no panic") && spins());
}
