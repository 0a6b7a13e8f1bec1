//! `nearlock completions`.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use nearlock_bench::bench::PEERS;
use nearlock_lab::published::TABLES;
use nearlock_lab::simulate;
use nearlock_lab::{MachineSpec, SUBJECTS};

use crate::Ending;
use crate::args::{Cli, CompletionsArgs};

/// Writes the completion.
pub fn run(args: &CompletionsArgs) -> anyhow::Result<Ending> {
    // Not straight to standard output: the generator panics if that is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_names(Cli::command()), "nearlock", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Ending::Success)
}

/// The command for completion only. It accepts known names only. The real command accepts all, and
/// its messages explain mistakes better.
fn with_names(command: Command) -> Command {
    let locks: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
    let locks_or_all = [&locks[..], &["all"]].concat();
    let peers: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
    let workloads = simulate::workloads().map(|workload| workload.name()).collect();
    let tables = TABLES.iter().map(|table| table.name).collect();
    [
        ("bench", "baseline", [&locks[..], &peers].concat()),
        ("bench", "lock", locks_or_all.clone()),
        ("bench", "peers", [&peers[..], &["all"]].concat()),
        ("reproduce", "tables", tables),
        ("simulate", "lock", locks),
        ("simulate", "machine", MachineSpec::builtin_names()),
        ("simulate", "workload", workloads),
        ("torture", "lock", locks_or_all.clone()),
        ("torture", "locks", locks_or_all),
    ]
    .into_iter()
    .fold(command, |command, (subcommand, arg, names)| {
        let named =
            |command: Command| command.mut_arg(arg, |arg| arg.value_parser(PossibleValuesParser::new(names)));
        command.mut_subcommand(subcommand, named)
    })
}
