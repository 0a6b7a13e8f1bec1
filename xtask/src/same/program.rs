//! Runs of the command.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use cargo_metadata::Message;
use sha2::{Digest, Sha256};

use crate::files;

/// The number of hexadecimal digits of a digest, which suffices for a few thousand results: no two
/// have the same digest by chance.
pub(super) const DIGITS: usize = 16;

/// The exit status of a command line that is not understood.
const USAGE: i32 = 2;

/// The length of the message of a command that refuses a run.
const REFUSAL: usize = 200;

/// A binary of the command.
pub(super) struct Program(PathBuf);

/// The whole output of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    /// The exit status; `None` if a signal ended the run.
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Output {
    /// A digest of everything.
    pub(super) fn digest(&self) -> String {
        let whole = format!("{:?}\n{}\n{}", self.status, self.out, self.err);
        let mut digits: String = Sha256::digest(whole).iter().map(|byte| format!("{byte:02x}")).collect();
        digits.truncate(DIGITS);
        digits
    }

    /// The message of the command if it does not know a name, or if it crashed. A lock may fail,
    /// which is a result.
    pub(super) fn refusal(&self) -> Option<String> {
        // The message lists the known names. The first few suffice.
        let first: String = self.err.lines().next().unwrap_or_default().chars().take(REFUSAL).collect();
        match self.status {
            Some(0 | 1) => None,
            Some(USAGE) => Some(first),
            other => Some(format!("{first} ({other:?})")),
        }
    }
}

impl Program {
    /// The binary at this path.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)?;
        ensure!(path.is_file(), "there is no command {}", path.display());
        Ok(Self(path))
    }

    /// The binary of these sources, in the release profile.
    pub(super) fn build() -> Result<Self> {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["build", "--quiet", "--release", "--package", "nearlock-cli", "--bin", "nearlock"])
            .arg("--message-format=json-render-diagnostics")
            .current_dir(files::root())
            .stderr(Stdio::inherit());
        let build = cargo.output().context("cargo does not start")?;
        ensure!(build.status.success(), "the command does not build");
        for message in Message::parse_stream(&*build.stdout) {
            if let Message::CompilerArtifact(artifact) = message?
                && let Some(path) = artifact.executable
            {
                return Self::at(path.as_std_path());
            }
        }
        anyhow::bail!("cargo has built no command")
    }

    /// The output of `nearlock list`, as JSON.
    pub(super) fn list(&self, what: &str) -> Result<String> {
        let output = self.run(&format!("list {what} --format json"))?;
        ensure!(output.status == Some(0), "nearlock list {what}: {}", output.err);
        Ok(output.out)
    }

    /// The outputs of these runs. As many run at a time as there are CPUs, each with one thread.
    pub(super) fn outputs(&self, runs: &[String]) -> Result<Vec<Output>> {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        eprintln!("{}: {} runs", self.0.display(), runs.len());
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            // Ordering: Relaxed, as the counter orders nothing else.
            while let Some((index, run)) = nth(runs, next.fetch_add(1, Ordering::Relaxed)) {
                done.push((index, self.run(run)?));
            }
            Ok(done)
        };
        let mut done = thread::scope(|scope| -> Result<Vec<_>> {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let parts = threads.into_iter().map(|thread| thread.join().expect("runs do not panic"));
            Ok(parts.collect::<Result<Vec<_>>>()?.concat())
        })?;
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, output)| output).collect())
    }

    /// Runs the command. Without a home directory there is no cache, so everything is simulated.
    fn run(&self, arguments: &str) -> Result<Output> {
        let mut command = Command::new(&self.0);
        command.args(arguments.split_whitespace()).env("RAYON_NUM_THREADS", "1");
        let output = command.env_remove("HOME").env_remove("XDG_CACHE_HOME").output();
        let output = output.with_context(|| format!("{} does not start", self.0.display()))?;
        Ok(Output {
            status: output.status.code(),
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    }
}

fn nth(runs: &[String], index: usize) -> Option<(usize, &str)> {
    runs.get(index).map(|run| (index, run.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(status: Option<i32>, out: &str, err: &str) -> Output {
        Output { status, out: out.to_owned(), err: err.to_owned() }
    }

    #[test]
    fn everything_counts() {
        let all = [
            output(Some(0), "a", "b"),
            output(Some(1), "a", "b"),
            output(None, "a", "b"),
            output(Some(0), "ab", ""),
            output(Some(0), "a", "c"),
        ];
        let mut digests: Vec<_> = all.iter().map(Output::digest).collect();
        assert!(digests.iter().all(|digest| digest.len() == DIGITS), "{digests:?}");
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn a_lock_that_fails_is_a_result_and_an_unknown_one_is_not() {
        assert_eq!(output(Some(0), "[]", "").refusal(), None);
        assert_eq!(output(Some(1), "[]", "error: lock-busted").refusal(), None);
        let refusal = output(Some(2), "", "error: there is no lock `x`\nmore").refusal();
        assert_eq!(refusal.as_deref(), Some("error: there is no lock `x`"));
        assert_eq!(output(None, "", "panicked\n").refusal().as_deref(), Some("panicked (None)"));
    }

    #[test]
    #[cfg(unix)]
    fn results_come_in_the_order_of_the_runs() {
        let echo = Program::at(Path::new("/bin/echo")).expect("there is one everywhere");
        let runs: Vec<_> = (0..20).map(|number| format!("run {number}")).collect();
        let outputs = echo.outputs(&runs).expect("echo runs");
        let said: Vec<_> = outputs.iter().map(|output| output.out.trim_end()).collect();
        assert_eq!(said, runs);
    }

    #[test]
    fn a_missing_program_is_refused() {
        assert!(Program::at(Path::new("/nowhere/nearlock")).is_err());
    }
}
