//! The files of the repository, as git lists them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::Finding;

/// A text file.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Its path from the root of the repository, with `/`.
    pub path: String,
    /// Its contents.
    pub text: String,
}

impl TextFile {
    /// A finding about this file as a whole.
    pub(crate) fn finding(&self, what: impl Into<String>) -> Finding {
        Finding::new(&self.path, what)
    }

    /// A finding about a line of it, counted from 1.
    pub(crate) fn finding_at(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding::new(format!("{}:{line}", self.path), what)
    }
}

/// The root of the repository whose tests cargo runs. If several checkouts share a target
/// directory, that need not be the one in which this program was built.
pub fn root() -> PathBuf {
    let own = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let mut path = PathBuf::from(own);
    path.pop();
    path
}

/// A directory of this name for a separate build, because cargo may be busy with the ordinary one.
///
/// # Errors
///
/// If it cannot be made.
pub fn build_directory(name: &str) -> Result<PathBuf> {
    let build = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let build = std::path::absolute(build.join(name))?;
    fs::create_dir_all(&build).with_context(|| build.display().to_string())?;
    Ok(build)
}

/// All text files under version control.
///
/// # Errors
///
/// If git cannot list them, or a file cannot be read.
pub fn tracked() -> Result<Vec<TextFile>> {
    list(&["--cached"])
}

/// The Rust sources of all crates without their integration tests, including those that are not yet
/// under version control.
///
/// # Errors
///
/// As for [`tracked`].
pub fn sources() -> Result<Vec<TextFile>> {
    // In git's patterns a `*` also matches slashes.
    list(&["--cached", "--others", "--exclude-standard", "--", "crates/*/src/*.rs", "xtask/src/*.rs"])
}

fn list(arguments: &[&str]) -> Result<Vec<TextFile>> {
    let root = root();
    let git = Command::new("git").arg("-C").arg(&root).args(["ls-files", "-z"]).args(arguments).output();
    let git = git.context("git does not start")?;
    ensure!(git.status.success(), "git ls-files: {}", String::from_utf8_lossy(&git.stderr));
    let names = String::from_utf8(git.stdout).context("the name of a file is not UTF-8")?;
    let mut files = Vec::new();
    for name in names.split_terminator('\0') {
        if let Some(text) = read(&root.join(name)).with_context(|| name.to_owned())? {
            files.push(TextFile { path: name.to_owned(), text });
        }
    }
    ensure!(!files.is_empty(), "git lists no text file in {}", root.display());
    Ok(files)
}

/// `None` for a file that is not text, and for a file that was deleted but that git still knows.
fn read(path: &Path) -> Result<Option<String>> {
    if !path.is_file() {
        return Ok(None);
    }
    Ok(String::from_utf8(fs::read(path)?).ok().filter(|text| !text.contains('\0')))
}
