//! Observes a run from outside.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nearlock_collection::subjects::Subject;
use nearlock_core::settings::Setting;
use nearlock_workload::locktorture::LONG_READ_TIMES;

use super::book::{Book, entropy};
use super::pace::{PHASE, Phase};
use super::stalls::{Event, Watcher};
use super::{News, Plan, Problem};

/// Interval of observations.
const LOOK: Duration = Duration::from_millis(10);
/// In a storm, waiters spin in one phase of this many, and sleep at once in the others. Only
/// waiters that sleep can be cancelled.
const SPINNING_ONE_IN: u64 = 4;
/// Changes phases, reports, and detects hangs.
pub struct Monitor<'a> {
    lock: &'static Subject,
    book: &'a Book,
    plan: &'a Plan,
    handles: &'a [JoinHandle<()>],
    watcher: Option<&'a Watcher>,
    /// Number of acquisitions and of ended threads at the last change of either.
    progress: (u64, usize),
    since: Instant,
    /// Number of cancelled waiters at the last change.
    cancelled: u64,
    cancelled_since: Instant,
}

impl<'a> Monitor<'a> {
    pub fn new(
        lock: &'static Subject,
        book: &'a Book,
        plan: &'a Plan,
        handles: &'a [JoinHandle<()>],
        watcher: Option<&'a Watcher>,
    ) -> Self {
        let now = Instant::now();
        Self {
            lock,
            book,
            plan,
            handles,
            watcher,
            progress: (0, 0),
            since: now,
            cancelled: 0,
            cancelled_since: now,
        }
    }

    /// Runs the threads through their phases, for the duration of the plan.
    pub fn run(&mut self, interim: &mut dyn FnMut(News<'_>)) -> Option<Problem> {
        let began = Instant::now();
        let mut next_phase = Duration::ZERO;
        let mut next_report = self.plan.stat_interval;
        loop {
            let elapsed = began.elapsed();
            let left = match self.cancellations_wanted() {
                None => self.plan.duration.saturating_sub(elapsed),
                Some(wanted) if self.book.given_up().cancelled < wanted => LOOK,
                Some(_) => Duration::ZERO,
            };
            if left.is_zero() || (self.plan.is_interrupted)() {
                return None;
            }
            if elapsed >= next_phase {
                let (phase, length) = self.phase(elapsed);
                self.book.pace.set(phase);
                next_phase = elapsed + length;
            }
            if !self.plan.stat_interval.is_zero() && elapsed >= next_report {
                interim(News::Totals(&self.book.totals()));
                next_report += self.plan.stat_interval;
            }
            std::thread::sleep(LOOK.min(left));
            // No thread may end before it is told to.
            let ended = self.ended();
            if ended > 0 {
                return Some(Problem::Panicked { threads: ended });
            }
            let problem = self.lost_wake_up(interim).or_else(|| self.hang()).or_else(|| self.calm());
            if problem.is_some() {
                return problem;
            }
        }
    }

    /// Number of cancellations that end the run; `None` if the duration ends it.
    fn cancellations_wanted(&self) -> Option<u64> {
        self.book.storm.as_ref().and(self.plan.storm).and_then(|storm| storm.cancellations)
    }

    /// Waits until every thread has seen the end of the run.
    pub fn wait_for_the_end(&mut self, interim: &mut dyn FnMut(News<'_>)) -> Option<Problem> {
        self.since = Instant::now();
        while self.ended() < self.handles.len() {
            std::thread::sleep(LOOK / 10);
            let problem = self.lost_wake_up(interim).or_else(|| self.hang());
            if problem.is_some() {
                return problem;
            }
        }
        None
    }

    fn phase(&mut self, elapsed: Duration) -> (Phase, Duration) {
        let stutter = self.plan.stutter.as_nanos();
        if stutter > 0 && elapsed.as_nanos() / stutter % 2 == 1 {
            // No progress is expected in a pause.
            self.since = Instant::now();
            self.cancelled_since = self.since;
            return (Phase::pause(), PHASE);
        }
        let threads = self.book.crew.threads();
        match self.book.storm {
            // The rounds of the storm replace the phases.
            Some(_) => {
                let spins = entropy().is_multiple_of(SPINNING_ONE_IN);
                let budget_ns = self.plan.settings[Setting::SpinBudgetNs as usize];
                let set = nearlock_os::set_setting(Setting::SpinBudgetNs, if spins { budget_ns } else { 0 });
                debug_assert!(set.is_ok(), "0 and what it was are within the limits");
                (Phase::full(threads), PHASE)
            }
            None => Phase::draw(threads, || entropy() as u32),
        }
    }

    fn ended(&self) -> usize {
        self.handles.iter().filter(|handle| handle.is_finished()).count()
    }

    /// Longest allowed time without progress.
    fn patience(&self) -> Duration {
        let times = super::kind(self.lock).long_write_times().max(LONG_READ_TIMES);
        let long_hold = Duration::from_millis(self.plan.long_hold_ms.saturating_mul(times));
        self.plan.hang.max(long_hold.saturating_mul(3))
    }

    /// Passes on what the watcher has seen. Returns a wake-up that was lost.
    fn lost_wake_up(&self, interim: &mut dyn FnMut(News<'_>)) -> Option<Problem> {
        let mut is_lost = false;
        for event in self.watcher?.events() {
            is_lost |= matches!(&event, Event::Stall(stall) if stall.is_lost_wake_up());
            interim(News::Progress(&event));
        }
        is_lost.then(|| Problem::LostWakeUp { idle: self.since.elapsed(), waiting: self.book.waiting() })
    }

    /// A hang, if there was no progress for too long.
    fn hang(&mut self) -> Option<Problem> {
        let totals = self.book.totals();
        let progress = (totals.writes.total + totals.reads.total, self.ended());
        if progress != self.progress {
            self.progress = progress;
            self.since = Instant::now();
        }
        let idle = self.since.elapsed();
        let (waiting, threads) = (self.book.waiting(), self.handles.len());
        (idle >= self.patience()).then_some(Problem::Hang { idle, waiting, threads })
    }

    /// A storm with a required number of cancellations that cancels no waiter any more, although
    /// threads acquire the lock. If they do not acquire it, the lock hangs, which [`Monitor::hang`]
    /// reports a moment later.
    fn calm(&mut self) -> Option<Problem> {
        let wanted = self.cancellations_wanted()?;
        let cancelled = self.book.given_up().cancelled;
        if cancelled != self.cancelled {
            self.cancelled = cancelled;
            self.cancelled_since = Instant::now();
        }
        let (idle, patience) = (self.cancelled_since.elapsed(), self.patience());
        let hangs = self.since.elapsed() >= patience / 2;
        (idle >= patience && !hangs).then_some(Problem::Calm { idle, cancelled, wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::super::{Problem, Storm};
    use super::*;
    use nearlock_lab::locks;

    #[test]
    fn a_storm_is_calm_only_while_locks_are_taken() {
        let (lock, storm) =
            (locks::lock("lock-lost-cancel").unwrap(), Some(Storm { cancellations: Some(1) }));
        let plan = Plan { storm, ..plan() };
        let book = Book::new(lock, &plan);
        let mut monitor = Monitor::new(lock, &book, &plan, &[], None);
        let (now, patience) = (Instant::now(), monitor.patience());
        monitor.cancelled_since = now.checked_sub(patience).unwrap();
        // A thread acquired the lock a moment after the last cancellation. There was no acquisition
        // since.
        monitor.since = now.checked_sub(patience * 3 / 4).unwrap();
        assert_eq!((monitor.hang(), monitor.calm()), (None, None));
        monitor.since = monitor.cancelled_since;
        assert!(matches!(monitor.hang(), Some(Problem::Hang { .. })));
        monitor.since = Instant::now();
        assert!(matches!(monitor.calm(), Some(Problem::Calm { cancelled: 0, wanted: 1, .. })));
    }
}
