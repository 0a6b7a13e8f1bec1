//! Locks of the literature, of Linux and of FreeBSD, written once, generic over a
//! [`Platform`](platform::Platform).
//!
//! | module | what |
//! |---|---|
//! | [`classic`] | locks of papers and libraries |
//! | [`linux`] | locks of the Linux kernel |
//! | [`freebsd`] | locks of the FreeBSD kernel |
//! | [`controls`] | locks that are broken on purpose, to test the tests |
//! | [`subjects`] | the one list of all locks, with those of [`near`] |
//!
//! What they are made of is in [`nearlock_core`]. This crate is for readers and authors of
//! algorithms; programs use `nearlock` with its feature `collection`.
#![no_std]

// Its macros declare switches.
#[macro_use]
extern crate nearlock_core;

#[cfg(test)]
extern crate std;

// The modules of `nearlock_core` have the same paths here as there, in the tests' platform too.
use nearlock_core::{events, native, near, parking, platform, raw, schedule, settings, shared_holds, tuning};

pub mod classic;
pub mod controls;
pub mod freebsd;
pub mod linux;
pub mod subjects;
// The platform of the unit tests of `nearlock_core`, which uses all of it between the two crates.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../core/src/testing/mod.rs"]
mod testing;
