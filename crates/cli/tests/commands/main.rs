//! The real command. The tests are one program, so that tests which wait run at the same time as
//! those that compute.

mod bad_input;
mod bench;
mod bench_readers;
mod completions;
mod fields;
mod interrupt;
mod list;
mod man;
mod measure;
mod out;
mod report;
mod reproduce;
mod simulate;
mod slips;
mod support;
mod torture;
mod validate;
mod width;
