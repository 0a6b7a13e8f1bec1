//! `--out`: results as files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::args::Format;
use crate::report;
use crate::report::provenance::Provenance;

/// The directory cannot be written to.
#[derive(Debug, thiserror::Error)]
#[error("--out {}: {source}: it must be a directory that can be written to, or created", path.display())]
pub struct OutError {
    path: PathBuf,
    source: io::Error,
}

/// A directory for results.
#[derive(Debug)]
pub struct OutDir(PathBuf);

impl OutDir {
    /// The directory with this path, which is created if necessary. Checks that it can be written
    /// to, so that no simulation is lost.
    ///
    /// # Errors
    ///
    /// If it cannot be created or written to.
    pub fn make(path: &Path) -> Result<Self, OutError> {
        let tried = path.join(format!(".nearlock-{}", std::process::id()));
        fs::create_dir_all(path)
            .and_then(|()| File::create_new(&tried))
            .and_then(|_| fs::remove_file(&tried))
            .map_err(|source| OutError { path: path.to_owned(), source })?;
        Ok(Self(path.to_owned()))
    }

    /// Writes the picture, if there is one, and the output of `write` in JSON and in CSV, to files
    /// with the name `stem` and their extensions. JSON and CSV begin with the provenance.
    ///
    /// # Errors
    ///
    /// If one cannot be written.
    pub fn write_results(
        &self,
        stem: &str,
        provenance: &Provenance,
        picture: Option<&str>,
        write: impl Fn(&mut Vec<u8>, Format) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(svg) = picture {
            self.write(&format!("{stem}.svg"), svg.as_bytes())?;
        }
        for (extension, format) in [("json", Format::Json), ("csv", Format::Csv)] {
            let (mut rows, mut contents) = (Vec::new(), Vec::new());
            write(&mut rows, format)?;
            provenance.write(&mut contents, format, &rows)?;
            self.write(&format!("{stem}.{extension}"), &contents)?;
        }
        Ok(())
    }

    /// Writes a file with this name, and reports it on standard error.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let path = self.0.join(file_name(name));
        fs::write(&path, contents).map_err(|error| named(&path, &error))?;
        report::say(format_args!("wrote {}", path.display()));
        Ok(())
    }
}

/// The file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(
    "--out {}: {source}: it must be a file that can be written, in an existing directory",
    path.display()
)]
pub struct OutFileError {
    path: PathBuf,
    source: io::Error,
}

/// A file for a result. It is created or replaced in one step when the result is complete.
#[derive(Debug)]
pub struct OutFile {
    path: PathBuf,
    /// A file in the same directory, which is renamed at the end. `None` for a device or a pipe,
    /// which is not replaced.
    unfinished: Option<PathBuf>,
}

impl OutFile {
    /// The file with this path. Checks that it can be written, so that no measurement is lost.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn begin(path: &Path) -> Result<Self, OutFileError> {
        let failed = |source| OutFileError { path: path.to_owned(), source };
        let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        };
        if path.exists() && !path.is_file() {
            return Ok(Self { path: path.to_owned(), unfinished: None });
        }
        // A symbolic link stays a link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or(name).to_string_lossy();
        let unfinished = path.with_file_name(format!(".{name}.{}", std::process::id()));
        File::create_new(&unfinished).and_then(|_| fs::remove_file(&unfinished)).map_err(failed)?;
        Ok(Self { path, unfinished: Some(unfinished) })
    }

    /// Writes it, and reports it on standard error.
    ///
    /// # Errors
    ///
    /// If it cannot be written. An existing file is then unchanged.
    pub fn end(self, contents: &[u8]) -> io::Result<()> {
        let written = match &self.unfinished {
            Some(unfinished) => fs::write(unfinished, contents)
                .and_then(|()| fs::rename(unfinished, &self.path))
                .inspect_err(|_| _ = fs::remove_file(unfinished)),
            None => fs::write(&self.path, contents),
        };
        written.map_err(|error| named(&self.path, &error))?;
        report::say(format_args!("wrote {}", self.path.display()));
        Ok(())
    }
}

/// The error with the file's path.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The name without characters that lead out of a directory or have a meaning in a shell. A machine
/// of a file may have any name.
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
