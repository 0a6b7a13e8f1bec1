//! Lock algorithms written once, generic over a [`Platform`](platform::Platform).
//!
//! | module | contents |
//! |---|---|
//! | [`platform`] | the words and capabilities that an algorithm may ask for |
//! | [`raw`] | the interface of the algorithms |
//! | [`native`] | the platform of the machine itself |
//! | [`parking`] | how threads sleep and are woken: waiters, chains, limits, cancellation |
//! | [`schedule`] | which threads run: the basis on which waiters spin or sleep |
//! | [`strong_fences`] | asymmetric fences made of ordinary ones |
//! | [`unwinding`] | ends the process where a panic would leave a queue behind |
//! | [`mod@tuning`], [`settings`] | switches fixed at compile time; settings changed at run time |
//! | [`events`] | the events that slow paths count |
//! | [`lockstat`] | hooks for what a thread does while it waits |
//! | [`near`] | this project's own locks |
//! | [`shared_holds`] | how many locks of a kind a thread holds shared |
//!
//! This crate is for readers and authors of algorithms; programs use `nearlock`. Other locks, and
//! the list of all locks, are in `nearlock-collection`.
#![no_std]

#[cfg(test)]
extern crate std;

// First, since the modules below use its macros.
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
// `nearlock-collection` includes it, too. Each crate uses a part of it.
#[cfg(test)]
#[allow(dead_code, unused_imports)]
mod testing;
pub mod unwinding;
