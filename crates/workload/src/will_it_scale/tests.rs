use super::*;
use lock2::Lock2;
use nearlock_collection::classic::mcs::McsLock;
use nearlock_collection::controls::Busted;
use nearlock_os::Os;
use open1::Open1;
use std::sync::Barrier;

const THREADS: usize = 3;

/// Continues for this many operations, and counts the calls.
#[derive(Default)]
struct Times {
    left: u64,
    acquired: [u64; 2],
    at: usize,
}

impl Observer for Times {
    fn turns_to(&mut self, lock: usize) {
        self.at = lock;
    }
    fn acquired(&mut self) {
        self.acquired[self.at] += 1;
    }
    fn goes_on(&mut self) -> bool {
        self.left -= 1;
        self.left > 0
    }
}

/// Faults and acquisitions of threads that do this many operations each, and their shared state.
fn run<L: RawLock, T: Testcase<Os, L>>(operations: u64, params: Params) -> (u64, [u64; 2], T) {
    let (test, together) = (T::default(), Barrier::new(THREADS));
    let each: Vec<T::Each> = (0..THREADS).map(|_| T::Each::default()).collect();
    let one = |number| {
        let (mut node, mut times) = (L::Node::default(), Times { left: operations, ..Times::default() });
        together.wait();
        let faults = Caller::new(number, &mut node, params, 1).run::<Os, T>(&test, &each, &mut times);
        (faults, times.acquired)
    };
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || one(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    let sum = |of: fn(&(u64, [u64; 2])) -> u64| all.iter().map(of).sum::<u64>();
    ((sum(|a| a.0)), [sum(|a| a.1[0]), sum(|a| a.1[1])], test)
}

fn work_length(turns: u64) -> WorkLength {
    WorkLength { ns: 0, turns }
}

const SHORT: Params =
    Params { call: WorkLength { ns: 0, turns: 10 }, section: WorkLength { ns: 0, turns: 10 }, lines: 2 };

#[test]
fn files_are_opened_and_closed() {
    let (faults, acquired, test) = run::<McsLock<Os>, Open1<Os, _>>(1000, SHORT);
    assert_eq!((faults, acquired), (0, [2 * 1000 * THREADS as u64, 0]));
    assert_eq!(test.in_use(), 0);
}

#[test]
fn records_are_locked_and_unlocked() {
    for (operations, of_files) in [(1000, 500), (1001, 501)] {
        let (faults, acquired, _) = run::<McsLock<Os>, Lock2<Os, _>>(operations, SHORT);
        assert_eq!((faults, acquired), (0, [operations, of_files].map(|n| n * THREADS as u64)));
    }
}

/// Sections are so long that even on one CPU a thread is preempted in a section.
const LONG: Params = Params { section: WorkLength { ns: 0, turns: 200_000 }, ..SHORT };

#[test]
fn a_thread_that_is_admitted_beside_another_sees_it() {
    let of_files = || run::<Busted<Os>, Open1<Os, _>>(10, LONG).0;
    let of_records = || run::<Busted<Os>, Lock2<Os, _>>(20, LONG).0;
    assert!((0..100).any(|_| of_files() > 0));
    assert!((0..100).any(|_| of_records() > 0));
}

#[test]
#[should_panic(expected = "17 lines")]
fn more_lines_than_there_are_are_refused() {
    let params = Params { lines: 17, section: work_length(0), call: work_length(0) };
    Caller::<McsLock<Os>>::new(0, &mut Default::default(), params, 1);
}
