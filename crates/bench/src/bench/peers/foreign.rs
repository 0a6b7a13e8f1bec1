//! Locks of C and C++ libraries, where they are installed. Each library has a few lines of C or C++
//! (`shims/`), which are compiled and loaded when one of its locks is measured. So the build of
//! nearlock needs none of the libraries, and no C++ compiler.
//!
//! A lock is called through a pointer, like a lock of a shared library. [`Called`] puts one of our
//! own locks behind such calls.

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

/// Locks or unlocks. The arguments are the lock and the acquisition's node.
type Call = unsafe extern "C" fn(*mut c_void, *mut c_void);
/// Initializes a lock.
type Init = unsafe extern "C" fn(*mut c_void);

/// Memory for a lock, or for a node.
type Memory<const WORDS: usize> = UnsafeCell<MaybeUninit<[u64; WORDS]>>;
/// Words of a lock and of a node. They are enough for all locks, which is checked when a lock is
/// loaded.
const WORDS: usize = 2;

/// The symbols that a shim exports for one lock; null until the shim is loaded.
struct Entry {
    shim: &'static Shim,
    /// The part of its symbols' names that names the lock.
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
            // Relaxed: threads that lock start later.
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
        // SAFETY: the symbol has been obtained, and is an `unsigned long`.
        unsafe { *self.size.load(Relaxed).cast::<usize>() }
    }
}

/// Selects a lock.
trait Kind: Send + Sync + 'static {
    fn entry() -> &'static Entry;
}

struct Foreign<K>(Memory<WORDS>, PhantomData<K>);

/// The node of an acquisition.
struct Node(Memory<WORDS>);

// SAFETY: the lock is made for use by several threads.
unsafe impl<K> Send for Foreign<K> {}
// SAFETY: as above.
unsafe impl<K> Sync for Foreign<K> {}
// SAFETY: the node is used only by the lock that it is passed to.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl<K: Kind> Default for Foreign<K> {
    fn default() -> Self {
        let memory = UnsafeCell::new(MaybeUninit::zeroed());
        let init = K::entry().init.load(Relaxed);
        // SAFETY: the function has been obtained, with this signature, and the memory is large
        // enough. The lock may be moved, since a free lock of each of these kinds contains no
        // address.
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
        // SAFETY: the function has been obtained, with this signature. Both stay in place by the
        // caller's promise.
        unsafe { std::mem::transmute::<*mut c_void, Call>(lock)(self.0.get().cast(), node.0.get().cast()) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, node: &Node) {
        let unlock = K::entry().unlock.load(Relaxed);
        // SAFETY: as above, and locked by the caller.
        unsafe { std::mem::transmute::<*mut c_void, Call>(unlock)(self.0.get().cast(), node.0.get().cast()) };
    }
}

/// Defines a constant for the list of peers, by the name of the lock in its shim.
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
    fn installed_peers_can_be_measured_and_missing_ones_are_named() {
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
