//! Workers that share a queue of jobs. Some jobs create further jobs.
//!
//! ```text
//! cargo run --release -p nearlock --example work_queue
//! ```
//!
//! The lock is held to take a job and to put jobs back, never while a job runs. The critical
//! sections are closures, so the lock's queue node is on the worker's stack. A worker that finds no
//! job yields its processor, without the lock.

use std::ops::Range;
use std::thread::available_parallelism;

use nearlock::classic::{LockWith, McsLock};

const LIMIT: u32 = 100_000;
/// Longer jobs are split in two.
const JOB_LENGTH_MAX: usize = 2_000;

/// Jobs, and their results.
#[derive(Default)]
struct Queue {
    jobs: Vec<Range<u32>>,
    /// Jobs that wait or run. Only they can create further jobs.
    unfinished: usize,
    primes: usize,
}

enum Next {
    Job(Range<u32>),
    /// All jobs run on other workers, and may create further jobs.
    Wait,
    Finished,
}

impl Queue {
    fn add(&mut self, jobs: impl IntoIterator<Item = Range<u32>>) {
        for job in jobs {
            self.jobs.push(job);
            self.unfinished += 1;
        }
    }

    fn next(&mut self) -> Next {
        match self.jobs.pop() {
            Some(job) => Next::Job(job),
            None if self.unfinished > 0 => Next::Wait,
            None => Next::Finished,
        }
    }
}

fn is_prime(n: u32) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

/// Runs jobs until there are no more. Returns how many.
fn work(queue: &McsLock<Queue>) -> usize {
    let mut done = 0;
    loop {
        match queue.lock_with(Queue::next) {
            Next::Job(job) if job.len() > JOB_LENGTH_MAX => {
                let middle = job.start + job.len() as u32 / 2;
                queue.lock_with(|queue| {
                    queue.add([job.start..middle, middle..job.end]);
                    queue.unfinished -= 1;
                });
            }
            Next::Job(job) => {
                let primes = job.filter(|n| is_prime(*n)).count();
                queue.lock_with(|queue| {
                    queue.primes += primes;
                    queue.unfinished -= 1;
                });
                done += 1;
            }
            Next::Wait => std::thread::yield_now(),
            Next::Finished => return done,
        }
    }
}

fn main() {
    // Not more threads than processors: a lock that is first come, first served would wait for
    // threads that have no processor.
    let workers = available_parallelism().map_or(1, |processors| processors.get().min(8));
    let queue = McsLock::new(Queue::default());
    queue.lock().add([Range { start: 0, end: LIMIT }]);
    let done: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| work(&queue))).collect();
        workers.into_iter().map(|worker| worker.join().expect("workers do not panic")).collect()
    });
    for (worker, jobs) in done.iter().enumerate() {
        println!("worker {worker} did {jobs} jobs");
    }
    let primes = queue.into_inner().primes;
    assert_eq!(primes, 9592, "the number of primes below {LIMIT}");
    println!("together they found {primes} primes below {LIMIT}");
}
