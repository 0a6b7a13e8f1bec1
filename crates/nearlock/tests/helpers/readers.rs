// Included once for each lock, with its names `Lock`, `ReadGuard` and `WriteGuard`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;

/// Length of a run.
const RUN: Duration = Duration::from_millis(if cfg!(miri) { 5 } else { 200 });
const THREADS: usize = 3;
const STEPS_MAX: usize = if cfg!(miri) { 20 } else { 80 };

/// Two halves that are equal outside of exclusive critical sections.
#[derive(Debug, Default)]
struct Data {
    left: u64,
    right: u64,
}

impl Data {
    fn write(&mut self) {
        assert_eq!(self.left, self.right, "saw half of a section");
        self.left += 1;
        std::hint::spin_loop();
        self.right += 1;
    }
}

#[test]
fn writers_exclude_and_readers_do_not() {
    static LOCK: Lock<Data> = Lock::new(Data { left: 0, right: 0 });
    let (stop, readers, most) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let read = |data: &Data| {
        most.fetch_max(readers.fetch_add(1, Relaxed) + 1, Relaxed);
        let left = data.left;
        std::thread::yield_now();
        assert_eq!((data.left, data.right), (left, left), "a writer came in");
        readers.fetch_sub(1, Relaxed);
    };
    let sections: u64 = std::thread::scope(|scope| {
        let write = || {
            let mut own = 0;
            while !stop.load(Relaxed) {
                let mut data = LOCK.write();
                data.write();
                own += 1;
                if own % 4 == 0 {
                    let data = WriteGuard::downgrade(data);
                    read(&data);
                }
            }
            own
        };
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !stop.load(Relaxed) || most.load(Relaxed) < 2 {
                    read(&LOCK.read());
                }
            });
        }
        let writers: [_; 2] = std::array::from_fn(|_| scope.spawn(write));
        std::thread::sleep(RUN);
        stop.store(true, Relaxed);
        writers.map(|writer| writer.join().unwrap()).iter().sum()
    });
    assert_eq!(LOCK.read().left, sections, "a section is lost");
    assert!(most.load(Relaxed) > 1, "readers are there together");
}

#[test]
fn a_panic_releases_and_leaves_the_data_as_it_was() {
    let lock = Lock::new(Data::default());
    let panic = || -> () { std::panic::resume_unwind(Box::new(())) };
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        lock.write().left = 1;
        let _read = lock.read();
        panic();
    }));
    assert!(panicked.is_err() && !lock.is_locked());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        drop(WriteGuard::map(lock.write(), |_data| -> &mut u64 {
            std::panic::resume_unwind(Box::new(()))
        }));
    }));
    assert!(panicked.is_err());
    assert_eq!(lock.try_write().expect("is released").left, 1);
}

#[test]
fn mapped_guards_release() {
    let lock = Lock::new(Data::default());
    *WriteGuard::map(lock.write(), |data| &mut data.right) = 3;
    let first = ReadGuard::map(lock.read(), |data| &data.right);
    let second = lock.read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive() && lock.try_write().is_none());
    drop(first);
    assert!(lock.try_write().is_none());
    assert_eq!(second.right, 3);
    drop(second);
    assert!(lock.try_write().is_some());
}

#[test]
fn it_stays_locked_when_a_guard_is_forgotten() {
    let lock = Lock::new(1);
    std::thread::scope(|scope| {
        scope.spawn(|| std::mem::forget(lock.read()));
    });
    assert!(lock.is_locked() && lock.try_write().is_none() && lock.try_read().is_some());
    let lock = Lock::new(1);
    std::thread::scope(|scope| {
        scope.spawn(|| std::mem::forget(lock.write()));
    });
    assert!(lock.is_locked_exclusive() && lock.try_write().is_none() && lock.try_read().is_none());
    assert_eq!(format!("{lock:?}"), "RwLock { data: <locked> }");
}

/// An operation with one of the guards.
#[derive(Clone, Copy, Debug)]
enum Action {
    Read,
    Write(u32),
    Downgrade(u32),
    Drop(usize),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => Just(Action::Read),
        2 => any::<u32>().prop_map(Action::Write),
        1 => any::<u32>().prop_map(Action::Downgrade),
        5 => any::<Index>().prop_map(|index| Action::Drop(index.index(usize::MAX))),
    ]
}

#[derive(Default)]
struct Guards<'a> {
    reads: Vec<ReadGuard<'a, u32>>,
    write: Option<WriteGuard<'a, u32>>,
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 128 },
        // Failures are printed in full, and are not stored.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The only thread never waits, since it only tries. The numbers of guards are the reference.
    #[test]
    fn does_as_the_reference(actions in prop::collection::vec(action(), 1..STEPS_MAX), timed in any::<bool>()) {
        let lock = Lock::new(0);
        let mut expected = 0;
        let mut guards = Guards::default();
        for action in actions {
            let (reads, writes) = (guards.reads.len(), guards.write.is_some());
            prop_assert_eq!(lock.is_locked(), reads > 0 || writes);
            prop_assert_eq!(lock.is_locked_exclusive(), writes);
            match action {
                Action::Read => {
                    let read = if timed { lock.try_read_for(Duration::ZERO) } else { lock.try_read() };
                    prop_assert_eq!(read.is_some(), !writes);
                    prop_assert!(read.as_deref().is_none_or(|data| *data == expected));
                    guards.reads.extend(read);
                }
                Action::Write(value) | Action::Downgrade(value) => {
                    let write = if timed { lock.try_write_for(Duration::ZERO) } else { lock.try_write() };
                    prop_assert_eq!(write.is_some(), reads == 0 && !writes);
                    let Some(mut write) = write else { continue };
                    (*write, expected) = (value, value);
                    match action {
                        Action::Downgrade(_) => guards.reads.push(WriteGuard::downgrade(write)),
                        _ => guards.write = Some(write),
                    }
                }
                Action::Drop(which) if reads > 0 => drop(guards.reads.swap_remove(which % reads)),
                Action::Drop(_) => guards.write = None,
            }
        }
        drop(guards);
        prop_assert!(!lock.is_locked());
        prop_assert_eq!(lock.into_inner(), expected);
    }
}
