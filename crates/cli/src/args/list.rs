//! Flags of `nearlock list`.

use clap::{Args, ValueEnum};

/// Lists what can be named on the command line.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list.
    #[arg(value_enum, value_name = "locks|switches|peers|workloads|machines|tables|settings|topology")]
    pub what: Listed,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Listed {
    /// Locks, those that are broken on purpose included
    Locks,
    /// What a lock takes in brackets, besides the settings that it obeys
    Switches,
    /// Locks that others wrote, to measure ours against (`bench`)
    Peers,
    /// What is run over the locks
    Workloads,
    /// Machines that can be simulated
    Machines,
    /// Published tables that can be reproduced
    Tables,
    /// What `--set` takes
    Settings,
    /// What the locks see of this machine
    Topology,
}
