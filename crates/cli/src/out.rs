//! `--out DIR`: results as files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::report;

/// The directory cannot be written to.
#[derive(Debug, thiserror::Error)]
#[error("--out {}: {source}: it must be a directory that can be written to, or made", path.display())]
pub struct OutError {
    path: PathBuf,
    source: io::Error,
}

/// A directory for results.
#[derive(Debug)]
pub struct OutDir(PathBuf);

impl OutDir {
    /// The directory of this path, which is made if it is not there. Whether it can be written to is tried,
    /// so that nothing is simulated in vain.
    ///
    /// # Errors
    ///
    /// If it cannot be made, or not be written to.
    pub fn make(path: &Path) -> Result<Self, OutError> {
        let tried = path.join(format!(".nearlock-{}", std::process::id()));
        fs::create_dir_all(path)
            .and_then(|()| File::create_new(&tried))
            .and_then(|_| fs::remove_file(&tried))
            .map_err(|source| OutError { path: path.to_owned(), source })?;
        Ok(Self(path.to_owned()))
    }

    /// Writes a file of this name, and says so to standard error.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let path = self.0.join(file_name(name));
        fs::write(&path, contents)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        report::say(format_args!("wrote {}", path.display()));
        Ok(())
    }
}

/// The name without what leads out of a directory, or means something to a shell: machines of files have any
/// names.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    name.chars().map(|c| if plain(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_directory() {
        assert_eq!(file_name("simulate-haswell-ex-4s.svg"), "simulate-haswell-ex-4s.svg");
        assert_eq!(file_name("simulate-../my machine.svg"), "simulate-..-my-machine.svg");
    }
}
