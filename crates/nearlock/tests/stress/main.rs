//! Threads that do everything that a program may do with the locks, in any order, for some seconds.
//! So they find faults that no other test looks for. Each test lists what it would find.

mod condvar;
mod ends;
mod mutexes;
mod semaphore;
mod support;
