//! The machine settings that are words.

use super::super::{
    Balance, LoadOfModified, ModelParameters, NodeCount, OwnershipOverlap, Preemption, WakePlacement,
};

/// A setting that is one of two words: `machine.NAME=WORD`, and `[model]` in a file.
pub(super) struct Word {
    pub(super) name: &'static str,
    /// The key in a file's `[model]`.
    pub(super) file_key: &'static str,
    pub(super) summary: &'static str,
    pub(super) words: [&'static str; 2],
    /// The index of the present word.
    pub(super) get: fn(&ModelParameters) -> usize,
    pub(super) set: fn(&mut ModelParameters, usize),
}

impl Word {
    /// The present word.
    pub(super) fn of(&self, model: &ModelParameters) -> &'static str {
        self.words[(self.get)(model)]
    }

    /// The index of a word.
    pub(super) fn place(&self, value: &str) -> Option<usize> {
        self.words.iter().position(|word| *word == value)
    }
}

/// All word settings.
pub(super) const WORDS: &[Word] = &[
    Word {
        name: "machine.ownership-overlap",
        file_key: "ownership_overlap",
        summary: "Whether buffered stores request their lines before their turn.",
        words: ["none", "prefetch"],
        get: |model| model.ownership_overlap as usize,
        set: |model, i| model.ownership_overlap = [OwnershipOverlap::None, OwnershipOverlap::Prefetch][i],
    },
    Word {
        name: "machine.load-of-modified",
        file_key: "load_of_modified",
        summary: "Whether a load of a line that another core has modified shares it, or takes it over.",
        words: ["share", "take-over"],
        get: |model| model.load_of_modified as usize,
        set: |model, i| model.load_of_modified = [LoadOfModified::Share, LoadOfModified::TakeOver][i],
    },
    Word {
        name: "machine.node-count",
        file_key: "node_count",
        summary: "Where a CPU counts its queue nodes in use: in its first node, as Linux does, or nowhere.",
        words: ["in-node", "free"],
        get: |model| model.node_count as usize,
        set: |model, i| model.node_count = [NodeCount::InNode, NodeCount::Free][i],
    },
    Word {
        name: "machine.preemption",
        file_key: "preemption",
        summary: "Where a task can be preempted: only where it offers its CPU, or anywhere.",
        words: ["voluntary", "anywhere"],
        get: |model| model.preemption as usize,
        set: |model, i| model.preemption = [Preemption::Voluntary, Preemption::Anywhere][i],
    },
    Word {
        name: "machine.wake-placement",
        file_key: "wake_placement",
        summary: "The CPU of a woken task: the previous one, or an idle one that shares its cache.",
        words: ["previous", "idle"],
        get: |model| model.wake_placement as usize,
        set: |model, i| model.wake_placement = [WakePlacement::Previous, WakePlacement::Idle][i],
    },
    Word {
        name: "machine.balance",
        file_key: "balance",
        summary: "Whether idle CPUs take tasks that wait for other CPUs.",
        words: ["off", "idle"],
        get: |model| model.balance as usize,
        set: |model, i| model.balance = [Balance::Off, Balance::Idle][i],
    },
];
