//! What the model is made of, mechanism by mechanism: what each adds is seen by taking it out, or by putting in
//! what is left out, alone.

use crate::band::{Change, Parameter};

/// All mechanisms of the model that can be switched or moved, of machines, workloads and the simulation. Those of
/// other workloads than the table's are left out, and so is a change to what is so already.
pub const MECHANISMS: &[Parameter] = &[
    Parameter {
        setting: "simulation.placement",
        changes: &[Change::To("filled"), Change::To("gathered"), Change::To("random")],
        reason: "Which CPUs the threads run on.",
    },
    Parameter {
        setting: "simulation.start",
        changes: &[Change::To("in-turn")],
        reason: "The order in which the threads begin, and so first queue up, is drawn at random.",
    },
    Parameter {
        setting: "locktorture.short-holds",
        changes: &[Change::To("today")],
        reason: "Short holds of the kernel of the table, or of later ones: a hundredth as many.",
    },
    Parameter {
        setting: "locktorture.statistics",
        changes: &[Change::To("padded")],
        reason: "The counters of several writers share a line.",
    },
    Parameter {
        setting: "machine.node-count",
        changes: &[Change::To("free")],
        reason: "A CPU counts its queue nodes in the first of them.",
    },
    Parameter {
        setting: "machine.load-of-modified",
        changes: &[Change::To("take-over")],
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
        changes: &[Change::To("40")],
        reason: "A transfer between sockets takes longer if the line's home is a third.",
    },
    Parameter {
        setting: "machine.sharer-extra-ns",
        changes: &[Change::To("10")],
        reason: "A write takes longer for each further socket that shares the line.",
    },
    Parameter {
        setting: "machine.ownership-overlap",
        changes: &[Change::Other("none", "prefetch")],
        reason: "Buffered stores ask for their lines ahead of their turn.",
    },
    Parameter {
        setting: "machine.store-buffer-entries",
        changes: &[Change::To("1")],
        reason: "Stores wait in a buffer while their thread goes on.",
    },
    Parameter {
        setting: "machine.grab-fraction",
        changes: &[Change::To("0.3"), Change::To("0.7")],
        reason: "The old holder loses a line some way into the transfer.",
    },
    Parameter {
        setting: "machine.read-occupancy-modified",
        changes: &[Change::To("1")],
        reason: "A read of a modified line gives it free before it is done itself.",
    },
    Parameter {
        setting: "machine.same-socket-bypasses",
        changes: &[Change::To("0"), Change::To("4")],
        reason: "Requests for a line from the socket that was served last may be served before others that came first.",
    },
    Parameter {
        setting: "machine.spin-exit-ns",
        changes: &[Change::To("0"), Change::To("8")],
        reason: "To leave a spin loop costs a mispredicted branch.",
    },
    Parameter {
        setting: "machine.jitter",
        changes: &[Change::To("0")],
        reason: "Each transfer's latency is drawn at random.",
    },
    Parameter {
        setting: "machine.smt-miss-scale",
        changes: &[Change::To("1"), Change::To("1.1")],
        reason: "Transfers take longer while the core's other hardware thread is busy.",
    },
    Parameter {
        setting: "machine.smt-speed",
        changes: &[Change::To("1"), Change::To("0.62")],
        reason: "A hardware thread is slower while the core's other one is busy.",
    },
    Parameter {
        setting: "machine.tick-hz",
        changes: &[Change::To("0"), Change::To("250")],
        reason: "The timer interrupts busy CPUs.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::band::variations;
    use crate::names;
    use crate::published::TABLES;
    use crate::settings::{Configuration, Group};

    #[test]
    fn each_can_be_set_on_the_machine_of_every_table_and_changes_something() {
        for table in TABLES {
            let machine = names::machine(table.machine).unwrap();
            let central = Configuration::new(Group::ALL);
            let texts = variations(MECHANISMS, table.workload, &central, &machine).unwrap();
            assert!(texts.len() >= 15, "{}: {texts:?}", table.name);
            for text in &texts {
                let mut configuration = central.clone();
                configuration.set(text).unwrap();
                configuration.configure_machine(&mut machine.clone()).unwrap();
                let (name, value) = text.split_once('=').unwrap();
                assert_ne!(central.value(name, &machine).as_deref(), Some(value), "{}", table.name);
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
