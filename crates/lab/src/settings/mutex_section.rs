//! The parameters of a mutex's sections.

use nearlock_workload::LINES_MAX;

use super::{Group, MILLISECOND_NS, Number};

/// All numbers of it.
pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: "mutex-section.section-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work inside a section, besides its memory accesses.",
        field: |c| &mut c.mutex_section.section_ns,
    },
    Number {
        name: "mutex-section.lines",
        group: Group::Workload,
        unit: "lines",
        min: 1,
        max: LINES_MAX as u64,
        summary: "Lines that a section reads and writes.",
        field: |c| &mut c.mutex_section.lines,
    },
    Number {
        name: "mutex-section.think-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work between two sections, on average, exponentially distributed.",
        field: |c| &mut c.mutex_section.think_ns,
    },
];
