//! The time that nearlock adds to the compilation of a program, compared with parking_lot.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{Finding, files};

/// The number of rounds, in each of which either program is built once. With one round, another
/// program that runs at the same time could decide the result.
const ROUNDS: usize = 7;

/// The largest permitted ratio to the processor time of the program that depends on parking_lot.
const RATIO_MAX: f64 = 1.3;

/// An empty program that depends on one package.
struct Program {
    directory: PathBuf,
}

impl Program {
    fn new(name: &str, dependency: &str) -> Result<Self> {
        let directory = files::root().join("target/compile-time").join(name);
        fs::create_dir_all(directory.join("src"))?;
        fs::write(directory.join("src/main.rs"), "fn main() {}\n")?;
        // A separate workspace, so that no profile of ours applies.
        let manifest = format!(
            "[package]\nname = \"empty-{name}\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{dependency}\n"
        );
        fs::write(directory.join("Cargo.toml"), manifest)?;
        Ok(Self { directory })
    }

    /// The processor time of a build from nothing, in seconds, over all processes of the build.
    fn build(&self) -> Result<f64> {
        let target = self.directory.join("target");
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        let before = of_children()?;
        let built = Command::new("cargo")
            .args(["build", "--quiet"])
            .current_dir(&self.directory)
            .env("CARGO_TARGET_DIR", &target)
            .status()
            .context("cannot run cargo")?;
        ensure!(built.success(), "the program in {} cannot be built", self.directory.display());
        Ok(of_children()? - before)
    }
}

/// The processor time of all processes that this one has waited for, in seconds.
fn of_children() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("only Linux reports processor time")?;
    // proc_pid_stat(5): fields 16 and 17, in ticks. The second field is in parentheses.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: Vec<u64> = fields.split_whitespace().skip(13).take(2).flat_map(str::parse).collect();
    ensure!(ticks.len() == 2, "/proc/self/stat has another form: {stat}");
    // On every architecture of Linux there are 100 ticks in a second (USER_HZ).
    Ok(ticks.iter().sum::<u64>() as f64 / 100.0)
}

/// The lower quartile, the median, and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// Builds both programs alternately, and compares.
///
/// # Errors
///
/// If one cannot be built.
pub fn run() -> Result<(String, Vec<Finding>)> {
    let nearlock: &Path = &files::root().join("crates/nearlock");
    let path = nearlock.canonicalize()?;
    let ours =
        Program::new("nearlock", &format!("nearlock = {{ path = {:?} }}", path.display().to_string()))?;
    let theirs = Program::new("parking_lot", "parking_lot = \"0.13\"")?;
    // Not counted, because these builds download the dependencies.
    ours.build()?;
    theirs.build()?;
    let (mut report, mut ratios) = (String::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (mine, other) = (ours.build()?, theirs.build()?);
        writeln!(report, "nearlock {mine:.2} s, parking_lot 0.13 {other:.2} s: {:.2}", mine / other)?;
        ratios.push(mine / other);
    }
    let [low, median, high] = quartiles(ratios);
    writeln!(
        report,
        "processor time: {median:.2} times that of parking_lot, quartiles {low:.2} and {high:.2}"
    )?;
    let is_slow = median > RATIO_MAX && low > RATIO_MAX;
    let slow = format!(
        "an empty program takes {median:.2} times as long to compile as with parking_lot, more than {RATIO_MAX}"
    );
    Ok((report, is_slow.then(|| Finding::new("crates/nearlock", slow)).into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_take_processor_time() {
        let before = of_children().unwrap();
        let mut spent = 0.0;
        while spent == 0.0 {
            assert!(Command::new("cargo").arg("--version").output().unwrap().status.success());
            spent = of_children().unwrap() - before;
        }
        assert!(spent > 0.0);
    }

    #[test]
    fn quartiles_are_those_of_the_sorted_values() {
        assert_eq!(quartiles(vec![7.0, 1.0, 3.0, 2.0, 6.0, 5.0, 4.0]), [2.0, 4.0, 5.0]);
    }
}
