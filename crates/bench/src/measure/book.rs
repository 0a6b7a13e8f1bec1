//! All samples of a measurement, and the machine description that they give.

mod latencies;

use std::fs;

use jiff::Timestamp;
use nearlock_sim::spec::{Confidence, LocalNs, MachineSpec, Measured, MeasuredFigure, ModelParameters};

use super::figure::{Nature, figure};
use super::layout::Layout;
use super::local::Local;
use super::threads::Priority;
use super::tick::Tick;
use super::transfers::Samples;
use super::{MeasureError, Measurement, Row};
use crate::bench::TestBed;

/// Samples as they are collected, all in ns.
pub struct Book<'a> {
    layout: &'a Layout,
    /// CPU quota in CPUs, if a control group sets one.
    quota: Option<f64>,
    /// Samples of some cores.
    pub local: Vec<Local>,
    /// Samples by distance.
    pub transfers: Vec<Samples>,
    /// Whether a third core took part, by distance.
    pub has_readers: Vec<bool>,
    /// Samples between the hardware threads of a core.
    pub siblings: Samples,
    pub futex_call: Vec<f64>,
    /// From a thread that wakes up another and sleeps to the other, on the same CPU.
    pub switch: Vec<f64>,
    /// As `switch`, on two CPUs.
    pub hand_over: Vec<f64>,
    /// From before the call that wakes up a sleeper on another CPU until the sleeper runs.
    pub wake: Vec<f64>,
    pub heavy_fence: Vec<f64>,
    pub tick: Option<Tick>,
}

/// A machine counts as busy with more runnable threads per CPU than this before the start.
const LOAD_PER_CPU_MAX: f64 = 0.25;

/// Figures and notes that are computed from samples.
#[derive(Default)]
struct Page {
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Page {
    /// Adds a figure of these samples, and returns its median.
    fn add(&mut self, key: &str, samples: &[f64], nature: Nature, meaning: &'static str) -> Option<f64> {
        let figure = figure(samples, nature)?;
        self.push(key, "ns", figure, meaning);
        Some(figure.median)
    }

    fn push(&mut self, key: &str, unit: &'static str, figure: MeasuredFigure, meaning: &'static str) {
        self.rows.push(Row { key: key.to_owned(), unit, figure, meaning });
    }

    /// Sets the model's parameter to the figure. Without a figure, it keeps its default and adds a
    /// note. Returns the parameter.
    fn or_default(&mut self, key: &str, figure: Option<f64>, parameter: &mut f64) -> f64 {
        match figure {
            Some(figure) => *parameter = figure,
            None => self.note(format!("model.{key} is not measured here: it has its default")),
        }
        *parameter
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

impl<'a> Book<'a> {
    /// A book without samples.
    pub fn new(layout: &'a Layout, quota: Option<f64>) -> Self {
        let none = Vec::new;
        Self {
            layout,
            quota,
            local: Vec::new(),
            transfers: vec![Samples::new(); layout.distances().len()],
            has_readers: Vec::new(),
            siblings: Samples::new(),
            futex_call: none(),
            switch: none(),
            hand_over: none(),
            wake: none(),
            heavy_fence: none(),
            tick: None,
        }
    }

    /// Computes the machine description.
    pub fn close(
        self,
        name: &str,
        machine: &TestBed,
        priority: Priority,
    ) -> Result<Measurement, MeasureError> {
        let mut page = Page::default();
        self.note_machine(machine, &mut page);
        let (ghz, local_ns) = self.local_ns(&mut page)?;
        let latency_ns = self.latency_ns(&mut page)?;
        let model = self.model(&mut page);
        let layout = self.layout;
        let plain = |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>();
        let processor = machine.model.as_deref().map_or_else(|| "unknown".to_owned(), plain);
        let date = Timestamp::now().strftime("%F").to_string();
        let Page { rows, notes } = page;
        let measured = Measured {
            date: date.clone(),
            by: concat!("nearlock measure ", env!("CARGO_PKG_VERSION")).to_owned(),
            processor: processor.clone(),
            system: system(),
            cpus: layout.cpus().to_string(),
            priority: priority.to_string(),
            notes,
            figures: rows.iter().map(|row| (row.key.clone(), row.figure)).collect(),
        };
        let spec = MachineSpec {
            name: plain(name),
            description: format!("{processor}, {}", in_words(layout)),
            source: format!("Measured on the machine itself by nearlock measure, {date}: see [measured]"),
            confidence: Confidence::Measured,
            sockets: layout.nodes(),
            cores_per_socket: layout.cores_per_node(),
            cores_per_domain: layout.cores_per_domain(),
            smt: layout.smt(),
            ghz,
            distances: layout.distances(),
            local_distances: layout.local_distances(),
            hops: layout.hops.clone(),
            latency_ns,
            local_ns,
            model,
            measured: Some(measured),
        };
        let machine = MachineSpec::parse(&spec.to_toml(), "the machine").map_err(MeasureError::NoMachine)?;
        Ok(Measurement { machine, rows })
    }

    /// Notes about parts of the machine that the description leaves out.
    fn note_machine(&self, machine: &TestBed, page: &mut Page) {
        let layout = self.layout;
        if machine.is_virtual {
            page.note(
                "a virtual machine: the hypervisor may put its CPUs on cores that are nearer or farther than it reports, \
                 and may change this",
            );
        }
        if let Some(load) = machine.load.filter(|load| *load > LOAD_PER_CPU_MAX * machine.cpus as f64) {
            page.note(format!(
                "the machine was busy (load average {load:.2}): wake-ups, switches and ticks then take longer"
            ));
        }
        if !layout.left_out.is_empty() {
            page.note(format!(
                "CPUs {} may be used too, but are left out: in a machine file all sockets, domains and cores are alike",
                layout.left_out
            ));
        }
        if layout.merged_caches {
            page.note(
                "there are more last-level caches than a machine file can have: each NUMA node counts as one",
            );
        }
        if let Some(cpus) = self.quota {
            page.note(format!("the process has a quota of {cpus:.2} CPUs, which the file does not contain"));
        }
        if layout.smt() > 1 {
            page.note("model.smt_speed and model.smt_miss_scale are not measured: they have their defaults");
        }
        if layout.nodes() > 2 {
            page.note(
                "model.home_extra_ns and model.sharer_extra_ns are not measured: they have their defaults",
            );
        }
    }

    fn local_ns(&self, page: &mut Page) -> Result<(f64, LocalNs), MeasureError> {
        let all = |samples: fn(&Local) -> &Vec<f64>| -> Vec<f64> {
            self.local.iter().flat_map(|local| samples(local).iter().copied()).collect()
        };
        let missing = |what| move || MeasureError::Disturbed { what };
        let cycle = fastest(all(|local| &local.cycle)).ok_or_else(missing("a clock cycle"))?;
        page.push("topology.ghz", "GHz", cycle, "clock, by a chain of instructions of one cycle each");
        let mut add = |key, samples: &[f64], meaning, what| {
            page.add(key, samples, Nature::Floor, meaning).ok_or_else(missing(what))
        };
        let local_ns = LocalNs {
            l1: add("local_ns.l1", &all(|local| &local.l1), "load from the first-level cache", "a load")?,
            atomic_owned: add(
                "local_ns.atomic_owned",
                &all(|local| &local.atomic_owned),
                "atomic on a line that the core owns",
                "an atomic",
            )?,
            pause: add("local_ns.pause", &all(|local| &local.pause), "turn of a loop of pauses", "a pause")?,
        };
        Ok((cycle.median, local_ns))
    }

    fn model(&self, page: &mut Page) -> ModelParameters {
        let mut model = ModelParameters::default();
        let call = page.add(
            "model.futex_call_ns",
            &self.futex_call,
            Nature::Typical,
            "futex call that wakes no thread",
        );
        let call_ns = page.or_default("futex_call_ns", call, &mut model.futex_call_ns);
        let less = |samples: &[f64], ns: f64| samples.iter().map(|sample| sample - ns).collect::<Vec<_>>();
        let wake = page.add(
            "model.wake_latency_ns",
            &less(&self.wake, call_ns),
            Nature::Typical,
            "from a call that wakes a sleeper on another CPU until it runs, minus such a call",
        );
        page.or_default("wake_latency_ns", wake, &mut model.wake_latency_ns);
        let switch = page.add(
            "model.context_switch_ns",
            // A hand-over has two calls: one wakes up the other thread, and one sleeps.
            &less(&self.switch, 2.0 * call_ns),
            Nature::Typical,
            "from a thread that goes to sleep to the next thread on that CPU",
        );
        page.or_default("context_switch_ns", switch, &mut model.context_switch_ns);
        let meaning = "membarrier that interrupts one other CPU";
        let fence = page.add("model.heavy_fence_ns", &self.heavy_fence, Nature::Typical, meaning);
        page.or_default("heavy_fence_ns", fence, &mut model.heavy_fence_ns);
        let meaning = "from a thread that wakes one on another CPU, and sleeps, until that one runs";
        page.add("futex_hand_over_ns", &self.hand_over, Nature::Typical, meaning);
        self.add_tick(page, &mut model);
        model.load_of_modified = self.load_of_modified();
        model
    }

    fn add_tick(&self, page: &mut Page, model: &mut ModelParameters) {
        let Some(tick) = &self.tick else {
            page.note("no timer tick stands out among the interruptions of a busy CPU: the model has none");
            model.tick_hz = 0.0;
            return;
        };
        let hz = tick.hz as f64;
        let exactly = MeasuredFigure { low: hz, median: hz, high: hz, samples: tick.lengths_ns.len() as u64 };
        page.push("model.tick_hz", "1/s", exactly, "timer tick on a busy CPU");
        model.tick_hz = hz;
        let length = page.add("model.tick_ns", &tick.lengths_ns, Nature::Typical, "length of a tick");
        page.or_default("tick_ns", length, &mut model.tick_ns);
    }
}

/// The fastest quarter of these cycle times, in GHz.
fn fastest(mut cycles_ns: Vec<f64>) -> Option<MeasuredFigure> {
    cycles_ns.retain(|ns| ns.is_finite() && *ns > 0.0);
    cycles_ns.sort_unstable_by(f64::total_cmp);
    cycles_ns.truncate(cycles_ns.len().div_ceil(4));
    let rates: Vec<f64> = cycles_ns.into_iter().map(|ns| 1.0 / ns).collect();
    figure(&rates, Nature::Typical)
}

/// "2 sockets of 4 cores, 2 to a cache domain, 2 hardware threads each"
fn in_words(layout: &Layout) -> String {
    let (nodes, cores) = (layout.nodes(), layout.cores_per_node());
    let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut words = format!("{} of {}", plural(nodes, "socket"), plural(cores, "core"));
    if layout.local_distances() > 1 {
        words += &format!(", {} to a cache domain", layout.cores_per_domain());
    }
    if layout.smt() > 1 {
        words += &format!(", {} hardware threads each", layout.smt());
    }
    words
}

/// The system's name and release, if the system reports them.
fn system() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_the_fastest() {
        let rate = fastest(vec![0.5, 0.4, 9.0, 0.5, 2.0, f64::NAN, -1.0, 7.0, 3.0, 1.0]).expect("some");
        assert_eq!((rate.low, rate.median, rate.high, rate.samples), (2.13, 2.25, 2.38, 2));
    }
}
