//! The evidence as a document: `docs/internals/orderings.md`.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Result, bail, ensure};
use nearlock_collection::subjects::Subject;

use crate::evidence::{Evidence, Reason, SURVIVORS, Survivor};
use crate::hash;
use crate::model::{Depth, SearchStats};
use crate::mutate::{Half, Mutant, STORES_NOT_ORDERED, Site};
use crate::source::{self, Place};

/// The document's text before the hash of the sources.
const HASH: &str = "Hash of the sources: ";

/// The places with an ordering stronger than AcqRel, what they pair with, and the pattern that
/// needs it.
const TOTAL: &[(&str, &str, &str, &str)] = &[
    ("strong_fences.rs", "light", "`heavy`", "Dekker: x = 1, fence, read y, against y = 1, fence, read x"),
    ("strong_fences.rs", "heavy", "`light`, `heavy`", "the same"),
    (
        "near/mutex/waiting.rs",
        "take_behind_strong_fence",
        "`answer_if_requested`",
        "Dekker: make a request, fence, exchange the word, against store 0, fence, read the requests",
    ),
    ("near/mutex/releasing.rs", "answer_if_requested", "`take_behind_strong_fence`", "the same"),
    (
        "near/rwlock/reading.rs",
        "enters_fenced",
        "`lock_slow`, `write_within`, `try_write`",
        "Dekker: publish the lock, fence, read the mutex, against take the mutex, fence, read the lines",
    ),
    (
        "near/rwlock/reading.rs",
        "enters_by_count",
        "`lock_slow`, `write_within`, `try_write`, `wait_until_uncounted`, `close_behind_fence`",
        "Dekker: add to the count, fence, read mutex and mode, against take the mutex, or change the mode, \
         fence, read the count",
    ),
    ("near/rwlock/writing.rs", "write_within", "`enters_fenced`, `enters_by_count`", "the same"),
    ("near/rwlock/writing.rs", "lock_slow", "`enters_fenced`, `enters_by_count`", "the same"),
    ("near/rwlock/writing.rs", "try_write", "`enters_fenced`, `enters_by_count`", "the same"),
    ("near/rwlock/writing.rs", "wait_until_uncounted", "`enters_by_count`", "the same"),
    ("near/rwlock/upgrading.rs", "close_behind_fence", "`enters_by_count`", "the same"),
];

/// The document, from evidence of all models.
///
/// # Errors
///
/// If the evidence is not complete: some ordering is exercised by no model, or is there for no
/// reason.
pub fn render(evidence: &Evidence, depth: Depth) -> Result<String> {
    let (places, strays) = source::places()?;
    let findings = findings(evidence, &places, &strays);
    ensure!(findings.is_empty(), "the evidence is not complete:\n{}", findings.join("\n"));
    let mut text = INTRODUCTION.to_owned();
    writeln!(text, "\n{HASH}`{}`\n", hash::of_sources()?)?;
    let halves = evidence.mutants.len();
    let survivors = evidence.survivors().count();
    let by_rule = |mutant: &&Mutant| mutant.caught().is_some_and(|(_, how)| how == STORES_NOT_ORDERED);
    let by_rule = evidence.mutants.iter().filter(by_rule).count();
    writeln!(
        text,
        "{} operations with an ordering, {halves} halves: {} caught when dropped, {by_rule} of them by the rule of stores \
         alone (by consequences, models of up to {} executions have been tried); {survivors} not.\n",
        places.len(),
        halves - survivors,
        depth.consequences_max,
    )?;
    sites(&mut text, evidence, &places)?;
    sequential(&mut text, &places)?;
    survivors_section(&mut text, evidence, &places)?;
    models(&mut text, &evidence.runs, depth)?;
    Ok(text)
}

/// The hash that a document was made with.
pub fn hash_in(document: &str) -> Option<&str> {
    document.lines().find_map(|line| line.strip_prefix(HASH)?.strip_prefix('`')?.strip_suffix('`'))
}

/// Where a document lacks a line of what this evidence makes, or has one too many: the first such
/// place. Not compared are the model that catches each half, how it fails, and how far models were
/// searched, because these depend on the depth.
///
/// # Errors
///
/// As [`render`].
pub fn difference(document: &str, evidence: &Evidence) -> Result<Option<String>> {
    let made = render(evidence, Depth::default())?;
    let (made, there) = (shape(&made), shape(document));
    let same = made.iter().zip(&there).take_while(|(made, there)| made == there).count();
    let at = |lines: &[String]| lines.get(same).cloned().unwrap_or_else(|| "its end".to_owned());
    Ok((made != there).then(|| format!("`{}` stands where `{}` should", at(&there), at(&made))))
}

/// The parts that do not depend on the depth.
fn shape(document: &str) -> Vec<String> {
    let mut section = "";
    let mut lines = Vec::new();
    for line in document.lines() {
        let cells: Vec<_> = line.split(" | ").collect();
        let kept = match (section, &*cells) {
            // Half and place; the model that catches it, and how.
            ("## The orderings", [kept @ .., model, how]) if !model.is_empty() && how.len() > " |".len() => {
                kept
            }
            ("## The models", [kept, ..]) => std::slice::from_ref(kept),
            _ => &cells,
        };
        let line = kept.join(" | ");
        if line.starts_with("## ") {
            section =
                ["## The orderings", "## The models"].into_iter().find(|name| line == *name).unwrap_or("");
        }
        let counted = line.split_once(" caught when dropped").map(|(counts, _)| counts.to_owned());
        if !line.starts_with("Each to ") {
            lines.push(counted.unwrap_or(line));
        }
    }
    lines
}

/// The gaps in the evidence, and the violations of the rules in the sources.
pub fn findings(evidence: &Evidence, places: &[Place], strays: &[String]) -> Vec<String> {
    let mut found: Vec<_> = strays
        .iter()
        .map(|at| format!("{at}: an ordering that no operation takes, so that models cannot see it"))
        .collect();
    for place in places {
        let mut halves: Vec<_> =
            evidence.mutants.iter().filter(|m| place.is_of(&m.site)).map(|m| m.site.half).collect();
        halves.sort_unstable();
        if halves != place.halves {
            let Place { file, at: (line, _), code, .. } = place;
            found.push(format!("{file}:{line}: `{code}`: models exercise {halves:?} of {:?}", place.halves));
        }
        let total = TOTAL.iter().any(|(file, function, ..)| is_at(place, file, function));
        if total != place.halves.contains(&Half::TotalOrder) {
            found.push(format!(
                "{}: `{}`: SeqCst needs a pair in `TOTAL`, and other orderings must have none",
                place.file, place.code
            ));
        }
    }
    let at_none = |mutant: &&Mutant| !places.iter().any(|place| place.is_of(&mutant.site));
    let unknown = evidence.mutants.iter().filter(at_none);
    found.extend(
        unknown.map(|mutant| format!("{}: models exercise what the sources do not show", mutant.site)),
    );
    found.extend(unexpected(evidence, places, SURVIVORS));
    found
}

/// Mutants that survive without a reason, and reasons of mutants that do not survive.
fn unexpected(evidence: &Evidence, places: &[Place], listed: &[Survivor]) -> Vec<String> {
    let nameless = evidence.survivors().filter(|mutant| reason_of(&mutant.site, places, listed).is_none());
    let mut found: Vec<_> = nameless.map(|mutant| format!("{}: no model fails", mutant.site)).collect();
    found.extend(evidence.unsettled().map(ToString::to_string));
    for one in listed {
        let explains = |mutant: &Mutant| reason_of(&mutant.site, places, std::slice::from_ref(one)).is_some();
        if !evidence.survivors().any(explains) {
            found.push(format!("{one:?} does not survive, or does not exist"));
        }
    }
    found
}

fn is_at(place: &Place, file: &str, function: &str) -> bool {
    place.file.ends_with(file) && place.function == function
}

fn reason_of(site: &Site, places: &[Place], listed: &[Survivor]) -> Option<Reason> {
    let place = places.iter().find(|place| place.is_of(site))?;
    let of_site = |one: &&Survivor| {
        is_at(place, one.file, one.function) && (site.operation, site.half) == (one.operation, one.half)
    };
    listed.iter().find(of_site).map(|one| one.reason)
}

/// A table for each file.
fn sites(text: &mut String, evidence: &Evidence, places: &[Place]) -> Result<()> {
    writeln!(text, "## The orderings\n")?;
    let mut files: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
    for place in places {
        files.entry(&place.file).or_default().push(place);
    }
    for (file, places) in files {
        writeln!(text, "### `{file}`\n\n| in | operation | without | fails | how |\n|---|---|---|---|---|")?;
        for place in places {
            for mutant in evidence.mutants.iter().filter(|mutant| place.is_of(&mutant.site)) {
                let Place { function, code, .. } = place;
                let Site { half, operation, .. } = mutant.site;
                let half = match half {
                    Half::Whole => "it".to_owned(),
                    half if operation.starts_with("failed") => format!("{half:?} on failure"),
                    half => format!("{half:?}"),
                };
                let (model, how) = mutant.caught().unwrap_or(("none", "survives"));
                writeln!(text, "| `{function}` | `{code}` | {half} | {} | {} |", cell(model), cell(how))?;
            }
        }
        writeln!(text)?;
    }
    Ok(())
}

fn sequential(text: &mut String, places: &[Place]) -> Result<()> {
    writeln!(text, "## SeqCst\n\n| in | operation | pairs with | pattern |\n|---|---|---|---|")?;
    for (file, function, pair, pattern) in TOTAL {
        let Some(place) = places.iter().find(|place| is_at(place, file, function)) else {
            bail!("{function} of {file} is in `TOTAL`, but not in the sources");
        };
        writeln!(text, "| `{file}`, `{function}` | `{}` | {pair} | {pattern} |", place.code)?;
    }
    writeln!(text)?;
    Ok(())
}

fn survivors_section(text: &mut String, evidence: &Evidence, places: &[Place]) -> Result<()> {
    writeln!(text, "## Survivors\n")?;
    if evidence.survivors().next().is_none() {
        writeln!(text, "None. One could stay only for one of these reasons:\n")?;
        for reason in Reason::ALL {
            writeln!(text, "- {}.", reason.text())?;
        }
    }
    for mutant in evidence.survivors() {
        let why = reason_of(&mutant.site, places, SURVIVORS).map_or("for no reason", Reason::text);
        writeln!(text, "- `{}`: {why}.", mutant.site)?;
    }
    writeln!(text)?;
    Ok(())
}

/// In a table a bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn models(text: &mut String, runs: &[SearchStats], depth: Depth) -> Result<()> {
    writeln!(text, "## The models\n")?;
    write!(text, "Each to {} preemption more than in `cargo test`", depth.more_preemptions)?;
    let cut = depth.executions_max.map(|max| format!(", and to {max} executions at most (marked +)"));
    let (of_presets, listed): (Vec<_>, Vec<_>) = runs.iter().partition(|run| is_of_preset(run));
    let executions: u64 = of_presets.iter().map(|run| run.executions).sum();
    writeln!(
        text,
        "{}. The models of presets are not listed: {} models, {executions} executions.\n\n\
         | model | preemptions | executions |\n|---|---|---|",
        cut.unwrap_or_default(),
        of_presets.len(),
    )?;
    for run in listed {
        let bound = run.preemptions.map_or("any number".to_owned(), |n| format!("at most {n}"));
        let more = if run.is_cut { " +" } else { "" };
        writeln!(text, "| {} | {bound} | {}{more} |", cell(&run.model), run.executions)?;
    }
    Ok(())
}

/// Whether the model is of a lock that is an algorithm with some switches in other positions.
fn is_of_preset(run: &SearchStats) -> bool {
    let lock = run.model.split_once(": ").and_then(|(lock, _)| Subject::named(lock));
    lock.is_some_and(|lock| !lock.positions.is_empty())
}

const INTRODUCTION: &str = "\
# Orderings

Made by `cargo xtask orderings`; not to be edited by hand. `cargo test -p nearlock-model` makes the same evidence with
the models' own bounds. It fails if this page was made from other sources than the present ones.

Each Acquire and each Release in the sources of `nearlock-core` and `nearlock-collection` is dropped, one at a time. So
is each half of an AcqRel, the part of SeqCst beyond AcqRel, and each asymmetric fence. The models that exercise the
place are run until one fails, those that exercise the fewest places first: *fails* names the model, and *how* says in
which way it fails. They are run for 100 executions at most, then for 1,000, 10,000 and 100,000. If no model has failed
by then, and some model has more executions, that is an error: the half does not count as a survivor. With nothing
dropped, all models hold.

- *two sections that nothing orders*: they overlap, or one of them may not see what the other has written.
- *an execution without end*: a thread waits for ever.
- *a word used before it is known to be made*: a word of a node that its owner has just initialised.
- *two stores to one word that nothing orders*: either could be the last. The models require an order because in them a
  plain store is a swap, and shows one order only. This is more than the memory model requires. So it counts only where
  no model of a size that is named below fails by a consequence.
- *an access through a null pointer*, or an assertion of the model: as it says.

Locks that share their source are proven together: an ordering is needed if one of them needs it. The evidence does not
cover the words of the machine (`native.rs`), which pass on the ordering that they are given (`cargo xtask asm` and
`cargo xtask mutants` check them). Nor does it cover the locks that are broken on purpose (`controls.rs`).

What this does not show: loom tries all interleavings up to a number of preemptions, with up to five threads. It tries
the values that loads may return under the C11 memory model without load buffering. SeqCst operations count as AcqRel
there, and SeqCst fences as what they are. In the models a plain store is a swap, and a narrow store is a
read-modify-write of the whole word. The rest is in `crates/model/src/lib.rs`. Shuttle, the other engine of that crate,
is sequentially consistent and says nothing about orderings.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Fate;

    #[test]
    fn a_survivor_stays_only_with_a_reason_that_is_its_own() {
        let (file, operation) = ("crates/core/src/a.rs", "load");
        let site = Site { file, line: 7, column: 3, operation, half: Half::Acquire };
        let evidence = |fate| Evidence { runs: Vec::new(), mutants: vec![Mutant { site, fate }] };
        let place = Place {
            file: file.to_owned(),
            at: (7, 3),
            function: "f".to_owned(),
            code: String::new(),
            halves: vec![Half::Acquire],
        };
        let listed = |function| {
            [Survivor { file, function, operation, half: Half::Acquire, reason: Reason::LoadBuffering }]
        };
        let found = |fate, listed: &[Survivor]| {
            unexpected(&evidence(fate), std::slice::from_ref(&place), listed).len()
        };
        assert_eq!(found(Fate::Survives, &[]), 1, "without a reason");
        assert_eq!(found(Fate::Survives, &listed("f")), 0);
        assert_eq!(found(Fate::Survives, &listed("g")), 2, "the reason is another's");
        let caught = Fate::Caught { model: "a model".to_owned(), how: "how".to_owned() };
        assert_eq!(found(caught.clone(), &[]), 0);
        assert_eq!(found(caught, &listed("f")), 1, "it does not survive any more");
        let unsettled = Fate::Unsettled { model: "a model".to_owned() };
        assert_eq!(found(unsettled.clone(), &[]), 1, "its fate is not known");
        assert_eq!(found(unsettled, &listed("f")), 2, "a reason does not settle it");
    }
}
