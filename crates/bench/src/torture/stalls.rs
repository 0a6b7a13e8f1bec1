//! Stalls: times in which no thread of a run acquires the lock, although some thread wants it. A
//! report says what the threads and the lock do then, and what the cause seems to be.
//!
//! A lock test on a busy machine has such times without a fault of the lock. The scheduler may have
//! taken the processor from the holder, or from the thread that the lock was handed to. It may also
//! run no thread of the process. All of that ends. A wake-up that is lost does not: every thread
//! that waits sleeps, no thread has the lock, and no other thread is about to wake them. So a stall
//! is a failure only if two readings a while apart show just that.

mod conclusion;
mod tasks;
mod watcher;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use nearlock_core::near::mutex::Diagnosis;
use nearlock_core::platform::Clock;
use serde::Serialize;

use super::account::Doing;
use crate::watched::OsWatched;
use conclusion::{Conclusion, Facts};

pub use conclusion::Cause;
pub use watcher::Watcher;

/// How the thread is scheduled that watches a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// `SCHED_FIFO`: before all ordinary threads.
    Fifo,
    /// As an ordinary thread, because the system does not permit more. Then stalls may be noticed
    /// late, and short ones not at all.
    Ordinary,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "watched with SCHED_FIFO",
            Self::Ordinary => "watched without priority, since the system does not permit SCHED_FIFO",
        })
    }
}

/// The stalls of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stalls {
    /// How the run was watched.
    pub policy: Policy,
    /// Number of stalls.
    pub count: u64,
    /// The longest stall, in ns.
    pub longest_ns: u64,
    /// Number of stalls in which threads of the run were runnable, and none of them ran.
    pub nothing_ran: u64,
    /// How often the watcher looked late by half of the time after which it reports a stall.
    pub late: u64,
    /// Number of stalls by cause, for those causes that there were.
    pub causes: BTreeMap<Cause, u64>,
    /// The cause of the last stall.
    #[serde(skip)]
    last: Option<Cause>,
}

impl Stalls {
    fn new(policy: Policy) -> Self {
        Self { policy, count: 0, longest_ns: 0, nothing_ran: 0, late: 0, causes: BTreeMap::new(), last: None }
    }

    fn add(&mut self, conclusion: &Conclusion) {
        self.count += 1;
        self.nothing_ran += u64::from(conclusion.nothing_ran);
        self.last = Some(conclusion.cause);
        *self.causes.entry(conclusion.cause).or_default() += 1;
    }

    /// The last stall has this cause, and not the one that it seemed to have.
    fn turns_out_as(&mut self, cause: Cause) {
        if let Some(count) = self.last.replace(cause).and_then(|seeming| self.causes.get_mut(&seeming)) {
            *count -= 1;
        }
        self.causes.retain(|_, count| *count > 0);
        *self.causes.entry(cause).or_default() += 1;
    }
}

impl fmt::Display for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stalls: {}", self.count)?;
        if self.count > 0 {
            write!(f, ", the longest {:.1} ms; causes: ", self.longest_ns as f64 / 1e6)?;
            let causes = self.causes.iter().map(|(cause, count)| format!("{} {count}", cause.name()));
            f.write_str(&causes.collect::<Vec<_>>().join(", "))?;
            write!(f, "; no thread of the run ran in {} of them", self.nothing_ran)?;
        }
        write!(f, "; {}", self.policy)?;
        match self.late {
            0 => Ok(()),
            late => write!(f, ", which looked late {late} times"),
        }
    }
}

/// A stall, or its end.
#[derive(Debug)]
pub enum Event {
    /// A stall was noticed, or has turned out to be a lost wake-up.
    Stall(Box<Stall>),
    /// A thread has acquired the lock again.
    End(StallEnd),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stall(stall) => stall.fmt(f),
            Self::End(end) => end.fmt(f),
        }
    }
}

/// A report of a stall.
#[derive(Debug)]
pub struct Stall {
    /// The number of the stall in the run, from 1.
    number: u64,
    /// Time since the run began.
    elapsed: Duration,
    /// Time without an acquisition.
    idle: Duration,
    /// The facts about the threads are of this time.
    over: Duration,
    /// Names of the threads.
    names: Vec<String>,
    facts: Vec<Facts>,
    lock: Option<Diagnosis>,
    /// How late the watcher looked.
    late: Duration,
    /// How long the hypervisor had CPUs of the machine meanwhile.
    stolen: Duration,
    now_ns: u64,
    conclusion: Conclusion,
}

/// The end of a stall.
#[derive(Debug)]
pub struct StallEnd {
    number: u64,
    idle: Duration,
    over: Duration,
    names: Vec<String>,
    facts: Vec<Facts>,
    /// Acquisitions of each thread since the report of the stall.
    acquired: Vec<u64>,
}

/// A time in ms.
struct Ms(Duration);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3)
    }
}

/// What a thread does, at this time.
fn account(doing: Option<Doing>, now_ns: u64) -> String {
    let since = |since_ns: u64| Ms(Duration::from_nanos(now_ns.saturating_sub(since_ns)));
    match doing {
        None => "cancels".to_owned(),
        Some(Doing::Thinking) => "does not want the lock".to_owned(),
        Some(Doing::Waiting { since_ns }) => format!("waits for {}", since(since_ns)),
        Some(Doing::InSection { since_ns }) => format!("in its section for {}", since(since_ns)),
        Some(Doing::Releasing { since_ns }) => format!("releases, lock since {}", since(since_ns)),
    }
}

/// What the kernel says, after the account.
fn kernel(facts: &Facts) -> String {
    let Some(task) = &facts.task else { return "unknown to the system".to_owned() };
    let place = match task.place.as_str() {
        "" => String::new(),
        place => format!(" in {place}"),
    };
    let queue = facts.place.map_or_else(String::new, |place| format!(", {}. in the queue", place + 1));
    let woken = match facts.is_parked && task.state == 'R' {
        true => ", has not run since it slept in the lock",
        false => "",
    };
    format!(
        "{}{place} on CPU {}, ran {}, delayed {}, switches {}+{}{woken}{queue}",
        task.state,
        task.cpu,
        Ms(task.ran),
        Ms(task.delayed),
        task.voluntary,
        task.involuntary
    )
}

impl Stall {
    /// Whether it is a lost wake-up.
    pub fn is_lost_wake_up(&self) -> bool {
        self.conclusion.cause == Cause::LostWakeUp
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, elapsed, idle, over, late, stolen, .. } = self;
        write!(f, "stall {number} after {:.3} s: no acquisition for {}", elapsed.as_secs_f64(), Ms(*idle))?;
        write!(f, "; the kernel's counts are of the last {}", Ms(*over))?;
        for (name, facts) in self.names.iter().zip(&self.facts) {
            write!(f, "\n  {name}: {}; {}", account(facts.doing, self.now_ns), kernel(facts))?;
        }
        if let Some(lock) = &self.lock {
            let text = lock.to_string();
            write!(f, "\n  lock: {}", text.replace('\n', "\n    "))?;
            if lock.has_forgotten_first() {
                write!(f, "\n  A FAULT OF THE LOCK: its first waiter sleeps without a wake request")?;
            }
        }
        if *late >= Duration::from_millis(1) {
            write!(f, "\n  the watcher looked {} late", Ms(*late))?;
        }
        if !stolen.is_zero() {
            write!(f, "\n  the hypervisor kept CPUs from this machine for {} in total", Ms(*stolen))?;
        }
        let thread = self.conclusion.thread.and_then(|thread| self.names.get(thread));
        let name = thread.map_or("a thread", String::as_str);
        write!(f, "\n  conclusion: {}", self.conclusion.cause.sentence(name))?;
        match self.conclusion.nothing_ran {
            true => write!(f, "; no thread of the run had a processor"),
            false => Ok(()),
        }
    }
}

impl fmt::Display for StallEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, idle, over, .. } = self;
        write!(f, "end of stall {number}: it took {}", Ms(*idle))?;
        write!(f, "; the kernel's counts are of the last {}", Ms(*over))?;
        for ((name, facts), acquired) in self.names.iter().zip(&self.facts).zip(&self.acquired) {
            let moved =
                facts.task.as_ref().is_some_and(|task| !task.ran.is_zero() || !task.delayed.is_zero());
            if moved || *acquired > 0 {
                write!(f, "\n  {name}: {acquired} acquisitions; {}", kernel(facts))?;
            }
        }
        Ok(())
    }
}

/// The present time, on the clock of the accounts.
fn now_ns() -> u64 {
    OsWatched::now_ns()
}

#[cfg(test)]
mod tests;
