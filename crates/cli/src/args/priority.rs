//! `--priority` of the commands that measure.

use clap::ValueEnum;
use nearlock_bench::measure;

/// Priority of the threads that measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Priority {
    /// Before ordinary programs, if the system permits it (as root: nice -20)
    #[default]
    High,
    /// The priority of the command itself
    #[value(aliases = ["as_started", "asstarted"])]
    AsStarted,
}

impl Priority {
    /// What the system permits, in words.
    pub fn permitted(self) -> String {
        let permitted = measure::Priority::from(self).permitted();
        let refused = self == Self::High && permitted == measure::Priority::AsStarted;
        format!("priority: {permitted}{}", if refused { "; the system permits no higher one" } else { "" })
    }
}

impl From<Priority> for measure::Priority {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::High => Self::Nice,
            Priority::AsStarted => Self::AsStarted,
        }
    }
}
