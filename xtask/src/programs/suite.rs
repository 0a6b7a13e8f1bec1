//! Runs parking_lot's own tests with nearlock's types.
//!
//! The tests are the test modules of parking_lot's source, in which other types are named. Cargo
//! fetches them. They are not part of this repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::outcome::Outcome;
use super::report::aligned;
use super::trial::{Locks, Trial};
use super::{Room, Unavailable, source};
use crate::{Finding, files};

/// The tests of a version of parking_lot.
struct Suite {
    version: &'static str,
    /// The crate whose types are tested, and its directory.
    subject: (&'static str, &'static str),
    /// The files of parking_lot with tests.
    files: &'static [&'static str],
    /// Tests that are not expected to pass.
    other: &'static [Other],
}

/// A test that is not expected to pass.
struct Other {
    file: &'static str,
    test: &'static str,
    what: What,
    reason: &'static str,
}

/// The reason why a test is not expected to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It does not compile, and is left out.
    LeftOut,
    /// It fails.
    Fails,
}

const SUITES: &[Suite] = &[
    Suite {
        version: "0.13.0",
        subject: ("nearlock", "crates/nearlock"),
        files: &[
            "src/mutex.rs",
            "src/rwlock.rs",
            "src/recursive_rwlock.rs",
            "src/remutex.rs",
            "src/fair_mutex.rs",
            "src/once.rs",
            "src/condvar.rs",
            "tests/issue_203.rs",
            "tests/issue_392.rs",
        ],
        other: &[
            left_out("src/once.rs", "wait_for_initialization", WORD),
            left_out("src/once.rs", "wait_force_ignores_poison", WORD),
            left_out("src/rwlock.rs", "test_read_with_waiting_writer", NESTED),
            left_out("src/recursive_rwlock.rs", "recursive_read_with_waiting_writer", PRIVATE),
        ],
    },
    Suite {
        version: "0.12.5",
        subject: ("parking_lot", "shims/parking_lot-0.12"),
        files: &[
            "src/mutex.rs",
            "src/rwlock.rs",
            "src/remutex.rs",
            "src/fair_mutex.rs",
            "src/once.rs",
            "src/condvar.rs",
            "tests/issue_203.rs",
            "tests/issue_392.rs",
        ],
        other: &[
            left_out("src/condvar.rs", "wait_while_until_internal_does_not_wait_if_initially_false", PRIVATE),
            left_out("src/condvar.rs", "wait_while_until_internal_times_out_before_false", PRIVATE),
            left_out("src/condvar.rs", "wait_while_until_internal", PRIVATE),
        ],
    },
];

const WORD: &str = "reads parking_lot's private state to see that a thread sleeps";
const NESTED: &str = "calls a private function of parking_lot, and requires that a thread which reads cannot read \
    again while a writer waits: with nearlock it can";
const PRIVATE: &str = "calls a private function of parking_lot";

const fn left_out(file: &'static str, test: &'static str, reason: &'static str) -> Other {
    Other { file, test, what: What::LeftOut, reason }
}

/// Runs all suites.
///
/// # Errors
///
/// If cargo does not start, or a file cannot be written.
pub fn run(unavailable: Unavailable) -> Result<(String, Vec<Finding>)> {
    let room = Room::new("programs")?;
    let (mut report, mut findings) = (String::new(), Vec::new());
    for suite in SUITES {
        let Suite { version, subject: (subject, _), .. } = suite;
        let name = format!("parking_lot {version}");
        let own = room.directory.join(format!("suite-{version}"));
        eprintln!("{name}: from crates.io to {}", own.display());
        let source = match source::fetch("parking_lot", version, &own.join("fetch")) {
            Ok(source) => source,
            Err(error) => {
                report += &format!("{name}: skipped: cannot be fetched: {error:#}\n");
                if unavailable == Unavailable::Fail {
                    findings.push(Finding::new(name, "cannot be fetched"));
                }
                continue;
            }
        };
        let package = suite.write(&source, &own.join("tests-of-nearlock"))?;
        report += &format!("The tests of parking_lot {version}, with the types of the crate {subject}:\n\n");
        let mut rows = vec![["file", "passed", "failed", "ignored", "left out", "result"].map(str::to_owned)];
        for file in suite.files {
            let stem = stem(file);
            let trial = Trial {
                package: package.clone(),
                target: room.directory.join("build-suites"),
                logs: own.join(stem),
                arguments: ["test", "--test", stem].map(str::to_owned).to_vec(),
                locks: Locks::Own,
            };
            let outcome = trial.run()?.outcome;
            let result = suite.result(file, &outcome);
            if let Err(what) = &result {
                let what = format!("{what}; see {}.{{out,err}}", own.join(stem).display());
                findings.push(Finding::new(format!("{name}, {file}"), what));
            }
            rows.push(suite.row(file, &outcome, &result));
        }
        report += &aligned(&rows);
        report.extend(suite.other.iter().map(Other::line));
        report.push('\n');
    }
    Ok((report, findings))
}

/// The name of the file without its ending.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".rs").unwrap_or(name)
}

impl Suite {
    /// Writes a package with the tests. Returns its directory.
    fn write(&self, source: &Path, to: &Path) -> Result<PathBuf> {
        fs::create_dir_all(to.join("src"))?;
        fs::create_dir_all(to.join("tests"))?;
        fs::write(to.join("src/lib.rs"), "")?;
        let manifest = fs::read_to_string(source.join("Cargo.toml"))?;
        fs::write(to.join("Cargo.toml"), self.manifest(&manifest)?)?;
        for file in self.files {
            let text = fs::read_to_string(source.join(file)).with_context(|| (*file).to_owned())?;
            fs::write(to.join("tests").join(format!("{}.rs", stem(file))), self.ported(file, &text)?)?;
        }
        Ok(to.to_owned())
    }

    /// A manifest with the dependencies of parking_lot's tests, as its own manifest names them.
    fn manifest(&self, theirs: &str) -> Result<String> {
        let theirs: Table = theirs.parse().context("the manifest of parking_lot")?;
        let edition = theirs.get("package").and_then(|package| package.get("edition")).cloned();
        let (subject, directory) = self.subject;
        let path = files::root().canonicalize()?.join(directory).display().to_string();
        let features = ["arc_lock", "serde"].map(Value::from).to_vec();
        let subject_table = Table::from_iter([
            ("path".to_owned(), Value::from(path)),
            ("features".to_owned(), Value::from(features)),
        ]);
        let mut dependencies = Table::from_iter([(subject.to_owned(), Value::from(subject_table))]);
        if let Some(Value::Table(more)) = theirs.get("dev-dependencies") {
            dependencies.extend(more.clone());
        }
        let mut package = Table::from_iter([("name".to_owned(), Value::from("suite"))]);
        package.extend(edition.map(|edition| ("edition".to_owned(), edition)));
        // The features that the tests name.
        let flags = ["default", "serde", "arc_lock"];
        let on = |flag| if flag == "default" { vec!["serde".into(), "arc_lock".into()] } else { Vec::new() };
        let features = flags.map(|flag| (flag.to_owned(), Value::Array(on(flag))));
        let manifest = Table::from_iter([
            ("package".to_owned(), Value::from(package)),
            ("workspace".to_owned(), Value::from(Table::new())),
            ("features".to_owned(), Value::from(Table::from_iter(features))),
            ("dependencies".to_owned(), Value::from(dependencies)),
        ]);
        Ok(manifest.to_string())
    }

    /// The tests of a file, with the types of the other crate.
    fn ported(&self, file: &str, text: &str) -> Result<String> {
        let (subject, _) = self.subject;
        // Of a source file only the test modules, which are at its end.
        let begin = if file.starts_with("src/") { text.find("\n#[cfg(test)]") } else { Some(0) };
        let mut tests = text[begin.context("there are no tests")?..].to_owned();
        for other in self.other.iter().filter(|other| other.file == file && other.what == What::LeftOut) {
            tests =
                without(&tests, other.test).with_context(|| format!("there is no test {}", other.test))?;
        }
        let lines = tests.lines().filter(|line| !line.trim_start().starts_with("use super::PARKED_BIT"));
        let tests: String = lines.flat_map(|line| [line, "\n"]).collect();
        Ok(tests
            .replace("crate::", &format!("{subject}::"))
            .replace("parking_lot::", &format!("{subject}::")))
    }

    /// Whether the tests of a file show what is expected.
    fn result(&self, file: &str, outcome: &Outcome) -> Result<String, String> {
        if let Some(trouble) = &outcome.trouble {
            return Err(trouble.clone());
        }
        let known: Vec<_> =
            self.other.iter().filter(|other| other.file == file && other.what == What::Fails).collect();
        let is_known = |name: &str| known.iter().any(|other| name.ends_with(other.test));
        let new: Vec<_> =
            outcome.failures.iter().filter(|name| !is_known(name)).map(String::as_str).collect();
        match outcome.failures.len() {
            _ if !new.is_empty() => Err(format!("fails: {}", new.join(", "))),
            0 if outcome.failed > 0 => Err("fails".to_owned()),
            0 if outcome.passed == 0 => Err("there are no tests".to_owned()),
            0 => Ok("ok".to_owned()),
            count => Ok(format!("ok: {count} differ, as is known")),
        }
    }

    fn row(&self, file: &str, outcome: &Outcome, result: &Result<String, String>) -> [String; 6] {
        let out = |other: &&Other| other.file == file && other.what == What::LeftOut;
        [
            file.to_owned(),
            outcome.passed.to_string(),
            outcome.failed.to_string(),
            outcome.ignored.to_string(),
            self.other.iter().filter(out).count().to_string(),
            result.as_ref().map_or_else(|what| format!("FAILED: {what}"), String::clone),
        ]
    }
}

impl Other {
    fn line(&self) -> String {
        let what = match self.what {
            What::LeftOut => "left out",
            What::Fails => "fails",
        };
        format!("{} in {} {what}: {}\n", self.test, self.file, self.reason)
    }
}

/// The text without this test: from its attributes to the bracket that closes it.
fn without(text: &str, test: &str) -> Option<String> {
    let lines: Vec<_> = text.lines().collect();
    let name = format!("fn {test}(");
    let at = lines.iter().position(|line| line.trim_start().starts_with(&name))?;
    let indent = lines[at].len() - lines[at].trim_start().len();
    let begin = (0..at).rev().take_while(|line| lines[*line].trim_start().starts_with("#[")).last()?;
    let close = format!("{}}}", " ".repeat(indent));
    let end = (at..lines.len()).find(|line| lines[*line] == close)?;
    Some(lines[..begin].iter().chain(&lines[end + 1..]).flat_map(|line| [*line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: Suite = Suite {
        version: "1.0.0",
        subject: ("ours", "crates/ours"),
        files: &["src/a.rs"],
        other: &[
            left_out("src/a.rs", "b", "a reason"),
            Other { file: "src/a.rs", test: "c", what: What::Fails, reason: "another" },
        ],
    };

    const SOURCE: &str = "\
use crate::raw::Raw;

#[cfg(test)]
mod tests {
    use super::PARKED_BIT;
    use crate::{A, B};

    #[test]
    #[cfg(feature = \"serde\")]
    fn b() {
        {
            PARKED_BIT;
        }
    }

    #[test]
    fn c() {
        crate::f();
    }
}
";

    #[test]
    fn only_tests_are_ported() {
        let expected = "\n#[cfg(test)]\nmod tests {\n    use ours::{A, B};\n\n\n    \
            #[test]\n    fn c() {\n        ours::f();\n    }\n}\n";
        assert_eq!(SUITE.ported("src/a.rs", SOURCE).unwrap(), expected);
        assert!(SUITE.ported("src/a.rs", &SOURCE.replace("fn b()", "fn d()")).is_err());
        assert!(SUITE.ported("src/a.rs", "fn a() {}").is_err());
        assert_eq!(SUITE.ported("tests/a.rs", "use parking_lot::A;").unwrap(), "use ours::A;\n");
    }

    #[test]
    fn tests_get_the_crates_that_they_need() {
        let theirs = "[package]\nname = \"parking_lot\"\nedition = \"2021\"\n\n[dependencies.lock_api]\nversion = \"1\"\n\n\
            [dev-dependencies.rand]\nversion = \"0.8\"\n";
        let ours: Table = SUITE.manifest(theirs).unwrap().parse().unwrap();
        assert_eq!(ours["package"]["edition"].as_str(), Some("2021"));
        let names: Vec<_> = ours["dependencies"].as_table().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["ours", "rand"]);
        assert!(ours.contains_key("workspace"));
    }

    #[test]
    fn a_test_that_is_not_known_to_fail_fails_the_file() {
        let outcome = |failures: &[&str]| Outcome {
            passed: 2,
            failed: failures.len() as u64,
            failures: failures.iter().map(|name| (*name).to_owned()).collect(),
            ..Outcome::default()
        };
        let result = |outcome: &Outcome| SUITE.result("src/a.rs", outcome);
        assert_eq!(result(&outcome(&[])), Ok("ok".to_owned()));
        assert_eq!(result(&outcome(&["tests::c"])), Ok("ok: 1 differ, as is known".to_owned()));
        assert_eq!(result(&outcome(&["tests::c", "tests::d"])), Err("fails: tests::d".to_owned()));
        let trouble = Outcome { trouble: Some("error".to_owned()), ..outcome(&[]) };
        assert_eq!(result(&trouble), Err("error".to_owned()));
        assert!(result(&Outcome::default()).is_err());
    }
}
