//! What can be set, but for locks, machines and jobs.

use nearlock_workload::LINES_MAX;
use nearlock_workload::jobs::Root;
use nearlock_workload::locktorture::ShortHolds;

use super::{Choice, Group, MILLISECOND_NS, Number, SECOND_NS};
use crate::simulate::{Partners, Placement, Start, Statistics};

/// What takes one of a few words.
pub(super) const CHOICES: &[Choice] = &[
    Choice {
        name: "locktorture.short-holds",
        group: Group::Workload,
        summary: "Era of the kernel whose short holds are made: of 2 us, once in 4 sections of all writers \
                  together (up to 5.10), or once in 400.",
        words: &[
            ("v5.10", |c| c.locktorture.short_holds = ShortHolds::V5_10),
            ("today", |c| c.locktorture.short_holds = ShortHolds::Today),
        ],
    },
    Choice {
        name: "context1.partners",
        group: Group::Workload,
        summary: "The two of a pair run on one socket, as the scheduler wakes a sleeper near its waker; or \
                  anywhere.",
        words: &[
            ("socket", |c| c.context1.partners = Partners::Socket),
            ("anywhere", |c| c.context1.partners = Partners::Anywhere),
        ],
    },
    Choice {
        name: "jobs.root-lock",
        group: Group::Workload,
        summary: "What the root's lock of users with jobs is: one more of the tested lock, or Linux' reader-writer \
                  semaphore of 3.10 whatever the tested lock is.",
        words: &[
            ("tested", |c| c.jobs.iter_mut().for_each(|constants| constants.root = Root::Last)),
            ("rwsem-xadd-base", |c| c.jobs.iter_mut().for_each(|constants| constants.root = Root::Rwsem)),
        ],
    },
    Choice {
        name: "locktorture.statistics",
        group: Group::Workload,
        summary: "Lines of the writers' statistics: four writers share one, as in the original; or each has its own.",
        words: &[
            ("packed", |c| c.locktorture.statistics = Statistics::Packed),
            ("padded", |c| c.locktorture.statistics = Statistics::Padded),
        ],
    },
    Choice {
        name: "simulation.start",
        group: Group::Simulation,
        summary: "In which order the threads begin, 50 ns apart: one drawn at random, or that of their numbers.",
        words: &[("shuffled", |c| c.start = Start::Shuffled), ("in-turn", |c| c.start = Start::InTurn)],
    },
    Choice {
        name: "simulation.placement",
        group: Group::Simulation,
        summary: "CPUs of the threads: on as few sockets as have a hardware thread for each, and on one more, one \
                  socket after the other; on as few as give each a core, but two at least; over all cores alike; or \
                  on the first cores, near each other.",
        words: &[
            ("filled", |c| c.placement = Placement::Filled),
            ("gathered", |c| c.placement = Placement::Gathered),
            ("random", |c| c.placement = Placement::Random),
            ("near", |c| c.placement = Placement::Near),
        ],
    },
];

/// What is a number, but for the constants of jobs.
pub(super) const NUMBERS: &[Number] = &[
    Number {
        name: "locktorture.section-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Instructions inside a section, besides its memory accesses and delays. Fitted: published \
                  stock figure at one thread.",
        field: |c| &mut c.locktorture.section_ns,
    },
    Number {
        name: "locktorture.think-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Instructions between sections. Fitted with the above.",
        field: |c| &mut c.locktorture.think_ns,
    },
    Number {
        name: "locktorture.priority-percent",
        group: Group::Workload,
        unit: "%",
        min: 0,
        max: 100,
        summary: "Of 100 acquisitions, how many are urgent.",
        field: |c| &mut c.locktorture.priority_percent,
    },
    Number {
        name: "sections.section-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work inside a section.",
        field: |c| &mut c.sections.section_ns,
    },
    Number {
        name: "sections.think-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Work between two sections, on average: drawn from half to one and a half of this.",
        field: |c| &mut c.sections.think_ns,
    },
    Number {
        name: "sections.section-overhead-ps",
        group: Group::Workload,
        unit: "ps",
        min: 0,
        max: 1000 * MILLISECOND_NS,
        summary: "Instructions of the loop itself inside a section. `validate` measures them.",
        field: |c| &mut c.sections.section_overhead_ps,
    },
    Number {
        name: "sections.think-overhead-ps",
        group: Group::Workload,
        unit: "ps",
        min: 0,
        max: 1000 * MILLISECOND_NS,
        summary: "Instructions of the loop itself between two sections.",
        field: |c| &mut c.sections.think_overhead_ps,
    },
    Number {
        name: "context1.locks",
        group: Group::Workload,
        unit: "locks",
        min: 1,
        max: 1024,
        summary: "How many locks the pairs share; each pair takes one of them. Two is the least that carries \
                  the published rate.",
        field: |c| &mut c.context1.locks,
    },
    Number {
        name: "context1.section-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Instructions inside a section, besides its memory accesses: an estimate, of an insertion \
                  into a list.",
        field: |c| &mut c.context1.section_ns,
    },
    Number {
        name: "context1.lines",
        group: Group::Workload,
        unit: "lines",
        min: 1,
        max: LINES_MAX as u64,
        summary: "Shared lines that a section reads and writes: an estimate, a list's head and a neighbour.",
        field: |c| &mut c.context1.lines,
    },
    Number {
        name: "context1.think-ns",
        group: Group::Workload,
        unit: "ns",
        min: 0,
        max: MILLISECOND_NS,
        summary: "Instructions between being woken and locking, on average: drawn from half to one and a \
                  half of this. From the published rate of round trips, with the machine's sleep.",
        field: |c| &mut c.context1.think_ns,
    },
    Number {
        name: "simulation.warm-up-ns",
        group: Group::Simulation,
        unit: "ns",
        min: 0,
        max: 100 * SECOND_NS,
        summary: "Virtual time before counting begins; users that end are counted from the beginning.",
        field: |c| &mut c.limits.warm_up_ns,
    },
    Number {
        name: "simulation.window-ns",
        group: Group::Simulation,
        unit: "ns",
        min: 1_000,
        max: 100 * SECOND_NS,
        summary: "Virtual time that is counted. Should hold several thresholds of the lock. Users that end \
                  are counted until the last has ended.",
        field: |c| &mut c.limits.window_ns,
    },
    Number {
        name: "simulation.livelock-ns",
        group: Group::Simulation,
        unit: "ns",
        min: 1_000,
        max: 100 * SECOND_NS,
        summary: "Virtual time without any acquisition after which the run is a livelock.",
        field: |c| &mut c.limits.livelock_ns,
    },
    Number {
        name: "simulation.starvation-ns",
        group: Group::Simulation,
        unit: "ns",
        min: 0,
        max: 100 * SECOND_NS,
        summary: "Wait after which a waiter counts as starved; 0: a bound that follows from what the lock \
                  promises. Not held against locks that promise none.",
        field: |c| &mut c.limits.starvation_ns,
    },
];
