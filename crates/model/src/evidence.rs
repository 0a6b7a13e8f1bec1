//! The evidence for a set of models: each holds as it is, and fails without any ordering that it exercises, or
//! another of them does.

use std::collections::BTreeSet;

use crate::model::{Depth, Model, Run};
use crate::mutate::{Half, Mutant, Site, Stores, failure_with, record};

/// Why an ordering may stand in a lock though no model fails without it. There is no other reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// loom takes a SeqCst operation (other than a fence) for AcqRel.
    SequentialOperation,
    /// loom never lets a load see a store that comes later in program order.
    LoadBuffering,
    /// A plain store is a swap in the models, and prolongs the release sequence that it would end.
    ReleaseSequence,
}

impl Reason {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::SequentialOperation, Self::LoadBuffering, Self::ReleaseSequence];

    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::SequentialOperation => "loom takes a SeqCst operation, other than a fence, for AcqRel",
            Self::LoadBuffering => "loom never lets a load see a store that comes later in program order",
            Self::ReleaseSequence => {
                "a plain store is a swap in the models, and prolongs the release sequence that it would end"
            }
        }
    }
}

/// An ordering that no model needs.
#[derive(Clone, Copy, Debug)]
pub struct Survivor {
    /// The end of the file's name.
    pub file: &'static str,
    /// The function that it stands in.
    pub function: &'static str,
    /// The operation.
    pub operation: &'static str,
    /// The half.
    pub half: Half,
    /// Why it stays.
    pub reason: Reason,
}

/// All survivors there may be.
pub const SURVIVORS: &[Survivor] = &[
    // The store that frees a marked mutex comes after an addition to the same word, which releases.
    Survivor {
        file: "linux/counter_mutex.rs",
        function: "release",
        operation: "store",
        half: Half::Release,
        reason: Reason::ReleaseSequence,
    },
];

/// See the [module](self).
#[derive(Debug)]
pub struct Evidence {
    /// What each model took, in the order of the models.
    pub runs: Vec<Run>,
    /// What became of each ordering that some model exercises.
    pub mutants: Vec<Mutant>,
}

impl Evidence {
    /// Runs the models as they are, to this depth, and within their own bounds where it is not reached; then drops each
    /// half of an ordering that they exercise, and runs those that do, the shortest first, until one fails. That at the
    /// models' own bounds: what fails there fails deeper down too. `tell` is told of each step as it is done.
    ///
    /// On one thread: loom maps and unmaps stacks in each execution, which several threads of one process do more slowly
    /// than one (11 s instead of 8, two processors, `orderings --locks qspinlock,cna --run-only`).
    ///
    /// # Panics
    ///
    /// If a model fails as it is.
    pub fn gather(models: &[Model], depth: Depth, tell: impl Fn(&dyn std::fmt::Display)) -> Self {
        let recorded = |model: &Model| {
            let (run, mut sites) = record(model, depth);
            tell(&run);
            if run.is_cut {
                // What was left out may lie within the model's own bounds.
                sites.extend(record(model, Depth::default()).1);
            }
            (run, sites)
        };
        let recorded: Vec<_> = models.iter().map(recorded).collect();
        let mut shortest: Vec<_> = recorded.iter().zip(models).collect();
        shortest.sort_by_key(|((run, _), _)| run.executions);
        let sites: BTreeSet<Site> = recorded.iter().flat_map(|(_, sites)| sites).copied().collect();
        let verdict = |site: &Site| {
            let exercising = || shortest.iter().filter(|((_, sites), _)| sites.contains(site));
            let failing =
                |model: &Model, stores| Some((model.name.clone(), failure_with(model, Some(*site), stores)?));
            let caught = exercising()
                .take_while(|((run, _), _)| run.executions <= depth.consequences_max)
                .find_map(|(_, model)| failing(model, Stores::AsTheyCome))
                .or_else(|| exercising().find_map(|(_, model)| failing(model, Stores::Ordered)));
            let mutant = Mutant { site: *site, caught };
            tell(&mutant);
            mutant
        };
        let mutants = sites.iter().map(verdict).collect();
        Self { runs: recorded.into_iter().map(|(run, _)| run).collect(), mutants }
    }

    /// The mutants that no model has caught.
    pub fn survivors(&self) -> impl Iterator<Item = &Mutant> {
        self.mutants.iter().filter(|mutant| mutant.caught.is_none())
    }
}
