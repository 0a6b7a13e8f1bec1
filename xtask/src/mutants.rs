//! Whether the tests detect faults. Weakens random orderings of `core` and `collection`, one at a
//! time, in a copy of the repository, and checks whether a test fails.
//!
//! The models weaken each ordering too, but by a switch in the model's words. This module edits the
//! source, as a programmer would, and so runs all tests.
//!
//! | file | what |
//! |---|---|
//! | `sites.rs` | the places that can be weakened, and how |
//! | `trial.rs` | runs tests until the first that fails |

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{Finding, Misuse, documents, files};

pub mod sites;
pub mod trial;

use sites::Site;
use trial::{Failure, Outcome, Workshop};

/// The toolchain whose Miri is run; `.ci/deep` installs it.
const MIRI: &str = "+nightly-2026-10-29";

/// Which sites to weaken.
#[derive(Clone, Debug)]
pub enum Choice {
    /// This many, drawn from this seed, or from a new one if there is none.
    Drawn {
        /// The seed.
        seed: Option<u64>,
        /// How many.
        count: usize,
    },
    /// The sites of one line, `FILE:LINE` as in the table.
    Line(String),
}

/// One mutant.
struct Trial {
    site: Site,
    outcome: Outcome,
    seconds: f64,
}

/// Tries the mutants. Returns the table and the findings.
///
/// # Errors
///
/// If the repository cannot be copied, or a tool does not start.
pub fn run(choice: &Choice) -> Result<(String, Vec<Finding>)> {
    let all = sites::all(&files::sources()?)?;
    let total = all.len();
    let (chosen, mut report) = match choice {
        Choice::Drawn { seed, count } => {
            let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
            (draw(all, seed, *count), format!("seed {seed}: {count} of {total} sites\n"))
        }
        Choice::Line(place) => (on_line(all, place)?, String::new()),
    };
    eprint!("{report}");
    let workshop = copy()?;
    let locks = locks()?;
    let mut trials = Vec::new();
    for site in chosen {
        let trial = try_one(&workshop, site, &locks)?;
        eprint!("{}", row(&trial));
        trials.push(trial);
    }
    report += &trials.iter().map(row).collect::<String>();
    let mut findings: Vec<_> = trials.iter().filter_map(finding).collect();
    findings.extend(failing_without(&workshop, &trials, &locks)?);
    Ok((report, findings))
}

/// This many random sites, in their order.
fn draw(mut all: Vec<Site>, seed: u64, count: usize) -> Vec<Site> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    while all.len() > count {
        all.remove((rng.next_u64() % all.len() as u64) as usize);
    }
    all
}

/// The locks that have models.
fn locks() -> Result<Vec<String>> {
    let sources = files::sources()?;
    let list = |name: &str| {
        let path = format!("crates/collection/src/subjects/{name}.rs");
        sources.iter().find(|file| file.path == path).context("the list of locks")
    };
    let locks = [documents::algorithms(list("algorithms")?)?, documents::presets(list("presets")?)?];
    Ok(locks.into_iter().flatten().filter(|name| !name.starts_with("lock-")).collect())
}

fn on_line(all: Vec<Site>, place: &str) -> Result<Vec<Site>> {
    let place = crate::sources::locks::within(place).unwrap_or(place);
    let places: Vec<_> = all.iter().map(Site::place).collect();
    let chosen: Vec<_> = all.into_iter().filter(|site| site.place() == place).collect();
    if chosen.is_empty() {
        let file_of = |place: &str| place.split(':').next().unwrap_or_default().to_owned();
        let near: Vec<_> = places.iter().filter(|other| file_of(other) == file_of(place)).cloned().collect();
        let files: BTreeSet<_> = places.iter().map(|place| file_of(place)).collect();
        let there = if near.is_empty() { files.into_iter().collect() } else { near };
        bail!(Misuse(format!("nothing to weaken at `{place}`; there is: {}", there.join(" "))));
    }
    Ok(chosen)
}

/// Copies the repository as it is now, uncommitted changes included.
fn copy() -> Result<Workshop> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| files::root().join("target"), PathBuf::from);
    let directory = std::path::absolute(target.join("mutants"))?;
    let workshop = Workshop { root: directory.join("repository"), target: directory.join("build") };
    if workshop.root.exists() {
        fs::remove_dir_all(&workshop.root).context("the copy of an earlier run")?;
    }
    for file in files::tracked()?.iter().chain(&files::sources()?) {
        write(&workshop.root.join(&file.path), &file.text)?;
    }
    Ok(workshop)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().context("a file has a folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .with_context(|| path.display().to_string())
}

fn try_one(workshop: &Workshop, site: Site, locks: &[String]) -> Result<Trial> {
    let begin = Instant::now();
    let path = workshop.root.join(&site.file);
    let original = fs::read_to_string(&path).with_context(|| site.file.clone())?;
    write(&path, &site.weaken(&original))?;
    let outcome = judge(workshop, &site, locks);
    write(&path, &original)?;
    Ok(Trial { outcome: outcome?, site, seconds: begin.elapsed().as_secs_f64() })
}

/// Runs the tests that should fail, the most likely first.
fn judge(workshop: &Workshop, site: &Site, locks: &[String]) -> Result<Outcome> {
    let namesakes = namesakes(&site.file, locks);
    let survived = || Ok(Outcome::Survived);
    // No model has native code.
    let is_native = site.file.contains("/native");
    let steps: [&dyn Fn() -> Result<Outcome>; 8] = [
        &|| if is_native || namesakes.is_empty() { survived() } else { workshop.models(&namesakes) },
        &|| if is_native { survived() } else { workshop.models(&[]) },
        &|| if is_native { survived() } else { workshop.test("nearlock-model", &[]) },
        &|| if is_native { listings(workshop) } else { survived() },
        &|| workshop.test("nearlock-core", &[]),
        &|| workshop.test("nearlock-collection", &[]),
        &|| workshop.test("nearlock-os", &[]),
        &|| if is_native { miri(workshop) } else { survived() },
    ];
    for step in steps {
        let outcome = step()?;
        if outcome != Outcome::Survived {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Survived)
}

/// The locks whose names contain the name of the file or of its folder.
fn namesakes<'a>(file: &str, locks: &'a [String]) -> Vec<&'a str> {
    let parts: Vec<_> =
        file.trim_end_matches(".rs").split('/').skip(4).map(|part| part.replace('_', "-")).collect();
    let is_namesake = |lock: &&str| parts.iter().any(|part| lock.contains(part.as_str()));
    locks.iter().map(String::as_str).filter(is_namesake).collect()
}

fn listings(workshop: &Workshop) -> Result<Outcome> {
    workshop.check(
        workshop.cargo(&["run", "--quiet", "-p", "xtask", "--", "asm"]),
        "cargo xtask asm",
        "aarch64: ",
    )
}

fn miri(workshop: &Workshop) -> Result<Outcome> {
    let mut miri = workshop.cargo(&[MIRI, "miri", "test", "-p", "nearlock-core", "--lib", "native"]);
    miri.env("MIRIFLAGS", "-Zmiri-strict-provenance -Zmiri-many-seeds=0..8");
    let version = workshop.cargo(&[MIRI, "miri", "--version"]).output()?;
    if !version.status.success() {
        return Ok(Outcome::Undecided("there is no Miri here; .ci/deep installs it".to_owned()));
    }
    workshop.check(miri, "Miri", "FAILING SEED")
}

/// The tests that fail in the copy without any mutant: mutants that these tests have caught do not
/// count.
fn failing_without(workshop: &Workshop, trials: &[Trial], locks: &[String]) -> Result<Vec<Finding>> {
    let mut tests = BTreeMap::<_, BTreeSet<String>>::new();
    for trial in trials {
        // Without a name it was not a test, but a tool, or the end of a program.
        if let Outcome::Caught(Failure { by, test, .. }) = &trial.outcome
            && (by == trial::MODEL || !test.is_empty())
        {
            tests.entry(by.as_str()).or_default().insert(test.clone());
        }
    }
    let mut findings = Vec::new();
    for (by, names) in tests {
        let names: Vec<_> = names.into_iter().collect();
        eprintln!("without a mutant: {by}");
        let outcome = if by == trial::MODEL {
            workshop.models(&locks_of(&names, locks))?
        } else {
            workshop.test(by, &names)?
        };
        if outcome != Outcome::Survived {
            findings.push(Finding::new(by, format!("fails without a mutant too: {}", verdict(&outcome))));
        }
    }
    Ok(findings)
}

/// The locks of these models. None, which stands for all, if a model belongs to no lock.
fn locks_of<'a>(models: &[String], locks: &'a [String]) -> Vec<&'a str> {
    // A model's name begins with that of its lock.
    let lock = |model: &String| {
        let (name, _) = model.split_once(": ")?;
        locks.iter().map(String::as_str).find(|lock| *lock == name)
    };
    let found: Option<BTreeSet<_>> = models.iter().map(lock).collect();
    found.unwrap_or_default().into_iter().collect()
}

fn finding(trial: &Trial) -> Option<Finding> {
    let what = match &trial.outcome {
        Outcome::Caught(_) => return None,
        Outcome::Survived => format!("{} is noticed by no test", trial.site.change()),
        Outcome::Undecided(why) => format!("{}: {why}", trial.site.change()),
    };
    Some(Finding::new(trial.site.place(), what))
}

fn verdict(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Survived => "SURVIVED".to_owned(),
        Outcome::Undecided(why) => format!("UNDECIDED: {why}"),
        Outcome::Caught(Failure { by, test, message }) => {
            let message: String = message.chars().take(90).collect();
            format!("{by} {test}: {message}")
        }
    }
}

fn row(trial: &Trial) -> String {
    let verdict = verdict(&trial.outcome);
    let (place, change, seconds) = (trial.site.place(), trial.site.change(), trial.seconds);
    format!("{place:<34} {change:<22} {seconds:>5.0} s  {verdict}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::TextFile;

    fn some() -> Vec<Site> {
        let text = "fn f() {\n    a.load(Acquire);\n    a.swap(1, AcqRel);\n    a.store(0, Release);\n}\n"
            .to_owned();
        let file = TextFile { path: "crates/collection/src/linux/a/b.rs".to_owned(), text };
        sites::all(&[file]).expect("is Rust")
    }

    #[test]
    fn a_seed_draws_the_same_again() {
        assert_eq!(draw(some(), 1, 2), draw(some(), 1, 2));
        assert_eq!(draw(some(), 1, 9), some());
        let drawn: std::collections::BTreeSet<_> =
            (0..50).map(|seed| draw(some(), seed, 1)[0].change()).collect();
        assert_eq!(drawn.len(), 4, "every site is drawn by some seed");
    }

    #[test]
    fn a_line_has_all_its_sites() {
        for place in ["linux/a/b.rs:3", "crates/collection/src/linux/a/b.rs:3"] {
            assert_eq!(on_line(some(), place).expect("is there").len(), 2);
        }
        let error = on_line(some(), "linux/a/b.rs:1").expect_err("nothing there");
        assert!(error.is::<Misuse>());
        assert!(error.to_string().ends_with("linux/a/b.rs:2 linux/a/b.rs:3 linux/a/b.rs:3 linux/a/b.rs:4"));
        let error = on_line(some(), "b.rs").expect_err("no such file").to_string();
        assert_eq!(error, "nothing to weaken at `b.rs`; there is: linux/a/b.rs");
    }

    #[test]
    fn namesakes_have_the_name_of_file_or_folder() {
        let locks = locks().expect("git lists files");
        assert_eq!(
            namesakes("crates/collection/src/linux/cna_v13.rs", &locks),
            ["cna-v13", "cna-v13-no-sro"]
        );
        assert!(namesakes("crates/collection/src/linux/qspinlock/queue.rs", &locks).len() > 5);
        assert!(namesakes("crates/core/src/parking/parker.rs", &locks).is_empty());
    }

    /// A model that belongs to no lock stands for all locks.
    #[test]
    fn models_of_no_lock_stand_for_all() {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (locks, two) = (owned(&["mcs", "tas", "clh"]), owned(&["tas: a", "mcs: b: c", "tas: d"]));
        assert_eq!(locks_of(&two, &locks), ["mcs", "tas"]);
        assert!(locks_of(&owned(&["tas: a", "parker: one token"]), &locks).is_empty());
        assert!(locks_of(&owned(&["tas: a", ""]), &locks).is_empty());
    }

    #[test]
    fn only_a_caught_mutant_passes() {
        let trial = |outcome| finding(&Trial { site: some().remove(0), outcome, seconds: 0.0 });
        let caught = Failure { by: "a".to_owned(), test: "b".to_owned(), message: "c".to_owned() };
        assert_eq!(trial(Outcome::Caught(caught)), None);
        assert!(trial(Outcome::Survived).is_some());
        assert!(trial(Outcome::Undecided("does not compile".to_owned())).is_some());
    }
}
