//! The constants of the test cases of will-it-scale.

use nearlock_workload::LINES_MAX;

use super::{Group, MILLISECOND_NS, Number};

/// All numbers of both.
pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: "open1.call-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work of an open or a close outside of its section, on average: drawn from half to one and a \
                  half of this. Fitted: published stock figure at one thread.",
        field: |c| &mut c.open1.call_ns,
    },
    Number {
        name: "open1.section-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work inside a section, besides its memory accesses. Fitted: published stock figures at 8 and \
                  142 threads.",
        field: |c| &mut c.open1.section_ns,
    },
    Number {
        name: "open1.lines",
        group: Group::Workload,
        unit: "lines",
        min: 0,
        max: LINES_MAX as u64,
        summary: "Shared lines that a section reads and writes, besides those of lock, bits and slots. Fitted \
                  with the above.",
        field: |c| &mut c.open1.lines,
    },
    Number {
        name: "lock2.call-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work of a call outside of its sections, on average: drawn from half to one and a half of \
                  this. Fitted: published stock figure at one thread.",
        field: |c| &mut c.lock2.call_ns,
    },
    Number {
        name: "lock2.section-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work inside a section of the list's lock, besides its memory accesses. Fitted: published stock \
                  figures at 8 and 142 threads.",
        field: |c| &mut c.lock2.section_ns,
    },
    Number {
        name: "lock2.lines",
        group: Group::Workload,
        unit: "lines",
        min: 0,
        max: LINES_MAX as u64,
        summary: "Shared lines that such a section reads and writes, besides those of lock and record. Fitted \
                  with the above.",
        field: |c| &mut c.lock2.lines,
    },
];
