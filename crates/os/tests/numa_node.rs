//! The NUMA node of a running thread is the one that the kernel's files give for its CPU.
#![cfg(all(target_os = "linux", any(target_pointer_width = "64", target_arch = "arm")))]

use std::mem::{self, MaybeUninit};
use std::{fs, io};

use nearlock_core::platform::Topology;
use nearlock_os::Os;

/// CPUs that the calling thread may use.
fn allowed() -> Vec<usize> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set is writable and has this size.
    let failed = unsafe { libc::sched_getaffinity(0, mem::size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
    assert_eq!(failed, 0, "{}", io::Error::last_os_error());
    // SAFETY: all bits zero is an empty set, and the call has filled it in.
    let set = unsafe { set.assume_init() };
    // SAFETY: the numbers are within the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Lets the calling thread run on this CPU only.
fn run_on(cpu: usize) {
    // SAFETY: all bits zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the number is within the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is readable and has this size.
    let failed = unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set) };
    assert_eq!(failed, 0, "CPU {cpu}: {}", io::Error::last_os_error());
}

/// The NUMA node that the kernel's directory of the CPU names; 0 if there is none.
fn node_of_files(cpu: usize) -> u32 {
    let Ok(entries) = fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")) else { return 0 };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_prefix("node")?.parse().ok()).next().unwrap_or(0)
}

#[test]
fn a_thread_that_moves_knows_where_it_is() {
    let cpus = allowed();
    // Twice, so that the remembered node of a CPU is tested too.
    for &cpu in cpus.iter().chain(&cpus) {
        run_on(cpu);
        assert_eq!(<Os>::numa_node(), node_of_files(cpu), "CPU {cpu}");
    }
}
