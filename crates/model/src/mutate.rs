//! Ordering mutation: is every ordering in the source of a lock needed?
//!
//! The operations of the loom platform are `#[track_caller]`, so each knows the line of the lock
//! that calls it. A lock's models are run once per half of an ordering, with that half dropped. The
//! halves are an Acquire, a Release, each half of an AcqRel, and the part of SeqCst beyond that, of
//! operations and fences alike. The models are also run once per asymmetric fence, without it. If
//! no model catches a mutant, either the ordering is too strong or a model is too weak. The source
//! of a lock needs no hook for this.

mod effect;

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, Once, PoisonError};

use serde::{Deserialize, Deserializer, Serialize};

use crate::engine::Engine;
use crate::loom::Loom;
use crate::model::{Depth, Model, Search, SearchStats};
use crate::processes::text_of;
use effect::{CHECKING, DROPPED, RECORDING, SEEN, STORES};
pub(crate) use effect::{Check, checking, effective, keeps, stores_are_ordered};
pub use effect::{Half, Site, Stores};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A [`Site`] as another process has written it.
#[derive(Deserialize)]
struct Written {
    file: String,
    line: u32,
    column: u32,
    operation: String,
    half: Half,
}

impl<'de> Deserialize<'de> for Site {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Written { file, line, column, operation, half } = Written::deserialize(from)?;
        Ok(Self { file: kept(file), line, column, operation: kept(operation), half })
    }
}

/// There are few such texts, and each is kept once, forever.
fn kept(text: String) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = kept.get(text.as_str()) {
        return text;
    }
    let text: &'static str = text.leak();
    kept.insert(text);
    text
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, operation, half } = self;
        match half {
            Half::Whole => write!(f, "{file}:{line}:{column}: no {operation}"),
            half => write!(f, "{file}:{line}:{column}: {operation} without {half:?}"),
        }
    }
}

/// Runs `model` as it is, and records the halves of orderings that it exercises.
///
/// # Panics
///
/// As [`Model::run`].
pub fn record(model: &Model, depth: Depth) -> (SearchStats, BTreeSet<Site>) {
    SEEN.take();
    RECORDING.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| model.run(depth)));
    RECORDING.set(false);
    match result {
        Ok(run) => (run, SEEN.take()),
        Err(failure) => {
            let name = format!("{} FAILED", model.name);
            eprintln!("{name}");
            // The output of another process is not seen.
            resume_unwind(Box::new(format!("{}\n\n{name}", text_of(&*failure))))
        }
    }
}

/// The result of a model from which something was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It failed with this message.
    Fails(String),
    /// It holds in all executions.
    Holds,
    /// It holds in as many executions as were allowed, but there are more.
    Unsettled,
}

/// Runs `model` silently without `dropped` (`None`: as it is). Returns how it failed, if it did.
pub fn failure_of(model: &Model, dropped: Option<Site>) -> Option<String> {
    match outcome_of(model, dropped, Stores::Ordered, None) {
        Outcome::Fails(how) => Some(how),
        Outcome::Holds | Outcome::Unsettled => None,
    }
}

/// As [`failure_of`], under this rule, and for fewer than this many executions.
pub fn outcome_of(
    model: &Model,
    dropped: Option<Site>,
    stores: Stores,
    executions_max: Option<usize>,
) -> Outcome {
    silence_on_demand();
    DROPPED.set(dropped);
    STORES.set(stores);
    QUIET.set(true);
    let depth = Depth { executions_max, ..Depth::default() };
    let result = catch_unwind(AssertUnwindSafe(|| model.search(depth)));
    QUIET.set(false);
    STORES.set(Stores::Ordered);
    DROPPED.set(None);
    match result {
        Ok(Search { is_cut: true, .. }) => Outcome::Unsettled,
        Ok(_) => Outcome::Holds,
        Err(payload) => Outcome::Fails(failure(&*payload)),
    }
}

/// Forgets what loom's race detector was checking when a model panicked.
pub(crate) fn forget_failure() {
    CHECKING.set(Check::Other);
}

/// A description of a model's panic.
fn failure(payload: &(dyn Any + Send)) -> String {
    let text = text_of(payload);
    let first = text.trim().lines().next().unwrap_or_default().trim();
    match CHECKING.replace(Check::Other) {
        Check::Sections => "two sections that nothing orders".to_owned(),
        Check::Stores => STORES_NOT_ORDERED.to_owned(),
        Check::Other if text.contains(ENDLESS) => "an execution without end".to_owned(),
        Check::Other if text.contains(NOT_YET) => "a word used before it is known to be made".to_owned(),
        Check::Other => first.to_owned(),
    }
}

/// The failure of a mutant under the rule [`Stores::Ordered`] alone.
pub const STORES_NOT_ORDERED: &str = "two stores to one word that nothing orders";

/// loom's message for a word whose creation nothing orders before its use.
const NOT_YET: &str = "Causality violation: Concurrent load and mut accesses";

/// loom's message for an execution with too many steps: all remaining threads wait.
const ENDLESS: &str = "exceeded maximum number of branches";

/// The fate of one mutant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mutant {
    /// The half that was dropped.
    pub site: Site,
    /// The result of the models.
    pub fate: Fate,
}

/// The result of the models for a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// This model failed, and in this way.
    Caught {
        /// The model's name.
        model: String,
        /// How it failed.
        how: String,
    },
    /// All models hold.
    Survives,
    /// No model fails in the executions that were tried, but this model has more executions.
    Unsettled {
        /// The model's name.
        model: String,
    },
}

impl Mutant {
    /// The model that failed, and how.
    pub fn caught(&self) -> Option<(&str, &str)> {
        match &self.fate {
            Fate::Caught { model, how } => Some((model, how)),
            Fate::Survives | Fate::Unsettled { .. } => None,
        }
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { site, fate } = self;
        match fate {
            Fate::Caught { model, how } => write!(f, "{site}: caught by {model}: {how}"),
            Fate::Survives => write!(f, "{site}: SURVIVED"),
            Fate::Unsettled { model } => write!(f, "{site}: UNSETTLED: {model} did not come to its end"),
        }
    }
}

/// Keeps the panics of mutants, which are frequent, from filling the screen.
pub(crate) fn silence_on_demand() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() && !Loom::with_instance(|i| i.demand.is_late()) {
                usual(info);
            }
        }));
    });
}
