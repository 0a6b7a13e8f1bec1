//! Runs the tests of programs that use parking_lot with nearlock's locks in its place.
//!
//! The programs are crates of crates.io (`programs/table.rs`). Cargo fetches and compiles them,
//! with the crates of `shims` instead of parking_lot.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

mod outcome;
mod report;
mod source;
pub mod suite;
mod table;
mod trial;

use crate::{Finding, Misuse, files};
use report::{Row, Verdict, judge};
use source::Versions;
use table::{PROGRAMS, Program};
use trial::{Locks, Shown, Trial};

/// What to do about a program that cannot be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Skip it.
    Skip,
    /// Count it as a failure.
    Fail,
}

/// The crates that stand for parking_lot, one for each of its versions: a name for the patch, and a
/// directory below the root of the repository.
const SHIMS: &[(&str, &str)] =
    &[("parking_lot_012", "shims/parking_lot-0.12"), ("parking_lot_013", "shims/parking_lot-0.13")];

/// Runs the programs with these names, or all if there is no name.
///
/// # Errors
///
/// [`Misuse`] if there is no such program. Otherwise if cargo does not start, or a file cannot be
/// written.
pub fn run(names: &[String], unavailable: Unavailable) -> Result<(String, Vec<Finding>)> {
    let programs = chosen(names)?;
    let room = Room::new("programs")?;
    let mut rows = Vec::new();
    for program in programs {
        let Program { name, version, .. } = program;
        eprintln!("{name} {version}: from crates.io to {}", room.of(program).display());
        let row = room.row(program)?;
        eprintln!("{name} {version}: {}", row.verdict);
        rows.push(row);
    }
    let is_wrong = |row: &&Row| match row.verdict {
        Verdict::Good(_) => false,
        Verdict::Skipped(_) => unavailable == Unavailable::Fail,
        Verdict::Failed(_) => true,
    };
    let findings = rows.iter().filter(is_wrong);
    let findings = findings.map(|row| {
        let logs = room.of(row.program).join("nearlock.{out,err}");
        Finding::new(row.program.name, format!("{}; see {}", row.verdict, logs.display()))
    });
    Ok((report::table(&rows), findings.collect()))
}

/// The programs with these names, or all if there is no name.
fn chosen(names: &[String]) -> Result<Vec<&'static Program>> {
    let known = |name: &String| PROGRAMS.iter().find(|program| program.name == name);
    if let Some(unknown) = names.iter().find(|name| known(name).is_none()) {
        let all: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        return Err(Misuse(format!("there is no program `{unknown}`, but {}", all.join(", "))).into());
    }
    Ok(if names.is_empty() { PROGRAMS.iter().collect() } else { names.iter().filter_map(known).collect() })
}

/// The directory where programs are built.
struct Room {
    directory: PathBuf,
    /// The configuration of cargo that patches parking_lot.
    patch: PathBuf,
}

impl Room {
    /// A directory of this name in the target directory.
    fn new(name: &str) -> Result<Self> {
        let directory = files::build_directory(name)?;
        let patch = directory.join("patch.toml");
        let root = files::root().canonicalize()?;
        let entry = |(name, path): &(&str, &str)| {
            let path = root.join(path).display().to_string();
            format!("{name} = {{ package = \"parking_lot\", path = {path:?} }}\n")
        };
        let entries: String = SHIMS.iter().map(entry).collect();
        fs::write(&patch, format!("[patch.crates-io]\n{entries}"))?;
        Ok(Self { directory, patch })
    }

    /// The directory of a program: two copies of its source, and what runs of it have written.
    fn of(&self, program: &Program) -> PathBuf {
        self.directory.join(format!("{}-{}", program.name, program.version))
    }

    fn row(&self, program: &'static Program) -> Result<Row> {
        let own = self.of(program);
        let source = match source::fetch(program.name, program.version, &own.join("fetch")) {
            Ok(source) => source,
            Err(error) => return Ok(Row::skipped(program, &format!("cannot be fetched: {error:#}"))),
        };
        let copy = own.join("with-nearlock");
        source::copy(program.name, &source, &copy, Versions::Other)?;
        let trial =
            self.trial(copy, own.join("nearlock"), program.arguments, Locks::Nearlock(self.patch.clone()));
        let shown = trial.run()?;
        let baseline = || -> Result<Shown> {
            eprintln!("{} {}: fails, so it runs with parking_lot too", program.name, program.version);
            let copy = own.join("with-parking_lot");
            source::copy(program.name, &source, &copy, Versions::Published)?;
            self.trial(copy, own.join("parking_lot"), program.arguments, Locks::Own).run()
        };
        let verdict = judge(program, &shown, baseline)?;
        let used = if shown.outcome.trouble.is_none() { self.used(&trial)? } else { String::new() };
        Ok(Row { program, shown, used, verdict })
    }

    /// A run of cargo in the directory `package`. The names of the files that it writes begin with
    /// `logs`.
    fn trial(&self, package: PathBuf, logs: PathBuf, arguments: &[&str], locks: Locks) -> Trial {
        let target = match locks {
            Locks::Own => "build-with-parking_lot",
            Locks::Nearlock(_) => "build",
        };
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Trial { package, target: self.directory.join(target), logs, arguments, locks }
    }

    /// The versions of parking_lot in the program, and whose each is.
    fn used(&self, trial: &Trial) -> Result<String> {
        // With the same features, since parking_lot may be optional.
        let with_value = |option: &str| {
            let at = trial.arguments.iter().position(|argument| argument == option);
            at.and_then(|at| trial.arguments.get(at..at + 2)).unwrap_or_default().to_vec()
        };
        let mut options = vec!["--config".to_owned(), self.patch.display().to_string()];
        options.extend(with_value("--features"));
        options.extend(trial.arguments.iter().filter(|argument| *argument == "--all-features").cloned());
        options.extend(["--filter-platform".to_owned(), source::host()?]);
        let metadata = MetadataCommand::new()
            .manifest_path(trial.package.join("Cargo.toml"))
            .current_dir(&trial.package)
            .other_options(options)
            .exec()
            .context("cargo does not name the dependencies")?;
        let packages = metadata.packages.iter().filter(|package| package.name.as_str() == "parking_lot");
        let name = |package: &cargo_metadata::Package| match package.source {
            Some(_) => format!("{} of crates.io", package.version),
            None => format!("{}.{}", package.version.major, package.version.minor),
        };
        Ok(packages.map(name).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_chosen_by_name() {
        assert_eq!(chosen(&[]).unwrap().len(), PROGRAMS.len());
        let two = chosen(&["r2d2".to_owned(), "tokio".to_owned()]).unwrap();
        assert_eq!(two.iter().map(|program| program.name).collect::<Vec<_>>(), ["r2d2", "tokio"]);
        let error = chosen(&["tokyo".to_owned()]).unwrap_err();
        assert!(error.downcast_ref::<Misuse>().is_some_and(|it| it.0.contains("`tokyo`, but tokio, ")));
    }

    /// A program with tests that pass, fail, and are ignored, and ten acquisitions.
    const EXAMPLE: &str = r#"
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::time::Duration;

        static LOCK: parking_lot::Mutex<u32> = parking_lot::const_mutex(0);
        static READ: parking_lot_013::RwLock<u32> = parking_lot_013::RwLock::new(0);

        #[test]
        fn passes() {
            for _ in 0..3 {
                *LOCK.lock() += 1;
            }
            assert!(LOCK.try_lock().is_some());
            let held = LOCK.lock();
            assert!(LOCK.try_lock().is_none() && LOCK.try_lock_for(Duration::from_millis(1)).is_none());
            drop(held);
            assert_eq!(*READ.read() + *READ.read(), 0);
            *READ.write() = 1;
            let wait = parking_lot::Condvar::new().wait_for(&mut LOCK.lock(), Duration::from_millis(1));
            assert!(wait.timed_out());
        }

        #[test]
        fn fails() {
            panic!("as it should");
        }

        #[test]
        #[ignore]
        fn is_ignored() {}
    "#;

    #[test]
    fn acquisitions_and_tests_are_counted() {
        let room = Room::new("programs-test").unwrap();
        let package = room.directory.join("example");
        fs::create_dir_all(package.join("src")).unwrap();
        fs::write(package.join("src/lib.rs"), EXAMPLE).unwrap();
        let manifest = "[package]\nname = \"example\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
            parking_lot = \"0.12\"\nparking_lot_013 = { package = \"parking_lot\", version = \"0.13\" }\n";
        fs::write(package.join("Cargo.toml"), manifest).unwrap();
        // These versions have been fetched, to build this test.
        let lock = fs::read_to_string(files::root().join("Cargo.lock")).unwrap();
        fs::write(package.join("Cargo.lock"), source::without_fetched(&lock, "parking_lot").unwrap())
            .unwrap();
        let arguments = ["test", "--offline", "--lib"];
        let locks = Locks::Nearlock(room.patch.clone());
        let trial = room.trial(package, room.directory.join("example-run"), &arguments, locks);
        let Shown { outcome, acquisitions } = trial.run().unwrap();
        let failures: Vec<_> = outcome.failures.iter().map(String::as_str).collect();
        let counts = (outcome.passed, outcome.failed, outcome.ignored, acquisitions);
        assert_eq!((counts, &*failures, &outcome.trouble), ((1, 1, 1, 10), &["fails"][..], &None));
        assert_eq!(room.used(&trial).unwrap(), "0.12, 0.13");
    }
}
