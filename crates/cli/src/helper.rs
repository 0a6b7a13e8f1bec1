//! The process as a helper of `nearlock bench`: it computes beside a measurement, or measures its
//! first lock. This is not for users, so that neither help nor manual page shows it.

use std::ffi::OsStr;

use clap::Parser;
use nearlock_bench::bench::{self, Candidate};

use crate::Ending;

/// The first argument of a helper.
const HELPER: &str = "bench-helper";

/// The command line of a helper, after its first argument.
#[derive(Debug, Parser)]
enum HelperCli {
    /// Computes as long as its parent lives.
    Compute { parent: u32 },
    /// Prints the time of the first lock and unlock, in ns.
    FirstLock { lock: String },
}

/// How `bench` starts a helper.
///
/// # Errors
///
/// If the path of this program is not known.
pub fn command() -> std::io::Result<bench::Helper> {
    let program = std::env::current_exe()?;
    Ok(bench::Helper { program, compute: vec![HELPER, "compute"], first_lock: vec![HELPER, "first-lock"] })
}

/// Runs a helper, if this process was started as one.
pub fn run() -> Option<anyhow::Result<Ending>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next().as_deref() == Some(OsStr::new(HELPER))).then(|| {
        match HelperCli::try_parse_from(std::iter::once(HELPER.into()).chain(arguments))? {
            HelperCli::Compute { parent } => bench::compute(parent),
            HelperCli::FirstLock { lock } => {
                let lock = Candidate::named(&lock)?;
                if let Candidate::Peer(peer) = lock {
                    peer.obtain()?;
                }
                println!("{}", lock.first_lock_ns()?);
            }
        }
        Ok(Ending::Success)
    })
}
