//! The evidence for the orderings: `cargo xtask orderings` calls this.

use std::process::ExitCode;

#[cfg(target_pointer_width = "64")]
mod command;

#[cfg(target_pointer_width = "64")]
fn main() -> anyhow::Result<ExitCode> {
    command::main()
}

#[cfg(not(target_pointer_width = "64"))]
fn main() -> ExitCode {
    eprintln!("orderings: loom has no 64-bit words here; run this on a system with 64-bit pointers");
    ExitCode::from(2)
}
