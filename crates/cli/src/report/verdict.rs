//! The conclusion from a result, in one or two sentences.

use std::collections::BTreeSet;

use nearlock_bench::bench::{Mode, Row};
use nearlock_lab::Subject;
use nearlock_lab::simulate::{Failure, Simulated};

/// Simulated cells, and what was requested.
pub struct Simulations<'a> {
    /// The locks in their order, each once. The others are compared with the first one.
    pub locks: Vec<&'a str>,
    /// The greatest number of threads.
    pub threads_max: usize,
    pub rows: Vec<Simulated>,
    pub failures: Vec<Failure>,
}

/// The work of simulated locks with the greatest number of threads that all of them have, compared
/// with the first lock, and the locks that failed there. `None` if there is only one lock.
pub fn simulated(simulations: &Simulations) -> Option<String> {
    if simulations.locks.len() < 2 {
        return None;
    }
    let threads_max = simulations.threads_max;
    let Some((threads, means)) = simulations.compared() else { return simulations.failed_text(threads_max) };
    let mut sentences = Vec::from_iter(simulations.failed_text(threads_max));
    let mut at = at(threads);
    if threads < threads_max {
        match sentences.is_empty() {
            true => at += ", the greatest number that all compared locks have,",
            false => sentences.extend(simulations.failed_text(threads)),
        }
    }
    let (base, others) = means.split_first()?;
    let (most, least) = (
        others.iter().max_by(|a, b| a.work.total_cmp(&b.work))?,
        others.iter().min_by(|a, b| a.work.total_cmp(&b.work))?,
    );
    let several = others.len() > 1;
    if several && means.iter().all(|mean| mean.work == 0.0) {
        sentences.push(format!("{at} none of the {} locks does any work.", means.len()));
        return Some(sentences.join(" "));
    }
    if several && most.work < base.work {
        sentences.push(format!("{at} {} does the most of the {} locks.", base.lock, means.len()));
        sentences.push(most.against(base));
    } else {
        sentences.push(format!("{at} {}", most.against(base)));
        sentences.extend(several.then(|| format!("Of the {} locks it does the most.", means.len())));
    }
    sentences.extend(several.then(|| format!("The least: {}", least.against(base))));
    Some(sentences.join(" "))
}

fn at(threads: usize) -> String {
    if threads == 1 { "At 1 thread".to_owned() } else { format!("At {threads} threads") }
}

impl<'a> Simulations<'a> {
    /// The greatest number of threads at which the first lock and others have a common seed, and
    /// the means over the common seeds. Locks that failed at this number are left out.
    fn compared(&self) -> Option<(usize, Vec<Mean<'_>>)> {
        let base = self.locks.first()?;
        let of_base = self.rows.iter().filter(|row| row.lock == *base).map(|row| row.threads);
        let numbers: BTreeSet<usize> = of_base.collect();
        numbers.into_iter().rev().find_map(|threads| {
            let failed = self.failed(threads);
            let present =
                |lock: &&&str| !failed.contains(*lock) && self.rows.iter().any(|row| row.lock == **lock);
            let locks: Vec<&str> = self.locks.iter().filter(present).copied().collect();
            if locks.len() < 2 || locks.first() != Some(base) {
                return None;
            }
            let of = |lock: &str| -> BTreeSet<u64> {
                let of_lock = self.rows.iter().filter(|row| row.lock == lock && row.threads == threads);
                of_lock.map(|row| row.seed).collect()
            };
            let seeds = locks.iter().map(|lock| of(lock)).reduce(|common, of| &common & &of)?;
            let means = locks.iter().map(|lock| Mean::of(&self.rows, lock, threads, &seeds));
            Some((threads, means.collect::<Option<_>>()?))
        })
    }

    /// The locks that failed with this number of threads.
    fn failed(&self, threads: usize) -> Vec<&'a str> {
        let has_failed = |lock: &&&str| {
            self.failures.iter().any(|failure| failure.lock == **lock && failure.threads == threads)
        };
        self.locks.iter().filter(has_failed).copied().collect()
    }

    /// A sentence that names them.
    fn failed_text(&self, threads: usize) -> Option<String> {
        let failed = self.failed(threads);
        (!failed.is_empty()).then(|| format!("{} {} failed.", at(threads), failed.join(" and ")))
    }
}

/// The work of a cell: its jobs, or its acquisitions if the workload has no jobs.
fn work(row: &Simulated) -> f64 {
    row.jobs_per_minute.unwrap_or(row.ops_per_us)
}

/// The work of a cell as a multiple of another one's; `-` if that did none.
pub fn ratio(row: &Simulated, base: &Simulated) -> String {
    if work(base) > 0.0 { times(work(row) / work(base)) } else { "-".to_owned() }
}

/// The means of a lock with a number of threads, over some seeds.
struct Mean<'a> {
    lock: &'a str,
    work: f64,
    wait_ns_p99: f64,
    jain: f64,
}

impl<'a> Mean<'a> {
    fn of(rows: &'a [Simulated], lock: &str, threads: usize, seeds: &BTreeSet<u64>) -> Option<Self> {
        let is_meant =
            |row: &&Simulated| row.lock == lock && row.threads == threads && seeds.contains(&row.seed);
        let rows: Vec<&Simulated> = rows.iter().filter(is_meant).collect();
        let mean = |figure: fn(&Simulated) -> f64| {
            rows.iter().map(|row| figure(row)).sum::<f64>() / rows.len() as f64
        };
        Some(Self {
            lock: &rows.first()?.lock,
            work: mean(work),
            wait_ns_p99: mean(|row| row.wait_ns_p99 as f64),
            jain: mean(|row| row.jain),
        })
    }

    /// A sentence that compares it with `base`.
    fn against(&self, base: &Self) -> String {
        if base.work == 0.0 {
            return match self.work == 0.0 {
                true => format!("{} and {} both do no work.", base.lock, self.lock),
                false => format!("{} does work, and {} does none.", self.lock, base.lock),
            };
        }
        let mut text =
            format!("{} does {} times the work of {}", self.lock, times(self.work / base.work), base.lock);
        if base.wait_ns_p99 > 0.0 {
            let waits = self.wait_ns_p99 / base.wait_ns_p99;
            text += &format!("; the 99th percentile of the wait is {} times as long", times(waits));
        }
        if self.jain < base.jain - UNEQUAL {
            text += &format!("; the shares are less equal (Jain's index {:.2}, {:.2})", self.jain, base.jain);
        }
        text.push('.');
        text
    }
}

/// The work of the measured locks in the situations with two threads or more. Our first lock is
/// compared with a baseline, and with the fastest of all locks in each situation. `None` if nothing
/// was compared.
pub fn measured(rows: &[Row], baseline: &str) -> Option<String> {
    let of_baseline: Vec<&Row> = rows.iter().filter(|row| row.baseline == baseline).collect();
    let is_ours = |row: &&&Row| row.lock != baseline && Subject::named(row.lock).is_some();
    let other = || of_baseline.iter().find(|row| row.lock != baseline);
    let lock = of_baseline.iter().find(is_ours).or_else(other)?.lock;
    let mut contended: Vec<&Row> = of_baseline
        .iter()
        .copied()
        .filter(|row| row.summary.is_none() && row.threads.is_some_and(|threads| threads >= 2))
        .collect();
    // Cases differ in what they measure, so there is no mean of them and other situations.
    if contended.iter().any(|row| row.case.is_none()) {
        contended.retain(|row| row.case.is_none());
    }
    // Neither is the work of one writer comparable with that of all threads.
    if contended.iter().any(|row| row.mode != Mode::Writer.name()) {
        contended.retain(|row| row.mode != Mode::Writer.name());
    }
    let own: Vec<&Row> = contended.iter().copied().filter(|row| row.lock == lock).collect();
    let mut text = String::new();
    if let Some(mean) = mean(&own) {
        text += &format!("{lock} does {} times the work of {baseline}", times(mean));
        match &own[..] {
            [only] => text += &format!(" ({})", situation(only)),
            several => {
                text +=
                    &format!(", the geometric mean of {} situations with two threads or more", several.len())
            }
        }
        text += &format!(". {}{}", behind(&own, &contended), ends(lock, baseline, &contended));
    }
    if let Some(alone) = of_baseline.iter().find(|row| row.lock == lock && row.threads == Some(1))
        && let Some(ratio) = alone.ratio
        && (alone.mode, alone.case) == ("uncontended", None)
    {
        let space = if text.is_empty() { "" } else { " " };
        text += &format!("{space}Uncontended, {lock} is {} times as fast as {baseline}.", times(ratio));
    }
    (!text.is_empty()).then_some(text)
}

/// The locks with the most and the least work, of those that were measured in as many situations as
/// `lock`, if there are three or more. `lock` has a sentence already.
fn ends(lock: &str, baseline: &str, contended: &[&Row]) -> String {
    let of = |lock: &str| -> Vec<&Row> { contended.iter().copied().filter(|row| row.lock == lock).collect() };
    let situations = of(lock).len();
    let mut means: Vec<(&str, f64)> = Vec::new();
    for row in contended {
        let of_lock = of(row.lock);
        if of_lock.len() != situations {
            continue;
        }
        if let Some(mean) = mean(&of_lock).filter(|_| means.iter().all(|(name, _)| *name != row.lock)) {
            means.push((row.lock, mean));
        }
    }
    means.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ([most, .., least], 3..) = (&means[..], means.len()) else { return String::new() };
    let one = |&(name, mean): &(&str, f64)| match name {
        name if name == lock || name == baseline => name.to_owned(),
        name => format!("{name} ({} times {baseline})", times(mean)),
    };
    format!(" Of the {} locks {} does the most, and {} the least.", means.len(), one(most), one(least))
}

/// A lock that does less than this share of the fastest lock's work in a situation is behind.
pub const BEHIND: f64 = 0.9;

/// A lock in a situation, and the fastest of all locks that were measured there.
pub struct Share<'a> {
    pub row: &'a Row,
    pub fastest: &'a Row,
    /// The lock's share of the fastest lock's work.
    pub share: f64,
}

/// The shares of these rows; `all` are the rows of all locks, against the same baseline.
pub fn shares<'a>(own: &[&'a Row], all: &[&'a Row]) -> Vec<Share<'a>> {
    let of = |&row: &&'a Row| {
        let is_same = |other: &&&Row| {
            (other.mode, other.case, other.threads, other.section_ns, other.think_ns, other.read_percent)
                == (row.mode, row.case, row.threads, row.section_ns, row.think_ns, row.read_percent)
        };
        let speed = |row: &Row| row.ratio.unwrap_or(0.0);
        let fastest = all.iter().filter(is_same).max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
        Some(Share { row, fastest, share: row.ratio? / fastest.ratio? })
    };
    own.iter().filter_map(of).collect()
}

/// The situations in which a lock is behind the fastest of all.
fn behind(own: &[&Row], all: &[&Row]) -> String {
    let shares = shares(own, all);
    let behind = shares.iter().filter(|of| of.share < BEHIND).count();
    match shares.iter().min_by(|a, b| a.share.total_cmp(&b.share)) {
        Some(Share { row, fastest, share }) if behind > 0 => format!(
            "In {behind} of {} it does less than {BEHIND} of the work of the fastest lock; the least is {} of \
             {}'s ({}).",
            shares.len(),
            times(*share),
            fastest.lock,
            situation(row)
        ),
        _ => {
            format!("In {0} of {0} it does at least {BEHIND} of the work of the fastest lock.", shares.len())
        }
    }
}

/// `oversubscribed, 64 threads, section 100 ns, think 500 ns`
fn situation(row: &Row) -> String {
    if let Some(case) = row.case {
        return format!("{} {case}", row.mode);
    }
    let threads = row.threads.map(|threads| format!("{threads} threads"));
    let section = row.section_ns.map(|ns| format!("section {ns} ns"));
    let think = row.think_ns.map(|ns| format!("think {ns} ns"));
    let reads = row.read_percent.map(|percent| format!("{percent} % reads"));
    let parts = [Some(row.mode.to_owned()), threads, section, think, reads];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The geometric mean of the ratios.
fn mean(rows: &[&Row]) -> Option<f64> {
    let ratios: Vec<f64> = rows.iter().filter_map(|row| row.ratio).collect();
    let logarithms = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>();
    (!ratios.is_empty()).then(|| (logarithms / ratios.len() as f64).exp())
}

/// The least difference of Jain's index for which shares are called less equal. With four threads,
/// a tenth less for one of them changes it by less.
const UNEQUAL: f64 = 0.05;

/// A ratio with the digits that it needs: `0.87`, `1.52`, `14`.
pub fn times(ratio: f64) -> String {
    match ratio {
        ratio if !ratio.is_finite() => "many".to_owned(),
        10.0.. => format!("{ratio:.0}"),
        0.01.. | 0.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_lab::MachineSpec;
    use nearlock_lab::settings::{Configuration, Group};
    use nearlock_lab::simulate::{Fault, Limits, Simulation, simulate};

    #[test]
    fn ratios_keep_the_digits_that_count() {
        let shown = [0.0, 0.004, 0.874, 1.0, 1.523, 14.2, 1234.5, f64::NAN, f64::INFINITY].map(times);
        assert_eq!(shown, ["0.00", "4.0e-3", "0.87", "1.00", "1.52", "14", "1234", "many", "many"]);
    }

    fn row(lock: &'static str, threads: usize, ratio: f64) -> Row {
        Row {
            summary: None,
            situations: 1,
            mode: "free",
            case: None,
            lock,
            baseline: "parking-lot-0.13",
            threads: Some(threads),
            section_ns: Some(100),
            think_ns: Some(0),
            read_percent: None,
            ns_per_op: None,
            ops_per_us: None,
            ratio: Some(ratio),
            ratio_low_quartile: None,
            ratio_high_quartile: None,
            rounds: 7,
            jain: None,
            wait_ns_p99_9: None,
            wait_ns_max: None,
            cpu_ns_per_op: None,
            cpu_ratio: None,
            instructions_per_op: None,
            rmw_per_op: None,
            membarriers_per_s: None,
            size_bytes: 4,
        }
    }

    fn cell(lock: &str, threads: usize, seed: u64, work: f64) -> Simulated {
        let mut row = simulate(&Simulation {
            limits: Limits { warm_up_ns: 0, window_ns: 1000, ..Limits::default() },
            ..Configuration::new(Group::ALL).simulation(
                MachineSpec::builtin("haswell-ex-4s").expect("is built in"),
                Configuration::new(Group::ALL).workload("locktorture").expect("is a workload"),
                Subject::named(lock).expect("is in the list"),
                1,
                seed,
            )
        })
        .expect("it works");
        (row.threads, row.ops_per_us, row.wait_ns_p99, row.jain) = (threads, work, 0, 1.0);
        row
    }

    /// The sentence about `mcs` and `ticket`, requested with 1 and 8 threads.
    fn sentence(rows: &[Simulated], failed: &[(&'static str, usize)]) -> Option<String> {
        let fault = Fault::Deadlock { waiting: 2 };
        let failure = |&(lock, threads)| Failure { lock, threads, seed: 1, at_ns: 1, fault };
        let failures: Vec<Failure> = failed.iter().map(failure).collect();
        simulated(&Simulations {
            locks: vec!["mcs", "ticket"],
            threads_max: 8,
            rows: rows.to_vec(),
            failures,
        })
    }

    #[test]
    fn only_seeds_that_both_locks_have_are_compared() {
        let [mcs, other] = [1, 2].map(|seed| cell("mcs", 8, seed, seed as f64));
        let rows = [mcs, other, cell("ticket", 8, 2, 3.0)];
        let said = sentence(&rows, &[]).expect("compared");
        assert_eq!(said, "At 8 threads ticket does 1.50 times the work of mcs.");
        let less = [cell("mcs", 1, 1, 1.0), cell("mcs", 8, 1, 1.0), cell("ticket", 1, 1, 2.0)];
        assert_eq!(
            sentence(&less, &[]).expect("compared"),
            "At 1 thread, the greatest number that all compared locks have, ticket does 2.00 times the work of mcs."
        );
        assert_eq!(sentence(&less[..2], &[]), None, "the other lock was not simulated");
    }

    #[test]
    fn a_lock_that_failed_is_named_before_fewer_threads_are_compared() {
        let at_one = [cell("mcs", 1, 1, 1.0), cell("ticket", 1, 1, 2.0), cell("ticket", 8, 1, 2.0)];
        assert_eq!(
            sentence(&at_one, &[("mcs", 8)]).expect("compared"),
            "At 8 threads mcs failed. At 1 thread ticket does 2.00 times the work of mcs."
        );
        let none = sentence(&at_one[2..], &[("mcs", 1), ("mcs", 8)]);
        assert_eq!(none.expect("a failure"), "At 8 threads mcs failed.");
    }

    #[test]
    fn no_work_is_no_ratio() {
        let rows = |mcs, ticket| [cell("mcs", 8, 1, mcs), cell("ticket", 8, 1, ticket)];
        let said = |mcs, ticket| sentence(&rows(mcs, ticket), &[]).expect("compared");
        assert_eq!(said(0.0, 0.0), "At 8 threads mcs and ticket both do no work.");
        assert_eq!(said(0.0, 1.0), "At 8 threads ticket does work, and mcs does none.");
        assert_eq!(said(1.0, 0.0), "At 8 threads ticket does 0.00 times the work of mcs.");
        let [mcs, ticket] = rows(0.0, 1.0);
        assert_eq!((ratio(&ticket, &mcs), ratio(&mcs, &ticket)), ("-".to_owned(), "0.00".to_owned()));
    }

    #[test]
    fn a_lock_is_compared_with_the_fastest_peer_of_each_situation() {
        let rows = [
            row("near-mutex", 2, 2.0),
            row("parking-lot-0.13", 2, 1.0),
            row("std", 2, 4.0),
            row("near-mutex", 8, 0.52),
            row("parking-lot-0.13", 8, 1.0),
            row("std", 8, 0.4),
        ];
        assert_eq!(
            measured(&rows, "parking-lot-0.13").expect("compared"),
            "near-mutex does 1.02 times the work of parking-lot-0.13, the geometric mean of 2 situations with two \
             threads or more. In 2 of 2 it does less than 0.9 of the work of the fastest lock; the least is 0.50 of \
             std's (free, 2 threads, section 100 ns, think 0 ns). Of the 3 locks std (1.26 times \
             parking-lot-0.13) does the most, and parking-lot-0.13 the least."
        );
        let alone = Row { mode: "uncontended", ..row("near-mutex", 1, 2.05) };
        let text = measured(&[alone], "parking-lot-0.13").expect("compared");
        assert_eq!(text, "Uncontended, near-mutex is 2.05 times as fast as parking-lot-0.13.");
        assert_eq!(measured(&rows, "std"), None);
        assert_eq!(measured(&[row("parking-lot-0.13", 2, 1.0)], "parking-lot-0.13"), None);
    }
}
