//! The emulator with which cargo runs a test for another processor, if there is one.

// Each test uses only some of these.
#![allow(dead_code)]

use std::env;
use std::process::Command;

/// The runner that cargo was given for this target: the words before the program in a command.
pub fn emulator() -> Option<String> {
    let of_target = format!("CARGO_TARGET_{}", env::consts::ARCH.to_uppercase());
    let is_runner = |name: &str| name.starts_with(&of_target) && name.ends_with("_RUNNER");
    env::vars().find(|(name, _)| is_runner(name)).map(|(_, runner)| runner)
}

/// A command that starts this program again. It uses the emulator, if there is one, because the
/// kernel cannot start a program for another processor.
pub fn this_program() -> Command {
    let program = env::current_exe().expect("this test");
    let Some(runner) = emulator() else { return Command::new(program) };
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().expect("a runner has a name"));
    command.args(words).arg(program);
    command
}
