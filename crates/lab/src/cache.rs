//! A file with the results of earlier simulations. A run that was interrupted continues where it
//! stopped, and a repeated run is read from the file.
//!
//! The key of a result is a digest of everything that the result depends on. This is the machine
//! with all its parameters, the workload with its constants, and the lock with its settings. It is
//! also the number of threads, the seed, the window, and the sources of the simulator and of the
//! locks, with their compiler. A change of any of these causes a new simulation. Lines that cannot
//! be read, such as the last line of a killed run, are ignored. If several lines have the same key,
//! the last one counts. Nothing is ever removed, and the file may be deleted at any time.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use nearlock_core::settings::Setting;
use sha2::{Digest, Sha256};

use crate::simulate::{Simulated, Simulation};

/// Digest of the simulator's sources, from `build.rs`.
const MODEL: &str = env!("NEARLOCK_MODEL");
/// The compiler of the sources and the target processor, since machines may share a home directory.
const BUILT: &str = concat!(env!("NEARLOCK_RUSTC"), " ", env!("NEARLOCK_TARGET"));

/// The last word of a line. A line without it was cut off, possibly within a number.
const END: &str = "v1";

/// The figures of a simulation that tables are made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Acquisitions per microsecond.
    pub ops_per_us: f64,
    /// Jobs per minute, if the workload has jobs.
    pub jobs_per_minute: Option<f64>,
    /// Share of CPU time in slow paths.
    pub slow_path_share: f64,
}

impl From<&Simulated> for Figures {
    fn from(simulated: &Simulated) -> Self {
        Self {
            ops_per_us: simulated.ops_per_us,
            jobs_per_minute: simulated.jobs_per_minute,
            slow_path_share: simulated.slow_path_share,
        }
    }
}

impl Figures {
    /// The line of the file. A number is written so that reading gives exactly the same number.
    fn line(&self, key: &str) -> String {
        let jobs = self.jobs_per_minute.map_or_else(|| "-".to_owned(), |jobs| format!("{jobs:?}"));
        format!("{key} {:?} {jobs} {:?} {END}\n", self.ops_per_us, self.slow_path_share)
    }

    fn read(line: &str) -> Option<(String, Self)> {
        let fields: Vec<_> = line.strip_suffix('\n')?.split(' ').collect();
        let [key, ops, jobs, share, END] = fields[..] else { return None };
        let jobs_per_minute = if jobs == "-" { None } else { Some(jobs.parse().ok()?) };
        let figures =
            Self { ops_per_us: ops.parse().ok()?, jobs_per_minute, slow_path_share: share.parse().ok()? };
        Some((key.to_owned(), figures))
    }
}

/// The cache file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cache {}: {source}: it must be a file that can be written, or created", path.display())]
pub struct CacheError {
    path: PathBuf,
    source: io::Error,
}

/// Earlier results, and the file to which new ones are added.
#[derive(Debug)]
pub struct Cache {
    known: HashMap<String, Figures>,
    path: PathBuf,
    file: Mutex<File>,
    failure: OnceLock<CacheError>,
}

impl Cache {
    /// Opens the cache in this file. The file and its directory are created if they do not exist.
    /// Several processes may use the file at once.
    ///
    /// # Errors
    ///
    /// If the file cannot be created, read or written.
    pub fn open(path: &Path) -> Result<Self, CacheError> {
        Self::try_open(path).map_err(|source| CacheError { path: path.to_owned(), source })
    }

    fn try_open(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = if path.is_file() { fs::read(path)? } else { Vec::new() };
        let text = String::from_utf8_lossy(&bytes);
        if !text.is_empty() && !text.ends_with('\n') {
            // Without the line end, the next line would be appended to one that was cut off.
            file.write_all(b"\n")?;
        }
        let known = text.split_inclusive('\n').filter_map(Figures::read).collect();
        Ok(Self { known, path: path.to_owned(), file: Mutex::new(file), failure: OnceLock::new() })
    }

    /// The same cache without its earlier results, which will be added again.
    pub fn fresh(mut self) -> Self {
        self.known.clear();
        self
    }

    /// The figures of this simulation, if the cache has them.
    pub fn get(&self, simulation: &Simulation) -> Option<Figures> {
        self.known.get(&key(simulation)).copied()
    }

    /// Adds the figures of a simulation to the file. After a write has failed, nothing more is
    /// written. The results are still right then, and will be simulated again. See
    /// [`failure`](Self::failure).
    pub fn add(&self, simulation: &Simulation, figures: &Figures) {
        let line = figures.line(&key(simulation));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if self.failure.get().is_some() {
            return;
        }
        // Written as a whole, so that lines of several processes do not mix.
        if let Err(source) = file.write_all(line.as_bytes()) {
            _ = self.failure.set(CacheError { path: self.path.clone(), source });
        }
    }

    /// The error because of which some figures could not be added.
    pub fn failure(&self) -> Option<&CacheError> {
        self.failure.get()
    }
}

/// A digest of everything that the figures depend on.
pub(crate) fn key(simulation: &Simulation) -> String {
    digest(&format!("{MODEL} {BUILT} {}", described(simulation)))
}

/// A digest of 128 bits, in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(16).fold(String::new(), |mut hex, byte| {
        _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The settings that are not a lock's own.
const NUMA: &[Setting] = &[Setting::NumaMode, Setting::NumaLocality, Setting::NumaSyntheticNodes];

/// The simulation without the sources: machine, workload and lock, with their constants.
pub(crate) fn described(simulation: &Simulation) -> String {
    // Recording of waits changes no figure.
    let Simulation {
        machine,
        workload,
        lock,
        placement,
        start,
        threads,
        seed,
        settings,
        limits,
        lockstat: _,
    } = simulation;
    // A setting that the lock does not use changes no figure either.
    let used = lock.settings().iter().chain(NUMA);
    let settings: Vec<_> =
        used.map(|which| format!("{}={}", which.info().name, settings[*which as usize])).collect();
    let settings = settings.join(" ");
    let (lock, name) = (lock.name, workload.name());
    let fields: Vec<_> =
        workload.fields().iter().map(|field| format!("{}={}", field.key, field.value)).collect();
    let fields = fields.join(" ");
    format!(
        "{machine:?} {name} {fields} {lock} {placement:?} {start:?} {threads} {seed} {settings} {limits:?}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Configuration, Group};
    use crate::{locks, names};

    fn simulation(settings: &[&str], lock: &str, threads: usize, seed: u64) -> Simulation {
        let mut machine = names::machine("haswell-ex-4s").unwrap();
        let mut configuration = Configuration::new(Group::ALL);
        for setting in settings {
            configuration.set(setting).unwrap();
        }
        configuration.configure_machine(&mut machine).unwrap();
        let workload = configuration.workload("locktorture").unwrap();
        configuration.simulation(machine, workload, locks::lock(lock).unwrap(), threads, seed)
    }

    /// A path that is unique to a test, without a file.
    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("nearlock-cache-{}-{name}", std::process::id()));
        _ = fs::remove_file(&path);
        path
    }

    const FIGURES: Figures = Figures { ops_per_us: 0.1 + 0.2, jobs_per_minute: None, slow_path_share: 1e-9 };

    #[test]
    fn everything_that_changes_figures_changes_the_key() {
        let all = [
            simulation(&[], "mcs", 2, 1),
            simulation(&[], "qspinlock", 2, 1),
            simulation(&[], "mcs", 3, 1),
            simulation(&[], "mcs", 2, 2),
            simulation(&["machine.jitter=0"], "mcs", 2, 1),
            simulation(&["locktorture.section-ns=76"], "mcs", 2, 1),
            simulation(&["simulation.placement=random"], "mcs", 2, 1),
            simulation(&["simulation.start=in-turn"], "mcs", 2, 1),
            simulation(&["simulation.window-ns=1000"], "mcs", 2, 1),
            simulation(&[], "cna", 2, 1),
            simulation(&["cna.threshold-ns=7"], "cna", 2, 1),
            simulation(&["numa.mode=off"], "cna", 2, 1),
        ];
        let mut keys: Vec<_> = all.iter().map(key).collect();
        assert_eq!(keys[0], key(&simulation(&[], "mcs", 2, 1)), "and nothing else changes it");
        assert_eq!(keys[0], key(&simulation(&["cna.threshold-ns=7"], "mcs", 2, 1)), "mcs has no threshold");
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all.len());
    }

    #[test]
    fn added_figures_are_found_when_the_cache_is_opened_again() {
        let path = path("found");
        let (one, other) = (simulation(&[], "mcs", 2, 1), simulation(&[], "mcs", 2, 2));
        let with_jobs = Figures { jobs_per_minute: Some(148_590.123), ..FIGURES };
        let cache = Cache::open(&path).unwrap();
        cache.add(&one, &FIGURES);
        cache.add(&other, &with_jobs);
        let again = Cache::open(&path).unwrap();
        assert_eq!((again.get(&one), again.get(&other)), (Some(FIGURES), Some(with_jobs)));
        assert_eq!(again.get(&simulation(&[], "mcs", 2, 3)), None);
    }

    #[test]
    fn an_incomplete_line_is_ignored_and_harms_no_other() {
        let path = path("cut");
        let (one, other) = (simulation(&[], "mcs", 2, 1), simulation(&[], "mcs", 2, 2));
        Cache::open(&path).unwrap().add(&one, &FIGURES);
        let whole = fs::read_to_string(&path).unwrap();
        let line = FIGURES.line(&key(&other));
        // A line without only its line end is complete.
        for end in 0..line.len() - 1 {
            fs::write(&path, format!("{whole}{}", &line[..end])).unwrap();
            // The second pass sees the file that the first has written.
            for _ in 0..2 {
                let cache = Cache::open(&path).unwrap();
                assert_eq!((cache.get(&one), cache.get(&other)), (Some(FIGURES), None), "{end}");
            }
            Cache::open(&path).unwrap().add(&other, &FIGURES);
            assert_eq!(Cache::open(&path).unwrap().get(&other), Some(FIGURES), "{end}");
        }
        assert_eq!(Cache::open(&path).unwrap().fresh().get(&one), None);
        fs::write(&path, [0xff, b'\n', b'x']).unwrap();
        assert_eq!(Cache::open(&path).unwrap().get(&one), None);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_an_error() {
        let error = Cache::open(Path::new("/dev/null/cache")).unwrap_err();
        assert!(error.to_string().contains("/dev/null/cache"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_reported_once_and_stops_nothing() {
        let cache = Cache::open(Path::new("/dev/full")).unwrap();
        assert!(cache.failure().is_none());
        for seed in 1..3 {
            cache.add(&simulation(&[], "mcs", 2, seed), &FIGURES);
        }
        let failure = cache.failure().unwrap().to_string();
        assert!(failure.starts_with("cache /dev/full: "), "{failure}");
    }
}
