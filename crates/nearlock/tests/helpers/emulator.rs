//! The emulator by which cargo has run a test of another processor's code, if there is one.

use std::env;

/// The command before the program: the runner that cargo was given for this target.
pub fn emulator() -> Option<String> {
    let of_target = format!("CARGO_TARGET_{}", env::consts::ARCH.to_uppercase());
    let is_runner = |name: &str| name.starts_with(&of_target) && name.ends_with("_RUNNER");
    env::vars().find(|(name, _)| is_runner(name)).map(|(_, runner)| runner)
}
