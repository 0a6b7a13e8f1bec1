//! Threads that do whatever a program may do with the locks, in any order, for some seconds: they
//! find what nobody has thought of. Each test says what it would find.

mod condvar;
mod ends;
mod mutexes;
mod support;
