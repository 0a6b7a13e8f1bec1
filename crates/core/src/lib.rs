//! Lock algorithms written once, generic over a [`Platform`](platform::Platform).
//!
//! | module | what |
//! |---|---|
//! | [`platform`] | the words and capabilities that an algorithm may ask for |
//! | [`raw`] | the interface of the algorithms |
//! | [`native`] | the platform of the machine itself |
//! | [`parking`] | what makes a thread sleep and wake: waiters, chains, limits, cancellation |
//! | [`schedule`] | who runs: what waiters that spin for a sleeping lock go by |
//! | [`strong_fences`] | asymmetric fences where there are only ordinary ones |
//! | [`unwinding`] | what ends the process where a panic would leave a queue behind |
//! | [`mod@tuning`], [`settings`] | switches fixed at compile time, and settings changed at run time |
//! | [`events`] | what the slow paths count |
//! | [`lockstat`] | hooks at what a thread does while it waits |
//! | [`near`] | this project's own locks |
//! | [`shared_holds`] | how many locks of a kind a thread holds shared |
//!
//! This crate is for readers and authors of algorithms; programs use `nearlock`. Other locks, and
//! the list of all, are in `nearlock-collection`.
#![no_std]

#[cfg(test)]
extern crate std;

// First: its macros are for those below.
#[macro_use]
pub mod tuning;

pub mod events;
pub mod lockstat;
pub mod native;
pub mod near;
pub mod parking;
pub mod platform;
pub mod raw;
pub mod schedule;
pub mod settings;
pub mod shared_holds;
pub mod strong_fences;
// `nearlock-collection` has it, too: each uses a part.
#[cfg(test)]
#[allow(dead_code, unused_imports)]
mod testing;
pub mod unwinding;
