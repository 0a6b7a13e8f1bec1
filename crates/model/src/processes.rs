//! Work that several processes share.
//!
//! loom maps and unmaps the stacks of its threads in each execution. Threads of one process wait
//! for each other to change its memory map, so two threads do less than one. Hence the work is
//! shared by processes, each of which is a copy of the caller's.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The least number of items for each process. The caller does fewer items alone.
const ITEMS_LEAST: usize = 16;

/// Calls `work` for the numbers below `items`, in as many processes as there are processors, and
/// returns the results in the order of the numbers. The greatest numbers are worked on first.
///
/// Only the calling thread is copied. Meanwhile no other thread may hold anything that `work` waits
/// for, such as the hook of a panic.
///
/// # Panics
///
/// If `work` panics, with its text.
pub(crate) fn map<R: Serialize + DeserializeOwned>(items: usize, work: impl Fn(usize) -> R) -> Vec<R> {
    let parallelism = std::thread::available_parallelism().map_or(1, usize::from);
    match parallelism.min(items / ITEMS_LEAST) {
        0 | 1 => (0..items).map(work).collect(),
        processes => system::map(items, processes, work),
    }
}

/// A process's report on an item: the result, or the text of the panic of `work`.
type Said<R> = (usize, Result<R, String>);

/// The answer to one item.
fn answer<R>(item: usize, work: &impl Fn(usize) -> R) -> Said<R> {
    (item, catch_unwind(AssertUnwindSafe(|| work(item))).map_err(|payload| text_of(&*payload)))
}

/// The text of a panic.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without text").to_owned()
}

/// The results in the order of their items, from the texts that the processes have written.
fn in_order<R: DeserializeOwned>(items: usize, texts: &[String]) -> Vec<R> {
    let mut results: Vec<Option<R>> = (0..items).map(|_| None).collect();
    for line in texts.iter().flat_map(|text| text.lines()) {
        // A process that was killed may have begun another line.
        let Ok((item, result)) = serde_json::from_str::<Said<R>>(line) else { continue };
        results[item] = Some(result.unwrap_or_else(|text| panic!("{text}")));
    }
    let all = results.into_iter().enumerate();
    all.map(|(item, result)| result.unwrap_or_else(|| panic!("a process ended before item {item}"))).collect()
}

#[cfg(unix)]
mod system {
    use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};

    use super::{DeserializeOwned, Serialize, answer, in_order};

    pub fn map<R: Serialize + DeserializeOwned>(
        items: usize,
        processes: usize,
        work: impl Fn(usize) -> R,
    ) -> Vec<R> {
        let (todo, todo_to) = io::pipe().expect("a pipe");
        let mut children = Vec::new();
        for _ in 0..processes {
            let (answers, answers_to) = io::pipe().expect("a pipe");
            // SAFETY: the copy has its own copy of all that this thread has. By the rule for
            // callers, other threads hold nothing that it waits for; glibc takes care of the heap.
            // The copy does not return from here.
            match unsafe { libc::fork() } {
                -1 => panic!("no process: {}", io::Error::last_os_error()),
                0 => {
                    // The copy must drop this, or it would wait for its own end of the pipe.
                    drop(todo_to);
                    work_off(todo, answers_to, &work)
                }
                child => children.push((child, answers)),
            }
        }
        // If all copies are gone, the pipe has no reader.
        drop(todo);
        let texts: Vec<String> = std::thread::scope(|scope| {
            scope.spawn(|| list(items, todo_to));
            let readers: Vec<_> = children.into_iter().map(|child| scope.spawn(|| all_of(child))).collect();
            readers.into_iter().map(|reader| reader.join().expect("a reader")).collect()
        });
        in_order(items, &texts)
    }

    /// Writes all numbers, or as many as are read.
    fn list(items: usize, mut todo_to: PipeWriter) {
        _ = (0..items as u64).rev().try_for_each(|item| todo_to.write_all(&item.to_ne_bytes()));
    }

    /// A number that is left to do. Each number is written and read in one step, so no process
    /// reads a part of it.
    fn next(todo: &mut PipeReader) -> Option<usize> {
        let mut item = [0; 8];
        todo.read_exact(&mut item).ok().map(|()| u64::from_ne_bytes(item) as usize)
    }

    /// The body of a copy.
    fn work_off<R: Serialize>(
        mut todo: PipeReader,
        mut answers_to: PipeWriter,
        work: &impl Fn(usize) -> R,
    ) -> ! {
        let mut goes_on = true;
        while let Some(item) = next(&mut todo) {
            // Once an item has failed, the copy begins no other item.
            if goes_on {
                let said = answer(item, work);
                let line = serde_json::to_string(&said).expect("results can be written");
                let is_written = answers_to.write_all(format!("{line}\n").as_bytes()).is_ok();
                goes_on = is_written && said.1.is_ok();
            }
        }
        // SAFETY: nothing of the caller's runs at the end, which is left to the caller.
        unsafe { libc::_exit(0) }
    }

    /// The text that a child has written until its end.
    fn all_of((child, mut answers): (libc::pid_t, PipeReader)) -> String {
        let mut text = Vec::new();
        answers.read_to_end(&mut text).expect("what a child writes");
        let is_interrupted = || io::Error::last_os_error().kind() == ErrorKind::Interrupted;
        // SAFETY: no other thread waits for this child.
        while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } == -1 && is_interrupted() {}
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(not(unix))]
mod system {
    use super::{DeserializeOwned, Serialize};

    pub fn map<R: Serialize + DeserializeOwned>(
        items: usize,
        _processes: usize,
        work: impl Fn(usize) -> R,
    ) -> Vec<R> {
        (0..items).map(work).collect()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// One test, because no other thread may panic meanwhile.
    #[test]
    fn results_come_in_order_and_failures_come_back() {
        for items in [0, 1, 500, 20_000] {
            let squares = system::map(items, 3, |item| item * item);
            assert!(squares.iter().enumerate().all(|(item, square)| *square == item * item));
            assert_eq!(squares.len(), items);
        }
        let failed = |work: fn(usize)| text_of(&*catch_unwind(|| system::map(100, 2, work)).unwrap_err());
        assert_eq!(failed(|item| assert!(item != 7, "item {item}")), "item 7");
        let ends_early = |item| {
            if item == 7 {
                // SAFETY: ends the copy, and nothing else.
                unsafe { libc::_exit(1) }
            }
        };
        assert_eq!(failed(ends_early), "a process ended before item 7");
    }
}
