//! What a stall seems to be, from what its threads do and what the kernel says about them.

use std::time::Duration;

use serde::Serialize;

use super::tasks::Task;
use crate::torture::account::Doing;

/// Why no thread acquires the lock. The order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A thread that holds the lock runs.
    LongSection,
    /// A thread that holds the lock sleeps in its section.
    HolderSleeps,
    /// A thread that holds the lock waits for a processor.
    HolderWithoutProcessor,
    /// A thread that releases the lock waits for a processor.
    ReleaseWithoutProcessor,
    /// The lock was handed over to a thread that slept and has not run since.
    HandOverWithoutProcessor,
    /// The lock is held, by a thread that was awake, has not noticed it yet, and waits for a
    /// processor.
    TakenWithoutProcessor,
    /// The lock is free. A thread that slept was woken to take it, and has not run since.
    WokenWithoutProcessor,
    /// A thread that wants the lock waits for a processor. It does not have the lock, or nothing is
    /// known of the lock.
    WaiterWithoutProcessor,
    /// Threads that want the lock run, and none has it.
    Competing,
    /// No thread wants the lock, and a thread that thinks waits for a processor.
    NotWanted,
    /// Every thread that wants the lock sleeps, and none has it.
    AllAsleep,
    /// The same, and it does not end: a wake-up is lost.
    LostWakeUp,
    /// The system does not tell enough about the threads.
    Unknown,
}

impl Cause {
    /// The cause in a few words, for a count.
    pub fn name(self) -> &'static str {
        match self {
            Self::LongSection => "long section",
            Self::HolderSleeps => "holder asleep",
            Self::HolderWithoutProcessor => "holder without processor",
            Self::ReleaseWithoutProcessor => "release without processor",
            Self::HandOverWithoutProcessor => "handed over to a thread without processor",
            Self::TakenWithoutProcessor => "taken by a thread without processor",
            Self::WokenWithoutProcessor => "woken thread without processor",
            Self::WaiterWithoutProcessor => "waiter without processor",
            Self::Competing => "threads compete",
            Self::NotWanted => "not wanted",
            Self::AllAsleep => "all waiters asleep",
            Self::LostWakeUp => "lost wake-up",
            Self::Unknown => "unknown",
        }
    }

    /// The cause as a sentence, about the thread of this name.
    pub fn sentence(self, thread: &str) -> String {
        match self {
            Self::LongSection => format!("{thread} holds the lock and runs: a long section"),
            Self::HolderSleeps => format!("{thread} holds the lock and sleeps in its section"),
            Self::HolderWithoutProcessor => format!("{thread} holds the lock and waits for a processor"),
            Self::ReleaseWithoutProcessor => {
                format!("{thread} is about to release the lock, or has just done so, and waits for a processor")
            }
            Self::HandOverWithoutProcessor => {
                format!("the lock was handed over to {thread}, which slept and has not run since")
            }
            Self::TakenWithoutProcessor => {
                format!("{thread} has just taken the lock, or was handed it while awake, and waits for a processor")
            }
            Self::WokenWithoutProcessor => {
                format!("the lock is free, and {thread}, which slept and was woken to take it, has not run since")
            }
            Self::WaiterWithoutProcessor => {
                format!("{thread}, which waits for the lock, waits for a processor")
            }
            Self::Competing => "threads that wait for the lock run, and none of them has it".to_owned(),
            Self::NotWanted => format!("no thread wants the lock, and {thread} waits for a processor"),
            Self::AllAsleep => {
                "all threads that wait for the lock sleep, and none has it: a wake-up is late, or lost".to_owned()
            }
            Self::LostWakeUp => {
                "a lost wake-up: all threads that wait for the lock sleep, none has it, and no thread has run that \
                 could wake them"
                    .to_owned()
            }
            Self::Unknown => "the system does not tell what the threads do".to_owned(),
        }
    }
}

/// The known facts about one thread.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What it does by its own account; `None`: it never has the lock.
    pub doing: Option<Doing>,
    /// What the kernel says about it. Times and counts are those of the time that is watched.
    pub task: Option<Task>,
    /// Whether it has called a sleep in the lock, and has not run since it fell asleep.
    pub is_parked: bool,
    /// Its place in the queue of the lock, from 0, if the queue is known and it is there.
    pub place: Option<usize>,
}

/// What a thread does with its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Sleeps,
    Runs,
    /// Runnable, and it has run for less than a tenth of the time.
    WaitsForProcessor,
    Unknown,
}

impl Facts {
    fn usage(&self, over: Duration) -> Use {
        match &self.task {
            None => Use::Unknown,
            Some(task) if task.state != 'R' => Use::Sleeps,
            Some(task) if task.ran >= over / 10 => Use::Runs,
            Some(_) => Use::WaitsForProcessor,
        }
    }

    /// Whether it is runnable, and has not run in the time that is watched.
    pub fn is_without_processor(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.state == 'R' && task.ran.is_zero())
    }

    /// Since when it waits, in ns.
    fn since_ns(&self) -> u64 {
        match self.doing {
            Some(Doing::Waiting { since_ns }) => since_ns,
            _ => 0,
        }
    }

    fn waits(&self) -> bool {
        matches!(self.doing, Some(Doing::Waiting { .. }))
    }

    fn has_lock(&self) -> bool {
        matches!(self.doing, Some(Doing::InSection { .. } | Doing::Releasing { .. }))
    }

    /// Whether it has not run since the previous reading, which was a while before.
    fn has_not_run(&self) -> bool {
        let ran = |task: &Task| !task.ran.is_zero() || task.voluntary > 0 || task.involuntary > 0;
        self.task.as_ref().is_some_and(|task| !ran(task))
    }
}

/// What a stall seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The cause.
    pub cause: Cause,
    /// The thread that the cause is about.
    pub thread: Option<usize>,
    /// Whether some threads of the run were runnable, and none of them ran.
    pub nothing_ran: bool,
}

impl Conclusion {
    /// The conclusion from these facts, which are about this time. `is_held` says whether the lock
    /// is held, if that is known.
    pub fn of(threads: &[Facts], is_held: Option<bool>, over: Duration) -> Self {
        let used: Vec<Use> = threads.iter().map(|thread| thread.usage(over)).collect();
        let nothing_ran = used.contains(&Use::WaitsForProcessor) && !used.contains(&Use::Runs);
        let (cause, thread) = cause(threads, &used, is_held);
        Self { cause, thread, nothing_ran }
    }
}

fn cause(threads: &[Facts], used: &[Use], is_held: Option<bool>) -> (Cause, Option<usize>) {
    let all = || 0..threads.len();
    // Of several readers, one without a processor matters most.
    let rank = |usage: Use| match usage {
        Use::WaitsForProcessor => 0,
        Use::Sleeps => 1,
        Use::Runs => 2,
        Use::Unknown => 3,
    };
    if let Some(holder) = all().filter(|&at| threads[at].has_lock()).min_by_key(|&at| rank(used[at])) {
        let releases = matches!(threads[holder].doing, Some(Doing::Releasing { .. }));
        let cause = match used[holder] {
            Use::WaitsForProcessor if releases => Cause::ReleaseWithoutProcessor,
            Use::WaitsForProcessor => Cause::HolderWithoutProcessor,
            Use::Sleeps => Cause::HolderSleeps,
            Use::Runs => Cause::LongSection,
            Use::Unknown => Cause::Unknown,
        };
        return (cause, Some(holder));
    }
    let waits_as = |usage: Use| all().filter(move |&at| threads[at].waits() && used[at] == usage);
    let ready = || waits_as(Use::WaitsForProcessor);
    // A waiter that was handed the lock, or was woken to compete, has left the queue.
    let woken = ready().find(|&at| threads[at].is_parked && threads[at].place.is_none());
    // A thread that has just taken the lock is as a rule the last that has called it.
    let awake = ready().filter(|&at| !threads[at].is_parked).max_by_key(|&at| threads[at].since_ns());
    match (is_held, woken, awake) {
        (Some(true), Some(next), _) => return (Cause::HandOverWithoutProcessor, Some(next)),
        (Some(true), None, Some(next)) => return (Cause::TakenWithoutProcessor, Some(next)),
        (Some(false), Some(next), _) => return (Cause::WokenWithoutProcessor, Some(next)),
        _ => {}
    }
    if let Some(waiter) = woken.or_else(|| ready().next()) {
        return (Cause::WaiterWithoutProcessor, Some(waiter));
    }
    if waits_as(Use::Unknown).next().is_some() {
        return (Cause::Unknown, None);
    }
    if waits_as(Use::Runs).next().is_some() {
        return (Cause::Competing, None);
    }
    if waits_as(Use::Sleeps).next().is_some() {
        return (Cause::AllAsleep, None);
    }
    (Cause::NotWanted, all().find(|&at| used[at] == Use::WaitsForProcessor))
}

/// Whether no thread of the run can make progress. The facts are about the time since the previous
/// reading. The conditions are:
///
/// - A thread waits. Every thread that waits has slept since the previous reading.
/// - No thread has the lock.
/// - Every other thread sleeps too, or has run meanwhile. So it has done what it was about to do.
pub fn is_stuck(threads: &[Facts]) -> bool {
    let sleeps = |thread: &Facts| thread.task.as_ref().is_some_and(|task| task.state == 'S');
    let is_still = |thread: &Facts| match thread.waits() {
        true => sleeps(thread) && thread.has_not_run(),
        false => !thread.has_lock() && (sleeps(thread) || !thread.has_not_run()),
    };
    threads.iter().any(Facts::waits) && threads.iter().all(is_still)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: Duration = Duration::from_millis(40);
    const WAITS: Doing = Doing::Waiting { since_ns: 1 };
    const HOLDS: Doing = Doing::InSection { since_ns: 1 };
    const RELEASES: Doing = Doing::Releasing { since_ns: 1 };

    fn thread(doing: Doing, state: char, ran_ms: u64) -> Facts {
        let ran = Duration::from_millis(ran_ms);
        Facts {
            doing: Some(doing),
            task: Some(Task { state, ran, ..Task::default() }),
            is_parked: false,
            place: None,
        }
    }

    fn concluded(threads: &[Facts], is_held: Option<bool>) -> (Cause, Option<usize>, bool) {
        let Conclusion { cause, thread, nothing_ran } = Conclusion::of(threads, is_held, OVER);
        (cause, thread, nothing_ran)
    }

    #[test]
    fn a_thread_with_the_lock_is_the_cause() {
        for (doing, state, ran_ms, cause, nothing_ran) in [
            (HOLDS, 'R', 40, Cause::LongSection, false),
            (HOLDS, 'R', 1, Cause::HolderWithoutProcessor, true),
            (RELEASES, 'R', 0, Cause::ReleaseWithoutProcessor, true),
            (HOLDS, 'S', 0, Cause::HolderSleeps, false),
        ] {
            let threads = [thread(WAITS, 'S', 0), thread(doing, state, ran_ms)];
            assert_eq!(concluded(&threads, Some(true)), (cause, Some(1), nothing_ran));
        }
        let readers = [thread(HOLDS, 'R', 40), thread(HOLDS, 'R', 0)];
        assert_eq!(concluded(&readers, None), (Cause::HolderWithoutProcessor, Some(1), false));
    }

    #[test]
    fn without_a_holder_the_thread_that_left_the_queue_is_the_cause() {
        let woken = |place| Facts { is_parked: true, place, ..thread(WAITS, 'R', 0) };
        let awake = |since_ns| thread(Doing::Waiting { since_ns }, 'R', 0);
        let threads = [awake(5), woken(Some(0)), woken(None), awake(9), awake(7)];
        assert_eq!(concluded(&threads, Some(true)), (Cause::HandOverWithoutProcessor, Some(2), true));
        assert_eq!(concluded(&threads, Some(false)), (Cause::WokenWithoutProcessor, Some(2), true));
        assert_eq!(concluded(&threads, None), (Cause::WaiterWithoutProcessor, Some(2), true));
        let threads = [awake(5), woken(Some(0)), awake(9), awake(7), thread(WAITS, 'S', 0)];
        assert_eq!(concluded(&threads, Some(true)), (Cause::TakenWithoutProcessor, Some(2), true));
        assert_eq!(concluded(&threads, Some(false)), (Cause::WaiterWithoutProcessor, Some(0), true));
        assert_eq!(concluded(&[woken(Some(0))], Some(true)), (Cause::WaiterWithoutProcessor, Some(0), true));
    }

    #[test]
    fn without_a_runnable_waiter_all_sleep_or_compete_or_none_wants_it() {
        let (thinks, asleep) = (thread(Doing::Thinking, 'R', 0), thread(WAITS, 'S', 0));
        assert_eq!(
            concluded(&[asleep.clone(), thread(WAITS, 'R', 30)], None),
            (Cause::Competing, None, false)
        );
        assert_eq!(concluded(&[asleep.clone(), thinks.clone()], None), (Cause::AllAsleep, None, true));
        assert_eq!(concluded(&[thinks], None), (Cause::NotWanted, Some(0), true));
        let unknown = Facts { task: None, ..asleep };
        assert_eq!(concluded(std::slice::from_ref(&unknown), None), (Cause::Unknown, None, false));
        let holder = Facts { doing: Some(HOLDS), ..unknown };
        assert_eq!(concluded(&[holder], None), (Cause::Unknown, Some(0), false));
    }

    #[test]
    fn a_wake_up_is_lost_only_if_no_thread_could_make_it() {
        let asleep = || thread(WAITS, 'S', 0);
        let pauses = || thread(Doing::Thinking, 'S', 0);
        assert!(is_stuck(&[asleep(), pauses()]));
        // The canceller, which has done meanwhile what it was about to do.
        let canceller = |ran_ms| Facts { doing: None, ..thread(WAITS, 'R', ran_ms) };
        assert!(is_stuck(&[asleep(), canceller(40)]) && !is_stuck(&[asleep(), canceller(0)]));
        assert!(!is_stuck(&[pauses()]), "no thread waits");
        for other in [
            thread(WAITS, 'R', 0),
            thread(WAITS, 'S', 1),
            thread(HOLDS, 'S', 0),
            thread(RELEASES, 'R', 0),
            thread(Doing::Thinking, 'R', 0),
            Facts { task: None, ..asleep() },
            Facts { task: Some(Task { state: 'S', voluntary: 1, ..Task::default() }), ..asleep() },
        ] {
            assert!(!is_stuck(&[asleep(), other.clone()]), "{other:?}");
        }
    }

    #[test]
    fn a_cause_has_a_name_and_a_sentence_of_its_own() {
        let all = [
            Cause::LongSection,
            Cause::HolderSleeps,
            Cause::HolderWithoutProcessor,
            Cause::ReleaseWithoutProcessor,
            Cause::HandOverWithoutProcessor,
            Cause::TakenWithoutProcessor,
            Cause::WokenWithoutProcessor,
            Cause::WaiterWithoutProcessor,
            Cause::Competing,
            Cause::NotWanted,
            Cause::AllAsleep,
            Cause::LostWakeUp,
            Cause::Unknown,
        ];
        let names: std::collections::BTreeSet<_> = all.iter().map(|cause| cause.name()).collect();
        let sentences: std::collections::BTreeSet<_> =
            all.iter().map(|cause| cause.sentence("writer 1")).collect();
        assert_eq!((names.len(), sentences.len()), (all.len(), all.len()));
    }
}
