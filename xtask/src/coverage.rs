//! Which lines of `crates/core` its unit tests and the torture reach.
//!
//! The compiler counts (`-C instrument-coverage`), and the tools of its component `llvm-tools` read the counts: no
//! other tool is needed. Run are the tests of `core` and `os` (`TESTS`) and the command's torture (`TORTURES`);
//! neither the model checker nor the simulator, which are other evidence.
//!
//! All of `core` counts, the negative controls too, but not its tests ([`lines`]). A line that nothing reaches needs
//! a reason ([`reasons`]). Lines for other processors than this one are not compiled, and so are not there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::Message;

use crate::{Finding, files};

pub mod lines;
pub mod reasons;

use lines::FileLines;

/// The least share of lines that must be reached, in percent.
const LEAST_PERCENT: f64 = 95.0;

/// What is covered.
const SOURCES: &str = "crates/core/src/";

/// The packages whose tests run.
const TESTS: &[&str] = &["nearlock-core", "nearlock-os"];

/// How the locks are tortured: a few writers, so that queues run empty, and many, so that they are full. NUMA nodes
/// are claimed and not the machine's own, so that a machine with one shows the same.
const TORTURES: &[&[&str]] = &[
    &["all", "--nwriters", "3", "--numa-nodes", "2"],
    &["all", "--nwriters", "24", "--numa-nodes", "3", "--priority-percent", "5", "--cancel-storm"],
];

/// What all tortures are told besides. The machine may be busy: nothing is hung that soon.
const TORTURE_FLAGS: &[&str] = &["--shutdown-secs", "1", "--long-hold", "5", "--hang-secs", "120"];

/// Builds, runs, and returns the report and what is wrong: lines without a reason, or too many of them.
///
/// # Errors
///
/// If the tools are missing and rustup cannot install them, or something does not build or fails when run.
pub fn run() -> Result<(String, Vec<Finding>)> {
    let tools = Tools::provide()?;
    let build = Build::new(&tools.host)?;
    eprintln!("building the tests of {} and the command", TESTS.join(" and "));
    let mut programs = build.executables(&[&["test", "--no-run"], &*packages(TESTS)].concat())?;
    let command = build.executables(&["build", "--package", "nearlock-cli", "--bin", "nearlock"])?;
    let [nearlock] = &*command else { bail!("cargo built {} commands, and not one", command.len()) };
    eprintln!("running the tests");
    output(build.cargo(&[&["test", "--lib", "--tests"], &*packages(TESTS)].concat()))?;
    for torture in TORTURES {
        eprintln!("running nearlock torture {}", torture.join(" "));
        let mut command = build.command(nearlock);
        output(command.arg("torture").args(*torture).args(TORTURE_FLAGS))?;
    }
    programs.extend(command);
    let counts = tools.counts(&build.directory, &programs)?;
    let sources = files::sources()?;
    let sources: Vec<_> = sources.into_iter().filter(|file| file.path.starts_with(SOURCES)).collect();
    let files = lines::without_tests(&sources, &lines::read(&counts, &files::root())?)?;
    Ok((lines::report(&files), findings(&files, &sources)))
}

/// Too few lines, lines without a reason, and reasons without a line.
fn findings(files: &[FileLines<'_>], sources: &[files::TextFile]) -> Vec<Finding> {
    let mut findings = reasons::of_no_line(sources);
    for file in files {
        for line in &file.missed {
            if line.reason.is_none() {
                let what = format!("nothing reaches `{}`, and reasons.rs does not say why", line.text);
                findings.push(file.source.finding_at(line.number, what));
            }
        }
    }
    let percent = lines::percent(files);
    if percent < LEAST_PERCENT {
        findings.push(Finding::new(SOURCES, format!("{percent:.1} % of lines, less than {LEAST_PERCENT} %")));
    }
    findings
}

/// As arguments of cargo's.
fn packages(names: &[&'static str]) -> Vec<&'static str> {
    names.iter().flat_map(|&name| ["--package", name]).collect()
}

/// A build that counts, apart from the ordinary one.
struct Build {
    directory: PathBuf,
    host: String,
}

impl Build {
    /// In a directory of its own, without the counts of former runs.
    fn new(host: &str) -> Result<Self> {
        let directory = files::build_directory("coverage")?;
        let counts = directory.join("counts");
        if counts.exists() {
            fs::remove_dir_all(&counts).with_context(|| counts.display().to_string())?;
        }
        Ok(Self { directory, host: host.to_owned() })
    }

    /// A command whose counts are kept.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(files::root())
            .env("LLVM_PROFILE_FILE", self.directory.join("counts/%p-%m.profraw"));
        command
    }

    /// `cargo SUBCOMMAND ARGUMENTS`. With the host named as target, build scripts and macros do not count.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            // Flags of the user's would take the place of ours.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("RUSTFLAGS", "-Cinstrument-coverage")
            .args(arguments)
            .args(["--quiet", "--target", &self.host, "--target-dir"])
            .arg(&self.directory);
        command
    }

    /// The programs that cargo builds.
    fn executables(&self, arguments: &[&str]) -> Result<Vec<PathBuf>> {
        let mut command = self.cargo(arguments);
        // What is wrong with the sources goes to our own standard error.
        command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
        let build = command.output().context("cargo does not start")?;
        ensure!(build.status.success(), "cargo {} fails", arguments.join(" "));
        let mut programs = Vec::new();
        for message in Message::parse_stream(&*build.stdout) {
            if let Message::CompilerArtifact(artifact) = message? {
                programs.extend(artifact.executable.map(PathBuf::from));
            }
        }
        Ok(programs)
    }
}

/// The compiler's own tools for its counts.
struct Tools {
    /// Where they are.
    directory: PathBuf,
    /// The triple of this machine.
    host: String,
}

impl Tools {
    /// Has rustup install them if they are missing.
    fn provide() -> Result<Self> {
        let rustc = |arguments: &[&str]| -> Result<String> {
            let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            Ok(String::from_utf8(output(Command::new(rustc).args(arguments))?)?)
        };
        let version = rustc(&["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc -vV names no host")?.to_owned();
        let sysroot = rustc(&["--print", "sysroot"])?;
        let directory = Path::new(sysroot.trim()).join("lib/rustlib").join(&host).join("bin");
        let tools = Self { directory, host };
        if !tools.path("llvm-cov").is_file() {
            let rustup = Command::new("rustup").args(["component", "add", "llvm-tools"]).output();
            let installed = rustup.is_ok_and(|output| output.status.success());
            ensure!(installed, "no llvm-tools here: rustup component add llvm-tools");
        }
        Ok(tools)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }

    /// The counts of all programs that ran, in the form of lcov.
    fn counts(&self, directory: &Path, programs: &[PathBuf]) -> Result<String> {
        let merged = directory.join("all.profdata");
        let counts = directory.join("counts");
        output(
            Command::new(self.path("llvm-profdata"))
                .args(["merge", "--sparse", "-o"])
                .arg(&merged)
                .arg(counts),
        )?;
        let mut export = Command::new(self.path("llvm-cov"));
        export.args(["export", "--format=lcov", "--instr-profile"]).arg(&merged);
        // The first program has no flag; what follows it is what to look at.
        for (index, program) in programs.iter().enumerate() {
            export.args((index > 0).then_some("--object")).arg(program);
        }
        Ok(String::from_utf8(output(export.arg(files::root().join(SOURCES)))?)?)
    }
}

/// What the command writes. All that it writes is shown if it fails.
fn output(mut command: impl std::borrow::BorrowMut<Command>) -> Result<Vec<u8>> {
    let command = command.borrow_mut();
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&text));
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::files::TextFile;

    /// What is found in a file of twenty lines, of which these were not reached.
    fn found(path: &str, first: &str, missed: &[usize]) -> Vec<String> {
        // A comment: the lines need not be a program together.
        let text = format!("/*\n{first}\n{}*/", "fn f() {}\n".repeat(19));
        let sources = [TextFile { path: path.to_owned(), text }];
        let counts = (2..=21).map(|number| (number, u64::from(!missed.contains(&number)))).collect();
        let counts = BTreeMap::from([(path.to_owned(), counts)]);
        let files = lines::without_tests(&sources, &counts).expect("is Rust");
        let found =
            findings(&files, &[]).into_iter().filter(|finding| !finding.what.starts_with("has no line"));
        found.map(|finding| finding.place).collect()
    }

    #[test]
    fn lines_that_nothing_reaches_need_a_reason() {
        let [reason, ..] = reasons::REASONS else { panic!("no reason to try") };
        assert_eq!(found(reason.file, reason.line, &[]), [""; 0]);
        assert_eq!(found(reason.file, reason.line, &[2]), [""; 0]);
        assert_eq!(found(reason.file, reason.line, &[3]), [format!("{}:3", reason.file)]);
        assert_eq!(found("a.rs", reason.line, &[2]), ["a.rs:2"]);
    }

    #[test]
    fn a_reason_is_for_the_lines_behind_too_and_19_of_20_must_be_reached() {
        let [reason, ..] = reasons::REASONS else { panic!("no reason to try") };
        assert_eq!(found(reason.file, reason.line, &[2, 3]), [SOURCES]);
        assert_eq!(
            found(reason.file, reason.line, &[2, 4]),
            [format!("{}:4", reason.file), SOURCES.to_owned()]
        );
    }
}
