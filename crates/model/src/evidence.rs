//! The evidence for a set of models: each holds as it is, and an ordering that a model exercises is
//! needed by some model of the set.

use std::collections::BTreeSet;

use crate::model::{Depth, Model, SearchStats};
use crate::mutate::{Fate, Half, Mutant, Outcome, Site, Stores, outcome_of, record, silence_on_demand};
use crate::processes;

/// Why an ordering may be in a lock though no model fails without it. There is no other reason.
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
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::SequentialOperation, Self::LoadBuffering, Self::ReleaseSequence];

    /// The reason in words.
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
    /// The function that contains it.
    pub function: &'static str,
    /// The operation.
    pub operation: &'static str,
    /// The half of the ordering.
    pub half: Half,
    /// Why it stays.
    pub reason: Reason,
}

/// All permitted survivors: none.
pub const SURVIVORS: &[Survivor] = &[];

/// See the [module](self).
#[derive(Debug)]
pub struct Evidence {
    /// The effort of each model, in the order of the models.
    pub runs: Vec<SearchStats>,
    /// The fate of each ordering that some model exercises.
    pub mutants: Vec<Mutant>,
}

impl Evidence {
    /// Runs the models as they are, to this depth, and within their own bounds if the depth is not
    /// reached. Then drops each half of an ordering that they exercise, and runs the models that
    /// exercise it until one fails. The models that exercise the fewest places come first. So the
    /// models of the lock whose source contains the place come before those of locks that are made
    /// of it.
    ///
    /// The mutants are run at the models' own bounds, because what fails there also fails at a
    /// greater depth. `tell` is called with each step when it is done.
    ///
    /// The result does not depend on the speed of the machine: a search is bounded by its
    /// executions. Several processes share the work of many models.
    ///
    /// # Panics
    ///
    /// If a model fails as it is.
    pub fn gather(models: &[Model], depth: Depth, tell: impl Fn(&dyn std::fmt::Display)) -> Self {
        // Not in a child process, which would wait for another thread that reads the hook of this
        // process at the fork.
        silence_on_demand();
        let recorded = processes::map(models.len(), |at| {
            let model = &models[at];
            let (run, mut sites) = record(model, depth);
            tell(&run);
            if run.is_cut {
                // The executions that were left out may be within the model's own bounds.
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

    /// The mutants whose fate is not known.
    pub fn unsettled(&self) -> impl Iterator<Item = &Mutant> {
        self.mutants.iter().filter(|mutant| matches!(mutant.fate, Fate::Unsettled { .. }))
    }

    /// The mutants that no model has caught.
    pub fn survivors(&self) -> impl Iterator<Item = &Mutant> {
        self.mutants.iter().filter(|mutant| mutant.fate == Fate::Survives)
    }
}

/// The largest number of executions of one model that are tried on a mutant. Most models have a
/// hundredth of that; without an ordering they may have many times as many.
const EXECUTIONS_MAX: usize = 100_000;

/// A mutant is tried on all its models for this many executions, then on those that would have
/// continued for more, and so on. Most mutants fail at once in one model, and have executions
/// without end in another.
const ROUNDS: [usize; 4] = [100, 1_000, 10_000, EXECUTIONS_MAX];

/// The fate of these models without this half, in at most this many executions of each.
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
