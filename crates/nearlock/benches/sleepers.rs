//! The cost that threads which sleep in locks have for running threads, compared with parking_lot:
//! `cargo bench -p nearlock --bench sleepers -- --sleepers 0,500,5000 --mutexes 1000 --rounds 7`.
//!
//! nearlock has a table of chains of a fixed size. The table of parking_lot grows with the number
//! of threads. Each measurement is a separate process. Its sleepers wait in a condition variable
//! each, or for a held mutex each. The libraries alternate. `--near-only` leaves parking_lot out.

use std::array;
use std::env;
use std::hint::{self, black_box};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use nearlock::lock_api::{Condvar, Mutex, MutexGuard, RawCondvar};

/// How long each operation is repeated.
const WINDOW: Duration = Duration::from_millis(200);
/// The least number of sleepers when sleepers are woken: the next sleeper to be woken should sleep
/// by then.
const WOKEN_AMONG: usize = 16;
const STACK_BYTES: usize = 64 << 10;
/// Multiplications between two critical sections of a contending thread: some 100 ns.
const THINK: u64 = 100;

const LIBRARIES: [&str; 2] = ["nearlock", "parking_lot"];
const KINDS: [&str; 2] = ["condvar", "mutex"];
/// The measured operations. One thread locks and unlocks mutexes that no other thread uses. Two
/// threads contend for one mutex. A sleeper is woken, and answers.
const OPERATIONS: [&str; 3] = ["uncontended", "contended", "wake"];

/// A library, represented by its condition variable.
trait Library: RawCondvar<RawMutex: Send + Sync + 'static> + Send + Sync + 'static {}

impl<C: RawCondvar<RawMutex: Send + Sync + 'static> + Send + Sync + 'static> Library for C {}

/// The place where one thread sleeps.
struct Place<C: Library> {
    mutex: Mutex<C::RawMutex, u64>,
    changed: Condvar<C>,
    /// How often the sleeper has locked the mutex, and how often the other thread has locked it
    /// again.
    had: AtomicU64,
    taken_back: AtomicU64,
}

type Held<C> = MutexGuard<'static, <C as RawCondvar>::RawMutex, u64>;

impl<C: Library> Place<C> {
    fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            mutex: Mutex::new(0),
            changed: Condvar::new(),
            had: AtomicU64::new(0),
            taken_back: AtomicU64::new(0),
        }))
    }

    /// Sleeps in the condition variable. The data counts the calls.
    fn wait_to_be_notified(&self, home: &Self) {
        let (mut calls, mut answered) = (self.mutex.lock(), 0);
        loop {
            while *calls == answered {
                self.changed.wait(&mut calls);
            }
            answered = *calls;
            *home.mutex.lock() += 1;
            home.changed.notify_one();
        }
    }

    /// Sleeps while the mutex is held.
    fn wait_for_mutex(&self) {
        for had in 1.. {
            *self.mutex.lock() = had;
            self.had.store(had, Release);
            while self.taken_back.load(Acquire) != had {
                thread::yield_now();
            }
        }
    }

    /// Notifies the sleeper, and waits for its answer.
    fn notify(&self, home: &Self) {
        let answers = *home.mutex.lock();
        *self.mutex.lock() += 1;
        self.changed.notify_one();
        let mut now = home.mutex.lock();
        while *now == answers {
            home.changed.wait(&mut now);
        }
    }

    /// Unlocks the mutex, and locks it again when the sleeper has had it.
    fn lend(&'static self, held: &mut Option<Held<C>>) {
        let had = self.had.load(Relaxed) + 1;
        *held = None;
        while self.had.load(Acquire) != had {
            hint::spin_loop();
            thread::yield_now();
        }
        *held = Some(self.mutex.lock());
        self.taken_back.store(had, Release);
    }
}

/// The sleepers.
struct Crowd<C: Library> {
    waits_for_mutexes: bool,
    home: &'static Place<C>,
    places: Vec<(&'static Place<C>, Option<Held<C>>)>,
}

impl<C: Library> Crowd<C> {
    /// Adds sleepers up to this number, and waits until all of them sleep.
    fn grow(&mut self, sleepers: usize) {
        while self.places.len() < sleepers {
            let (place, home) = (Place::<C>::new(), self.home);
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let thread = if self.waits_for_mutexes {
                self.places.push((place, Some(place.mutex.lock())));
                thread.spawn(|| place.wait_for_mutex())
            } else {
                self.places.push((place, None));
                thread.spawn(|| place.wait_to_be_notified(home))
            };
            thread.expect("a thread can be made");
        }
        loop {
            let before_ns = cpu_ns();
            thread::sleep(Duration::from_millis(50));
            if cpu_ns() - before_ns < 500_000 {
                break;
            }
        }
    }

    /// Wakes one of them.
    fn wake(&mut self, which: usize) {
        let (place, held) = &mut self.places[which];
        if self.waits_for_mutexes { place.lend(held) } else { place.notify(self.home) }
    }
}

/// Wall time and CPU time of the process.
type Cost = [f64; 2];

fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The cost of one operation. `work` does some operations, and returns how many.
fn cost(work: impl FnOnce() -> u64) -> Cost {
    let (begin, begin_ns) = (Instant::now(), cpu_ns());
    let operations = work() as f64;
    let wall_ns = begin.elapsed().as_nanos() as f64;
    [wall_ns / operations, (cpu_ns() - begin_ns) as f64 / operations]
}

/// Repeats rounds of operations, as long as there is time. Returns the number of operations.
fn repeat(mut round: impl FnMut() -> u64) -> u64 {
    let begin = Instant::now();
    let mut operations = 0;
    while begin.elapsed() < WINDOW {
        operations += round();
    }
    operations
}

/// Pseudorandom numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// A single thread locks mutexes one after the other. Each is in a place of its own on the heap.
fn uncontended<C: Library>(mutexes: usize, random: &mut Random) -> Cost {
    let mut spread = Vec::new();
    for _ in 0..mutexes {
        spread.push(Box::new(Mutex::<C::RawMutex, u64>::new(0)));
        // Memory between this mutex and the next one.
        black_box(vec![0_u8; 16 + random.below(1000)]).leak();
    }
    for last in (1..spread.len()).rev() {
        spread.swap(last, random.below(last + 1));
    }
    let round = || {
        spread.iter().for_each(|mutex| *black_box(mutex).lock() += 1);
        mutexes as u64
    };
    round();
    cost(|| repeat(round))
}

fn contended<C: Library>() -> Cost {
    let (mutex, is_over) = (&Mutex::<C::RawMutex, u64>::new(0), &AtomicBool::new(false));
    let begin = &Barrier::new(3);
    let run = move || {
        begin.wait();
        while !is_over.load(Relaxed) {
            *mutex.lock() += 1;
            black_box((0..THINK).fold(1_u64, |product, i| black_box(product).wrapping_mul(i | 1)));
        }
    };
    thread::scope(|scope| {
        let threads: [_; 2] = array::from_fn(|_| scope.spawn(run));
        begin.wait();
        cost(|| {
            thread::sleep(WINDOW);
            is_over.store(true, Relaxed);
            threads.into_iter().for_each(|thread| thread.join().expect("does not panic"));
            *mutex.lock()
        })
    })
}

/// Measures in a separate process, and prints the costs.
fn measure<C: Library>(kind: &str, sleepers: usize, mutexes: usize) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let waits_for_mutexes = kind == KINDS[1];
    let mut crowd = Crowd::<C> { waits_for_mutexes, home: Place::new(), places: Vec::new() };
    crowd.grow(sleepers);
    let (uncontended, contended) = (uncontended::<C>(mutexes, &mut random), contended::<C>());
    crowd.grow(WOKEN_AMONG);
    let wake = cost(|| {
        repeat(|| {
            let which = random.below(crowd.places.len());
            crowd.wake(which);
            1
        })
    });
    for [wall_ns, cpu_ns] in [uncontended, contended, wake] {
        println!("{wall_ns} {cpu_ns}");
    }
    // The sleepers never end.
    std::process::exit(0);
}

/// The costs of the operations in a new process.
fn measured(library: &str, kind: &str, sleepers: usize, mutexes: &str) -> [Cost; OPERATIONS.len()] {
    let program = env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    let output = command.args(["--bench", "--child", library, kind, &sleepers.to_string(), mutexes]).output();
    let output = output.expect("a process starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("is text");
    let mut numbers = said.split_whitespace().map(|number| number.parse().expect("is a number"));
    array::from_fn(|_| array::from_fn(|_| numbers.next().expect("is a number for each cost")))
}

/// Lower quartile, median, upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// The results of one library in one situation, in each round.
struct Row {
    library: &'static str,
    kind: &'static str,
    sleepers: usize,
    rounds: Vec<[Cost; OPERATIONS.len()]>,
}

impl Row {
    /// Prints the figures of an operation, and compares them with the same rounds of another row.
    fn print(&self, operation: usize, alone: &Self) {
        let of = |row: &Self, which: usize| -> Vec<f64> {
            row.rounds.iter().map(|costs| costs[operation][which]).collect()
        };
        let shown = |values| {
            let [low, median, high] = quartiles(values);
            format!("{median:>9.1} ({low:.1} to {high:.1})")
        };
        let times = |which| {
            let pairs = of(self, which).into_iter().zip(of(alone, which));
            let [low, median, high] = quartiles(pairs.map(|(ours, theirs)| ours / theirs).collect());
            format!("{median:.2} ({low:.2} to {high:.2})")
        };
        println!(
            "{:<8} {:<12} {:>5} {:<12} {:<31} {:<31} {:<22} {}",
            self.kind,
            OPERATIONS[operation],
            self.sleepers,
            self.library,
            shown(of(self, 0)),
            shown(of(self, 1)),
            times(0),
            times(1)
        );
    }
}

fn main() {
    let arguments: Vec<_> = env::args().collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    if !arguments.contains(&"--bench") {
        println!("nothing is measured: `cargo bench -p nearlock --bench sleepers` does it");
        return;
    }
    if let [_, "--bench", "--child", library, kind, sleepers, mutexes] = arguments[..] {
        let [sleepers, mutexes] = [sleepers, mutexes].map(|count| count.parse().expect("is a number"));
        return match library == LIBRARIES[0] {
            true => measure::<nearlock::RawCondvar>(kind, sleepers, mutexes),
            false => measure::<parking_lot_013::RawCondvar>(kind, sleepers, mutexes),
        };
    }
    let option = |name| arguments.iter().skip_while(|given| **given != name).nth(1).copied();
    let sleepers = option("--sleepers").unwrap_or("0,500,5000").split(',');
    let sleepers: Vec<usize> = sleepers.map(|count| count.parse().expect("is a number")).collect();
    let rounds = option("--rounds").map_or(7, |rounds| rounds.parse().expect("is a number"));
    let mutexes = option("--mutexes").unwrap_or("1000");
    let libraries = if arguments.contains(&"--near-only") { &LIBRARIES[..1] } else { &LIBRARIES[..] };
    let mut rows = Vec::new();
    for kind in KINDS {
        for &sleepers in &sleepers {
            rows.extend(libraries.iter().map(|library| Row { library, kind, sleepers, rounds: Vec::new() }));
        }
    }
    for _ in 0..rounds {
        for row in &mut rows {
            row.rounds.push(measured(row.library, row.kind, row.sleepers, mutexes));
        }
    }
    println!(
        "medians (quartiles) of {rounds} rounds, ns and CPU ns for each operation, and as multiples of the"
    );
    println!("same round with the first number of sleepers");
    for operation in 0..OPERATIONS.len() {
        for row in &rows {
            let is_alone = |other: &&Row| (other.library, other.kind) == (row.library, row.kind);
            row.print(operation, rows.iter().find(is_alone).expect("it is there itself"));
        }
    }
}
