//! Long sections: threads that sleep, yield their processor or wait for memory while they hold a
//! lock.

mod pages;

use std::sync::Arc;
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_core::raw::RawLock;
use nearlock_os::Os;
use nearlock_workload::{LockedLines, Observer};

use super::crew::Members;
use super::sample::Outcome;
use super::throughput::{Done, Life, Witness, with};
use pages::Pages;

/// What a thread does in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Sleep,
    Yield,
    PageFault,
}

/// A case of [`Mode::Long`](super::Mode::Long).
#[derive(Debug, PartialEq, Eq)]
pub struct LongCase {
    /// Its name on the command line.
    pub name: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// The counted window is at least this long, for a meaningful index of shares.
    pub(super) window_least: Duration,
    /// Number of locks, which each thread locks in turn.
    locks: usize,
    inside: Inside,
}

/// Length of a sleep. The timer of the system adds about as much.
const SLEEP: Duration = Duration::from_micros(50);
/// Number of pages that a section touches.
const PAGES: usize = 4;

/// All cases of [`Mode::Long`](super::Mode::Long).
pub static LONG_CASES: [LongCase; 3] = [
    LongCase {
        name: "sleep",
        threads: 200,
        // The middle half of the ratios of CPU time is 19 % wide. With 500 ms it is 33 % wide
        // (`nearlock bench --mode long --case sleep --duration-ms 500`).
        window_least: Duration::from_millis(1500),
        locks: 1,
        inside: Inside::Sleep,
    },
    LongCase { name: "yield", threads: 64, window_least: Duration::ZERO, locks: 8, inside: Inside::Yield },
    LongCase {
        name: "page-fault",
        threads: 16,
        window_least: Duration::ZERO,
        locks: 1,
        inside: Inside::PageFault,
    },
];

type Locks<W, L> = Vec<LockedLines<Os<W>, L>>;

/// Returns the number of sections.
fn work<W: Wait, L: RawLock>(
    locks: &Locks<W, L>,
    thread: usize,
    inside: Inside,
    witness: &mut Witness<'_, W>,
) -> u64 {
    let node = L::Node::default();
    let mut pages = Pages::map(PAGES);
    let mut sections = 0;
    for lock in locks.iter().cycle().skip(thread % locks.len()) {
        let work = || match inside {
            Inside::Sleep => std::thread::sleep(SLEEP),
            Inside::Yield => nearlock_os::sched_yield(),
            Inside::PageFault => pages.touch(),
        };
        // SAFETY: the node is this thread's own, and it is used for one lock at a time.
        unsafe { lock.section(&node, 1, witness, work) };
        if inside == Inside::PageFault {
            pages.discard();
        }
        sections += 1;
        if !witness.goes_on() {
            break;
        }
    }
    sections
}

/// One run of one lock.
pub fn measure<W: Wait, L: RawLock>(case: &LongCase, window: Duration) -> Outcome {
    let locks: Arc<Locks<W, L>> = Arc::new((0..case.locks).map(|_| LockedLines::default()).collect());
    let (worked, inside) = (Arc::clone(&locks), case.inside);
    let life: Life<W> = Box::new(move |run, thread| {
        run.witnessed(thread, &mut |witness| Done {
            counted: work(&worked, thread, inside, witness),
            ..Done::default()
        });
    });
    let sections = || locks.iter().map(LockedLines::sections).sum();
    with(Members::Anywhere(case.threads), window, life, &sections)
}
