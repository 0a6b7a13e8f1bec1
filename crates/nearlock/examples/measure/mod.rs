//! What the examples that print figures have in common.

pub mod std_locks;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{available_parallelism, scope, sleep};
use std::time::{Duration, Instant};

/// The locks take turns in each round, so that a disturbance reaches all of them.
const ROUNDS: usize = 7;
const WINDOW: Duration = Duration::from_millis(150);
const THREADS_MAX: usize = 1024;

/// The number after `--threads`, or that of the processors. Ends the program if the arguments are
/// others.
pub fn threads() -> usize {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = match &arguments[..] {
        [] => Some(available_parallelism().map_or(1, usize::from)),
        [name, number] if name == "--threads" => number.parse().ok(),
        _ => None,
    };
    number.filter(|number| (1..=THREADS_MAX).contains(number)).unwrap_or_else(|| {
        eprintln!("usage: [--threads N], with N from 1 to {THREADS_MAX}");
        std::process::exit(2)
    })
}

/// Lets threads work for a while. `work` has the number of its thread, works until the flag is set,
/// and returns how many operations it has done. Returns the operations of all per microsecond.
pub fn throughput(threads: usize, work: impl Fn(usize, &AtomicBool) -> u64 + Sync) -> f64 {
    let (work, is_over) = (&work, &AtomicBool::new(false));
    let begin = Instant::now();
    let done: u64 = scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread, is_over))).collect();
        sleep(WINDOW);
        is_over.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("the work does not panic")).sum()
    });
    done as f64 / begin.elapsed().as_secs_f64() / 1e6
}

/// The program over one lock.
pub struct Variant {
    pub lock: &'static str,
    /// The throughput of this many threads, in operations per microsecond.
    pub throughput: fn(usize) -> f64,
}

/// Measures the variants, and prints how many times the work of the others the first one does.
pub fn compare(operations: &str, threads: usize, variants: &[Variant]) {
    let round = || -> Vec<f64> { variants.iter().map(|variant| (variant.throughput)(threads)).collect() };
    // Not counted: the first round starts threads, and touches memory.
    round();
    let (begin, cpu_begin) = (Instant::now(), cpu_time());
    let rounds: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    let processors = (cpu_time() - cpu_begin).as_secs_f64() / begin.elapsed().as_secs_f64();
    if cfg!(debug_assertions) {
        println!("built without --release: these figures mean little");
    }
    println!("{threads} threads, which used {processors:.1} processors; {}", processor());
    println!("medians of {ROUNDS} rounds (quartiles)");
    println!("{:<30} {:>12}   the first does", "", format!("{operations}/us"));
    for (i, variant) in variants.iter().enumerate() {
        let [_, throughput, _] = quartiles(rounds.iter().map(|round| round[i]));
        let [low, ratio, high] = quartiles(rounds.iter().map(|round| round[0] / round[i]));
        let times = format!("{ratio:.2} times the work ({low:.2} to {high:.2})");
        println!("{:<30} {throughput:>12.2}   {times}", variant.lock);
    }
}

/// The processor time that the process has had.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The lower quartile, the median, and the upper quartile.
fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// The name of the processor, as Linux tells it.
fn processor() -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name| {
        told.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(": ")?.trim()))
    };
    match (field("model name"), field("cpu family"), field("model")) {
        (Some(name), Some(family), Some(model)) => format!("{name} (family {family} model {model})"),
        _ => format!("unknown processor ({})", std::env::consts::ARCH),
    }
}
