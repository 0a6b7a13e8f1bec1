//! The evidence for a set of models: each holds as it is, and fails without any ordering that it
//! exercises, or another of them does.

use std::collections::BTreeSet;

use crate::model::{Depth, Model, SearchStats};
use crate::mutate::{Fate, Half, Mutant, Outcome, Site, Stores, outcome_of, record, silence_on_demand};
use crate::processes;

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

/// All survivors there may be: none.
pub const SURVIVORS: &[Survivor] = &[];

/// See the [module](self).
#[derive(Debug)]
pub struct Evidence {
    /// What each model took, in the order of the models.
    pub runs: Vec<SearchStats>,
    /// What became of each ordering that some model exercises.
    pub mutants: Vec<Mutant>,
}

impl Evidence {
    /// Runs the models as they are, to this depth, and within their own bounds where it is not
    /// reached; then drops each half of an ordering that they exercise, and runs those that do
    /// until one fails. First come the models that exercise fewest places: those of the lock in
    /// whose source the place is, before those of locks that are made of it. That at
    /// the models' own bounds: what fails there fails deeper down too. `tell` is told of each step
    /// as it is done.
    ///
    /// What is found does not depend on how fast the machine is: a search is bounded by its
    /// executions. Several processes share the work of many models.
    ///
    /// # Panics
    ///
    /// If a model fails as it is.
    pub fn gather(models: &[Model], depth: Depth, tell: impl Fn(&dyn std::fmt::Display)) -> Self {
        // Not in another process, which would wait for whoever reads the hook of this one at the moment.
        silence_on_demand();
        let recorded = processes::map(models.len(), |at| {
            let model = &models[at];
            let (run, mut sites) = record(model, depth);
            tell(&run);
            if run.is_cut {
                // What was left out may lie within the model's own bounds.
                sites.extend(record(model, Depth::default()).1);
            }
            (run, sites)
        });
        let mut focused: Vec<_> = recorded.iter().zip(models).collect();
        focused.sort_by_key(|((run, sites), _)| (sites.len(), run.executions));
        let sites: BTreeSet<Site> = recorded.iter().flat_map(|(_, sites)| sites).copied().collect();
        let sites: Vec<Site> = sites.into_iter().collect();
        let mutants = processes::map(sites.len(), |at| {
            let site = &sites[at];
            let exercising = || focused.iter().filter(|((_, sites), _)| sites.contains(site));
            let small = exercising().filter(|((run, _), _)| run.executions <= depth.consequences_max);
            let small: Vec<_> = small.map(|(_, model)| *model).collect();
            let all = exercising().map(|(_, model)| *model).collect();
            let fate = match fate_of(site, small, Stores::AsTheyCome, depth.consequences_max as usize) {
                caught @ Fate::Caught { .. } => caught,
                Fate::Survives | Fate::Unsettled { .. } => {
                    fate_of(site, all, Stores::Ordered, EXECUTIONS_MAX)
                }
            };
            let mutant = Mutant { site: *site, fate };
            tell(&mutant);
            mutant
        });
        Self { runs: recorded.into_iter().map(|(run, _)| run).collect(), mutants }
    }

    /// Runs the models within their own bounds, as they are, in several processes.
    ///
    /// # Panics
    ///
    /// If a model fails.
    pub fn runs_of(models: &[Model]) -> Vec<SearchStats> {
        silence_on_demand();
        processes::map(models.len(), |at| models[at].run(Depth::default()))
    }

    /// The mutants of which nobody knows.
    pub fn unsettled(&self) -> impl Iterator<Item = &Mutant> {
        self.mutants.iter().filter(|mutant| matches!(mutant.fate, Fate::Unsettled { .. }))
    }

    /// The mutants that no model has caught.
    pub fn survivors(&self) -> impl Iterator<Item = &Mutant> {
        self.mutants.iter().filter(|mutant| mutant.fate == Fate::Survives)
    }
}

/// Executions of one model that are tried on a mutant, at most. Those of most models are a
/// hundredth of that; without an ordering they may be many times as many.
const EXECUTIONS_MAX: usize = 100_000;

/// A mutant is tried on all its models for so many executions; then, on those that would have gone
/// on, for more; and so on. Most fail at once in one of them, and are without end in another.
const ROUNDS: [usize; 4] = [100, 1_000, 10_000, EXECUTIONS_MAX];

/// What becomes of these models without this half, in so many executions of each at most.
fn fate_of(site: &Site, models: Vec<&Model>, stores: Stores, executions_max: usize) -> Fate {
    let mut open = models;
    let last = ROUNDS.iter().position(|round| *round >= executions_max).unwrap_or(ROUNDS.len() - 1);
    for round in &ROUNDS[..=last] {
        let mut unsettled = Vec::new();
        for model in open {
            match outcome_of(model, Some(*site), stores, Some(*round.min(&executions_max))) {
                Outcome::Fails(how) => return Fate::Caught { model: model.name.clone(), how },
                Outcome::Holds => {}
                Outcome::Unsettled => unsettled.push(model),
            }
        }
        open = unsettled;
    }
    match open.first() {
        None => Fate::Survives,
        Some(model) => Fate::Unsettled { model: model.name.clone() },
    }
}
