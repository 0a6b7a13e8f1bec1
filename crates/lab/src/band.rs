//! The band of a reproduced cell: the sensitive and uncertain parameters of the simulator, and how
//! far each of them is moved, alone.
//!
//! `machine.queued-grab-fraction` is not one of them. Between 0.15 and 0.2 some locks collapse in a
//! way that no real machine shows, so that a band across this range would describe the model only.

use std::fmt;

use crate::names::UnknownName;
use crate::settings::{Assignment, Configuration, Value};
use crate::simulate::workloads;
use nearlock_sim::spec::MachineSpec;

/// A change of a parameter from its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Multiplied by a factor, if it is a number.
    Times(f64),
    /// Set to this value.
    To(Value),
    /// Set to the other one of these two words.
    Other(&'static str, &'static str),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Times(factor) => write!(f, "times {factor}"),
            Change::To(value) => value.fmt(f),
            Change::Other(one, two) => write!(f, "the other one of {one} and {two}"),
        }
    }
}

/// A sensitive parameter.
#[derive(Debug)]
pub struct Parameter {
    /// The name, as in `--set`.
    pub setting: &'static str,
    /// The changes. Each makes one variation.
    pub changes: &'static [Change],
    /// Why the parameter is uncertain by this much.
    pub reason: &'static str,
}

/// All sensitive parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        setting: "machine.cross-socket-scale",
        changes: &[Change::Times(0.9), Change::Times(1.1)],
        reason: "Latencies between sockets are known to 10 % at best. Those that are not published are \
                 estimates.",
    },
    Parameter {
        setting: "machine.grab-fraction",
        changes: &[Change::To(Value::Float(0.3)), Change::To(Value::Float(0.7))],
        reason: "It is not published at what point of a transfer the old holder loses the line.",
    },
    Parameter {
        setting: "machine.read-occupancy-modified",
        changes: &[Change::To(Value::Float(0.3)), Change::To(Value::Float(0.8))],
        reason: "It is not published how long a read of a modified line keeps the line from others.",
    },
    Parameter {
        setting: "machine.ownership-overlap",
        changes: &[Change::Other("none", "prefetch")],
        reason: "Processors differ in how many buffered stores request their lines before their turn; these \
                 are the two extremes.",
    },
    Parameter {
        setting: "machine.same-socket-bypasses",
        changes: &[Change::Times(0.1), Change::Times(10.0)],
        reason: "The number of requests that may overtake one of another socket is not published, not even \
                 its order of magnitude. (On most machines, none may.)",
    },
    Parameter {
        setting: "simulation.placement",
        changes: &[Change::Other("filled", "random")],
        reason: "Publications seldom say on which CPUs the threads ran.",
    },
];

/// The variations of these parameters for a simulation of `workload` on `machine` with the settings
/// of `central`. Variations without effect are left out: settings of other workloads, and values
/// that are already set.
///
/// # Errors
///
/// If a parameter is not a setting.
pub fn variations(
    parameters: &[Parameter],
    workload: &str,
    central: &Configuration,
    machine: &MachineSpec,
) -> Result<Vec<Assignment>, UnknownName> {
    let mut variations = Vec::new();
    let of_another = |setting: &str| {
        setting.split_once('.').is_some_and(|(of, _)| of != workload && workloads().any(|w| w.name() == of))
    };
    for &Parameter { setting, changes, .. } in parameters.iter().filter(|p| !of_another(p.setting)) {
        let present = central.value(setting, machine).ok_or_else(|| UnknownName {
            kind: "setting",
            name: setting.to_owned(),
            known: parameters.iter().map(|parameter| parameter.setting).collect(),
        })?;
        let values = changes.iter().map(|change| moved(present, *change));
        let changing = values.filter(|value| *value != present);
        variations.extend(changing.map(|value| Assignment { setting, value }));
    }
    Ok(variations)
}

fn moved(present: Value, change: Change) -> Value {
    match (change, present) {
        (Change::Times(factor), Value::Integer(present)) => {
            Value::Integer((present as f64 * factor).round() as u64)
        }
        // Rounded, since commands show the value.
        (Change::Times(factor), Value::Float(present)) => {
            Value::Float((present * factor * 1e6).round() / 1e6)
        }
        (Change::Times(_), Value::Word(_)) => present,
        (Change::To(value), _) => value,
        (Change::Other(one, two), _) => Value::Word(if present == Value::Word(one) { two } else { one }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::settings::Group;
    use std::fs;

    /// The variations as texts.
    fn texts(variations: &[Assignment]) -> Vec<String> {
        variations.iter().map(Assignment::to_string).collect()
    }

    #[test]
    fn each_variation_is_moved_from_the_present_value_and_can_be_set() {
        let mut machine = names::machine("haswell-ex-4s").unwrap();
        let mut configuration = Configuration::new(Group::ALL);
        for text in [
            "machine.cross-socket-scale=1",
            "machine.ownership-overlap=prefetch",
            "simulation.placement=random",
        ] {
            configuration.set(text).unwrap();
        }
        configuration.configure_machine(&mut machine).unwrap();
        let moved = variations(PARAMETERS, "locktorture", &configuration, &machine).unwrap();
        let shown = texts(&moved);
        let (placement, others) = shown.split_last().unwrap();
        assert!(
            placement.starts_with("simulation.placement=") && !placement.ends_with("random"),
            "{placement}"
        );
        assert_eq!(
            others,
            [
                "machine.cross-socket-scale=0.9",
                "machine.cross-socket-scale=1.1",
                "machine.grab-fraction=0.3",
                "machine.grab-fraction=0.7",
                "machine.read-occupancy-modified=0.3",
                "machine.read-occupancy-modified=0.8",
                "machine.ownership-overlap=none",
            ]
        );
        for variation in moved {
            configuration.assign(variation).unwrap();
        }
        configuration.configure_machine(&mut machine).unwrap();
        // The assignments have set all parameters, so these are moved from the new values.
        let moved = variations(PARAMETERS, "locktorture", &configuration, &machine).unwrap();
        let shown = texts(&moved);
        for text in [
            "machine.cross-socket-scale=0.99",
            "machine.ownership-overlap=prefetch",
            "simulation.placement=random",
        ] {
            assert!(shown.contains(&text.to_owned()), "{text}: {shown:?}");
        }
    }

    #[test]
    fn a_parameter_that_few_machines_have_is_moved_only_there() {
        let bypasses = |machine: &str| {
            let (machine, central) = (names::machine(machine).unwrap(), Configuration::new(Group::ALL));
            let mut all = variations(PARAMETERS, "make-j", &central, &machine).unwrap();
            all.retain(|variation| variation.setting.contains("bypasses"));
            texts(&all)
        };
        let moved = ["machine.same-socket-bypasses=10", "machine.same-socket-bypasses=1000"];
        assert_eq!(bypasses("ivybridge-ep-2s"), moved);
        assert!(bypasses("haswell-ex-4s").is_empty());
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        let parameters = [Parameter { setting: "machine.frob", changes: &[Change::Times(2.0)], reason: "" }];
        let machine = names::machine("haswell-ex-4s").unwrap();
        let central = Configuration::new(Group::ALL);
        let error = variations(&parameters, "locktorture", &central, &machine).unwrap_err();
        assert!(error.to_string().contains("machine.frob"), "{error}");
    }

    #[test]
    fn a_change_without_effect_is_no_variation() {
        let parameters = [
            Parameter { setting: "sections.think-ns", changes: &[Change::To(Value::Integer(7))], reason: "" },
            Parameter {
                setting: "machine.jitter",
                changes: &[Change::To(Value::Float(0.0)), Change::To(Value::Float(0.1))],
                reason: "",
            },
        ];
        let machine = names::machine("haswell-ex-4s").unwrap();
        let of = |workload, central: &Configuration| {
            texts(&variations(&parameters, workload, central, &machine).unwrap())
        };
        let mut central = Configuration::new(Group::ALL);
        assert_eq!(of("locktorture", &central), ["machine.jitter=0"]);
        assert_eq!(of("sections", &central), ["sections.think-ns=7", "machine.jitter=0"]);
        central.set("sections.think-ns=7").unwrap();
        assert_eq!(of("sections", &central), ["machine.jitter=0"]);
    }

    #[test]
    fn a_multiple_is_of_the_kind_of_the_value_and_a_word_has_none() {
        for (present, factor, expected) in [
            (Value::Integer(5), 0.1, Value::Integer(1)),
            (Value::Integer(0), 10.0, Value::Integer(0)),
            (Value::Float(0.7), 1.1, Value::Float(0.77)),
            (Value::Word("near"), 2.0, Value::Word("near")),
        ] {
            assert_eq!(moved(present, Change::Times(factor)), expected);
        }
    }

    #[test]
    fn the_calibration_page_has_the_same_parameters() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/laboratory");
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let pages = paths.filter(|path| path.to_string_lossy().contains("/calibration"));
        let page: String = pages.map(|path| fs::read_to_string(path).unwrap()).collect();
        for Parameter { setting, changes, reason } in PARAMETERS {
            let changes: Vec<_> = changes.iter().map(Change::to_string).collect();
            let line = format!("| `{setting}` | {} | {reason} |", changes.join(", "));
            assert!(page.contains(&line), "docs/laboratory/calibration*.md have no line:\n{line}");
        }
    }
}
