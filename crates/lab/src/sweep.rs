//! Simulations of many cells, spread over the processors.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::settings::Assignment;
use crate::simulate::{Failure, Simulated, Simulation, simulate};

/// The result of one cell.
pub type Outcome = Result<Simulated, Failure>;

/// Simulates all cells, beginning with the first, and returns the results in their order. `done`
/// gets the index and the result of each cell when it has finished. Only one thread calls it at a
/// time. If it breaks, cells that have not begun are skipped, and `done` is not called again.
pub fn run(
    simulations: &[Simulation],
    done: impl FnMut(usize, &Outcome) -> ControlFlow<()> + Send,
) -> Vec<Outcome> {
    let outcomes: Vec<OnceLock<Outcome>> = simulations.iter().map(|_| OnceLock::new()).collect();
    let done = Mutex::new(done);
    let broken = AtomicBool::new(false);
    rayon::scope_fifo(|scope| {
        for (index, (simulation, place)) in simulations.iter().zip(&outcomes).enumerate() {
            let (done, broken) = (&done, &broken);
            scope.spawn_fifo(move |_| {
                if broken.load(Relaxed) {
                    return;
                }
                let outcome = place.get_or_init(|| simulate(simulation));
                // A panic in one call does not affect the others.
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                // Another call may have broken while this cell was simulated.
                if !broken.load(Relaxed) && done(index, outcome).is_break() {
                    broken.store(true, Relaxed);
                }
            });
        }
    });
    outcomes.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// The command that repeats a cell.
pub fn command(machine: &str, workload: &str, failure: &Failure, settings: &[Assignment]) -> String {
    let Failure { lock, threads, seed, .. } = failure;
    let mut command = format!(
        "nearlock simulate --machine {} --workload {workload} --lock {} --threads {threads} --seed {seed}",
        quoted(machine),
        quoted(lock)
    );
    for setting in settings {
        command.push_str(" --set ");
        command.push_str(&quoted(&setting.to_string()));
    }
    command
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Value;
    use crate::simulate::Fault;

    #[test]
    fn a_command_repeats_the_cell() {
        let failure =
            Failure { lock: "mcs", threads: 3, seed: 7, at_ns: 1, fault: Fault::Deadlock { waiting: 2 } };
        let smt = Assignment { setting: "machine.smt", value: Value::Integer(1) };
        assert_eq!(
            command("my machine.toml", "locktorture", &failure, &[smt]),
            "nearlock simulate --machine 'my machine.toml' --workload locktorture --lock mcs --threads 3 \
             --seed 7 --set machine.smt=1"
        );
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in
            [("a-b_c.toml", "a-b_c.toml"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
