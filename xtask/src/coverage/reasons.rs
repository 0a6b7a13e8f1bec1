//! Reasons why nothing reaches some lines, or not always.

use crate::Finding;
use crate::files::TextFile;

/// A line that need not be reached. The lines after it, up to the next line that is reached, need
/// not be reached either. This applies to all lines of the file with this text.
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    /// The file, from the root of the repository.
    pub file: &'static str,
    /// The line, without the spaces around it.
    pub line: &'static str,
    /// Why nothing reaches it.
    pub why: &'static str,
}

const COMPILER: &str = "runs only in the compiler: parts of locks and of their list in `const`";
const RACE: &str =
    "needs another thread's write between two instructions: the torture often has it, but not always";
const CONTROL: &str =
    "needs another thread's write between two instructions, and the torture leaves this control out";
const MARKER: &str = "is called by nothing: the compiler looks whether a trait has it";
const WATCH: &str = "only where a processor can watch a line (aarch64); here AVAILABLE is false";
const UNCOUNTED: &str = "does nothing: for platforms that do not count";
const NEVER: &str = "states that this cannot happen: only a condition that breaks its contract leads there";
const ASSERTED: &str = "a debug assertion panics before it, where it is compiled";
const WEAK: &str = "needs a weak compare-exchange that fails for no reason, which it never does on x86-64";
const UNASKED: &str =
    "needs another thread's write between two instructions; the torture never drains, disowns or upgrades";
const SOME: &str =
    "needs another thread's write between two instructions: the torture has some of these, and not always";
const NOTHING: &str = "does nothing: for platforms where the operating system takes the processor anywhere";

const ZEROED: &str =
    "natively, and on the platform of the unit tests, these are zero bytes: for platforms that make them";

const fn reason(file: &'static str, line: &'static str, why: &'static str) -> Reason {
    Reason { file, line, why }
}

/// All reasons.
pub const REASONS: &[Reason] = &[
    reason("crates/collection/src/classic/hmcs.rs", "const fn new() -> Self {", COMPILER),
    reason("crates/collection/src/classic/parking_lot_mutex.rs", "Err(seen) => word = seen,", RACE),
    reason("crates/collection/src/classic/parking_lot_mutex.rs", "fn default() -> Self {", ZEROED),
    reason("crates/collection/src/controls.rs", "Err(seen) => top = seen,", CONTROL),
    reason(
        "crates/collection/src/freebsd/lockmgr.rs",
        "Err(found) => seen = self.word.after_failure::<T>(found),",
        UNASKED,
    ),
    reason("crates/collection/src/freebsd/lockmgr/drain.rs", "return Err(Failure::Deadlock);", ASSERTED),
    reason("crates/collection/src/freebsd/lockmgr/drain.rs", "Err(FREE) => continue,", WEAK),
    reason(
        "crates/collection/src/freebsd/lockmgr/drain.rs",
        "Err(found) => seen = self.word.after_failure::<T>(found),",
        UNASKED,
    ),
    reason("crates/collection/src/freebsd/lockmgr/exclusive.rs", "Err(Failure::Deadlock)", ASSERTED),
    reason("crates/collection/src/freebsd/lockmgr/exclusive.rs", "Err(found) => found,", RACE),
    reason(
        "crates/collection/src/freebsd/lockmgr/exclusive.rs",
        "Err(found) => seen = self.word.after_failure::<T>(found),",
        UNASKED,
    ),
    reason("crates/collection/src/freebsd/lockmgr/light.rs", "refused();", ASSERTED),
    reason("crates/collection/src/freebsd/lockmgr/light.rs", "Err(FREE) => {}", WEAK),
    reason(
        "crates/collection/src/freebsd/lockmgr/shared.rs",
        "Err(found) => seen = self.word.after_failure::<T>(found),",
        SOME,
    ),
    reason("crates/collection/src/linux/mutex.rs", "Err(seen) => {", RACE),
    reason("crates/collection/src/linux/mutex.rs", "Err(seen) => word = seen,", RACE),
    // The end of the branch of `settle` in which the neighbour has left between two looks.
    reason("crates/collection/src/linux/osq.rs", "}", RACE),
    reason("crates/collection/src/linux/qspinlock.rs", "Err(seen) => old = seen,", RACE),
    reason("crates/collection/src/linux/qspinlock/compete.rs", "return word;", RACE),
    reason("crates/collection/src/linux/qspinlock/compete.rs", "Err(seen) => val = seen,", RACE),
    reason("crates/collection/src/linux/rwsem.rs", "Err(now) => count = now,", RACE),
    reason("crates/collection/src/linux/rwsem/spin.rs", "Err(now) => count = now,", RACE),
    reason("crates/collection/src/linux/rwsem/spin.rs", "Err(now) => owner = now,", RACE),
    reason("crates/collection/src/subjects/algorithms.rs", "const fn some<const N: usize>(", COMPILER),
    reason("crates/collection/src/subjects/algorithms.rs", "const fn both<const N: usize>(", COMPILER),
    reason(
        "crates/collection/src/subjects/presets.rs",
        "const fn switches_of(algorithm: &str) -> &'static [&'static SwitchInfo] {",
        COMPILER,
    ),
    reason("crates/core/src/native.rs", "pub fn arm<T>(_address: *const T) {}", WATCH),
    reason("crates/core/src/native.rs", "pub fn sleep() {}", WATCH),
    reason("crates/core/src/native.rs", "without_unwinding(W::Hooks::turned);", WATCH),
    reason(
        "crates/core/src/near/condvar/monitor.rs",
        "Err(Unnotified::OtherMutex) => unreachable!(\"a monitor has one mutex\"),",
        NEVER,
    ),
    reason("crates/core/src/near/mutex/beside.rs", "fn default() -> Self {", ZEROED),
    reason("crates/core/src/parking/chain.rs", "fn default() -> Self {", ZEROED),
    reason("crates/core/src/platform.rs", "fn count(_event: LockEvent) {}", UNCOUNTED),
    reason("crates/core/src/platform.rs", "fn may_give_way() {}", NOTHING),
    reason("crates/core/src/parking/queue_lock.rs", "Err(now) => seen = now,", RACE),
    reason("crates/core/src/tuning.rs", "None", COMPILER),
    reason(
        "crates/core/src/tuning/macros.rs",
        "fn declared_by_switches(_: $crate::tuning::DeclaredBySwitches) {}",
        MARKER,
    ),
];

/// The reason for a line of a file.
pub fn of(path: &str, line: &str) -> Option<&'static str> {
    REASONS.iter().find(|reason| (reason.file, reason.line) == (path, line)).map(|reason| reason.why)
}

/// Reasons for lines that the files do not have.
pub fn of_no_line(files: &[TextFile]) -> Vec<Finding> {
    let has = |reason: &&Reason| {
        let mut files = files.iter().filter(|file| file.path == reason.file);
        files.any(|file| file.text.lines().any(|line| line.trim() == reason.line))
    };
    let missing = REASONS.iter().filter(|reason| !has(reason));
    let what = |line| format!("has no line `{line}`, for which reasons.rs has a reason");
    missing.map(|reason| Finding::new(reason.file, what(reason.line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_for_one_line_of_one_file() {
        let [Reason { file, line, why }, ..] = *REASONS else { panic!("no reason to try") };
        assert_eq!(of(file, line), Some(why));
        assert_eq!(of("a.rs", line), None);
        assert_eq!(of(file, "fn other() {}"), None);
    }

    #[test]
    fn a_reason_whose_line_has_gone_is_found() {
        let text = |without: &str| {
            let lines = REASONS.iter().map(|reason| reason.line).filter(|line| *line != without);
            lines.collect::<Vec<_>>().join("\n")
        };
        let file = |without: &str, path: &str| TextFile { path: path.to_owned(), text: text(without) };
        let files =
            |without: &str| REASONS.iter().map(|reason| file(without, reason.file)).collect::<Vec<_>>();
        assert_eq!(of_no_line(&files("")), []);
        let places: Vec<_> = of_no_line(&files(REASONS[0].line)).into_iter().map(|f| f.place).collect();
        assert_eq!(places, [REASONS[0].file]);
    }
}
