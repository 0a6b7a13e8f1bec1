//! Beside: sections of some cache lines, while a process that computes needs a CPU too.

use std::sync::Arc;
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::raw::RawLock;
use nearlock_os::Os;
use nearlock_workload::sections::WorkLength;
use nearlock_workload::{LockedLines, Observer};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::crew::Members;
use super::helper::Helper;
use super::sample::Outcome;
use super::throughput::{Done, Life, Witness, with};

/// Cache lines that a section writes.
const LINES: usize = 4;
/// Default numbers of threads.
pub const BESIDE_THREADS: [usize; 2] = [16, 64];
/// Default work between sections, in ns: about 100 cycles.
pub const BESIDE_THINK_NS: u64 = 40;
/// The counted window is at least this long. The system shares the CPUs between the processes in
/// time slices of milliseconds.
pub const WINDOW_LEAST: Duration = Duration::from_secs(1);

/// Returns the number of sections.
fn work<W: Wait, L: RawLock>(
    lock: &LockedLines<Os<W>, L>,
    thread: usize,
    (section, think): (WorkLength, WorkLength),
    witness: &mut Witness<'_, W>,
) -> u64 {
    let node = L::Node::default();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(thread as u64);
    let mut sections = 0;
    loop {
        if think.turns > 0 {
            think.vary((rng.next_u64() >> 32) as u32).pass::<Os<W>>();
        }
        // SAFETY: the node is this thread's own, and is used for this lock only.
        unsafe { lock.section(&node, LINES, witness, || section.pass::<Os<W>>()) };
        sections += 1;
        if !witness.goes_on() {
            return sections;
        }
    }
}

/// One run of one lock, with this work in a section and between sections.
pub fn measure<W: Wait, L: RawLock>(
    helper: &Helper,
    threads: usize,
    work_lengths: (WorkLength, WorkLength),
    window: Duration,
) -> Outcome {
    let _computing = helper.start_computing()?;
    let lock = Arc::new(LockedLines::<Os<W>, L>::default());
    let worked = Arc::clone(&lock);
    let life: Life<W> = Box::new(move |run, thread| {
        run.witnessed(thread, &mut |witness| Done {
            counted: work(&worked, thread, work_lengths, witness),
            ..Done::default()
        });
    });
    with(Members::Anywhere(threads), window, life, &|| lock.sections())
}
