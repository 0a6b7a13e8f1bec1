//! Locks from the literature, from Linux and from FreeBSD. Each is written once, generic over a
//! [`Platform`](platform::Platform).
//!
//! | module | contents |
//! |---|---|
//! | [`classic`] | locks of papers and libraries |
//! | [`linux`] | locks of the Linux kernel |
//! | [`freebsd`] | locks of the FreeBSD kernel |
//! | [`controls`] | locks with deliberate faults, to test the tests |
//! | [`subjects`] | the list of all locks, including those of [`near`] |
//!
//! Their building blocks are in [`nearlock_core`]. This crate is for readers and authors of
//! algorithms. Programs use `nearlock` with its feature `collection`.
#![no_std]

// Its macros declare switches.
#[macro_use]
extern crate nearlock_core;

#[cfg(test)]
extern crate std;

// Gives the modules of `nearlock_core` the same paths here as in that crate. The tests' platform,
// which both crates include, relies on it.
use nearlock_core::{
    events, native, near, parking, platform, raw, schedule, settings, shared_holds, tuning, unwinding,
};

pub mod classic;
pub mod controls;
pub mod freebsd;
pub mod linux;
pub mod subjects;
// The platform of `nearlock_core`'s unit tests. Each of the two crates uses a part of it, and
// together they use all of it.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../core/src/testing/mod.rs"]
mod testing;
