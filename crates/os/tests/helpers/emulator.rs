//! The emulator by which cargo has run a test of another processor's code, if there is one.

// Each test uses some of these.
#![allow(dead_code)]

use std::env;
use std::process::Command;

/// The command before the program: the runner that cargo was given for this target.
pub fn emulator() -> Option<String> {
    let of_target = format!("CARGO_TARGET_{}", env::consts::ARCH.to_uppercase());
    let is_runner = |name: &str| name.starts_with(&of_target) && name.ends_with("_RUNNER");
    env::vars().find(|(name, _)| is_runner(name)).map(|(_, runner)| runner)
}

/// A command that starts this program again: by the emulator, if there is one, since the kernel
/// cannot start what has to be emulated.
pub fn this_program() -> Command {
    let program = env::current_exe().expect("this test");
    let Some(runner) = emulator() else { return Command::new(program) };
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().expect("a runner has a name"));
    command.args(words).arg(program);
    command
}
