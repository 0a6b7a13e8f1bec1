//! A thread keeps its number, by which locks know their holder, until it ends.
//!
//! Would find: a number that comes from the thread's slot, and changes when the thread gets a slot
//! or gives it back. The lock then does not recognise its holder, which waits for itself.

#![cfg(all(target_os = "linux", not(miri)))]

#[path = "stress/support.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex as StdMutex, MutexGuard as StdGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nearlock::freebsd::{Mtx, Ownership, RecursiveMtx};
use nearlock::lock_api::GuardNoSend;
use nearlock::process::{register_thread, thread_id};
use nearlock_core::platform::NodeId;

use support::Watchdog;

/// Lets one test run at a time, since the slots belong to the process.
fn turn() -> StdGuard<'static, ()> {
    static TURN: StdMutex<()> = StdMutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Threads that have a slot each. Their stacks are in one mapping. They end when this is dropped.
struct Others {
    stacks: *mut c_void,
    /// The size of all stacks.
    size: usize,
    threads: Vec<libc::pthread_t>,
}

impl Others {
    /// ThreadSanitizer needs larger stacks.
    const STACK: usize = if cfg!(nearlock_sanitizer_thread) { 256 << 10 } else { 32 << 10 };

    /// Starts so many threads, or as many as the system allows.
    fn new(count: usize) -> Self {
        let size = count * Self::STACK;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address of the system's choice.
        let stacks = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
        if stacks == libc::MAP_FAILED {
            return Self { stacks: ptr::null_mut(), size, threads: Vec::new() };
        }
        let threads = (0..count).map_while(|i| start(stacks.wrapping_byte_add(i * Self::STACK))).collect();
        let others = Self { stacks, size, threads };
        while others.threads.len() > READY.load(SeqCst) as usize {
            thread::sleep(Duration::from_millis(1));
        }
        others
    }

    /// Ends so many of them, or more.
    fn end(&self, count: i32) {
        END.store(1, SeqCst);
        // SAFETY: wakes threads that sleep on the word, if there are any.
        unsafe { libc::syscall(libc::SYS_futex, END.as_ptr(), libc::FUTEX_WAKE, count) };
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.end(i32::MAX);
        for &thread in &self.threads {
            // SAFETY: made by `start`, and joined once.
            assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
        }
        if !self.stacks.is_null() {
            // SAFETY: mapped by `new`; the threads whose stacks were there have ended.
            unsafe { libc::munmap(self.stacks, self.size) };
        }
    }
}

static READY: AtomicU32 = AtomicU32::new(0);
static END: AtomicU32 = AtomicU32::new(0);

extern "C" fn have_a_slot(_: *mut c_void) -> *mut c_void {
    if !register_thread() {
        std::process::abort();
    }
    READY.fetch_add(1, SeqCst);
    while END.load(SeqCst) == 0 {
        let forever = ptr::null::<libc::timespec>();
        // SAFETY: sleeps if the word is 0, until it is woken.
        unsafe { libc::syscall(libc::SYS_futex, END.as_ptr(), libc::FUTEX_WAIT, 0, forever) };
    }
    ptr::null_mut()
}

/// Starts a thread on this stack. `None` if the system has no more threads.
fn start(stack: *mut c_void) -> Option<libc::pthread_t> {
    // SAFETY: the attributes are initialised, the stack is used by this thread only, and the
    // mapping stays.
    unsafe {
        let mut attributes = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&raw mut attributes), 0);
        assert_eq!(libc::pthread_attr_setstack(&raw mut attributes, stack, Others::STACK), 0);
        let mut thread = 0;
        let error =
            libc::pthread_create(&raw mut thread, &raw const attributes, have_a_slot, ptr::null_mut());
        libc::pthread_attr_destroy(&raw mut attributes);
        (error == 0).then_some(thread)
    }
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "an emulator has no room for 16383 threads")]
fn a_thread_without_a_slot_keeps_its_number_when_it_gets_one() {
    static RECURSIVE: RecursiveMtx<Cell<u32>> = RecursiveMtx::new(Cell::new(0));
    static PLAIN: Mtx<()> = Mtx::new(());
    let _turn = turn();
    let _watchdog = Watchdog::new("a thread waits for a lock that it holds");
    let others = Others::new(NodeId::SLOTS as usize);
    if others.threads.len() == NodeId::SLOTS as usize {
        assert!(!register_thread(), "all slots are taken");
    } else {
        println!("the system allows {} threads only: a slot was free", others.threads.len());
    }
    let number = thread_id();
    // Not dropped on a panic: a thread that the locks do not recognise could not drop them.
    let held = ManuallyDrop::new((RECURSIVE.lock(), PLAIN.lock()));
    assert_eq!(thread_id(), number);
    others.end(1);
    while !register_thread() {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(thread_id(), number, "the thread has another number with a slot");
    assert!(RECURSIVE.is_owned() && PLAIN.is_owned());
    // If the lock did not recognise its holder, the holder would wait for itself here.
    RECURSIVE.lock().set(1);
    drop(ManuallyDrop::into_inner(held));
    assert!(!RECURSIVE.is_owned() && !PLAIN.is_owned());
    assert_eq!(RECURSIVE.lock().get(), 1);
    drop(others);
}

/// Rounds of destructors that the C library makes (`PTHREAD_DESTRUCTOR_ITERATIONS`). In the last
/// one ThreadSanitizer forgets the thread, and its own code fails at what the thread does then.
const ROUNDS: usize = if cfg!(nearlock_sanitizer_thread) { 3 } else { 4 };

/// The observations of destructors, in their order.
static FOUND: StdMutex<Vec<(&str, u32, bool)>> = StdMutex::new(Vec::new());
/// Locked by a thread, and unlocked by the last of its destructors.
static HELD: Mtx<()> = Mtx::new(());

fn look(at: &'static str) {
    FOUND.lock().unwrap().push((at, thread_id().get(), HELD.is_owned()));
}

struct Local(&'static str);

impl Drop for Local {
    fn drop(&mut self) {
        look(self.0);
    }
}

thread_local! {
    static EARLY: Local = const { Local("thread-local, older than the number") };
    static LATE: Local = const { Local("thread-local, newer than the number") };
}

/// The key of thread-specific data, whose destructor asks for another round. The data is the number
/// of rounds that are left.
static KEY: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn at_exit(left: *mut c_void) {
    look("thread-specific");
    if left.addr() > 1 {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(KEY.load(SeqCst), ptr::without_provenance(left.addr() - 1)) };
    } else if HELD.is_owned() {
        // SAFETY: the thread has locked it, and has forgotten the guard.
        unsafe { HELD.force_unlock(GuardNoSend::new()) };
    }
}

#[test]
fn a_thread_keeps_its_number_in_its_last_destructors() {
    let _turn = turn();
    let _watchdog = Watchdog::new("a thread waits for a lock that its destructor should unlock");
    let mut key = 0;
    // SAFETY: the key is writable, and the destructor is a static function.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(at_exit)) }, 0);
    KEY.store(key, SeqCst);
    let body = move || {
        EARLY.with(|_| ());
        let number = thread_id().get();
        assert!(register_thread());
        LATE.with(|_| ());
        std::mem::forget(HELD.lock());
        // SAFETY: the key exists, and the argument is a number.
        assert_eq!(unsafe { libc::pthread_setspecific(key, ptr::without_provenance(ROUNDS)) }, 0);
        number
    };
    let number = thread::spawn(body).join().expect("no panic");
    let found = std::mem::take(&mut *FOUND.lock().unwrap());
    let at = |place: &str| found.iter().filter(|(at, ..)| at.starts_with(place)).count();
    assert_eq!((at("thread-local"), at("thread-specific")), (2, ROUNDS));
    for (at, there, is_owned) in found {
        assert_eq!((there, is_owned), (number, true), "{at}");
    }
    assert!(HELD.try_lock().is_some());
}
