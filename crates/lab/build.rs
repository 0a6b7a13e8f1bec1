//! Passes two values to the crate. The first is the compiler that builds it, which benchmarks
//! report with their figures. The second names the simulator for the cache of simulation results: a
//! digest of the sources that a result depends on, and of the versions of their dependencies.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Sources of the locks, of the simulated machine, of the workloads, and of their combination.
const SOURCES: [&str; 10] = [
    "../collection/src",
    "../core/src",
    "../erased/src",
    "../sim/src",
    "../workload/src",
    "src/simulate.rs",
    "src/simulate",
    "src/lockstat.rs",
    "src/lockstat",
    "../../Cargo.lock",
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=NEARLOCK_RUSTC={}", compiler());
    println!("cargo::rustc-env=NEARLOCK_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=NEARLOCK_MODEL={}", model()?);
    Ok(())
}

fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok().filter(|output| output.status.success());
    let version = version.and_then(|output| String::from_utf8(output.stdout).ok());
    version.as_deref().unwrap_or("an unknown rustc").trim().to_owned()
}

/// The digest, in hexadecimal digits. In a packaged crate the other sources are missing, and the
/// version of the crate stands for them.
fn model() -> io::Result<String> {
    if !SOURCES.iter().all(|source| Path::new(source).exists()) {
        return Ok(env::var("CARGO_PKG_VERSION").unwrap_or_default());
    }
    let mut digest = Sha256::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        for file in files(Path::new(source))? {
            digest.update(file.to_string_lossy().as_bytes());
            digest.update(fs::read(&file)?);
        }
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The file, or all files of the directory, in the order of their names.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    let nested = entries.iter().map(|entry| files(entry)).collect::<io::Result<Vec<_>>>()?;
    Ok(nested.concat())
}
