//! Counts the acquisitions of locks, and writes their number to a file when the process ends.
//!
//! `cargo xtask programs` shows with it that a program takes the locks of nearlock. This module is
//! compiled only with `--cfg nearlock_count`, so the programs of users do not contain it.

use std::ffi::c_int;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable with the name of the file. Each process appends a line to it.
const VARIABLE: &str = "NEARLOCK_COUNT_FILE";

static ACQUISITIONS: AtomicU64 = AtomicU64::new(0);

/// The file, if one is named.
static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();

unsafe extern "C" {
    safe fn atexit(at_end: extern "C" fn()) -> c_int;
}

/// Counts an acquisition.
pub(crate) fn count() {
    FILE.get_or_init(|| {
        // Without memory for the entry the process writes nothing, which the reader sees.
        atexit(write);
        std::env::var_os(VARIABLE).map(PathBuf::from)
    });
    // Ordering: Relaxed, as the counter orders nothing else.
    ACQUISITIONS.fetch_add(1, Ordering::Relaxed);
}

/// Appends the number as a line. One write is enough, so lines of several processes do not mix.
extern "C" fn write() {
    let Some(Some(file)) = FILE.get() else { return };
    // Ordering: as above.
    let line = format!("{}\n", ACQUISITIONS.load(Ordering::Relaxed));
    let written = OpenOptions::new().create(true).append(true).open(file);
    if let Err(error) = written.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("{}: {error}", file.display());
    }
}
