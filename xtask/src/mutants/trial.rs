//! Running tests until the first that fails.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cargo_metadata::Message;

/// Tests that look at the text of the sources, or at the set of orderings in them, and so may fail though no
/// lock misbehaves.
const ABOUT_TEXT: &[&str] =
    &["the_document_is_up_to_date", "every_ordering_in_the_source_of_a_lock_is_exercised"];

/// What a message says of a test that fails as *another* ordering seems to be needed no more.
const OF_ANOTHER_SITE: &[&str] = &["without Acquire", "without Release", "without TotalOrder"];

/// How long the tests of one program may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// How a mutant fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A test has failed.
    Caught(Failure),
    /// No test has.
    Survived,
    /// It tells nothing: why.
    Undecided(String),
}

/// A test that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its package, or the program that is no test.
    pub by: String,
    /// Its name.
    pub test: String,
    /// The beginning of what it says.
    pub message: String,
}

/// Which tests of a package.
#[derive(Clone, Copy, Debug)]
pub enum Tests<'a> {
    /// All.
    All,
    /// Those with one of these in their names.
    Like(&'a [String]),
    /// Those of these names.
    Named(&'a [String]),
}

impl Tests<'_> {
    fn arguments(self) -> impl Iterator<Item = String> {
        let (names, exact) = match self {
            Tests::All => (&[][..], None),
            Tests::Like(words) => (words, None),
            Tests::Named(names) => (names, Some("--exact".to_owned())),
        };
        exact.into_iter().chain(names.iter().cloned())
    }
}

/// A copy of the repository, and where it is built.
#[derive(Debug)]
pub struct Workshop {
    /// The copy.
    pub root: PathBuf,
    /// Its target directory.
    pub target: PathBuf,
}

impl Workshop {
    /// Runs cargo in the copy.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.args(arguments).current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        cargo.env("CARGO_TERM_COLOR", "never").env("RUST_BACKTRACE", "0").env_remove("RUSTFLAGS");
        // Those of the cargo that runs us, which may be of another toolchain.
        for variable in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTUP_TOOLCHAIN", "RUSTC"] {
            cargo.env_remove(variable);
        }
        cargo
    }

    /// Runs these tests of the package until one fails.
    ///
    /// # Errors
    ///
    /// If cargo or a test does not start.
    pub fn test(&self, package: &str, tests: Tests<'_>) -> Result<Outcome> {
        let Some(programs) = self.build(package)? else {
            return Ok(Outcome::Undecided("does not compile".to_owned()));
        };
        for program in programs {
            let outcome = watch(self.program(package, &program, tests), package)?;
            if outcome != Outcome::Survived {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Survived)
    }

    fn program(&self, package: &str, program: &Path, tests: Tests<'_>) -> Command {
        let folder = self.root.join("crates").join(package.strip_prefix("nearlock-").unwrap_or(package));
        let mut command = Command::new(program);
        command.args(tests.arguments()).args(["--no-capture", "--test-threads=2"]);
        command.args(ABOUT_TEXT.iter().flat_map(|name| ["--skip", name]));
        command.current_dir(&folder).env("CARGO_MANIFEST_DIR", &folder).env("RUST_BACKTRACE", "0");
        command
    }

    /// The package's test programs; nothing if they do not compile.
    fn build(&self, package: &str) -> Result<Option<Vec<PathBuf>>> {
        let arguments = ["test", "-p", package, "--lib", "--tests", "--no-run", "--message-format=json"];
        let output = self.cargo(&arguments).stderr(Stdio::null()).output().context("cargo does not start")?;
        if !output.status.success() {
            return Ok(None);
        }
        let mut programs = Vec::new();
        for message in Message::parse_stream(&*output.stdout) {
            if let Message::CompilerArtifact(artifact) = message? {
                programs.extend(artifact.executable.map(PathBuf::from));
            }
        }
        ensure!(!programs.is_empty(), "cargo names no test of {package}");
        Ok(Some(programs))
    }

    /// Runs a command of cargo's that fails if something is wrong; `sign` begins the line that says what.
    ///
    /// # Errors
    ///
    /// If cargo does not start.
    pub fn check(&self, mut cargo: Command, name: &str, sign: &str) -> Result<Outcome> {
        let output = cargo.output().context("cargo does not start")?;
        if output.status.success() {
            return Ok(Outcome::Survived);
        }
        let said = [&*output.stdout, &*output.stderr].map(String::from_utf8_lossy).concat();
        if said.contains("could not compile") {
            return Ok(Outcome::Undecided("does not compile".to_owned()));
        }
        let message = said.lines().find_map(|line| line.find(sign).map(|at| line[at..].to_owned()));
        Ok(match message {
            Some(message) => Outcome::Caught(Failure { by: name.to_owned(), test: String::new(), message }),
            None => Outcome::Undecided(format!("{name} fails, but not with \"{sign}\"")),
        })
    }
}

/// Runs a test program until a test fails, and no further.
fn watch(mut command: Command, package: &str) -> Result<Outcome> {
    let (reader, writer) = io::pipe()?;
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // It has the ends to write to, and the pipe ends only when all are gone.
    drop(command);
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n') {
            let Ok(line) = line else { return };
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let mut listener = Listener::default();
    let until = Instant::now() + PATIENCE;
    let end = loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some((test, message)) = listener.hear(&line) {
                    break Outcome::Caught(Failure { by: package.to_owned(), test, message });
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait()?;
                // Some 101 if only tests have failed that do not count.
                break match (status.success() || status.code() == Some(101), listener.last) {
                    (true, _) => Outcome::Survived,
                    (false, last) => Outcome::Caught(Failure {
                        by: package.to_owned(),
                        test: String::new(),
                        message: format!("{status} {last}"),
                    }),
                };
            }
            Err(RecvTimeoutError::Timeout) => {
                break Outcome::Undecided(format!("{package}: no verdict in {} s", PATIENCE.as_secs()));
            }
        }
    };
    // It may have ended already.
    _ = child.kill();
    _ = child.wait();
    Ok(end)
}

/// Reads what a test program prints.
#[derive(Default)]
struct Listener {
    /// The thread whose message comes next.
    panicking: Option<String>,
    /// By thread, the beginning of its last message.
    messages: BTreeMap<String, String>,
    /// The last message of all.
    last: String,
}

impl Listener {
    /// The test that has failed by this line, if it counts, and its message.
    fn hear(&mut self, line: &str) -> Option<(String, String)> {
        if let Some(thread) = self.panicking.clone() {
            let message = self.messages.entry(thread).or_default();
            // A list, or a struct, begins with a bracket alone.
            message.push_str(line.trim());
            if message.len() > 1 {
                self.last.clone_from(message);
                self.panicking = None;
            }
        } else if let Some((_, rest)) = line.split_once("thread '")
            && let Some((thread, _)) = rest.split_once('\'')
            && line.contains("panicked at")
        {
            self.messages.remove(thread);
            self.panicking = Some(thread.to_owned());
        }
        let test = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        let message = self.messages.get(test).cloned().unwrap_or_default();
        let counts = !OF_ANOTHER_SITE.iter().any(|sign| message.contains(sign));
        counts.then(|| (test.to_owned(), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(lines: &str) -> Option<(String, String)> {
        let mut listener = Listener::default();
        lines.lines().find_map(|line| listener.hear(line))
    }

    #[test]
    fn a_failed_test_is_heard_with_its_message() {
        let said = "running 2 tests\n\
            thread 'other' (7) panicked at a.rs:1:1:\nOther.\ntest other ... ok\n\
            thread 'ticket' (8) panicked at loom.rs:115:9:\nCausality violation\n\ntest ticket ... FAILED\n";
        assert_eq!(heard(said), Some(("ticket".to_owned(), "Causality violation".to_owned())));
        assert_eq!(heard("test a ... ok\ntest result: ok"), None);
    }

    #[test]
    fn a_failure_about_another_site_does_not_count() {
        let said = "thread 'tas' (8) panicked at a.rs:1:1:\n[\n    \"tas.rs:1:1: load without Acquire\",\n]\n\
            test tas ... FAILED\n";
        assert_eq!(heard(said), None);
    }
}
