//! Locks of C and C++ libraries, where those are installed: a few lines for each library (`shims/`)
//! are compiled when one of its locks is to be measured, and loaded. So nearlock is built without
//! any of them, and without a compiler of C++.
//!
//! A lock is called through a pointer, as one of a shared library is. [`Called`] has our own lock
//! behind such calls.

mod shim;

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::raw::RawLock;

use super::{Lock, of};
use shim::{ABSL, CK, NSYNC, Shim, TBB};

/// Acquires or releases: the lock and the acquisition's node.
type Call = unsafe extern "C" fn(*mut c_void, *mut c_void);
/// Makes a lock.
type Init = unsafe extern "C" fn(*mut c_void);

/// Memory for a lock, or for a node.
type Memory<const WORDS: usize> = UnsafeCell<MaybeUninit<[u64; WORDS]>>;
/// Words of each: enough for all of them, which is looked at when one is loaded.
const WORDS: usize = 2;

/// What a shim exports of one lock; null until it is loaded.
struct Entry {
    shim: &'static Shim,
    /// What the names of its symbols contain.
    name: &'static str,
    init: AtomicPtr<c_void>,
    lock: AtomicPtr<c_void>,
    unlock: AtomicPtr<c_void>,
    size: AtomicPtr<c_void>,
}

impl Entry {
    const fn new(shim: &'static Shim, name: &'static str) -> Self {
        const fn none() -> AtomicPtr<c_void> {
            AtomicPtr::new(std::ptr::null_mut())
        }
        Self { shim, name, init: none(), lock: none(), unlock: none(), size: none() }
    }

    fn obtain(&self) -> Result<(), String> {
        let library = self.shim.load()?;
        let symbol = |part: &str| library.symbol(&format!("nearlock_{}_{part}", self.name));
        for (of, part) in
            [(&self.init, "init"), (&self.lock, "lock"), (&self.unlock, "unlock"), (&self.size, "size")]
        {
            // Relaxed: a thread that locks has been started later.
            of.store(symbol(part)?, Relaxed);
        }
        // SAFETY: the shim defines them as `unsigned long`.
        let bytes =
            ["size", "node_size"].map(|part| symbol(part).map(|size| unsafe { *size.cast::<usize>() }));
        match bytes {
            [Ok(lock), Ok(node)] if lock.max(node) <= size_of::<Memory<WORDS>>() => Ok(()),
            _ => Err(format!("its size is not as expected: {bytes:?}")),
        }
    }

    fn size_bytes(&self) -> usize {
        // SAFETY: it has been obtained, and is an `unsigned long`.
        unsafe { *self.size.load(Relaxed).cast::<usize>() }
    }
}

/// Which lock.
trait Kind: Send + Sync + 'static {
    fn entry() -> &'static Entry;
}

struct Foreign<K>(Memory<WORDS>, PhantomData<K>);

/// What an acquisition keeps.
struct Node(Memory<WORDS>);

// SAFETY: it is there for several threads.
unsafe impl<K> Send for Foreign<K> {}
// SAFETY: as above.
unsafe impl<K> Sync for Foreign<K> {}
// SAFETY: the lock that it is passed to knows how to use it.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl<K: Kind> Default for Foreign<K> {
    fn default() -> Self {
        let memory = UnsafeCell::new(MaybeUninit::zeroed());
        let init = K::entry().init.load(Relaxed);
        // SAFETY: it has been obtained, with this signature, and the memory is large enough. It may be
        // moved: a free lock of all of these kinds refers to nothing.
        unsafe { std::mem::transmute::<*mut c_void, Init>(init)(memory.get().cast()) };
        Self(memory, PhantomData)
    }
}

impl Default for Node {
    fn default() -> Self {
        Self(UnsafeCell::new(MaybeUninit::zeroed()))
    }
}

// SAFETY: it is a lock.
unsafe impl<K: Kind> RawLock for Foreign<K> {
    type Node = Node;

    #[inline(always)]
    unsafe fn lock(&self, node: &Node) {
        let lock = K::entry().lock.load(Relaxed);
        // SAFETY: obtained, with this signature; both stay in place by the caller's promise.
        unsafe { std::mem::transmute::<*mut c_void, Call>(lock)(self.0.get().cast(), node.0.get().cast()) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, node: &Node) {
        let unlock = K::entry().unlock.load(Relaxed);
        // SAFETY: as above, and locked by the caller.
        unsafe { std::mem::transmute::<*mut c_void, Call>(unlock)(self.0.get().cast(), node.0.get().cast()) };
    }
}

/// A constant for the list of peers, by the name of the lock in its shim.
macro_rules! foreign {
    ($($lock:ident, $shim:ident, $name:literal;)*) => {$(
        pub const $lock: Option<Lock> = {
            struct This;

            impl Kind for This {
                #[inline(always)]
                fn entry() -> &'static Entry {
                    static ENTRY: Entry = Entry::new(&$shim, $name);
                    &ENTRY
                }
            }

            match of::<Foreign<This>>() {
                Some(lock) => Some(Lock {
                    obtain: || This::entry().obtain(),
                    size_bytes: || This::entry().size_bytes(),
                    ..lock
                }),
                None => None,
            }
        };
    )*};
}

foreign! {
    TBB_MUTEX, TBB, "tbb_mutex";
    TBB_SPIN, TBB, "tbb_spin";
    CK_FAS, CK, "ck_fas";
    CK_TICKET, CK, "ck_ticket";
    CK_MCS, CK, "ck_mcs";
    NSYNC_MU, NSYNC, "nsync";
    ABSL_MUTEX, ABSL, "absl";
}

#[cfg(test)]
mod tests {
    use super::super::PEERS;
    use super::*;

    #[test]
    fn what_is_installed_can_be_measured_and_what_is_not_is_named() {
        for peer in PEERS {
            match peer.obtain() {
                Ok(()) => assert!((1..=64).contains(&peer.size_bytes()), "{peer:?}"),
                Err(missing) => assert!(missing.to_string().contains("install "), "{missing}"),
            }
        }
    }

    #[test]
    fn a_shim_that_cannot_be_compiled_says_what_to_install() {
        static NONE: Shim =
            Shim::new("none.c", "#include <no/such/header.h>\n", "libnone-dev", shim::Libraries::Known(&[]));
        let error = NONE.load().map(drop).unwrap_err();
        assert!(error.contains("install libnone-dev") && !error.contains('\n'), "{error}");
    }
}
