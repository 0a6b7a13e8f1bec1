//! The runs: everything that the command lists, in short runs.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// Some threads with a workload, on a machine.
struct Setup {
    machine: &'static str,
    workload: &'static str,
    threads: &'static str,
    flags: &'static str,
}

/// The setups for each lock: with NUMA nodes and a CPU for each thread; with readers; and with more
/// threads than CPUs, so that some sleep.
const OF_LOCKS: &[Setup] = &[
    Setup { machine: MACHINE, workload: "locktorture", threads: "2,20,72", flags: "" },
    Setup { machine: MACHINE, workload: "page-fault", threads: "2,20,72", flags: " --lockstat" },
    Setup { machine: SMALL_MACHINE, workload: "mutex-section", threads: "3,9,32", flags: " --lockstat" },
    Setup { machine: SMALL_MACHINE, workload: "page-fault", threads: "3,9,32", flags: "" },
];

/// The machine of runs that do not name one.
const MACHINE: &str = "haswell-ex-4s";

/// A machine with few CPUs.
const SMALL_MACHINE: &str = "cortex-a7-quad";

/// The locks with which each workload, each machine and each setting of locks is run: every
/// algorithm.
const ALGORITHMS: &str = "ttas,ticket,clh,hmcs,cohort,glibc-mutex,qspinlock,qspinlock-park,cna,cna-v13,\
    linux-counter-mutex,rwsem-xadd,linux-mutex,rwsem,freebsd-mtx,freebsd-spin-mtx,freebsd-rw,freebsd-lockmgr,\
    near-mutex,near-condvar";

/// The locks with which other settings are run.
const FEW: &str = "qspinlock,cna,linux-mutex,near-mutex";

/// The virtual time of a simulation. It is long enough for a waiter that is overtaken for 4 ms to
/// get the lock by a hand-over.
const WINDOW: &str = "--set simulation.warm-up-ns=1000000 --set simulation.window-ns=5000000";

/// The virtual time of other simulations.
const SHORT_WINDOW: &str = "--set simulation.warm-up-ns=500000 --set simulation.window-ns=2000000";

/// The number of jobs for users who would do a list of jobs.
const FEW_JOBS: &str = "2";

/// The time after which a lock that is broken on purpose counts as livelocked.
const SOON: &str = " --set simulation.livelock-ns=400000";

/// The tables of which variations are run too, and the flags for these.
const VARIED: &[(&str, &str)] = &[("cna-context1", "--band "), ("cna-context1", "--mechanisms ")];

/// The contents of the command's lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// With the family of each.
    locks: Vec<(String, String)>,
    workloads: Vec<String>,
    /// With the number of CPUs of each.
    machines: Vec<(String, usize)>,
    tables: Vec<String>,
    settings: Vec<Setting>,
}

/// Something that `--set` sets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    name: String,
    default: String,
    /// `0 to 100 %`, or `off, on or auto`.
    range: String,
}

impl Lists {
    /// Reads the lists from the output of `nearlock list`.
    ///
    /// # Errors
    ///
    /// If the output cannot be had, or has another form.
    pub(super) fn read(list: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let entries = |what, head| Ok::<_, anyhow::Error>(entries(&list(what)?, head));
        let names = |lines: Vec<String>| lines.iter().map(|line| word(line, 0).to_owned()).collect();
        let lock = |line: &String| (word(line, 0).to_owned(), word(line, 1).to_owned());
        Ok(Self {
            locks: entries("locks", Head::Line)?.iter().map(lock).collect(),
            workloads: names(entries("workloads", Head::Line)?),
            machines: entries("machines", Head::Line)?
                .iter()
                .map(|line| machine(line))
                .collect::<Result<_>>()?,
            tables: names(entries("tables", Head::None)?),
            settings: entries("settings", Head::None)?
                .iter()
                .map(|line| Setting::read(line))
                .collect::<Result<_>>()?,
        })
    }
}

/// The head of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    None,
    Line,
}

/// The lines that begin an entry of a list; the others are indented. A blank line ends the list.
fn entries(text: &str, head: Head) -> Vec<String> {
    let lines = text.lines().skip(usize::from(head == Head::Line)).take_while(|line| !line.is_empty());
    lines.filter(|line| !line.starts_with(' ')).map(str::to_owned).collect()
}

/// The word of this index, or an empty one.
fn word(line: &str, index: usize) -> &str {
    line.split_whitespace().nth(index).unwrap_or_default()
}

fn machine(line: &str) -> Result<(String, usize)> {
    let cpus = word(line, 1).parse().with_context(|| format!("`{line}` is no machine and its CPUs"))?;
    Ok((word(line, 0).to_owned(), cpus))
}

impl Setting {
    /// `NAME.KEY=default    (range)`
    fn read(line: &str) -> Result<Self> {
        let parts = line.split_once("    (").and_then(|(set, range)| {
            let (name, default) = set.split_once('=')?;
            Some((name, default, range.strip_suffix(')')?))
        });
        let (name, default, range) = parts.with_context(|| format!("`{line}` is no setting"))?;
        Ok(Self { name: name.to_owned(), default: default.to_owned(), range: range.to_owned() })
    }
}

/// All runs, the longest first, so that no long run remains alone at the end.
pub(super) fn runs(lists: &Lists) -> Vec<String> {
    let Lists { locks, workloads, machines, tables, settings } = lists;
    let lists_of_jobs: String = workloads.iter().map(|workload| few_jobs(workload, settings)).collect();
    let reproduced = |table: &str, flag: &str| {
        format!("reproduce {table} --quick --seeds 1 {flag}--format json {SHORT_WINDOW}{lists_of_jobs}")
    };
    let mut runs: Vec<_> = VARIED.iter().map(|(table, flag)| reproduced(table, flag)).collect();
    runs.extend(tables.iter().map(|table| reproduced(table, "")));
    for (name, cpus) in machines {
        runs.push(simulate(name, "locktorture", ALGORITHMS, &format!("2,{cpus}"), SHORT_WINDOW));
    }
    for workload in workloads {
        let set = format!("{WINDOW}{}", few_jobs(workload, settings));
        runs.push(simulate(MACHINE, workload, ALGORITHMS, "2,20,72", &set));
    }
    for (lock, family) in locks {
        for Setup { machine, workload, threads, flags } in OF_LOCKS {
            let soon = if family == "control" { SOON } else { "" };
            runs.push(simulate(machine, workload, lock, threads, &format!("{WINDOW}{soon}{flags}")));
        }
    }
    runs.extend(with_settings(settings, workloads));
    runs
}

fn simulate(machine: &str, workload: &str, locks: &str, threads: &str, flags: &str) -> String {
    let what = format!("--machine {machine} --workload {workload} --lock {locks} --threads {threads}");
    format!("simulate {what} --format json {flags}")
}

/// Shortens the jobs of a workload whose users do a list of jobs to its end.
fn few_jobs(workload: &str, settings: &[Setting]) -> String {
    let is_list = |setting: &&Setting| setting.name == format!("{workload}.jobs") && setting.default != "0";
    settings
        .iter()
        .find(is_list)
        .map_or(String::new(), |setting| format!(" --set {}={FEW_JOBS}", setting.name))
}

/// Runs with other values than the defaults: all settings of a workload together, and each of the
/// others alone.
fn with_settings(settings: &[Setting], workloads: &[String]) -> Vec<String> {
    let mut runs = Vec::new();
    let mut of_workloads = BTreeMap::<_, String>::new();
    for (index, setting) in settings.iter().enumerate() {
        let values = setting.others(index);
        let sets = values.iter().map(|value| format!(" --set {}={value}", setting.name));
        let (workload, locks) = match setting.owner() {
            // The length of a run.
            "simulation" if setting.name.ends_with("-ns") => continue,
            workload if workloads.iter().any(|known| known == workload) => {
                // Only few jobs for workloads with a list of jobs.
                let sets =
                    sets.take(1).filter(|_| few_jobs(workload, std::slice::from_ref(setting)).is_empty());
                of_workloads.entry(workload).or_default().extend(sets);
                continue;
            }
            "machine" | "simulation" => ("locktorture", FEW),
            _ => ("locktorture", ALGORITHMS),
        };
        let jobs = few_jobs(workload, settings);
        runs.extend(
            sets.map(|set| simulate(MACHINE, workload, locks, "20", &format!("{SHORT_WINDOW}{jobs}{set}"))),
        );
    }
    for (workload, sets) in of_workloads {
        let jobs = few_jobs(workload, settings);
        runs.push(simulate(MACHINE, workload, FEW, "20", &format!("{SHORT_WINDOW}{jobs}{sets}")));
    }
    runs
}

impl Setting {
    /// The first part of the name: a lock, a workload, the machine, ...
    fn owner(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// Values that are not the default. For words, all the others. For a number, half of the
    /// default, or otherwise a small number, which is seldom the same for two settings.
    fn others(&self, index: usize) -> Vec<String> {
        let Some((least, greatest)) = self.limits() else {
            let words = self.range.split([',', ' ']).filter(|word| !["", "or"].contains(word));
            return words.filter(|word| *word != self.default).map(str::to_owned).collect();
        };
        let Ok(default) = self.default.parse::<f64>() else { return Vec::new() };
        let half = if self.default.contains('.') { default / 2.0 } else { (default / 2.0).floor() };
        let small = (index % 7 + 1) as f64;
        let mut values = [half, small, default + 1.0, default - 1.0].into_iter();
        let is_other = |value: &f64| *value != default && (least..=greatest).contains(value);
        values.find(is_other).map(|value| value.to_string()).into_iter().collect()
    }

    /// `LEAST to GREATEST UNIT`.
    fn limits(&self) -> Option<(f64, f64)> {
        let (least, rest) = self.range.split_once(" to ")?;
        Some((least.parse().ok()?, word(rest, 0).parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
lock    family   what it is                promise to a waiter
tas     classic  a lock of one word, and   none
                 of more words
cna-v13 Linux    CNA                       its turn
lock-busted control excludes no thread     none
";

    const MACHINES: &str = "\
machine        CPUs  what it is        latencies
haswell-ex-4s  144   four sockets      measured
cortex-a7-quad 4     a small board     estimated

Or give the path of a machine file.
";

    const TABLES: &str = "cna-locktorture\n    locktorture on haswell-ex-4s: stock, cna\n    Source.\n";

    const SETTINGS: &str = "\
numa.mode=auto    (off, on or auto)
    Whether locks see nodes.
exim.locking-percent=7    (0 to 100 %)
exim.jobs=0    (0 to 100 jobs)
    Of users.
aim7-disk.jobs=100    (0 to 100 jobs)
aim7-disk.locks=3    (1 to 64 locks)
machine.jitter=0.15    (0 to 1)

NAME.KEY=default (limits).
";

    fn lists() -> Lists {
        let list = |what: &str| {
            Ok(match what {
                "locks" => LOCKS,
                "workloads" => "workload what it does\nexim     a mail server\naim7-disk files\n",
                "machines" => MACHINES,
                "tables" => TABLES,
                _ => SETTINGS,
            }
            .to_owned())
        };
        Lists::read(list).expect("are lists")
    }

    #[test]
    fn lists_are_read() {
        let setting = |name: &str, default: &str, range: &str| Setting {
            name: name.to_owned(),
            default: default.to_owned(),
            range: range.to_owned(),
        };
        let expected = Lists {
            locks: [("tas", "classic"), ("cna-v13", "Linux"), ("lock-busted", "control")]
                .map(|(name, family)| (name.to_owned(), family.to_owned()))
                .into(),
            workloads: vec!["exim".to_owned(), "aim7-disk".to_owned()],
            machines: vec![("haswell-ex-4s".to_owned(), 144), ("cortex-a7-quad".to_owned(), 4)],
            tables: vec!["cna-locktorture".to_owned()],
            settings: vec![
                setting("numa.mode", "auto", "off, on or auto"),
                setting("exim.locking-percent", "7", "0 to 100 %"),
                setting("exim.jobs", "0", "0 to 100 jobs"),
                setting("aim7-disk.jobs", "100", "0 to 100 jobs"),
                setting("aim7-disk.locks", "3", "1 to 64 locks"),
                setting("machine.jitter", "0.15", "0 to 1"),
            ],
        };
        assert_eq!(lists(), expected);
    }

    #[test]
    fn lists_of_another_form_are_refused() {
        assert!(machine("haswell-ex-4s four").is_err());
        assert!(Setting::read("numa.mode=auto").is_err());
    }

    #[test]
    fn everything_listed_is_run_and_no_run_is_twice() {
        let runs = runs(&lists());
        for part in [
            "--lock tas ",
            "--lock cna-v13 ",
            "--lock lock-busted --threads 2,20,72 --format json --set simulation.warm-up-ns=1000000 \
             --set simulation.window-ns=5000000 --set simulation.livelock-ns=400000 --lockstat",
            "--machine haswell-ex-4s --workload locktorture --lock ttas,",
            "--machine cortex-a7-quad --workload locktorture --lock ttas,",
            "reproduce cna-locktorture --quick --seeds 1 --format json",
            "reproduce cna-context1 --quick --seeds 1 --band --format json",
            "--set numa.mode=off",
            "--set numa.mode=on",
            "--set exim.locking-percent=3 --set exim.jobs=3",
            "--set aim7-disk.jobs=2 --set aim7-disk.locks=1",
            "--set machine.jitter=0.075",
        ] {
            assert!(runs.iter().any(|run| run.contains(part)), "{part} in {runs:#?}");
        }
        let once: std::collections::BTreeSet<_> = runs.iter().collect();
        assert_eq!(once.len(), runs.len());
        assert!(runs.iter().all(|run| run.split(' ').all(|word| !word.is_empty())), "{runs:#?}");
    }

    #[test]
    fn another_value_is_within_the_limits() {
        for (default, range, expected) in [
            ("10", "0 to 100 ns", vec!["5"]),
            ("7", "0 to 100 ns", vec!["3"]),
            ("1", "1 to 100 ns", vec!["4"]),
            ("2", "2 to 2 ns", vec![]),
            ("4", "3 to 4", vec!["3"]),
            ("0", "0 to 1 0|1", vec!["1"]),
            ("0.5", "0 to 1", vec!["0.25"]),
            ("near", "near, far", vec!["far"]),
            ("off", "off, on or auto", vec!["on", "auto"]),
        ] {
            let setting =
                Setting { name: "a.b".to_owned(), default: default.to_owned(), range: range.to_owned() };
            assert_eq!(setting.others(3), expected, "{default} of {range}");
        }
    }
}
