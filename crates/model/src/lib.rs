//! Models of nearlock's locks. A model runs the unchanged source of a lock on a platform for a
//! checker. The model checker loom tries all executions of a few threads. Shuttle tries some
//! executions of many threads.
//!
//! | module | what |
//! |---|---|
//! | [`mod@loom`] | the platform of the model checker loom |
//! | [`mod@shuttle`] | the platform of Shuttle, what its models are, and how they are run |
//! | [`engine`] | what models need from the platform that runs them |
//! | [`instance`] | the state that each of these platforms keeps |
//! | [`model`] | a program to be checked, and the bounds of its search |
//! | [`exclusion`] | models that every lock can have |
//! | [`readers`] | models that every lock with readers can have |
//! | [`released`] | locks that are unlocked in a special way |
//! | [`mod@rwlock`] | the modes of the reader-writer lock |
//! | [`timed`] | models that every lock whose waiters may give up can have |
//! | [`staged`] | models that start in the middle of a queue |
//! | [`subjects`], [`parts`] | which lock has which models, and which other part of core |
//! | [`mutate`], [`evidence`] | is every ordering needed? |
//! | `processes`, `stacks` | several processes that share the work; stacks that are used again |
//! | [`source`] | the orderings in the sources |
//! | [`hash`], [`document`] | the page of the orderings, `docs/internals/orderings.md` |
//!
//! # What is shown
//!
//! The following is shown of each working lock of the list. It is also shown of the parts that are
//! no locks: the parking token, waiters, strong fences, the optimistic spin queue and the condition
//! variable. `cargo test -p nearlock-model` shows it; the evidence is
//! `docs/internals/orderings.md`, made by `cargo xtask orderings`.
//!
//! 1. **Exclusion.** No execution of the models lets two sections overlap, or hides one section's
//!    writes from the next: each section writes to a cell that nothing else protects.
//! 2. **Progress.** Every execution ends, with every section done, and with the lock free where a
//!    model can try it. (A waiter that no thread will ever wake up shows as an execution without
//!    end.)
//! 3. **No ordering is too strong.** Each half of an ordering in the sources, of operations and
//!    fences, is dropped, one at a time, and a model fails each time. An exception would need one
//!    of the reasons of a short list ([`evidence::Reason`]); [`evidence::SURVIVORS`] names the
//!    exceptions.
//! 4. **No ordering is left out.** Each ordering in the sources is exercised by some model.
//! 5. **The models reach what they are about.** A model names the events (a splice, a failed tail
//!    update, ...) that some execution of it must have reached.
//!
//! A lock on the list automatically has the first of the models below. `tests/fences.rs` shows what
//! locks rely on in asymmetric fences, and `tests/history` shows bugs of the past.
//!
//! # Within which bounds
//!
//! Q is qspinlock and CNA. P is a lock with the switches for preempted waiters. R is a lock with
//! readers or limits, T one with limits, and TR one with limits for readers.
//!
//! | models | threads | preemptions |
//! |---|---|---|
//! | one section each | 2 | any number; R 2 |
//! | `lock` against `try_lock` | 2 | any number; P 3; R 1 |
//! | two sections each | 2 | 3; P 2; R 1 |
//! | one section each | 3 | 2; Q 3, with P 1; R 1 |
//! | two locks one after the other, with one node | 2 | 3; Q 2, with P 1; R 1 |
//! | one section each, passing within a NUMA node or never (hmcs, cohort) | 2 | 3 |
//! | the same | 3 | 2 |
//! | held at first; late pending waiter; no node (qspinlock, CNA) | 3 | 3 |
//! | staged queues (qspinlock, CNA) | 3 or 4 | 2 |
//! | the same, held by another thread than the head: waiters (CNA) | 4 | 2 |
//! | newcomers, or a secondary queue, with it (CNA) | 4 or 5 | 1 |
//! | three newcomers behind a head (CNA's version 13) | 4 | 1 |
//! | a newcomer that returns from another NUMA node; the head is not the holder (CNA) | 4 | 1 |
//! | the same, held by the head (CNA's version 13) | 3 | 2 |
//! | held by a thread that may cancel; one waiter gives up, one stays (T) | 2; 3 | 2 or 3; 1 |
//! | a reader and a writer, once each, or trying; twice each (locks with readers) | 2 | 2 or 3; 1 |
//! | a thread that downgrades, a reader and a writer (the same) | 3 | 1 |
//! | written or read at first; two threads that come (the same) | 3 | 2; a reader's writers 1 |
//! | written at first; a reader that may give up, and a writer (TR) | 2; 3 | 2 or 3; 1 |
//! | held at first; waiters sleep, or spin (counter mutex) | 2; 3 | 4; 2, or 1 with spinning |
//! | the same (owner mutex) | 2; 3 | 3, or 2 without spinning (3 with a waiter that gives up); 1 |
//! | the parking token; waiters; strong fences | 2; 2 or 3; 2 | any number; 4 or 2; 3 |
//! | the optimistic spin queue: each comes once; twice | 2 or 3; 2 | any number or 2; 3 |
//! | the same, staged: some leave; others stay, come or return | 2; 3; 4 | any number; 2 or 3; 1 |
//! | the condition variable: tokens, limits or none, notify one or all | 2; 3 | 2 or 3; 1 |
//!
//! A preemption takes the processor from a thread that could continue. A thread that waits gives
//! the processor up itself, which does not count. `cargo xtask orderings` allows one more
//! preemption everywhere, in at most 20,000 executions of a model. If an ordering is dropped, a
//! model may have any number of executions. It is tried for 100 of them, and then for more, up to
//! 100,000. An ordering that is by then neither shown to be needed, nor shown not to be, counts as
//! a failure ([`mutate::Fate`]).
//!
//! Presets have fewer models of waiters that give up. `cargo test` gives them one preemption less,
//! but at least one, in each model that need not reach an event; `.ci/deep` gives them all. Presets
//! of `near` have all of them everywhere.
//!
//! Under Shuttle (`tests/shuttle.rs`) each working lock has these models. Each runs in the given
//! number of random schedules, and in as many with few changes of priority (PCT). `cargo test`
//! gives presets a quarter of the schedules, except in crowds of readers and writers that do not
//! give up; `.ci/deep` gives them all.
//!
//! The threads of a [`crowd`](shuttle::crowd) call `lock` and `try_lock`, urgently or not. They run
//! on three NUMA nodes, or move between them. They have queue nodes, or none. While they wait, they
//! are interrupted up to three levels deep. The [`crowd`](readers::crowd) of locks with readers
//! consists of readers and writers, urgent or not, that downgrade and try.
//!
//! | models | threads | sections each | schedules, twice |
//! |---|---|---|---|
//! | [`crowd`](shuttle::crowd), as above | 4 | 5 | 1,200 |
//! | the same | 8 | 4 | 400 |
//! | the same | 16 | 3 | 120 |
//! | held at first (qspinlock, CNA) | 4, 8 | 1 | 300 |
//! | late pending waiter; no node (the same) | 3 | 1 | 300 |
//! | newcomers behind a head (the same) | 6 or 7 | 1 or 2 | 300 |
//! | staged queues (CNA) | 6 to 8 | 1 or 2 | 300 |
//! | the parking token; waiters | 2 or 3 | | 500 |
//! | [`crowd`](readers::crowd) of readers and writers, as above | 3 | 5 | 300 |
//! | the same | 6 | 5 | 150 |
//! | the same | 12 | 3 | 40 |
//! | [`crowd`](timed::crowd) of threads that give up, and cancel each other (T) | 4 | 6 | 400 |
//! | the same | 8 | 4 | 100 |
//! | the same of [readers and writers](readers::impatient_crowd) (TR) | 4 | 6 | 400 |
//! | the same | 8 | 4 | 100 |
//! | the optimistic spin queue, left at random | 4 or 8 | | 500 |
//! | the condition variable: tokens, as above | 4 or 8 | 3 or 2 | 400 or 100 |
//! | a waiter against which the scheduler works (FIFO locks) | 4 | 60 | 10, at random only |
//! | the same, and four times as long (hand-over mutexes) | 4 | 60, 240 | 10, at random only |
//!
//! No execution lets two sections overlap, leaves a sleeper asleep, or does not end. The schedules
//! of a lock have reached its rare states (`must_reach` in `tests/shuttle.rs`): queue nodes of all
//! four levels, none left, steals, sleeping waiters and heads, splices, flushes, failed tail
//! updates. The seed is fixed. The environment variable
//! [`NEARLOCK_MODEL_SCHEDULES`](shuttle::check::SCHEDULES) multiplies the number of schedules; it
//! is 8 in `.ci/deep`. [`NEARLOCK_MODEL_REPLAY`](shuttle::check::REPLAY) shows a failure again:
//!
//! ```text
//! NEARLOCK_MODEL_SCHEDULES=8 cargo test -p nearlock-model --test shuttle
//! NEARLOCK_MODEL_REPLAY='MODEL=SCHEDULE' cargo test -p nearlock-model
//! ```
//!
//! # What is not shown
//!
//! * Shuttle is sequentially consistent: it does not see that an ordering or a fence is missing. A
//!   test shows that.
//! * loom takes `SeqCst` for AcqRel, never lets a load see a store that comes later in program
//!   order (no load buffering), and remembers seven stores of a word.
//! * A store is a swap here, and a narrow store a read-modify-write of the whole word. Both prolong
//!   the release sequence of an older store, while a plain store of a machine does not. If an
//!   ordering is too weak only because of this, the models do not find it.
//! * In exchange, plain stores to one word must be ordered by happens-before. The memory model does
//!   not require this. But in any other order the machine would choose which store is the last, and
//!   the model would show only one choice.
//! * Of a wait, two failed looks are explored; see [`mod@loom`].
//! * In the staged models of version 13 of CNA one thread is the holder and then the head. So only
//!   the models of newcomers have a head that sorts its queue while another thread holds the lock.
//! * Fairness, except in [`shuttle::adversary`]: see the unit tests of the locks, and the
//!   simulator.
//! * Nested slow paths (signal handlers) under loom: each thread has one queue node there.

#![cfg(target_pointer_width = "64")]

pub mod document;
pub mod engine;
pub mod evidence;
pub mod exclusion;
pub mod hash;
pub mod instance;
pub mod lockmgr;
pub mod loom;
pub mod model;
pub mod mutate;
mod on_demand;
pub mod parts;
mod processes;
pub mod readers;
pub mod released;
pub mod rwlock;
pub mod shuttle;
pub mod source;
#[cfg(all(target_os = "linux", not(miri)))]
mod stacks;
pub mod staged;
pub mod subjects;
pub mod timed;
