//! The queue of tasks that are ready for a CPU. The task that has run least is next.
//!
//! A task's *virtual runtime* is the CPU time that it has had. All tasks have the same weight. A
//! task that has slept comes back with a credit, but not with all the time that it has missed. A
//! task that moves to another CPU keeps its lead or lag. A *turn* is a task's time slice.
//!
//! Source: the completely fair scheduler of Linux as its documentation of 2013 describes it
//! (`Documentation/scheduler/sched-design-CFS.txt`) and the defaults of its `sched_*_ns` settings.

use std::collections::BTreeMap;

/// Every ready task gets a turn within this time, in ps, while there are few tasks. Linux:
/// `sched_latency_ns`.
const LATENCY_PS: u64 = 6_000_000_000;
/// The shortest turn, in ps. Linux: `sched_min_granularity_ns`.
const GRANULARITY_PS: u64 = 750_000_000;
/// A woken task takes the CPU from the running task if it has run less by more than this, in ps.
/// Linux: `sched_wakeup_granularity_ns`.
const WAKE_GRANULARITY_PS: u64 = 1_000_000_000;
/// The three values above are for one CPU. They grow with the logarithm of the number of CPUs, up
/// to this many.
const SCALED_CPUS_MAX: usize = 8;
/// The virtual runtime of the first tasks, in ps. It keeps all virtual runtimes above 0.
const ORIGIN_PS: u64 = 1 << 50;

/// The lengths of turns, in ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    latency_ps: u64,
    /// The shortest turn.
    pub granularity_ps: u64,
    /// A woken task waits for its turn unless it has run less than the running task by more than
    /// this.
    pub wake_granularity_ps: u64,
}

impl Turns {
    /// The turns on a machine with `cpus` CPUs.
    pub fn new(cpus: usize) -> Self {
        let factor = 1 + u64::from(cpus.clamp(1, SCALED_CPUS_MAX).ilog2());
        Self {
            latency_ps: LATENCY_PS * factor,
            granularity_ps: GRANULARITY_PS * factor,
            wake_granularity_ps: WAKE_GRANULARITY_PS * factor,
        }
    }

    /// The turn of each of `ready` tasks, including the running task.
    pub fn slice_ps(&self, ready: usize) -> u64 {
        (self.latency_ps / ready.max(1) as u64).max(self.granularity_ps)
    }

    /// How far a sleeper may lag behind when it comes back: half of the latency.
    fn credit_ps(&self) -> u64 {
        self.latency_ps / 2
    }
}

/// The tasks that wait for a CPU.
#[derive(Debug)]
pub struct RunQueue {
    /// Ordered by virtual runtime, then by arrival.
    waiting: BTreeMap<(u64, u64), u32>,
    /// How many tasks have arrived so far.
    came: u64,
    /// The least virtual runtime of this CPU. It never decreases.
    least_ps: u64,
}

impl Default for RunQueue {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), came: 0, least_ps: ORIGIN_PS }
    }
}

impl RunQueue {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn push(&mut self, runtime_ps: u64, task: u32) {
        self.came += 1;
        self.waiting.insert((runtime_ps, self.came), task);
    }

    /// Removes and returns the task that has run least.
    pub fn pop(&mut self) -> Option<u32> {
        self.waiting.pop_first().map(|(_, task)| task)
    }

    /// The virtual runtime of the task that has run least.
    pub fn first_ps(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|(key, _)| key.0)
    }

    /// Removes and returns the first task that `may_go`.
    pub fn take_first(&mut self, may_go: impl Fn(u32) -> bool) -> Option<u32> {
        let key = self.waiting.iter().find(|(_, task)| may_go(**task)).map(|(key, _)| *key)?;
        self.waiting.remove(&key)
    }

    /// Updates the least virtual runtime. `running_ps` is that of the running task.
    pub fn advance(&mut self, running_ps: u64) {
        let least_ps = self.first_ps().map_or(running_ps, |first_ps| first_ps.min(running_ps));
        self.least_ps = self.least_ps.max(least_ps);
    }

    /// The virtual runtime on this CPU of a task that has `runtime_ps` on CPU `from`.
    pub fn of_migrant(&self, runtime_ps: u64, from: &Self) -> u64 {
        runtime_ps + self.least_ps - from.least_ps
    }

    /// The virtual runtime of a task that has slept.
    pub fn of_sleeper(&self, runtime_ps: u64, turns: &Turns) -> u64 {
        runtime_ps.max(self.least_ps - turns.credit_ps())
    }

    /// The virtual runtime of a new task: the least virtual runtime plus the shortest turn. Linux
    /// adds the present turn. If many tasks begin together, this is longer for the first than for
    /// the last.
    pub fn of_newcomer(&self, turns: &Turns) -> u64 {
        self.least_ps + turns.granularity_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    #[test]
    fn turns_get_longer_with_the_cpus_and_shorter_with_the_tasks() {
        let (one, many) = (Turns::new(1), Turns::new(160));
        assert_eq!((one.slice_ps(1), one.slice_ps(2), one.slice_ps(100)), (6 * MS, 3 * MS, MS * 3 / 4));
        assert_eq!((many.slice_ps(0), many.slice_ps(4), many.slice_ps(9)), (24 * MS, 6 * MS, 3 * MS));
        assert_eq!((Turns::new(2).wake_granularity_ps, many.wake_granularity_ps), (2 * MS, 4 * MS));
        assert_eq!(many, Turns::new(8));
    }

    #[test]
    fn the_task_that_has_run_least_is_next_and_of_equals_the_first() {
        let mut queue = RunQueue::default();
        for (runtime_ps, task) in [(30, 1), (10, 2), (30, 3), (20, 4)] {
            queue.push(ORIGIN_PS + runtime_ps, task);
        }
        assert_eq!(queue.take_first(|task| task % 2 == 1), Some(1));
        assert_eq!(queue.take_first(|task| task > 4), None);
        assert_eq!((queue.pop(), queue.pop(), queue.pop(), queue.pop()), (Some(2), Some(4), Some(3), None));
    }

    #[test]
    fn sleepers_get_a_credit_and_migrants_keep_their_lag() {
        let turns = Turns::new(1);
        let (mut here, mut there) = (RunQueue::default(), RunQueue::default());
        here.advance(ORIGIN_PS + 50 * MS);
        here.advance(ORIGIN_PS + 40 * MS);
        assert_eq!(here.of_sleeper(ORIGIN_PS, &turns), ORIGIN_PS + 47 * MS);
        assert_eq!(here.of_sleeper(ORIGIN_PS + 49 * MS, &turns), ORIGIN_PS + 49 * MS);
        assert_eq!(here.of_newcomer(&turns), ORIGIN_PS + 50 * MS + MS * 3 / 4);
        there.push(ORIGIN_PS + 5 * MS, 0);
        there.advance(ORIGIN_PS + 9 * MS);
        assert_eq!(here.of_migrant(ORIGIN_PS + 7 * MS, &there), ORIGIN_PS + 52 * MS);
        assert_eq!(there.of_migrant(ORIGIN_PS + 49 * MS, &here), ORIGIN_PS + 4 * MS);
    }
}
