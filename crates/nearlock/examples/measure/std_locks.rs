//! The locks of `std` with the signatures of the others. Nothing here panics with a lock held.

use std::sync::{self, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

#[allow(dead_code, reason = "not all examples have a mutex")]
pub struct Mutex<T>(sync::Mutex<T>);

#[allow(dead_code, reason = "not all examples have a mutex")]
impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("not poisoned")
    }
}

#[allow(dead_code, reason = "not all examples have a reader-writer lock")]
pub struct RwLock<T>(sync::RwLock<T>);

#[allow(dead_code, reason = "not all examples have a reader-writer lock")]
impl<T> RwLock<T> {
    pub const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect("not poisoned")
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect("not poisoned")
    }
}
