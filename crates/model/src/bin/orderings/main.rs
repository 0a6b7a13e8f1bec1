//! The evidence for the orderings: `cargo xtask orderings` calls this.

#[cfg(target_pointer_width = "64")]
mod command;

#[cfg(target_pointer_width = "64")]
use command::main;

#[cfg(not(target_pointer_width = "64"))]
fn main() -> std::process::ExitCode {
    eprintln!("orderings: loom has no 64-bit words here; run this on a system with 64-bit pointers");
    std::process::ExitCode::from(2)
}
