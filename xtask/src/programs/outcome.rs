//! What a test run says.

use std::collections::BTreeSet;

/// The number of tests of a run, over all of its test programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that are ignored.
    pub ignored: u64,
    /// The names of the tests that failed.
    pub failures: BTreeSet<String>,
    /// The reason why the run failed, if it is not a test that failed. It may be that the code does
    /// not compile, that a test program crashed, or that the time was over.
    pub trouble: Option<String>,
}

impl Outcome {
    /// Reads the standard output of `cargo test`.
    pub fn of(output: &str) -> Self {
        let mut outcome = Self::default();
        let mut in_list = false;
        for line in output.lines() {
            match line.strip_prefix("    ") {
                Some(name) if in_list => _ = outcome.failures.insert(name.trim().to_owned()),
                _ => in_list = line == "failures:",
            }
            if let Some((_, summary)) = line.split_once("test result: ") {
                outcome.passed += number_before(summary, " passed");
                outcome.failed += number_before(summary, " failed");
                outcome.ignored += number_before(summary, " ignored");
            }
        }
        outcome
    }

    /// Whether all went well.
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.failures.is_empty() && self.trouble.is_none()
    }
}

/// The number before these words, or 0.
fn number_before(text: &str, words: &str) -> u64 {
    let before = text.split_once(words).map_or("", |(before, _)| before);
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

/// The reason of a run that failed, from what cargo writes to its standard error.
pub fn trouble(errors: &str) -> Option<String> {
    let is_reason = |line: &&str| {
        let is_error = line.starts_with("error");
        // Cargo says this for failed tests too.
        let is_summary =
            line.contains("test failed") || line.contains("targets failed") || line.contains("target failed");
        is_error && !is_summary || line.contains("(signal: ")
    };
    errors.lines().find(is_reason).map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 4 tests
test a ... ok
test c ... FAILED
test b::d - should panic ... FAILED
test e ... ignored

failures:

---- c stdout ----
thread 'c' panicked at src/lib.rs:1:1:
    not a name


failures:
    b::d
    c

test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 12 tests
............
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s
";

    #[test]
    fn all_test_programs_count() {
        let failures = ["b::d", "c"].map(str::to_owned).into();
        let expected = Outcome { passed: 13, failed: 2, ignored: 1, failures, trouble: None };
        assert_eq!(Outcome::of(OUTPUT), expected);
        assert!(!expected.is_good());
        assert_eq!(Outcome::of("test result: no numbers"), Outcome::default());
        assert!(Outcome::default().is_good());
    }

    #[test]
    fn a_reason_is_not_that_tests_failed() {
        let failed = "     Running unittests src/lib.rs\nerror: test failed, to rerun pass `--lib`\n\
            error: 1 target failed:\n    `--lib`\n";
        assert_eq!(trouble(failed), None);
        let compile = "   Compiling a\nerror[E0599]: no method named `x`\n --> src/lib.rs:1:1\nerror: could not compile\n";
        assert_eq!(trouble(compile).as_deref(), Some("error[E0599]: no method named `x`"));
        let crashed = "error: test failed, to rerun pass `--lib`\n\nCaused by:\n  process didn't exit \
            successfully: `a` (signal: 6, SIGABRT: process abort signal)\n";
        assert!(trouble(crashed).expect("a signal is a reason").ends_with("process abort signal)"));
    }
}
