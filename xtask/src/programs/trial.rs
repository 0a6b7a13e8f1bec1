//! Runs cargo on a program, with a limit of time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::outcome::{self, Outcome};

/// How long a program may take to be built and to run, in all. A program that hangs is ended then.
const PATIENCE: Duration = Duration::from_secs(1800);

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A run of cargo in the directory of a package.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The directory of the package.
    pub package: PathBuf,
    /// The target directory.
    pub target: PathBuf,
    /// The files for what cargo and the tests write begin with this path.
    pub logs: PathBuf,
    /// The arguments of cargo.
    pub arguments: Vec<String>,
    /// Whose locks the package uses.
    pub locks: Locks,
}

/// Whose locks a package uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locks {
    /// Those of parking_lot, or whichever the manifest names.
    Own,
    /// Those of nearlock: the file is a configuration of cargo that patches parking_lot.
    Nearlock(PathBuf),
}

/// What a trial shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The tests.
    pub outcome: Outcome,
    /// The number of acquisitions of nearlock's locks that were counted.
    pub acquisitions: u64,
}

impl Trial {
    /// Runs cargo, and reads what it and the tests write.
    ///
    /// # Errors
    ///
    /// If cargo does not start, or a file cannot be written.
    pub fn run(&self) -> Result<Shown> {
        let [output, errors, count] = ["out", "err", "count"].map(|end| self.logs.with_extension(end));
        _ = fs::remove_file(&count);
        let mut cargo = self.cargo(&count);
        cargo.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(File::create(&errors)?);
        let status = wait(cargo.spawn().context("cargo does not start")?)?;
        let read =
            |path: &Path| -> Result<String> { Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()) };
        let mut outcome = Outcome::of(&read(&output)?);
        outcome.trouble = match status {
            None => Some(format!("not done in {} s", PATIENCE.as_secs())),
            Some(status) if status.success() => None,
            Some(status) => {
                let without = (outcome.failed == 0).then(|| format!("cargo ends with {status}"));
                outcome::trouble(&read(&errors)?).or(without)
            }
        };
        let counted = if count.exists() { read(&count)? } else { String::new() };
        Ok(Shown { outcome, acquisitions: sum(&counted).with_context(|| count.display().to_string())? })
    }

    fn cargo(&self, count: &Path) -> Command {
        let mut cargo = Command::new("cargo");
        if let Locks::Nearlock(patch) = &self.locks {
            cargo.arg("--config").arg(patch);
        }
        cargo.args(&self.arguments);
        if self.arguments.first().is_some_and(|command| command == "test") {
            cargo.arg("--no-fail-fast");
        }
        cargo.current_dir(&self.package).env("CARGO_TARGET_DIR", &self.target);
        cargo.env("CARGO_TERM_COLOR", "never").env("RUST_BACKTRACE", "0");
        // Quicker to build, and smaller.
        cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        match self.locks {
            Locks::Own => cargo.env_remove("RUSTFLAGS"),
            Locks::Nearlock(_) => {
                cargo.env("RUSTFLAGS", "--cfg nearlock_count").env("NEARLOCK_COUNT_FILE", count)
            }
        };
        // These variables belong to the cargo that runs this program.
        for variable in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTC"] {
            cargo.env_remove(variable);
        }
        cargo
    }
}

/// Waits until the process ends. After the limit, ends it and all processes that it has started.
/// Returns `None` in that case.
fn wait(mut child: Child) -> Result<Option<ExitStatus>> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            // Not as a process group, which an interrupt from the terminal would not reach.
            let all = Command::new("ps").args(["-eo", "pid=,ppid="]).output().context("ps does not start")?;
            let ended = descendants(child.id(), &String::from_utf8_lossy(&all.stdout));
            let ended = ended.iter().map(u32::to_string);
            Command::new("kill").arg("-KILL").args(ended).status().context("kill does not start")?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// The process and all that it has started, from lines with the id of a process and that of its
/// parent.
fn descendants(process: u32, table: &str) -> Vec<u32> {
    let pair = |line: &str| {
        let mut ids = line.split_whitespace().map(|id| id.parse().ok());
        Some((ids.next()??, ids.next()??))
    };
    let pairs: Vec<(u32, u32)> = table.lines().filter_map(pair).collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(pairs.iter().filter(|(id, of)| *of == parent && *id != parent).map(|(id, _)| *id));
        next += 1;
    }
    found
}

/// The sum of the numbers, of which each process has written one in a line.
fn sum(lines: &str) -> Result<u64> {
    lines.lines().map(|line| line.parse::<u64>().with_context(|| format!("{line:?} is no number"))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_with_all_that_it_has_started() {
        let table = "    1     0\n    5     1\n    7     5\n    6     1\n    9     7\n  no number\n";
        assert_eq!(descendants(5, table), [5, 7, 9]);
        assert_eq!(descendants(9, table), [9]);
    }

    #[test]
    fn the_counts_of_all_processes_are_added() {
        assert_eq!(sum("").unwrap(), 0);
        assert_eq!(sum("3\n0\n40\n").unwrap(), 43);
        assert!(sum("3\nx\n").is_err());
    }
}
