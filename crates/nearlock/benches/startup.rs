//! The cost of the first lock and unlock in a process that has other threads:
//! `cargo bench -p nearlock --bench startup`.
//!
//! Each measurement is a separate process. Its other threads sleep when its main thread locks a
//! mutex for the first time. The kernel takes milliseconds to register such a process for
//! membarrier. So the library does that before `main`. The exit status is 1 if the median of
//! `nearlock::Mutex` is not below [`GATE_NS`].

mod support;

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Processes for each mutex.
const STARTS: usize = 20;
/// Threads besides the main thread.
const THREADS: usize = 16;
/// Far above the cost of the first lock, and far below that of a registration of a process with
/// threads (8 to 18 ms).
const GATE_NS: u64 = 20_000;

/// The first argument of a child process. The second one is the name of a mutex.
const CHILD: &str = "first-lock";

/// The name of a mutex, and a function that locks and unlocks one.
type Subject = (&'static str, fn());

const SUBJECTS: [Subject; 4] = [
    ("nearlock::Mutex", || {
        static MUTEX: nearlock::Mutex<u32> = nearlock::Mutex::new(0);
        *black_box(&MUTEX).lock() += 1;
    }),
    ("parking_lot::Mutex 0.12", || {
        static MUTEX: parking_lot::Mutex<u32> = parking_lot::Mutex::new(0);
        *black_box(&MUTEX).lock() += 1;
    }),
    ("parking_lot::Mutex 0.13", || {
        static MUTEX: parking_lot_013::Mutex<u32> = parking_lot_013::Mutex::new(0);
        *black_box(&MUTEX).lock() += 1;
    }),
    ("std::sync::Mutex", || {
        static MUTEX: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
        *black_box(&MUTEX).lock().expect("not poisoned") += 1;
    }),
];

/// The time of the first lock and unlock of this process, in ns.
fn first_lock(lock_and_unlock: fn()) -> u128 {
    static ARE_THERE: Barrier = Barrier::new(THREADS + 1);
    for _ in 0..THREADS {
        thread::spawn(|| {
            ARE_THERE.wait();
            loop {
                thread::park();
            }
        });
    }
    ARE_THERE.wait();
    // Until all other threads sleep.
    thread::sleep(Duration::from_millis(2));
    // The first read of the clock must not count.
    black_box(Instant::now());
    let begin = Instant::now();
    lock_and_unlock();
    begin.elapsed().as_nanos()
}

/// Starts a process, and returns the time that it prints.
fn start(name: &str) -> u64 {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).args([CHILD, name]).output().expect("a process starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("is text");
    said.trim().parse().expect("is a number")
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [CHILD, asked] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        let (_, subject) = SUBJECTS.iter().find(|(name, _)| *name == asked).expect("a mutex of the list");
        println!("{}", first_lock(*subject));
        return ExitCode::SUCCESS;
    }
    if !support::is_asked_for("startup") {
        return ExitCode::SUCCESS;
    }
    println!("{}: first lock and release of a process with {THREADS} other threads", support::processor());
    // The mutexes alternate, so that a busy moment of the machine does not affect one of them
    // alone.
    let mut starts = SUBJECTS.map(|_| Vec::with_capacity(STARTS));
    for _ in 0..STARTS {
        for ((name, _), starts) in SUBJECTS.iter().zip(&mut starts) {
            starts.push(start(name));
        }
    }
    for ((name, _), starts) in SUBJECTS.iter().zip(&mut starts) {
        starts.sort_unstable();
        println!("{name}: median {} ns, least {}, most {}", median(starts), starts[0], starts[STARTS - 1]);
    }
    let median = median(&starts[0]);
    if median < GATE_NS {
        return ExitCode::SUCCESS;
    }
    println!("the median of nearlock::Mutex is {median} ns, and must be below {GATE_NS} ns");
    ExitCode::FAILURE
}

/// The median of sorted numbers.
fn median(sorted: &[u64]) -> u64 {
    sorted[sorted.len() / 2]
}
