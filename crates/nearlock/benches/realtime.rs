//! How long a real-time thread waits for mutexes that no other thread uses:
//! `cargo bench -p nearlock --bench realtime`.
//!
//! Four threads of normal priority contend for one mutex, and a thread of the policy `SCHED_FIFO`
//! locks and unlocks others. All of them run on one processor. The mutexes have nothing in common
//! except their chain. Now and then the real-time thread preempts a thread that holds the chain's
//! lock. If it spun for that lock, it would spin until the kernel throttles it (for about a
//! second). The exit status is 1 if the longest lock and unlock of `nearlock::Mutex` stays above 1
//! ms in all runs.

mod support;

#[cfg(target_os = "linux")]
mod pinned {
    use std::io;
    use std::mem;
    use std::process::ExitCode;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;
    use std::time::{Duration, Instant};

    use crate::support;

    /// Runs of each mutex. The mutexes alternate.
    const RUNS: usize = 3;
    const RUN: Duration = Duration::from_secs(5);
    /// A run ends early when it has found this. The result is clear then, and the machine has been
    /// stalled for as long.
    const HOPELESS: Duration = Duration::from_millis(100);
    /// Far above the delay if the host preempts a virtual machine, in the best of some runs, and
    /// far below a time slice.
    const GATE: Duration = Duration::from_millis(1);

    /// Threads that contend for the first mutex.
    const CONTENDERS: usize = 4;
    /// How long contenders wait before they give up, so that they often enter and leave the chain.
    const PATIENCE: Duration = Duration::from_micros(120);
    /// The sleep of the real-time thread between two rounds. When it wakes up, it preempts another
    /// thread.
    const SLEEP: Duration = Duration::from_micros(60);

    /// The number of mutexes: enough to find some that share a chain.
    const MUTEXES: usize = 1 << 17;
    /// The mutexes that are locked in each round.
    const NEIGHBOURS: usize = 8;

    /// The chain of a mutex at this address, and bits that decide on its bucket in the table of
    /// parking_lot. The chain: the hash of `chains.rs` of `nearlock-os`, with 4096 chains. The
    /// bucket: the upper bits of the 64-bit product, at most 5 for so few threads.
    fn places(address: usize) -> (u32, u64) {
        let chain = (address as u32).wrapping_mul(0x9e37_79b9) >> (u32::BITS - 12);
        let bucket = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - 5);
        (chain, bucket)
    }

    /// The indices of mutexes that share the chain and the bucket of the first one.
    fn neighbours<M>(mutexes: &[M; MUTEXES]) -> Vec<usize> {
        let places_of = |index: &usize| places((&raw const mutexes[*index]).addr());
        let found: Vec<_> =
            (1..MUTEXES).filter(|index| places_of(index) == places_of(&0)).take(NEIGHBOURS).collect();
        assert_eq!(found.len(), NEIGHBOURS, "too few mutexes share a chain and a bucket");
        found
    }

    /// The last processor that this process may use.
    fn processor() -> io::Result<usize> {
        // SAFETY: the set may be all zero, and has the size that is passed.
        unsafe {
            let mut set: libc::cpu_set_t = mem::zeroed();
            if libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) != 0 {
                return Err(io::Error::last_os_error());
            }
            let last = (0..libc::CPU_SETSIZE as usize).rev().find(|&cpu| libc::CPU_ISSET(cpu, &set));
            last.ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }

    /// Keeps the calling thread on this processor.
    fn pin(processor: usize) -> io::Result<()> {
        // SAFETY: as above.
        let result = unsafe {
            let mut set: libc::cpu_set_t = mem::zeroed();
            libc::CPU_SET(processor, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Makes the calling thread a real-time thread.
    fn set_realtime() -> io::Result<()> {
        // SAFETY: all zero is valid, and the priority is set.
        let mut parameters: libc::sched_param = unsafe { mem::zeroed() };
        parameters.sched_priority = 10;
        // SAFETY: the parameters are valid.
        let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The processor for the threads, if a thread of this process may be real-time there.
    fn place() -> io::Result<usize> {
        let processor = processor()?;
        let tried = thread::spawn(move || pin(processor).and_then(|()| set_realtime()));
        tried.join().expect("no panic").map(|()| processor)
    }

    /// The longest lock and unlock of a run.
    type Longest = fn(usize) -> Duration;

    macro_rules! run {
        ($mutex:ty) => {
            |processor| {
                static MUTEXES_OF_RUN: [$mutex; MUTEXES] = [const { <$mutex>::new(0) }; MUTEXES];
                let contend =
                    || _ = MUTEXES_OF_RUN[0].try_lock_for(PATIENCE).map(|_held| thread::yield_now());
                longest(processor, &neighbours(&MUTEXES_OF_RUN), contend, |mutex| {
                    *MUTEXES_OF_RUN[mutex].lock() += 1;
                })
            }
        };
    }

    const SUBJECTS: [(&str, Longest); 3] = [
        ("nearlock::Mutex", run!(nearlock::Mutex<u32>)),
        ("parking_lot::Mutex 0.12", run!(parking_lot::Mutex<u32>)),
        ("parking_lot::Mutex 0.13", run!(parking_lot_013::Mutex<u32>)),
    ];

    /// The longest lock and unlock of these mutexes by a real-time thread, while others contend.
    fn longest(
        processor: usize,
        mutexes: &[usize],
        contend: impl Fn() + Sync,
        lock_and_unlock: impl Fn(usize) + Sync,
    ) -> Duration {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..CONTENDERS {
                scope.spawn(|| {
                    pin(processor).expect("was tried before");
                    while !is_over.load(Relaxed) {
                        contend();
                    }
                });
            }
            let realtime = scope.spawn(|| {
                pin(processor).and_then(|()| set_realtime()).expect("was tried before");
                let end = Instant::now() + RUN;
                let mut longest = Duration::ZERO;
                while Instant::now() < end && longest < HOPELESS {
                    thread::sleep(SLEEP);
                    for &mutex in mutexes {
                        let begin = Instant::now();
                        lock_and_unlock(mutex);
                        longest = longest.max(begin.elapsed());
                    }
                }
                is_over.store(true, Relaxed);
                longest
            });
            realtime.join().expect("no panic")
        })
    }

    /// Measures, and prints the results.
    pub fn compare() -> ExitCode {
        let processor = match place() {
            Ok(processor) => processor,
            Err(error) => {
                println!(
                    "nothing is measured: a SCHED_FIFO thread on one processor is not permitted ({error})"
                );
                return ExitCode::SUCCESS;
            }
        };
        println!(
            "{}: longest lock and unlock by a real-time thread in {} s, of mutexes of a chain that others contend in",
            support::processor(),
            RUN.as_secs()
        );
        let mut runs = SUBJECTS.map(|_| Vec::with_capacity(RUNS));
        for _ in 0..RUNS {
            for ((_, run), runs) in SUBJECTS.iter().zip(&mut runs) {
                runs.push(run(processor));
            }
        }
        let best = |runs: &[Duration]| *runs.iter().min().expect("there are runs");
        for ((name, _), runs) in SUBJECTS.iter().zip(&runs) {
            println!("{name}: {runs:?}, best {:?}", best(runs));
        }
        let best = best(&runs[0]);
        if best < GATE {
            return ExitCode::SUCCESS;
        }
        println!("the best of nearlock::Mutex is {best:?}, and must be below {GATE:?}");
        ExitCode::FAILURE
    }
}

fn main() -> std::process::ExitCode {
    if !support::is_asked_for("realtime") {
        return std::process::ExitCode::SUCCESS;
    }
    #[cfg(target_os = "linux")]
    return pinned::compare();
    #[cfg(not(target_os = "linux"))]
    {
        println!("nothing is measured: it needs the real-time threads of Linux ({})", support::processor());
        std::process::ExitCode::SUCCESS
    }
}
