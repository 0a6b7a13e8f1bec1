use super::*;
use crate::Os;
use nearlock_collection::linux::qspinlock;
use std::collections::HashSet;
use std::sync::Barrier;
use std::vec::Vec;

type Node = qspinlock::Node<Os, ()>;

/// The name of the node that the caller would get.
fn next_node() -> Option<NodeId> {
    with_node(|lent: Option<LentNode<Node>>| lent.map(|lent| lent.id))
}

fn counted(event: LockEvent) -> u64 {
    events()[event as usize]
}

/// Threads count where waiters stand in queues, so counting makes no system call.
#[test]
fn a_thread_counts_without_a_number() {
    let number = std::thread::spawn(|| {
        count(LockEvent::Slowpath);
        NUMBER.with(|number| number.load(Relaxed))
    });
    assert_eq!(number.join().unwrap(), 0);
}

#[test]
fn living_threads_have_slots_of_their_own() {
    const THREADS: usize = 8;
    let all_have_one = Barrier::new(THREADS);
    let slots: HashSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    assert!(register_thread());
                    let slot = next_node().unwrap().slot;
                    all_have_one.wait();
                    slot
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(slots.len(), THREADS);
}

#[test]
fn slots_of_ended_threads_are_recycled() {
    // Threads of other tests may take some of the slots.
    const THREADS: usize = 100;
    let slots: HashSet<_> =
        (0..THREADS).map(|_| std::thread::spawn(next_node).join().unwrap().unwrap().slot).collect();
    assert!(slots.len() < THREADS, "every thread had a new slot");
}

#[test]
fn nesting_takes_level_after_level_then_there_is_no_node() {
    fn nest(level: u32) {
        with_node(|lent: Option<LentNode<Node>>| match lent {
            Some(lent) => {
                assert_eq!(lent.id.level, level);
                assert_eq!(node::<Node>(lent.id), lent.node);
                nest(level + 1);
            }
            None => assert_eq!(level, NodeId::NESTING),
        });
    }
    nest(0);
    nest(0);
}

#[test]
fn events_of_threads_that_have_ended_stay_counted() {
    let before = counted(LockEvent::CnaSplice);
    std::thread::spawn(|| {
        assert!(register_thread());
        count(LockEvent::CnaSplice);
    })
    .join()
    .unwrap();
    count(LockEvent::CnaSplice);
    assert_eq!(counted(LockEvent::CnaSplice), before + 2);
}

/// Checks what thread-local data finds when it is destroyed.
struct Probe(&'static AtomicU64);

impl Drop for Probe {
    fn drop(&mut self) {
        assert!(next_node().is_some());
        self.0.fetch_add(u64::from(id().get()), Relaxed);
    }
}

#[test]
fn a_thread_has_its_number_and_a_slot_until_its_last_destructor() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static EARLY: Probe = const { Probe(&SEEN) };
        static LATE: Probe = const { Probe(&SEEN) };
    }
    let number = std::thread::spawn(|| {
        EARLY.with(|_| {});
        assert!(register_thread());
        LATE.with(|_| {});
        id().get()
    });
    let number = u64::from(number.join().unwrap());
    assert_eq!(SEEN.load(Relaxed), 2 * number);
}

/// Locks in each round of the destructors of thread-specific data, including the last. After
/// that round nothing gives a slot back.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn slots_of_threads_that_lock_in_their_last_destructor_are_found_again() {
    static KEY: AtomicU32 = AtomicU32::new(0);
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    // As many rounds as the C library makes. In the last one ThreadSanitizer forgets the
    // thread, and its own code fails at an access. A slot is given back one round after it was
    // taken.
    const ROUNDS_MAX: usize = if cfg!(nearlock_sanitizer_thread) { 2 } else { 4 };
    unsafe extern "C" fn again(round: *mut c_void) {
        assert!(next_node().is_some());
        ROUNDS.fetch_add(1, Relaxed);
        if round.addr() < ROUNDS_MAX {
            let next = ptr::without_provenance(round.addr() + 1);
            // SAFETY: a number.
            unsafe { libc::pthread_setspecific(KEY.load(Relaxed), next) };
        }
    }
    // SAFETY: the destructor is a function.
    assert_eq!(unsafe { libc::pthread_key_create(KEY.as_ptr(), Some(again)) }, 0);
    let one_ends = || {
        std::thread::spawn(|| {
            // SAFETY: as above.
            unsafe { libc::pthread_setspecific(KEY.load(Relaxed), ptr::without_provenance(1)) };
            id().get()
        })
        .join()
        .unwrap()
    };
    const THREADS: u64 = 200;
    let before = thread_slots();
    (0..THREADS).for_each(|_| _ = one_ends());
    assert_eq!(ROUNDS.load(Relaxed), THREADS * ROUNDS_MAX as u64);
    // Threads of other tests may have taken some too.
    assert!(u64::from(thread_slots() - before) < THREADS / 2, "{} more slots", thread_slots() - before);
}

#[test]
fn events_of_threads_without_a_slot_are_counted() {
    let before = counted(LockEvent::CnaTailUpdateFailed);
    std::thread::spawn(|| {
        count(LockEvent::CnaTailUpdateFailed);
        assert!(own_slot().is_none(), "counting does not register");
    })
    .join()
    .unwrap();
    assert!(counted(LockEvent::CnaTailUpdateFailed) > before);
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_forked_thread_keeps_its_number_and_no_other_of_the_child_has_it() {
    let me = id();
    // SAFETY: the child calls what needs nothing of the parent's other threads.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let kept = id() == me && KEPT.load(Relaxed) == me.get();
        // As if the kernel gave a new thread of the child the id that the parent's thread had.
        KEPT.store(sys::thread_id(), Relaxed);
        NUMBER.with(|number| number.store(0, Relaxed));
        let renamed = id().get() == sys::thread_id() | RENAMED;
        // SAFETY: has no conditions.
        unsafe { libc::_exit(if kept && renamed { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the status is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status:#x}");
}

#[test]
#[cfg(all(unix, not(miri)))]
fn a_signal_handler_gets_the_next_node() {
    static SEEN: AtomicU64 = AtomicU64::new(u64::MAX);
    extern "C" fn handler(_signal: libc::c_int) {
        SEEN.store(next_node().map_or(u64::MAX, |id| u64::from(id.level)), Relaxed);
    }
    fn raise() -> u64 {
        // SAFETY: the signal has a handler.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
        SEEN.load(Relaxed)
    }
    assert!(register_thread());
    let handler: extern "C" fn(libc::c_int) = handler;
    // SAFETY: the handler accesses only this thread's slot and an atomic; no other test uses
    // the signal.
    unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
    assert_eq!(raise(), 0);
    with_node(|_outer: Option<LentNode<Node>>| assert_eq!(raise(), 1));
    assert_eq!(raise(), 0);
}
