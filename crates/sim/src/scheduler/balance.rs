//! The choice of a CPU for a woken task, and the movement of waiting tasks to idle CPUs.
//!
//! This follows Linux. A wake-up looks for an idle CPU only in the last-level cache domain of the
//! task's previous CPU. A CPU that becomes idle looks for a waiting task first nearby, then far
//! away. At the tick of a CPU that tasks wait for, an idle CPU is woken to take one of them.
//! Wake-ups that pull a task to its waker, and balancing between busy CPUs, are not modelled.

use crate::engine::Engine;
use crate::events::Event;
use crate::spec::{Balance, WakePlacement};

/// A task that has run within this time, in ps, is not moved, since its data is in its CPU's cache.
/// Linux: `sched_migration_cost_ns`.
const CACHE_HOT_PS: u64 = 500_000_000;

impl Engine {
    /// The CPU for a task that is woken and that last ran on `previous`.
    pub(super) fn cpu_to_wake_on(&self, previous: u32) -> u32 {
        let looks_around =
            self.cpus.placement == WakePlacement::Idle && !self.cpus.is_idle(previous as usize);
        let found =
            looks_around.then(|| self.cpus.idle_in(self.cpus.of_domain(previous), previous)).flatten();
        found.map_or(previous, |cpu| cpu as u32)
    }

    /// A task for a CPU that has become idle: from the busiest CPU of its socket, or else of the
    /// machine.
    pub(super) fn pull(&mut self, cpu: u32) -> Option<u32> {
        if self.cpus.waiting == 0 || self.cpus.balance == Balance::Off {
            return None;
        }
        for range in [self.cpus.of_socket(cpu), 0..self.cpus.all.len()] {
            let Some(busiest) = self.cpus.busiest_in(range) else { continue };
            if let Some(id) = self.take_away(busiest as u32, cpu) {
                return Some(id);
            }
            // The tasks of this CPU are too hot to be moved. At its next tick they may no longer
            // be.
            self.arm_tick(busiest as u32);
        }
        None
    }

    /// Gives a task that waits for a CPU to the nearest idle CPU, if there is one.
    pub(super) fn push_away(&mut self, cpu: u32) {
        if self.cpus.idle == 0 || self.cpus.balance == Balance::Off {
            return;
        }
        let ranges = [self.cpus.of_domain(cpu), self.cpus.of_socket(cpu), 0..self.cpus.all.len()];
        let Some(idle) = ranges.into_iter().find_map(|range| self.cpus.idle_in(range, cpu)) else { return };
        if let Some(id) = self.take_away(cpu, idle as u32) {
            self.take(idle as u32, id);
            self.events.schedule(self.now_ps + self.cpus.wake_latency_ps, Event::Arrive(id));
        }
    }

    /// Takes a task out of a queue, and sets its virtual runtime on another CPU.
    fn take_away(&mut self, from: u32, to: u32) -> Option<u32> {
        let (tasks, now_ps) = (&self.tasks, self.now_ps);
        let is_cold = |id: u32| now_ps >= tasks[id as usize].account.ran_until_ps + CACHE_HOT_PS;
        let id = self.cpus.all[from as usize].queue.take_first(is_cold)?;
        self.cpus.waiting -= 1;
        self.move_runtime(id, to);
        Some(id)
    }

    /// Whether an idle CPU might take tasks that wait for other CPUs.
    pub(super) fn some_cpu_is_idle(&self) -> bool {
        self.cpus.idle > 0 && self.cpus.balance == Balance::Idle
    }
}
