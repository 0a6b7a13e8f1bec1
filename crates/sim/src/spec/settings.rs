//! `machine.KEY=VALUE`: what of a machine can be changed without another file.

use super::resolve::{self, Counts, LATENCY_MAX_NS, Problem, SMT_MAX};
use super::{LoadOfModified, MachineSpec, ModelParameters, OwnershipOverlap, Provenance, SpecError};

/// A setting of a machine, for lists: `machine.NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSetting {
    /// Key, in lower case with hyphens.
    pub name: &'static str,
    /// Unit of the value; empty for pure numbers and words.
    pub unit: &'static str,
    /// Value on this machine.
    pub value: String,
    /// Values that this machine can have.
    pub range: String,
    /// One sentence.
    pub summary: &'static str,
}

/// A setting that is one number of the machine.
struct Number {
    name: &'static str,
    /// Where the number stands in a machine file.
    file_key: &'static str,
    unit: &'static str,
    low: f64,
    high: f64,
    summary: &'static str,
    field: fn(&mut MachineSpec) -> &mut f64,
}

const STORE_BUFFER_ENTRIES_MAX: usize = 1024;
/// Many more would leave other sockets without the line for good.
const BYPASSES_MAX: usize = 1000;
/// What the operating system takes for a futex, at most: 10 ms.
const FUTEX_MAX_NS: f64 = 10_000_000.0;
/// No system's timer comes more often.
const TICK_MAX_HZ: f64 = 10_000.0;
/// A latency that may not be 0 is at least this.
const LATENCY_MIN_NS: f64 = 0.001;

const NUMBERS: &[Number] = &[
    Number {
        name: "cross-socket-scale",
        file_key: "model.cross_socket_scale",
        unit: "",
        low: 0.01,
        high: 100.0,
        summary: "Factor on all latencies of other sockets, their memory included.",
        field: |spec| &mut spec.model.cross_socket_scale,
    },
    Number {
        name: "same-socket-scale",
        file_key: "model.same_socket_scale",
        unit: "",
        low: 0.01,
        high: 100.0,
        summary: "Factor on all latencies within the socket, its memory included.",
        field: |spec| &mut spec.model.same_socket_scale,
    },
    Number {
        name: "grab-fraction",
        file_key: "model.grab_fraction",
        unit: "",
        low: 0.0,
        high: 1.0,
        summary: "Fraction of a transfer's latency after which the old holder loses the line.",
        field: |spec| &mut spec.model.grab_fraction,
    },
    Number {
        name: "queued-grab-fraction",
        file_key: "model.queued_grab_fraction",
        unit: "",
        low: 0.0,
        high: 1.0,
        summary: "The same for a request that had to wait for its turn at the line.",
        field: |spec| &mut spec.model.queued_grab_fraction,
    },
    Number {
        name: "read-occupancy-modified",
        file_key: "model.read_occupancy_modified",
        unit: "",
        low: 0.0,
        high: 1.0,
        summary: "Fraction of its latency for which a read of a modified line keeps the line from others.",
        field: |spec| &mut spec.model.read_occupancy_modified,
    },
    Number {
        name: "read-occupancy-shared-ns",
        file_key: "model.read_occupancy_shared_ns",
        unit: "ns",
        low: 0.0,
        high: LATENCY_MAX_NS,
        summary: "Time for which a read of a shared line keeps the line from others.",
        field: |spec| &mut spec.model.read_occupancy_shared_ns,
    },
    Number {
        name: "jitter",
        file_key: "model.jitter",
        unit: "",
        low: 0.0,
        high: 0.9,
        summary: "Relative random deviation of each transfer's latency: 0.1 is +-10 %.",
        field: |spec| &mut spec.model.jitter,
    },
    Number {
        name: "home-extra-ns",
        file_key: "model.home_extra_ns",
        unit: "ns",
        low: 0.0,
        high: LATENCY_MAX_NS,
        summary: "Added to a transfer between domains if the line's home is neither's socket.",
        field: |spec| &mut spec.model.home_extra_ns,
    },
    Number {
        name: "sharer-extra-ns",
        file_key: "model.sharer_extra_ns",
        unit: "ns",
        low: 0.0,
        high: LATENCY_MAX_NS,
        summary: "Added per further remote socket that must give up its shared copy.",
        field: |spec| &mut spec.model.sharer_extra_ns,
    },
    Number {
        name: "smt-miss-scale",
        file_key: "model.smt_miss_scale",
        unit: "",
        low: 0.1,
        high: 10.0,
        summary: "Factor on the latency of transfers while the core's other hardware thread is busy.",
        field: |spec| &mut spec.model.smt_miss_scale,
    },
    Number {
        name: "smt-speed",
        file_key: "model.smt_speed",
        unit: "",
        low: 0.1,
        high: 1.0,
        summary: "Speed of each of two busy hardware threads of a core, a lone one being 1.",
        field: |spec| &mut spec.model.smt_speed,
    },
    Number {
        name: "spin-exit-ns",
        file_key: "model.spin_exit_ns",
        unit: "ns",
        low: 0.0,
        high: LATENCY_MAX_NS,
        summary: "What leaving a spin loop costs a thread that has waited in it.",
        field: |spec| &mut spec.model.spin_exit_ns,
    },
    Number {
        name: "futex-call-ns",
        file_key: "model.futex_call_ns",
        unit: "ns",
        low: 0.0,
        high: FUTEX_MAX_NS,
        summary: "What a call of the futex costs the caller.",
        field: |spec| &mut spec.model.futex_call_ns,
    },
    Number {
        name: "wake-latency-ns",
        file_key: "model.wake_latency_ns",
        unit: "ns",
        low: 0.0,
        high: FUTEX_MAX_NS,
        summary: "From the call that wakes a sleeper to the moment at which the sleeper runs.",
        field: |spec| &mut spec.model.wake_latency_ns,
    },
    Number {
        name: "heavy-fence-ns",
        file_key: "model.heavy_fence_ns",
        unit: "ns",
        low: 0.0,
        high: FUTEX_MAX_NS,
        summary: "What a heavy fence (membarrier) costs the caller.",
        field: |spec| &mut spec.model.heavy_fence_ns,
    },
    Number {
        name: "tick-hz",
        file_key: "model.tick_hz",
        unit: "1/s",
        low: 0.0,
        high: TICK_MAX_HZ,
        summary: "How often the timer interrupts a busy CPU; 0: never.",
        field: |spec| &mut spec.model.tick_hz,
    },
    Number {
        name: "tick-ns",
        file_key: "model.tick_ns",
        unit: "ns",
        low: 0.0,
        high: LATENCY_MAX_NS,
        summary: "How long an interrupt by the timer keeps the CPU from its thread.",
        field: |spec| &mut spec.model.tick_ns,
    },
    Number {
        name: "context-switch-ns",
        file_key: "model.context_switch_ns",
        unit: "ns",
        low: 0.0,
        high: FUTEX_MAX_NS,
        summary: "From a thread that gives its CPU away to the next one that runs there.",
        field: |spec| &mut spec.model.context_switch_ns,
    },
    Number {
        name: "l1-ns",
        file_key: "local_ns.l1",
        unit: "ns",
        low: LATENCY_MIN_NS,
        high: LATENCY_MAX_NS,
        summary: "Load or store that hits the core's first-level cache.",
        field: |spec| &mut spec.local_ns.l1,
    },
    Number {
        name: "atomic-owned-ns",
        file_key: "local_ns.atomic_owned",
        unit: "ns",
        low: LATENCY_MIN_NS,
        high: LATENCY_MAX_NS,
        summary: "Atomic read-modify-write of a line that the core owns already.",
        field: |spec| &mut spec.local_ns.atomic_owned,
    },
    Number {
        name: "pause-ns",
        file_key: "local_ns.pause",
        unit: "ns",
        low: LATENCY_MIN_NS,
        high: LATENCY_MAX_NS,
        summary: "One turn of a spin loop's pause instruction.",
        field: |spec| &mut spec.local_ns.pause,
    },
];

/// Settings that are counts or words, with their summaries.
const OTHERS: &[(&str, &str)] = &[
    ("nodes", "Use only the first sockets (NUMA nodes); also called `sockets`."),
    ("cores-per-socket", "Cores of each socket: whole cache domains, or part of one."),
    ("smt", "Hardware threads of each core."),
    ("ownership-overlap", "Whether buffered stores ask for their lines ahead of their turn."),
    (
        "load-of-modified",
        "Whether a load of a line that another core has modified shares it, or takes it over.",
    ),
    (
        "store-buffer-entries",
        "Stores that a hardware thread can hold back; 1 blocks at each until it is done.",
    ),
    (
        "same-socket-bypasses",
        "Requests for a line from the socket that had it last, served in a row ahead of older ones.",
    ),
];

/// Checks the numbers that a file's `[model]` and `[local_ns]` give.
pub(super) fn check_model(spec: &MachineSpec) -> Result<(), Problem> {
    let mut spec = spec.clone();
    for number in NUMBERS {
        let value = *(number.field)(&mut spec);
        if !(number.low..=number.high).contains(&value) {
            return Err(Problem::new(number.file_key, format!("is {value}, must be {}", range_of(number))));
        }
    }
    let bypasses = spec.model.same_socket_bypasses;
    if bypasses > BYPASSES_MAX {
        let problem = format!("is {bypasses}, must be 0 to {BYPASSES_MAX}");
        return Err(Problem::new("model.same_socket_bypasses", problem));
    }
    let entries = spec.model.store_buffer_entries;
    if !(1..=STORE_BUFFER_ENTRIES_MAX).contains(&entries) {
        let problem = format!("is {entries}, must be 1 to {STORE_BUFFER_ENTRIES_MAX}");
        return Err(Problem::new("model.store_buffer_entries", problem));
    }
    Ok(())
}

/// The keys of `[model]` whose values are not the default, with these values as TOML.
pub(super) fn changed_model_keys(spec: &MachineSpec) -> Vec<(&'static str, String)> {
    let mut spec = spec.clone();
    let mut plain = spec.clone();
    plain.model = ModelParameters::default();
    let mut changed = Vec::new();
    for number in NUMBERS {
        let Some(key) = number.file_key.strip_prefix("model.") else { continue };
        let value = *(number.field)(&mut spec);
        if value != *(number.field)(&mut plain) {
            changed.push((key, format!("{value:?}")));
        }
    }
    if spec.model.ownership_overlap != plain.model.ownership_overlap {
        let word = overlap_name(spec.model.ownership_overlap);
        changed.push(("ownership_overlap", format!("\"{word}\"")));
    }
    if spec.model.load_of_modified != plain.model.load_of_modified {
        let word = load_name(spec.model.load_of_modified);
        changed.push(("load_of_modified", format!("\"{word}\"")));
    }
    if spec.model.store_buffer_entries != plain.model.store_buffer_entries {
        changed.push(("store_buffer_entries", spec.model.store_buffer_entries.to_string()));
    }
    if spec.model.same_socket_bypasses != plain.model.same_socket_bypasses {
        changed.push(("same_socket_bypasses", spec.model.same_socket_bypasses.to_string()));
    }
    changed
}

impl MachineSpec {
    /// Changes one setting: `machine.KEY=VALUE` on the command line, with `key` without its `machine.`.
    ///
    /// After an error the machine is as before.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let name = key.replace('_', "-");
        let mut changed = self.clone();
        let result = match name.as_str() {
            "nodes" | "sockets" => changed.set_sockets(value),
            "cores-per-socket" => changed.set_cores_per_socket(value),
            "smt" => changed.set_smt(value),
            "ownership-overlap" => changed.set_ownership_overlap(value),
            "load-of-modified" => changed.set_load_of_modified(value),
            "store-buffer-entries" => changed.set_store_buffer_entries(value),
            "same-socket-bypasses" => changed.set_same_socket_bypasses(value),
            _ => match NUMBERS.iter().find(|number| number.name == name) {
                Some(number) => changed.set_number(number, value),
                None => {
                    return Err(SpecError::UnknownSetting { key: key.to_owned(), known: setting_names() });
                }
            },
        };
        let key = key.to_owned();
        result.map_err(|problem| SpecError::Setting { key, value: value.to_owned(), problem })?;
        *self = changed;
        Ok(())
    }

    /// All settings, with their values on this machine.
    pub fn settings(&self) -> Vec<MachineSetting> {
        let mut spec = self.clone();
        let others = OTHERS.iter().map(|&(name, summary)| {
            let (value, range) = self.describe(name);
            MachineSetting { name, unit: "", value, range, summary }
        });
        let numbers = NUMBERS.iter().map(|number| MachineSetting {
            name: number.name,
            unit: number.unit,
            value: (number.field)(&mut spec).to_string(),
            range: range_of(number),
            summary: number.summary,
        });
        others.chain(numbers).collect()
    }

    /// Value and range of a setting that is not one number.
    fn describe(&self, name: &str) -> (String, String) {
        match name {
            "nodes" => (self.sockets.to_string(), format!("1 to {}", self.sockets)),
            "cores-per-socket" => (self.cores_per_socket.to_string(), self.cores_per_socket_range()),
            "smt" => (self.smt.to_string(), format!("1 to {SMT_MAX}")),
            "ownership-overlap" => {
                let word = overlap_name(self.model.ownership_overlap);
                (word.to_owned(), "none, prefetch".to_owned())
            }
            "load-of-modified" => {
                (load_name(self.model.load_of_modified).to_owned(), "share, take-over".to_owned())
            }
            "same-socket-bypasses" => {
                (self.model.same_socket_bypasses.to_string(), format!("0 to {BYPASSES_MAX}"))
            }
            _ => {
                let entries = self.model.store_buffer_entries;
                (entries.to_string(), format!("1 to {STORE_BUFFER_ENTRIES_MAX}"))
            }
        }
    }

    fn cores_per_socket_range(&self) -> String {
        if self.latency_ns.provenance == Provenance::MemoryOnly {
            return "1: the file has no latencies between cores".to_owned();
        }
        if self.cores_per_domain == self.cores_per_socket {
            return format!("1 to {}", resolve::CORES_MAX / self.sockets);
        }
        format!("up to {0}, or a multiple of {0}", self.cores_per_domain)
    }

    fn set_sockets(&mut self, value: &str) -> Result<(), String> {
        let sockets = count(value, 1, self.sockets)?;
        self.sockets = sockets;
        self.hops.truncate(sockets);
        self.hops.iter_mut().for_each(|row| row.truncate(sockets));
        Ok(())
    }

    fn set_cores_per_socket(&mut self, value: &str) -> Result<(), String> {
        let cores = count(value, 1, resolve::CORES_MAX)?;
        if cores > 1 && self.latency_ns.provenance == Provenance::MemoryOnly {
            return Err("must be 1: the machine file has no latencies between cores".to_owned());
        }
        if self.cores_per_domain == self.cores_per_socket || cores < self.cores_per_domain {
            self.cores_per_domain = cores;
        }
        self.cores_per_socket = cores;
        self.check_counts()
    }

    fn set_smt(&mut self, value: &str) -> Result<(), String> {
        self.smt = count(value, 1, SMT_MAX)?;
        self.check_counts()
    }

    fn set_ownership_overlap(&mut self, value: &str) -> Result<(), String> {
        self.model.ownership_overlap = match value {
            "none" => OwnershipOverlap::None,
            "prefetch" => OwnershipOverlap::Prefetch,
            _ => return Err("must be none or prefetch".to_owned()),
        };
        Ok(())
    }

    fn set_load_of_modified(&mut self, value: &str) -> Result<(), String> {
        self.model.load_of_modified = match value {
            "share" => LoadOfModified::Share,
            "take-over" => LoadOfModified::TakeOver,
            _ => return Err("must be share or take-over".to_owned()),
        };
        Ok(())
    }

    fn set_store_buffer_entries(&mut self, value: &str) -> Result<(), String> {
        self.model.store_buffer_entries = count(value, 1, STORE_BUFFER_ENTRIES_MAX)?;
        Ok(())
    }

    fn set_same_socket_bypasses(&mut self, value: &str) -> Result<(), String> {
        self.model.same_socket_bypasses = count(value, 0, BYPASSES_MAX)?;
        Ok(())
    }

    fn set_number(&mut self, number: &Number, value: &str) -> Result<(), String> {
        let parsed = value.parse::<f64>().ok().filter(|parsed| (number.low..=number.high).contains(parsed));
        let parsed = parsed.ok_or_else(|| format!("must be {}", range_of(number)))?;
        *(number.field)(self) = parsed;
        resolve::check_local(&self.local_ns, &self.latency_ns).map_err(|Problem { problem, .. }| problem)
    }

    fn check_counts(&self) -> Result<(), String> {
        resolve::check_counts(&Counts {
            sockets: self.sockets,
            cores_per_socket: self.cores_per_socket,
            cores_per_domain: self.cores_per_domain,
            smt: self.smt,
        })
        .map_err(|Problem { key, problem }| format!("{key} {problem}"))
    }
}

fn overlap_name(overlap: OwnershipOverlap) -> &'static str {
    match overlap {
        OwnershipOverlap::None => "none",
        OwnershipOverlap::Prefetch => "prefetch",
    }
}

fn load_name(load: LoadOfModified) -> &'static str {
    match load {
        LoadOfModified::Share => "share",
        LoadOfModified::TakeOver => "take-over",
    }
}

/// Names of all settings.
fn setting_names() -> Vec<&'static str> {
    OTHERS.iter().map(|&(name, _)| name).chain(NUMBERS.iter().map(|number| number.name)).collect()
}

fn range_of(number: &Number) -> String {
    let Number { low, high, unit, .. } = number;
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("{low} to {high}{unit}")
}

fn count(value: &str, low: usize, high: usize) -> Result<usize, String> {
    let parsed = value.parse().ok().filter(|parsed| (low..=high).contains(parsed));
    parsed.ok_or_else(|| format!("must be a whole number from {low} to {high}"))
}
