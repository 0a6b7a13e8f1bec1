//! Runs tests until the first that fails.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cargo_metadata::Message;

/// Tests that also read the sources, and so may fail though no lock misbehaves. Also left out are
/// tests that run all models, because that is done before.
const LEFT_OUT: &[&str] = &[
    "the_document_is_up_to_date",
    "a_page_of_orderings_that_was_edited_is_found_out",
    "the_models_hold_and_no_ordering_is_there_for_nothing",
    "every_working_lock_has_models",
];

/// The name under which a model fails.
pub const MODEL: &str = "model";

/// How long the tests of one program may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// The result for a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A test has failed.
    Caught(Failure),
    /// No test has.
    Survived,
    /// The result says nothing, for this reason.
    Undecided(String),
}

/// A test that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its package, or the program if it is not a test.
    pub by: String,
    /// Its name.
    pub test: String,
    /// The beginning of its message.
    pub message: String,
}

/// A copy of the repository, and its target directory.
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
        // These variables belong to the cargo that runs this program, which may be of another
        // toolchain.
        for variable in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTUP_TOOLCHAIN", "RUSTC"] {
            cargo.env_remove(variable);
        }
        cargo
    }

    /// Runs the unchanged models of these locks until one fails. If there is no lock, it runs those
    /// of all locks and of the parts that are no locks.
    ///
    /// # Errors
    ///
    /// If cargo does not start.
    pub fn models(&self, locks: &[&str]) -> Result<Outcome> {
        let Some(programs) = self.build(&["build", "-p", "nearlock-model", "--bin", "orderings"])? else {
            return Ok(Outcome::Undecided("does not compile".to_owned()));
        };
        let mut command = Command::new(&programs[0]);
        command.arg("--run-only").current_dir(&self.root).env("RUST_BACKTRACE", "0");
        if !locks.is_empty() {
            command.arg("--locks").arg(locks.join(","));
        }
        watch(command, MODEL)
    }

    /// Runs the tests of the package with these names until one fails; all tests if there is no
    /// name.
    ///
    /// # Errors
    ///
    /// If cargo or a test does not start.
    pub fn test(&self, package: &str, names: &[String]) -> Result<Outcome> {
        let Some(programs) = self.build(&["test", "-p", package, "--lib", "--tests", "--no-run"])? else {
            return Ok(Outcome::Undecided("does not compile".to_owned()));
        };
        for program in programs {
            let outcome = watch(self.program(package, &program, names), package)?;
            if outcome != Outcome::Survived {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Survived)
    }

    fn program(&self, package: &str, program: &Path, names: &[String]) -> Command {
        let folder = self.root.join("crates").join(package.strip_prefix("nearlock-").unwrap_or(package));
        let mut command = Command::new(program);
        if !names.is_empty() {
            command.arg("--exact").args(names);
        }
        command.args(["--no-capture", "--test-threads=2"]);
        command.args(LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
        command.current_dir(&folder).env("CARGO_MANIFEST_DIR", &folder).env("RUST_BACKTRACE", "0");
        command
    }

    /// The programs that cargo builds with these arguments; `None` if they do not compile.
    fn build(&self, arguments: &[&str]) -> Result<Option<Vec<PathBuf>>> {
        let mut cargo = self.cargo(arguments);
        let output = cargo.arg("--message-format=json").stderr(Stdio::null()).output();
        let output = output.context("cargo does not start")?;
        if !output.status.success() {
            return Ok(None);
        }
        let mut programs = Vec::new();
        for message in Message::parse_stream(&*output.stdout) {
            if let Message::CompilerArtifact(artifact) = message? {
                programs.extend(artifact.executable.map(PathBuf::from));
            }
        }
        ensure!(!programs.is_empty(), "cargo {} names no program", arguments.join(" "));
        Ok(Some(programs))
    }

    /// Runs a command of cargo that fails if something is wrong; `sign` begins the line with the
    /// reason.
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

/// Runs a test program until a test fails, and then ends it.
fn watch(mut command: Command, package: &str) -> Result<Outcome> {
    let (reader, writer) = io::pipe()?;
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command has the write ends, and the pipe ends only when all of these are gone.
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
    let mut listener = Listener { runs_models: package == MODEL, ..Listener::default() };
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
                if status.success() {
                    break Outcome::Survived;
                }
                if status.code() == Some(2) {
                    break Outcome::Undecided(format!("{package} cannot do what it is asked to"));
                }
                let message = format!("{status} {}", listener.last);
                break Outcome::Caught(Failure { by: package.to_owned(), test: String::new(), message });
            }
            Err(RecvTimeoutError::Timeout) => {
                break Outcome::Undecided(format!("{package}: no verdict in {} s", PATIENCE.as_secs()));
            }
        }
    };
    // The program may have ended already.
    _ = child.kill();
    _ = child.wait();
    Ok(end)
}

/// Reads the output of a test program.
#[derive(Default)]
struct Listener {
    /// Whether it is the program that runs models.
    runs_models: bool,
    /// The thread whose message comes next.
    panicking: Option<String>,
    /// By thread, the beginning of its last message.
    messages: BTreeMap<String, String>,
    /// The last message of all.
    last: String,
}

impl Listener {
    /// The test or the model that has failed by this line, and its message.
    fn hear(&mut self, line: &str) -> Option<(String, String)> {
        if let Some(thread) = self.panicking.clone() {
            let message = self.messages.entry(thread).or_default();
            // The message of a list or a struct begins with a line that has only a bracket.
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
        let failed = line.strip_suffix(" FAILED")?;
        let Some(test) = failed.strip_prefix("test ").and_then(|test| test.strip_suffix(" ...")) else {
            // Two tests that fail at the same time may lose their names. (Some tests run models
            // that must fail.)
            return self.runs_models.then(|| (failed.to_owned(), self.last.clone()));
        };
        let message = self.messages.get(test).cloned().unwrap_or_default();
        Some((test.to_owned(), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(by: &str, lines: &str) -> Option<(String, String)> {
        let mut listener = Listener { runs_models: by == MODEL, ..Listener::default() };
        lines.lines().find_map(|line| listener.hear(line))
    }

    #[test]
    fn a_failed_test_is_heard_with_its_message() {
        let said = "running 2 tests\n\
            thread 'other' (7) panicked at a.rs:1:1:\nOther.\ntest other ... ok\n\
            thread 'ticket' (8) panicked at loom.rs:115:9:\nCausality violation\n\ntest ticket ... FAILED\n";
        assert_eq!(
            heard("nearlock-core", said),
            Some(("ticket".to_owned(), "Causality violation".to_owned()))
        );
        assert_eq!(heard("nearlock-core", "test a ... ok\ntest result: ok"), None);
    }

    #[test]
    fn a_failed_model_is_heard() {
        let said =
            "thread '<unnamed>' (7) panicked at a.rs:1:1:\nCausality violation\n\nclh: 2 threads FAILED\n";
        assert_eq!(heard("nearlock-core", said), None);
        assert_eq!(heard(MODEL, said), Some(("clh: 2 threads".to_owned(), "Causality violation".to_owned())));
    }
}
