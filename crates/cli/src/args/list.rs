//! Flags of `nearlock list`.

use clap::{Args, ValueEnum};

use super::Format;

const EXAMPLES: &str = "\
Examples:
  nearlock list locks                    (the recommended ones first)
  nearlock list locks cna                (describes those whose names contain cna)
  nearlock list settings cna
  nearlock list machines --format json";

/// Lists the names that the command line accepts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// What to list. Without it, the available lists.
    #[arg(value_enum, ignore_case = true, value_name = "LIST")]
    pub what: Option<Listed>,
    /// Only names that contain one of these words. Case and hyphens are ignored.
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// Describe all locks, not only name them.
    #[arg(long)]
    pub all: bool,
    /// How to write the list.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Locks, including those that are broken on purpose
    Locks,
    /// What a lock accepts in brackets, in addition to its settings
    Switches,
    /// Locks of other libraries, which `bench` compares with
    Peers,
    /// What the simulated threads do with the locks
    Workloads,
    /// Machines that can be simulated
    Machines,
    /// Published tables that can be reproduced
    Tables,
    /// What `--set` accepts
    Settings,
    /// What the locks know about this machine
    Topology,
}

impl Listed {
    /// Its word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Locks => "locks",
            Self::Switches => "switches",
            Self::Peers => "peers",
            Self::Workloads => "workloads",
            Self::Machines => "machines",
            Self::Tables => "tables",
            Self::Settings => "settings",
            Self::Topology => "topology",
        }
    }
}
