//! Processes that help a measurement: this program, started again.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nearlock_workload::sections::turns;

use super::BenchError;

/// How to start a helper. The started program calls [`compute`] or
/// [`Candidate::first_lock_ns`](super::Candidate::first_lock_ns), and prints the result of the
/// latter.
#[derive(Clone, Debug)]
pub struct Helper {
    /// The program.
    pub program: PathBuf,
    /// Its arguments for a helper that computes. The process's id follows them.
    pub compute: Vec<&'static str>,
    /// Its arguments for a helper that locks once. The name of the lock follows them.
    pub first_lock: Vec<&'static str>,
}

impl Helper {
    /// Starts a process that computes until the result is dropped.
    pub(super) fn start_computing(&self) -> Result<Computing, BenchError> {
        let mut command = self.command(&self.compute);
        command.arg(std::process::id().to_string()).stdout(Stdio::null());
        command.spawn().map(Computing).map_err(BenchError::Helper)
    }

    /// The time of the first lock and unlock of a new process, in ns.
    pub(super) fn first_lock_ns(&self, lock: &str) -> Result<u64, BenchError> {
        let output = self.command(&self.first_lock).arg(lock).output().map_err(BenchError::Helper)?;
        let printed = String::from_utf8_lossy(&output.stdout);
        printed.trim().parse().map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            BenchError::Helper(io::Error::other(format!("{}: {}", output.status, said.trim())))
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null());
        #[cfg(unix)]
        {
            // Ctrl-C in a terminal ends this process, which then ends its helpers.
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        command
    }
}

/// A process that computes.
pub(super) struct Computing(Child);

impl Drop for Computing {
    fn drop(&mut self) {
        // Errors: the process has ended already.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Computes until the process that started this one ends, or ends this one. `parent` is the id of
/// that process.
pub fn compute(parent: u32) {
    die_with_parent();
    while is_child_of(parent) {
        /// Some milliseconds.
        const TURNS: u64 = 1_000_000;
        _ = turns(TURNS, 1);
    }
}

/// Lets the system end this process when its parent ends.
#[cfg(target_os = "linux")]
fn die_with_parent() {
    // SAFETY: sets a property of this process. There is no error for a valid signal.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() {}

#[cfg(unix)]
fn is_child_of(parent: u32) -> bool {
    std::os::unix::process::parent_id() == parent
}

#[cfg(not(unix))]
fn is_child_of(_parent: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper(program: &str) -> Helper {
        Helper { program: program.into(), compute: vec![], first_lock: vec![] }
    }

    #[test]
    fn a_helper_that_cannot_be_started_is_an_error() {
        let error = helper("/no/such/program").start_computing().map(drop).unwrap_err();
        assert!(error.to_string().contains("cannot start a process"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn a_helper_that_prints_no_number_is_an_error() {
        let error = helper("false").first_lock_ns("std").unwrap_err();
        assert!(error.to_string().contains("exit status: 1"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn computing_ends_without_the_parent() {
        // No process has this parent.
        compute(u32::MAX);
    }
}
