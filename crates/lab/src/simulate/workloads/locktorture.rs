//! The kernel's torture test of locks, as simulated.

use std::rc::Rc;

use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{LINE, Sim};
use nearlock_workload::Gate;
use nearlock_workload::locktorture::{
    LongHolds, Params, SHORT_HOLD_NS, ShortHolds, Stats, TortureState, Writer,
};

use crate::settings::fields::{Field, Words};
use crate::simulate::facts::Facts;
use crate::simulate::seating::{Seat, Seating};
use crate::simulate::workload::Workload;

/// A scheduler tick of the simulated kernels, in ns: 1000 Hz, the default x86-64 configuration.
const TICK_NS: u64 = 1_000_000;

/// The layout of the writers' statistics in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// 16 bytes each, side by side: four writers share a line, as in the original.
    Packed,
    /// A line for each writer.
    Padded,
}

/// Writers that take one lock, hold it briefly, and repeat this.
#[derive(Clone, Debug)]
pub struct Locktorture {
    /// The kernel version that determines the short holds.
    pub short_holds: ShortHolds,
    /// Instructions inside a section, in ns.
    pub section_ns: u64,
    /// Instructions outside a section, in ns.
    pub think_ns: u64,
    /// The percentage of urgent acquisitions.
    pub priority_percent: u64,
    /// The layout of the statistics in memory.
    pub statistics: Statistics,
}

impl Locktorture {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        short_holds: ShortHolds::V5_10,
        section_ns: 75,
        think_ns: 15,
        priority_percent: 0,
        statistics: Statistics::Packed,
    };
}

impl Words for ShortHolds {
    const WORDS: &'static [(&'static str, Self)] =
        &[("v5.10", ShortHolds::V5_10), ("today", ShortHolds::Today)];
}

impl Words for Statistics {
    const WORDS: &'static [(&'static str, Self)] =
        &[("packed", Statistics::Packed), ("padded", Statistics::Padded)];
}

impl Workload for Locktorture {
    const FIELDS: &'static [Field<Self>] = &[
        Field::word(
            "short-holds",
            |torture| &mut torture.short_holds,
            "Kernel version of the short holds, which take 2 us: once in 4 sections of all writers \
             together (up to 5.10), or once in 400.",
        ),
        Field::word(
            "statistics",
            |torture| &mut torture.statistics,
            "Lines of the writers' statistics: one for four writers, as in the original; or one for each.",
        ),
        Field::ns(
            "section-ns",
            |torture| &mut torture.section_ns,
            "Instructions inside a section, without its memory accesses and delays. Fitted: published \
             stock figure at one thread.",
        ),
        Field::ns(
            "think-ns",
            |torture| &mut torture.think_ns,
            "Instructions between sections. Fitted with the above.",
        ),
        Field::percent(
            "priority-percent",
            |torture| &mut torture.priority_percent,
            "Percentage of urgent acquisitions.",
        ),
    ];

    fn name(&self) -> &'static str {
        "locktorture"
    }

    fn summary(&self) -> &'static str {
        "the kernel's torture test of one lock: writers take it, hold it briefly, and start again"
    }

    fn facts(&self, machine: &MachineSpec) -> Facts {
        Facts {
            section_ns_max: self.section_ns + self.think_ns + SHORT_HOLD_NS,
            left_out_ns: LongHolds::MEAN_NS,
            ..Facts::on(machine)
        }
    }

    fn start<L: Gate>(&self, seating: &mut Seating<'_>) {
        let params = Params {
            writers: seating.threads as u64,
            short_holds: self.short_holds,
            long_holds: LongHolds::LeftOut,
            section_ns: self.section_ns,
            think_ns: self.think_ns,
            tick_ns: TICK_NS,
            priority_percent: self.priority_percent,
        };
        let shared = Rc::new(seating.machine.place(0, TortureState::<Sim, L>::default()));
        // In padded statistics only the first of each line is used.
        let step = match self.statistics {
            Statistics::Packed => 1,
            Statistics::Padded => LINE / size_of::<Stats<Sim>>(),
        };
        let stats = Rc::new(seating.machine.place_slice(0, seating.threads * step, Stats::<Sim>::default));
        seating.seat(|Seat { thread, seed, mut node, mut scribe }| {
            let (shared, stats, params) = (Rc::clone(&shared), Rc::clone(&stats), params.clone());
            move || Writer::new(&shared, &stats[thread * step], &mut node.0, &params, seed).run(&mut scribe)
        });
    }
}
