//! The guarantees of guards of locks with readers. Also, any sequence of operations has the results
//! of a reference.

mod rwlock {
    use nearlock::{RwLock as Lock, RwLockReadGuard as ReadGuard, RwLockWriteGuard as WriteGuard};

    include!("helpers/readers.rs");
}

mod rwsem {
    use nearlock::linux::{RwSem as Lock, RwSemReadGuard as ReadGuard, RwSemWriteGuard as WriteGuard};

    include!("helpers/readers.rs");
}
