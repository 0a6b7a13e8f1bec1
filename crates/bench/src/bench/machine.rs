//! The machine that is measured, and its facilities for measuring.

use std::fs;
use std::hint::black_box;
use std::io;
use std::time::Instant;

use nearlock_core::platform::Clock;
use nearlock_os::Os;
use nearlock_topology as topology;
use nearlock_workload::sections::{WorkLength, turns};

use super::statistics::median;

/// The properties of the machine that are reported with the figures.
#[derive(Clone, Debug)]
pub struct TestBed {
    /// The processor's name, family and model, if the system reports them.
    pub model: Option<String>,
    /// Whether the processor reports a hypervisor, if the system shows that (x86-64).
    pub is_virtual: bool,
    /// Number of threads that can run at the same time: limited by the CPUs that the process may
    /// use, and by its CPU quota.
    pub cpus: usize,
    /// The numbers of the CPUs that the process may use, in ascending order.
    pub allowed: Vec<u32>,
    /// One allowed CPU of each core, in ascending order. At most as many as can run at the same
    /// time.
    pub cores: Vec<u32>,
    /// The frequency governor, if the system reports it.
    pub governor: Option<String>,
    /// The compiler of this program.
    pub compiler: &'static str,
    /// Whether this program was built with optimisation.
    pub optimised: bool,
    /// Average number of runnable threads in the last minute, if the system reports it.
    pub load: Option<f64>,
}

impl TestBed {
    /// The properties of this machine now.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let topology = topology::HostTopology::of_this_process();
        Self {
            model: read("/proc/cpuinfo").and_then(|text| processor(&text)),
            is_virtual: read("/proc/cpuinfo")
                .and_then(|text| field(&text, "flags"))
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            cpus: topology.parallelism(),
            allowed: topology.allowed.iter().collect(),
            cores: cores(&topology),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .map(|text| text.trim().to_owned()),
            compiler: nearlock_lab::COMPILER,
            optimised: !cfg!(debug_assertions),
            load: read("/proc/loadavg").and_then(|text| text.split_whitespace().next()?.parse().ok()),
        }
    }
}

/// See [`TestBed::cores`].
fn cores(machine: &topology::HostTopology) -> Vec<u32> {
    let first = |core: &topology::NumberList| core.iter().find(|&cpu| machine.allowed.contains(cpu));
    machine.cores.iter().filter_map(first).take(machine.parallelism()).collect()
}

/// The processor that `/proc/cpuinfo` names. A virtual machine may show the name of a whole line of
/// processors, as "AMD EPYC", so family and model are added.
fn processor(cpuinfo: &str) -> Option<String> {
    let name = field(cpuinfo, "model name")?;
    Some(match (field(cpuinfo, "cpu family"), field(cpuinfo, "model")) {
        (Some(family), Some(model)) => format!("{name}, family {family} model {model}"),
        _ => name,
    })
}

/// The value of `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

/// Pins the calling thread to one CPU.
#[cfg(target_os = "linux")]
pub fn pin(cpu: u32) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let cpu = usize::try_from(cpu).ok().filter(|&cpu| cpu < CpuSet::MAX_CPU);
    let mut set = CpuSet::new();
    set.set(cpu.ok_or(io::ErrorKind::Unsupported)?);
    Ok(sched_setaffinity(None, &set)?)
}

/// CPU time of all threads of the process, in ns, if the system reports it.
#[cfg(target_os = "linux")]
pub fn cpu_time_ns() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{cpu_time_ns, pin};

/// Systems on which a thread cannot be pinned.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;

    pub fn pin(_cpu: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    pub fn cpu_time_ns() -> Option<u64> {
        None
    }
}

/// Cost of the measurement itself, and the speed of simulated work.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Cost of reading the clock, in ns.
    pub clock_ns: f64,
    /// Time of one turn of [`turns`], in ns.
    turn_ns: f64,
}

impl Calibration {
    /// Calibrates this machine. Takes some milliseconds.
    pub fn measure() -> Self {
        const LOOKS: u32 = 1_000;
        const TURNS: u64 = 20_000;
        Self {
            clock_ns: least_ns(|| (0..LOOKS).for_each(|_| _ = black_box(<Os>::now_ns()))) / f64::from(LOOKS),
            turn_ns: least_ns(|| _ = turns(TURNS, TURNS)) / TURNS as f64,
        }
    }

    /// Work that takes this many ns, if the thread is not taken off its CPU.
    pub fn work_length(&self, ns: u64) -> WorkLength {
        WorkLength { ns, turns: (ns as f64 / self.turn_ns).round() as u64 }
    }
}

/// The undisturbed time of an operation: the median of the few fastest of many runs.
fn least_ns(mut something: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..100)
        .map(|_| {
            let began = Instant::now();
            something();
            began.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    median(times.into_iter().take(9)).unwrap_or(f64::NAN).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "processor\t: 0\nmodel\t\t: 79\nmodel name\t: Some: CPU @ 2 GHz\nmodel name\t: other\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some: CPU @ 2 GHz"));
        assert_eq!(field(text, "name"), None);
    }

    #[test]
    fn processors_of_one_name_differ_by_their_family() {
        let text = "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n";
        assert_eq!(processor(text).as_deref(), Some("AMD EPYC, family 26 model 2"));
        assert_eq!(processor("model name\t: Cortex\n").as_deref(), Some("Cortex"));
        assert_eq!(processor("CPU part\t: 0xd0c\n"), None);
    }

    #[test]
    fn this_machine_has_a_processor_and_a_compiler() {
        let machine = TestBed::this();
        assert!(machine.cpus >= 1 && machine.allowed.len() >= machine.cpus, "{machine:?}");
        assert!((1..=machine.cpus).contains(&machine.cores.len()), "{machine:?}");
        assert!(machine.compiler.starts_with("rustc 1."), "{machine:?}");
    }

    #[test]
    fn longer_work_has_more_turns() {
        let calibration = Calibration::measure();
        assert!(calibration.clock_ns > 0.0);
        let turns = [0, 100, 10_000, 1_000_000].map(|ns| calibration.work_length(ns).turns);
        assert!(turns[0] == 0 && turns.is_sorted() && turns[3] > turns[2], "{turns:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_can_be_pinned_to_each_cpu_and_its_time_passes() {
        let before = cpu_time_ns().expect("Linux tells");
        for cpu in TestBed::this().allowed {
            std::thread::spawn(move || {
                pin(cpu).expect("it is allowed");
                assert_eq!(TestBed::this().allowed, [cpu]);
                turns(100_000, 1);
            })
            .join()
            .expect("it can be pinned");
        }
        assert!(cpu_time_ns() > Some(before));
    }
}
