//! The constants of readrandom.

use nearlock_workload::LINES_MAX;

use super::{Group, MILLISECOND_NS, Number};

/// All numbers of it.
pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: "readrandom.search-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work of a get outside of its sections, on average: each part is drawn from half to one and a half of \
                  itself. Fitted: published stock figure at one thread.",
        field: |c| &mut c.readrandom.search_ns,
    },
    Number {
        name: "readrandom.sections",
        group: Group::Workload,
        unit: "sections",
        min: 1,
        max: 100,
        summary: "Sections of the database's mutex in a get. Counted in LevelDB.",
        field: |c| &mut c.readrandom.sections,
    },
    Number {
        name: "readrandom.section-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work inside a section, besides its memory accesses.",
        field: |c| &mut c.readrandom.section_ns,
    },
    Number {
        name: "readrandom.lines",
        group: Group::Workload,
        unit: "lines",
        min: 1,
        max: LINES_MAX as u64,
        summary: "Lines that a section reads and writes.",
        field: |c| &mut c.readrandom.lines,
    },
    Number {
        name: "readrandom.call-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "What a call of the futex takes, besides its section of the bucket's lock, sleeping and waking.",
        field: |c| &mut c.readrandom.call_ns,
    },
];
