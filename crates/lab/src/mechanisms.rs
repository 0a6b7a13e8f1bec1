//! The mechanisms of the model. The contribution of each is measured by disabling it alone, or by
//! enabling one that is off.

use crate::band::{Change, Parameter};
use crate::settings::Value;

/// All mechanisms of the model that can be switched or moved, of machines, workloads and the
/// simulation. For a table, mechanisms of other workloads and changes without effect are left out.
pub const MECHANISMS: &[Parameter] = &[
    Parameter {
        setting: "simulation.placement",
        changes: &[
            Change::To(Value::Word("filled")),
            Change::To(Value::Word("gathered")),
            Change::To(Value::Word("random")),
        ],
        reason: "Which CPUs the threads run on.",
    },
    Parameter {
        setting: "simulation.start",
        changes: &[Change::To(Value::Word("in-turn"))],
        reason: "The order in which the threads begin, and so first queue up, is random.",
    },
    Parameter {
        setting: "locktorture.short-holds",
        changes: &[Change::To(Value::Word("today"))],
        reason: "Short holds as in the kernel of the table, or as in later ones: a hundredth as many.",
    },
    Parameter {
        setting: "locktorture.statistics",
        changes: &[Change::To(Value::Word("padded"))],
        reason: "The counters of several writers share a line.",
    },
    Parameter {
        setting: "machine.node-count",
        changes: &[Change::To(Value::Word("free"))],
        reason: "A CPU counts its queue nodes in the first of them.",
    },
    Parameter {
        setting: "machine.load-of-modified",
        changes: &[Change::To(Value::Word("take-over"))],
        reason: "A load of a modified line shares it, or takes it over.",
    },
    Parameter {
        setting: "machine.cross-socket-scale",
        changes: &[Change::Times(0.9), Change::Times(1.1)],
        reason: "Latencies between sockets.",
    },
    Parameter {
        setting: "machine.same-socket-scale",
        changes: &[Change::Times(0.9), Change::Times(1.1)],
        reason: "Latencies within a socket.",
    },
    Parameter {
        setting: "machine.home-extra-ns",
        changes: &[Change::To(Value::Float(40.0))],
        reason: "A transfer between sockets takes longer if the line's home is a third.",
    },
    Parameter {
        setting: "machine.sharer-extra-ns",
        changes: &[Change::To(Value::Float(10.0))],
        reason: "A write takes longer for each further socket that shares the line.",
    },
    Parameter {
        setting: "machine.ownership-overlap",
        changes: &[Change::Other("none", "prefetch")],
        reason: "Buffered stores request their lines before their turn.",
    },
    Parameter {
        setting: "machine.store-buffer-entries",
        changes: &[Change::To(Value::Integer(1))],
        reason: "Stores wait in a buffer while their thread goes on.",
    },
    Parameter {
        setting: "machine.grab-fraction",
        changes: &[Change::To(Value::Float(0.3)), Change::To(Value::Float(0.7))],
        reason: "The old holder loses a line during the transfer.",
    },
    Parameter {
        setting: "machine.read-occupancy-modified",
        changes: &[Change::To(Value::Float(1.0))],
        reason: "A read of a modified line releases it before the read itself ends.",
    },
    Parameter {
        setting: "machine.same-socket-bypasses",
        changes: &[Change::To(Value::Integer(0)), Change::To(Value::Integer(4))],
        reason: "Requests for a line from the socket that was served last may overtake earlier requests.",
    },
    Parameter {
        setting: "machine.spin-exit-ns",
        changes: &[Change::To(Value::Float(0.0)), Change::To(Value::Float(8.0))],
        reason: "The end of a spin loop costs a mispredicted branch.",
    },
    Parameter {
        setting: "machine.jitter",
        changes: &[Change::To(Value::Float(0.0))],
        reason: "The latency of each transfer is random.",
    },
    Parameter {
        setting: "machine.smt-miss-scale",
        changes: &[Change::To(Value::Float(1.0)), Change::To(Value::Float(1.1))],
        reason: "Transfers take longer while the core's other hardware thread is busy.",
    },
    Parameter {
        setting: "machine.smt-speed",
        changes: &[Change::To(Value::Float(1.0)), Change::To(Value::Float(0.62))],
        reason: "A hardware thread is slower while the core's other one is busy.",
    },
    Parameter {
        setting: "machine.tick-hz",
        changes: &[Change::To(Value::Float(0.0)), Change::To(Value::Float(250.0))],
        reason: "The timer interrupts busy CPUs.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::band::variations;
    use crate::names;
    use crate::published::TABLES;
    use crate::settings::{Assignment, Configuration, Group};

    #[test]
    fn each_can_be_set_on_the_machine_of_every_table_and_changes_something() {
        for table in TABLES {
            let machine = names::machine(table.machine).unwrap();
            let central = Configuration::new(Group::ALL);
            let variations = variations(MECHANISMS, table.workload, &central, &machine).unwrap();
            assert!(variations.len() >= 15, "{}: {variations:?}", table.name);
            for variation in variations {
                let mut configuration = central.clone();
                configuration.assign(variation).unwrap();
                configuration.configure_machine(&mut machine.clone()).unwrap();
                let Assignment { setting, value } = variation;
                assert_ne!(central.value(setting, &machine), Some(value), "{}", table.name);
            }
        }
    }

    #[test]
    fn a_mechanism_has_one_entry_with_a_reason() {
        for (index, mechanism) in MECHANISMS.iter().enumerate() {
            assert!(mechanism.reason.ends_with('.') && !mechanism.changes.is_empty());
            assert!(!MECHANISMS[..index].iter().any(|other| other.setting == mechanism.setting));
        }
    }
}
