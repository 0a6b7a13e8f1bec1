//! Accounts of time: CPU time, time spent waiting for a CPU, sleep, and CPU time in regions that
//! tasks mark.
//!
//! The time in a region is what a profiler shows as a function's share including its callees. It
//! includes spinning, because it counts all time on a CPU that is not idle. The slow paths that
//! locks mark are an exception: the spinning that kernels do in functions of their own is counted
//! in the region [`SPINNING`]. Marking takes no virtual time.

mod marks;

use nearlock_core::lockstat::Waited;

pub use marks::{Inside, enter, waited};
pub(crate) use marks::{slept_since, spin, turn};

/// The number of distinguishable regions. Region 0 is all code that no task has marked.
pub const REGIONS: usize = 8;

/// The region of the code that locks mark as their slow paths
/// ([`Platform::in_slow_path`](nearlock_core::platform::Platform::in_slow_path)).
pub const SLOW_PATH: usize = REGIONS - 1;

/// The region of spinning inside a slow path: on the owner of the lock, on a spin lock, or in a
/// queue of spinners. In a kernel these are separate functions, which a profiler shows apart from
/// the slow path's own time.
pub const SPINNING: usize = REGIONS - 2;

/// Times in ns and counts, of one task or of all tasks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time on a CPU, including switches to the task.
    pub on_cpu_ns: u64,
    /// Time for which the task was ready but had no CPU, or its idle CPU was still waking up.
    pub waiting_ns: u64,
    /// Time asleep: parked, or in [`Work::sleep_ns`](nearlock_core::platform::Work::sleep_ns).
    pub asleep_ns: u64,
    /// Switches away from the task because it went to sleep.
    pub voluntary_switches: u64,
    /// Switches away from the task while it was ready.
    pub involuntary_switches: u64,
    /// How often the task was woken up, by another task or by a timer.
    pub wake_ups: u64,
    /// How often the task migrated to another CPU.
    pub migrations: u64,
    /// CPU time by region. Time is counted in the innermost region that the task was in.
    pub regions_ns: [u64; REGIONS],
}

impl Times {
    /// The difference between these times and an `earlier` reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut regions_ns = self.regions_ns;
        regions_ns.iter_mut().zip(earlier.regions_ns).for_each(|(now, then)| *now -= then);
        Self {
            on_cpu_ns: self.on_cpu_ns - earlier.on_cpu_ns,
            waiting_ns: self.waiting_ns - earlier.waiting_ns,
            asleep_ns: self.asleep_ns - earlier.asleep_ns,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
            wake_ups: self.wake_ups - earlier.wake_ups,
            migrations: self.migrations - earlier.migrations,
            regions_ns,
        }
    }

    /// The share of CPU time that was spent in a region, or 0 if there was no CPU time.
    pub fn share_of(&self, region: usize) -> f64 {
        if self.on_cpu_ns == 0 { 0.0 } else { self.regions_ns[region] as f64 / self.on_cpu_ns as f64 }
    }
}

/// The activity that a task's time is counted as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The task has not begun, or has ended.
    #[default]
    Away,
    OnCpu,
    Waiting,
    Asleep,
}

/// The account of a task, in ps.
#[derive(Debug, Default)]
pub(crate) struct Account {
    phase: Phase,
    /// The moment at which the phase began.
    since_ps: u64,
    /// Time by phase, up to `since_ps`.
    spent_ps: [u64; 4],
    /// The moment at which the task last left a CPU.
    pub ran_until_ps: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub wake_ups: u64,
    pub migrations: u64,
    /// Waits for locks.
    waited: Waited,
    region: u8,
    /// The part of the task's CPU time that has been counted in the regions.
    marked_ps: u64,
    regions_ps: [u64; REGIONS],
}

impl Account {
    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn enter(&mut self, phase: Phase, now_ps: u64) {
        self.spent_ps[self.phase as usize] += now_ps - self.since_ps;
        if self.phase == Phase::OnCpu {
            self.ran_until_ps = now_ps;
        }
        (self.phase, self.since_ps) = (phase, now_ps);
    }

    fn spent_ps(&self, phase: Phase, now_ps: u64) -> u64 {
        let present_ps = if self.phase == phase { now_ps - self.since_ps } else { 0 };
        self.spent_ps[phase as usize] + present_ps
    }

    fn enter_region(&mut self, region: u8, now_ps: u64) -> u8 {
        let on_cpu_ps = self.spent_ps(Phase::OnCpu, now_ps);
        self.regions_ps[usize::from(self.region)] += on_cpu_ps - self.marked_ps;
        self.marked_ps = on_cpu_ps;
        std::mem::replace(&mut self.region, region)
    }

    /// Adds this account, in ps, to a sum.
    fn add_to(&self, sum: &mut Times, now_ps: u64) {
        let on_cpu_ps = self.spent_ps(Phase::OnCpu, now_ps);
        sum.on_cpu_ns += on_cpu_ps;
        sum.waiting_ns += self.spent_ps(Phase::Waiting, now_ps);
        sum.asleep_ns += self.spent_ps(Phase::Asleep, now_ps);
        sum.voluntary_switches += self.voluntary_switches;
        sum.involuntary_switches += self.involuntary_switches;
        sum.wake_ups += self.wake_ups;
        sum.migrations += self.migrations;
        sum.regions_ns.iter_mut().zip(self.regions_ps).for_each(|(sum, ps)| *sum += ps);
        sum.regions_ns[usize::from(self.region)] += on_cpu_ps - self.marked_ps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(account: &Account, now_ps: u64) -> Times {
        let mut sum = Times::default();
        account.add_to(&mut sum, now_ps);
        sum
    }

    #[test]
    fn regions_count_cpu_time_only_and_the_innermost_alone() {
        let mut account = Account::default();
        account.enter(Phase::OnCpu, 10);
        assert_eq!(account.enter_region(2, 20), 0);
        assert_eq!(account.enter_region(3, 25), 2);
        account.enter(Phase::Asleep, 30);
        account.enter(Phase::Waiting, 100);
        account.enter(Phase::OnCpu, 140);
        assert_eq!(account.enter_region(2, 150), 3);
        let times = times(&account, 157);
        assert_eq!((times.on_cpu_ns, times.asleep_ns, times.waiting_ns), (37, 70, 40));
        assert_eq!(times.regions_ns[..4], [10, 0, 12, 15]);
        assert_eq!(account.ran_until_ps, 30);
    }

    #[test]
    fn a_difference_is_that_of_everything() {
        let mut account = Account::default();
        account.enter(Phase::OnCpu, 0);
        let earlier = times(&account, 5);
        account.wake_ups = 3;
        let since = times(&account, 25).since(&earlier);
        assert_eq!((since.on_cpu_ns, since.regions_ns[0], since.wake_ups), (20, 20, 3));
        assert!((since.share_of(0) - 1.0).abs() < 1e-9);
        assert_eq!(Times::default().share_of(0), 0.0);
    }
}
