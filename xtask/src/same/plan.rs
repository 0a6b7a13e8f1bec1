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

/// The locks with which the workload for readers is run: those of users' programs.
const OF_READERS: &str = "near-rwlock,glibc-rwlock,std-rwlock-protocol,parking-lot-0.13-rwlock-protocol";

/// The setups for these locks. The control has only readers.
const READERS: &[(&str, Setup)] = &[
    (
        OF_READERS,
        Setup { machine: MACHINE, workload: "rw-section", threads: "2,20,72", flags: " --lockstat" },
    ),
    (OF_READERS, Setup { machine: SMALL_MACHINE, workload: "rw-section", threads: "3,9,32", flags: "" }),
    (
        "lock-none",
        Setup {
            machine: MACHINE,
            workload: "rw-section",
            threads: "2,20,72",
            flags: " --set rw-section.read-percent=100",
        },
    ),
];

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
    /// Reads the lists, each an array of objects: `nearlock list WHAT --format json`.
    ///
    /// # Errors
    ///
    /// If a list cannot be had, or has another form.
    pub(super) fn read(list: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let rows = |what| rows(&list(what)?).with_context(|| format!("the list of {what}"));
        let names = |what, key| rows(what)?.iter().map(|row| cell(row, key)).collect::<Result<_>>();
        let lock = |row: &Row| Ok((cell(row, "lock")?, cell(row, "family")?));
        Ok(Self {
            locks: rows("locks")?.iter().map(lock).collect::<Result<_>>()?,
            workloads: names("workloads", "workload")?,
            machines: rows("machines")?.iter().map(machine).collect::<Result<_>>()?,
            tables: names("tables", "table")?,
            settings: rows("settings")?.iter().map(Setting::read).collect::<Result<_>>()?,
        })
    }
}

/// An entry of a list.
type Row = serde_json::Map<String, serde_json::Value>;

fn rows(text: &str) -> Result<Vec<Row>> {
    Ok(serde_json::from_str(text)?)
}

fn cell(row: &Row, key: &str) -> Result<String> {
    let text = row.get(key).and_then(serde_json::Value::as_str);
    Ok(text.with_context(|| format!("no text `{key}` in {row:?}"))?.to_owned())
}

fn machine(row: &Row) -> Result<(String, usize)> {
    let cpus = cell(row, "cpus")?.parse().with_context(|| format!("no number of CPUs in {row:?}"))?;
    Ok((cell(row, "machine")?, cpus))
}

impl Setting {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { name: cell(row, "setting")?, default: cell(row, "default")?, range: cell(row, "values")? })
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
    for (locks, Setup { machine, workload, threads, flags }) in READERS {
        runs.push(simulate(machine, workload, locks, threads, &format!("{WINDOW}{flags}")));
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
        Some((least.parse().ok()?, rest.split(' ').next()?.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = r#"[{"lock":"tas","family":"classic"},{"lock":"cna-v13","family":"Linux"},
        {"lock":"lock-busted","family":"control","rust":null}]"#;
    const WORKLOADS: &str = r#"[{"workload":"exim"},{"workload":"aim7-disk"}]"#;
    const MACHINES: &str =
        r#"[{"machine":"haswell-ex-4s","cpus":"144"},{"machine":"cortex-a7-quad","cpus":"4"}]"#;
    const TABLES: &str = r#"[{"table":"cna-locktorture","source":"Source."}]"#;
    const SETTINGS: &str = r#"[{"setting":"numa.mode","default":"auto","values":"off, on or auto"},
        {"setting":"exim.locking-percent","default":"7","values":"0 to 100 %"},
        {"setting":"exim.jobs","default":"0","values":"0 to 100 jobs"},
        {"setting":"aim7-disk.jobs","default":"100","values":"0 to 100 jobs"},
        {"setting":"aim7-disk.locks","default":"3","values":"1 to 64 locks"},
        {"setting":"machine.jitter","default":"0.15","values":"0 to 1"}]"#;

    fn lists() -> Lists {
        let list = |what: &str| {
            Ok(match what {
                "locks" => LOCKS,
                "workloads" => WORKLOADS,
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
        let read = |machines: &str| {
            Lists::read(|what| Ok(if what == "machines" { machines } else { "[]" }.to_owned()))
        };
        assert!(read(MACHINES).is_ok());
        for other in ["machine cpus", r#"[{"machine":"m"}]"#, r#"[{"machine":"m","cpus":"four"}]"#] {
            assert!(read(other).is_err(), "{other}");
        }
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
