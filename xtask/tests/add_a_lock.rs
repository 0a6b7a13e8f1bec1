//! `docs/guide/add-a-lock.md` and its second page, followed step by step in a copy of the
//! repository.
//!
//! The copy is under the target directory, and is built in that same target directory under a
//! separate version. So only nearlock's own crates are built again. At the end the copy is removed,
//! and the command `nearlock` of the repository is put back in its place. The other build results
//! of the copy stay, and the next run overwrites them.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use xtask::files;
use xtask::guide::{self, Action, End, Step};

/// The pages, in the order in which a reader follows them.
const GUIDE: [&str; 2] = ["docs/guide/add-a-lock.md", "docs/guide/add-a-lock-run.md"];

/// A copy of the repository.
struct Copy {
    /// The directory that only this test uses.
    directory: PathBuf,
    /// The copy itself.
    root: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn make() -> Result<Self> {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let directory = tmp.join("add-a-lock");
        if directory.exists() {
            fs::remove_dir_all(&directory).context("what a killed run has left")?;
        }
        let target = tmp.parent().context("the target directory")?.to_owned();
        let copy = Self { root: directory.join("repository"), directory, target };
        for file in files::tracked()? {
            let is_workspace = file.path == "Cargo.toml";
            let text = if is_workspace { as_other_version(&file.text)? } else { file.text };
            copy.write(&file.path, &text)?;
        }
        // The checks of the repository ask git for its files.
        copy.run("git", &["init", "-q"])?;
        copy.run("git", &["add", "-A"])?;
        for (place, kept) in copy.command() {
            if place.exists() {
                fs::rename(place, kept)?;
            }
        }
        Ok(copy)
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        Ok(fs::write(path, text)?)
    }

    /// The files that a build of the copy's command overwrites: where each is, and where it is kept
    /// meanwhile.
    fn command(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> + use<> {
        let (built, directory) = (self.target.join("debug"), self.directory.clone());
        let names = [format!("nearlock{EXE_SUFFIX}"), "nearlock.d".to_owned()];
        names.into_iter().map(move |name| (built.join(&name), directory.join(&name)))
    }

    /// Runs the program. Returns how it ended, and its output: errors first.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<(End, String)> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.root);
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "0");
        command.env("CARGO_NET_OFFLINE", "true").env("CARGO_TERM_COLOR", "never");
        command.env("RUST_BACKTRACE", "0");
        for variable in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
            command.env_remove(variable);
        }
        let begin = Instant::now();
        let output = command.output().with_context(|| format!("{program} does not start"))?;
        eprintln!("{:6.1} s: {program} {}", begin.elapsed().as_secs_f64(), arguments.join(" "));
        let end = if output.status.success() { End::Success } else { End::Failure };
        Ok((end, [&*output.stderr, &*output.stdout].map(String::from_utf8_lossy).concat()))
    }

    /// Does the step. The output of commands is added to `printed`.
    fn take(&self, step: &Step, printed: &mut String) -> Result<()> {
        match &step.action {
            Action::Create(path, text) => {
                ensure!(
                    !self.root.join(path).exists(),
                    "{path} exists already: the guide needs another example"
                );
                self.write(path, text)?;
            }
            Action::Edit(edit) => edit.apply(&self.root)?,
            Action::Run(commands) => {
                printed.clear();
                for command in commands {
                    let words: Vec<_> = command.words.iter().map(String::as_str).collect();
                    let line = words.join(" ");
                    let (program, arguments) = words.split_first().context("an empty command")?;
                    ensure!(*program == "cargo", "`{line}` is no command of cargo");
                    let (end, output) = self.run(program, arguments)?;
                    ensure!(end == command.end, "`{line}` ends in {end:?}:\n{output}");
                    printed.push_str(&output);
                }
            }
            Action::Expect(lines) => {
                let missing = guide::missing(lines, printed);
                ensure!(missing.is_none(), "no line like {missing:?} in this output:\n{printed}");
            }
        }
        Ok(())
    }
}

/// The manifest with a version that no other build has. Otherwise cargo would take the copy's
/// crates for the repository's, because it identifies a crate by its name, its version, and its
/// place within the workspace.
fn as_other_version(manifest: &str) -> Result<String> {
    let (before, after) = manifest.split_once("\nversion = \"").context("the workspace has a version")?;
    let (version, after) = after.split_once('"').context("a quotation mark")?;
    Ok(format!("{before}\nversion = \"{version}+add-a-lock\"{after}"))
}

impl Drop for Copy {
    fn drop(&mut self) {
        for (place, kept) in self.command() {
            // There may be no file to remove or to move back.
            _ = fs::remove_file(&place);
            _ = fs::rename(kept, place);
        }
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("{} stays behind: {error}", self.directory.display());
        }
    }
}

#[test]
#[ignore = "builds everything once more: .ci/deep does it"]
fn the_guide_leads_to_a_lock() -> Result<()> {
    let copy = Copy::make().context("a copy of the repository")?;
    let mut printed = String::new();
    for page in GUIDE {
        let steps = guide::steps(&fs::read_to_string(files::root().join(page))?).context(page)?;
        ensure!(!steps.is_empty(), "{page} has no steps");
        for step in &steps {
            copy.take(step, &mut printed).with_context(|| format!("{page}:{}", step.line))?;
        }
    }
    Ok(())
}
