//! The scheduler's view of the CPUs: running tasks, waiting tasks, and the distances between CPUs.

use std::ops::Range;

use super::queue::{RunQueue, Turns};
use crate::spec::{Balance, MachineSpec, Preemption, WakePlacement};
use crate::ticks::NEVER;

/// A CPU.
#[derive(Debug)]
pub struct Cpu {
    /// The task that has the CPU. It also has the CPU while the CPU switches to it, and while it
    /// leaves until its stores are visible.
    pub running: Option<u32>,
    /// The task that had the CPU last.
    pub last: Option<u32>,
    pub queue: RunQueue,
    /// Whether the running task should give way when it can.
    pub need_resched: bool,
    /// The moment up to which the running task's CPU time has been counted.
    pub counted_ps: u64,
    /// The CPU time of this turn that has been counted.
    pub turn_ps: u64,
    /// The next tick that the scheduler looks at, if a task waits.
    pub tick_ps: u64,
    /// The CPU's first tick, once it is known.
    pub first_tick_ps: Option<u64>,
    /// Whether the CPU counts as busy: it has a running task, or its first task has yet to begin.
    pub is_busy: bool,
}

impl Cpu {
    fn new() -> Self {
        Self {
            running: None,
            last: None,
            queue: RunQueue::default(),
            need_resched: false,
            counted_ps: 0,
            turn_ps: 0,
            tick_ps: NEVER,
            first_tick_ps: None,
            is_busy: false,
        }
    }
}

/// The CPUs of a machine, and how they are scheduled.
pub struct Cpus {
    pub all: Vec<Cpu>,
    /// The number of busy hardware threads of each core.
    busy_threads: Vec<u32>,
    /// Whether some CPU has more than one task. Only then does it matter whether a CPU has none.
    pub are_shared: bool,
    /// The number of tasks that wait for a CPU, over all queues.
    pub waiting: usize,
    /// The number of CPUs without a task.
    pub idle: usize,
    pub turns: Turns,
    pub switch_ps: u64,
    pub wake_latency_ps: u64,
    pub preemption: Preemption,
    pub placement: WakePlacement,
    pub balance: Balance,
    threads_per_core: usize,
    threads_per_domain: usize,
    threads_per_socket: usize,
}

impl Cpus {
    pub fn new(spec: &MachineSpec) -> Self {
        let ps = |ns: f64| (ns * 1000.0) as u64;
        Self {
            all: (0..spec.cpus()).map(|_| Cpu::new()).collect(),
            busy_threads: vec![0; spec.cores()],
            are_shared: false,
            waiting: 0,
            idle: spec.cpus(),
            turns: Turns::new(spec.cpus()),
            switch_ps: ps(spec.model.context_switch_ns),
            wake_latency_ps: ps(spec.model.wake_latency_ns),
            preemption: spec.model.preemption,
            placement: spec.model.wake_placement,
            balance: spec.model.balance,
            threads_per_core: spec.smt,
            threads_per_domain: spec.smt * spec.cores_per_domain,
            threads_per_socket: spec.smt * spec.cores_per_socket,
        }
    }

    pub fn at(&mut self, cpu: u32) -> &mut Cpu {
        &mut self.all[cpu as usize]
    }

    pub fn core_of(&self, cpu: u32) -> u16 {
        (cpu as usize / self.threads_per_core) as u16
    }

    /// The number of busy hardware threads of a CPU's core.
    pub fn busy_threads_of(&mut self, cpu: u32) -> &mut u32 {
        let core = self.core_of(cpu);
        &mut self.busy_threads[usize::from(core)]
    }

    /// The hardware threads of a CPU's core, including this one.
    pub fn of_core(&self, cpu: u32) -> Range<usize> {
        around(cpu, self.threads_per_core)
    }

    /// The CPUs that share a cache with this one, including this one.
    pub fn of_domain(&self, cpu: u32) -> Range<usize> {
        around(cpu, self.threads_per_domain)
    }

    pub fn of_socket(&self, cpu: u32) -> Range<usize> {
        around(cpu, self.threads_per_socket)
    }

    pub fn is_idle(&self, cpu: usize) -> bool {
        self.all[cpu].running.is_none()
    }

    /// An idle CPU of a range. A CPU on a core whose hardware threads are all idle comes first,
    /// then any other. The search begins at `cpu` and wraps around at the end of the range.
    pub fn idle_in(&self, range: Range<usize>, cpu: u32) -> Option<usize> {
        if self.idle == 0 {
            return None;
        }
        let cpu = cpu as usize;
        let in_turn = || (cpu..range.end).chain(range.start..cpu.min(range.end));
        let mut any = None;
        for candidate in in_turn().filter(|&candidate| self.is_idle(candidate)) {
            if self.of_core(candidate as u32).all(|thread| self.is_idle(thread)) {
                return Some(candidate);
            }
            any = any.or(Some(candidate));
        }
        any
    }

    /// The CPU of a range that most tasks wait for, and the first of them if there are several.
    pub fn busiest_in(&self, range: Range<usize>) -> Option<usize> {
        let most = range.clone().map(|cpu| self.all[cpu].queue.len()).max()?;
        if most == 0 { None } else { range.into_iter().find(|&cpu| self.all[cpu].queue.len() == most) }
    }
}

/// The aligned group of `group` items that contains an item.
fn around(item: u32, group: usize) -> Range<usize> {
    let first = item as usize / group * group;
    first..first + group
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets with two domains each, two cores per domain, two threads per core.
    fn cpus() -> Cpus {
        let mut spec = MachineSpec::builtin("epyc-rome-2s").unwrap();
        spec.set("cores-per-socket", "8").unwrap();
        assert_eq!((spec.cores_per_domain, spec.smt, spec.sockets), (4, 2, 2));
        Cpus::new(&spec)
    }

    #[test]
    fn neighbours_are_numbered_together() {
        let cpus = cpus();
        assert_eq!((cpus.of_core(5), cpus.of_domain(13), cpus.of_socket(13)), (4..6, 8..16, 0..16));
        assert_eq!((cpus.of_socket(31), cpus.core_of(31)), (16..32, 15));
    }

    #[test]
    fn idle_cores_come_before_idle_threads_and_those_behind_before_those_ahead() {
        let mut cpus = cpus();
        let occupy = |cpus: &mut Cpus, these: &[usize]| {
            these.iter().for_each(|&cpu| cpus.all[cpu].running = Some(0));
            cpus.idle -= these.len();
        };
        occupy(&mut cpus, &[0, 3, 4]);
        assert_eq!(cpus.idle_in(0..8, 3), Some(6), "the core of 4 is half idle");
        occupy(&mut cpus, &[6]);
        assert_eq!(cpus.idle_in(0..8, 3), Some(5), "no core is idle");
        occupy(&mut cpus, &[5, 7]);
        assert_eq!(cpus.idle_in(0..8, 3), Some(1), "from the beginning");
        occupy(&mut cpus, &[1, 2]);
        assert_eq!(cpus.idle_in(0..8, 3), None);
        assert_eq!(cpus.idle_in(0..16, 3), Some(8));
        assert_eq!(cpus.idle_in(0..32, 17), Some(17));
    }

    #[test]
    fn the_busiest_cpu_is_the_one_with_most_waiting_tasks() {
        let mut cpus = cpus();
        assert_eq!(cpus.busiest_in(0..32), None);
        for cpu in [3, 7, 7, 20, 20] {
            cpus.all[cpu].queue.push(1, 0);
        }
        assert_eq!((cpus.busiest_in(0..32), cpus.busiest_in(16..32)), (Some(7), Some(20)));
        assert_eq!((cpus.busiest_in(0..4), cpus.busiest_in(8..16)), (Some(3), None));
    }
}
