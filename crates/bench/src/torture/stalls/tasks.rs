//! What the kernel says about a thread: files of `/proc/self/task`, of which only Linux has all.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A thread at one moment, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// `R`: it runs, or waits for a CPU; `S`: it sleeps; other letters are those of proc(5).
    pub state: char,
    /// The CPU on which it ran last.
    pub cpu: u32,
    /// How long it has run. While it runs, the kernel adds to this at its ticks only.
    pub ran: Duration,
    /// How long it has waited for a CPU. The kernel adds a wait when it ends.
    pub delayed: Duration,
    /// How often it has given up its CPU.
    pub voluntary: u64,
    /// How often its CPU was taken from it.
    pub involuntary: u64,
    /// The place in the kernel at which it sleeps, if the kernel tells it.
    pub place: String,
}

impl Task {
    /// The thread with this number of the kernel, if it is alive and the system has these files.
    pub fn read(number: u32) -> Option<Self> {
        let directory = PathBuf::from(format!("/proc/self/task/{number}"));
        let file = |name: &str| fs::read_to_string(directory.join(name)).ok();
        let place = file("wchan").unwrap_or_default();
        // Without the statistics of the scheduler, times stay 0.
        Self::of(&file("stat")?, &file("schedstat").unwrap_or_default(), &file("status")?, &place)
    }

    fn of(stat: &str, schedstat: &str, status: &str, place: &str) -> Option<Self> {
        // The name, which may contain anything, is in parentheses.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split_whitespace();
        let state = fields.next()?.chars().next()?;
        // Field 39 of the line: the state is the third.
        let cpu = fields.nth(35)?.parse().ok()?;
        let mut times = schedstat.split_whitespace().map(|ns| ns.parse().unwrap_or(0));
        let mut time = || Duration::from_nanos(times.next().unwrap_or(0));
        let count = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
        };
        Some(Self {
            state,
            cpu,
            ran: time(),
            delayed: time(),
            voluntary: count("voluntary_ctxt_switches:"),
            involuntary: count("nonvoluntary_ctxt_switches:"),
            place: if place == "0" { String::new() } else { place.trim().to_owned() },
        })
    }

    /// The state, with the counts since `before`.
    pub fn since(&self, before: Option<&Self>) -> Self {
        let zero = Self::default();
        let before = before.unwrap_or(&zero);
        Self {
            ran: self.ran.saturating_sub(before.ran),
            delayed: self.delayed.saturating_sub(before.delayed),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
            ..self.clone()
        }
    }
}

/// How long a hypervisor has kept the CPUs of this machine from it, in total.
pub fn stolen() -> Duration {
    /// The unit of these counts, on all processors.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse().ok());
    TICK * ticks.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "77 (a) name) (1) S 1 77 77 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 5 0 9 1 1 1 1 1 1 1 1 0 0 0 0 0 \
                        0 0 -1 3 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn the_files_of_the_kernel_are_read() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let task = Task::of(STAT, "1000 2000 4\n", status, "futex_do_wait").unwrap();
        assert_eq!((task.state, task.cpu, task.voluntary, task.involuntary), ('S', 3, 12, 3));
        assert_eq!((task.ran, task.delayed), (Duration::from_micros(1), Duration::from_micros(2)));
        assert_eq!(task.place, "futex_do_wait");
        let running = Task::of(STAT, "", "", "0").unwrap();
        assert_eq!((running.place.as_str(), running.ran), ("", Duration::ZERO));
        assert_eq!(Task::of("77 (x) R 1", "", "", ""), None);
    }

    #[test]
    fn counts_are_since_the_reading_before() {
        let ran = |ms| Task { ran: Duration::from_millis(ms), voluntary: ms, state: 'R', ..Task::default() };
        assert_eq!(ran(9).since(Some(&ran(4))), ran(5));
        assert_eq!(ran(9).since(None), ran(9));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_thread_runs() {
        use nearlock_core::schedule::Schedule;
        let task = Task::read(crate::watched::OsWatched::thread_id().get()).unwrap();
        assert_eq!(task.state, 'R');
        assert_eq!(Task::read(u32::MAX), None);
    }
}
