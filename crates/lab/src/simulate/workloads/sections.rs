//! Sections of a given length and distance, as simulated.

use std::rc::Rc;

use nearlock_sim::Sim;
use nearlock_sim::spec::MachineSpec;
use nearlock_workload::Gate;
use nearlock_workload::sections::{Overhead, Params, SectionsState, WorkLength, Worker};

use crate::settings::fields::{Field, MILLISECOND_NS};
use crate::simulate::facts::Facts;
use crate::simulate::seating::{Seat, Seating};
use crate::simulate::workload::Workload;

/// Threads that take one lock, work, release it, and continue to work.
#[derive(Clone, Debug)]
pub struct Sections {
    /// Work inside a section, in ns.
    pub section_ns: u64,
    /// Mean work between two sections, in ns.
    pub think_ns: u64,
    /// Instructions of the loop itself inside a section, in ps.
    pub section_overhead_ps: u64,
    /// Instructions of the loop itself between two sections, in ps.
    pub think_overhead_ps: u64,
}

impl Sections {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { section_ns: 100, think_ns: 500, section_overhead_ps: 0, think_overhead_ps: 0 };
}

impl Workload for Sections {
    const FIELDS: &'static [Field<Self>] = &[
        Field::ns("section-ns", |sections| &mut sections.section_ns, "Work inside a section."),
        Field::ns(
            "think-ns",
            |sections| &mut sections.think_ns,
            "Mean work between two sections, drawn from half to one and a half of this.",
        ),
        Field::number(
            "section-overhead-ps",
            "ps",
            0..=1000 * MILLISECOND_NS,
            |sections| &mut sections.section_overhead_ps,
            "Instructions of the loop itself inside a section. `validate` measures them.",
        ),
        Field::number(
            "think-overhead-ps",
            "ps",
            0..=1000 * MILLISECOND_NS,
            |sections| &mut sections.think_overhead_ps,
            "Instructions of the loop itself between two sections.",
        ),
    ];

    fn name(&self) -> &'static str {
        "sections"
    }

    fn summary(&self) -> &'static str {
        "threads take one lock, work for a while, release it, and work on: what `bench` runs natively"
    }

    fn facts(&self, machine: &MachineSpec) -> Facts {
        Facts { section_ns_max: self.section_ns + 2 * self.think_ns, ..Facts::on(machine) }
    }

    fn start<L: Gate>(&self, seating: &mut Seating<'_>) {
        let params = Params {
            section: WorkLength::of_ns(self.section_ns),
            think: WorkLength::of_ns(self.think_ns),
            overhead: Overhead { section_ps: self.section_overhead_ps, think_ps: self.think_overhead_ps },
        };
        let shared = Rc::new(seating.machine.place(0, SectionsState::<Sim, L>::default()));
        seating.seat(|Seat { seed, mut node, mut scribe, .. }| {
            let shared = Rc::clone(&shared);
            move || Worker::new(&shared, &mut node.0, params, seed).run(&mut scribe)
        });
    }
}
