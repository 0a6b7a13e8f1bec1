//! Work that processes share.
//!
//! loom maps and unmaps the stacks of its threads in each execution, and threads of one process wait for each other to change its memory map:
//! two do less than one. So it is processes that share, each a copy of the caller's.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// So many items for each process, at least: of fewer the caller takes care alone.
const ITEMS_LEAST: usize = 16;

/// What `work` says of the numbers below `items`, in their order, in as many processes as there are processors. The greatest numbers come first.
///
/// The caller holds nothing that a copy of it would wait for: other threads are not copied.
///
/// # Panics
///
/// If `work` does, with its text.
pub(crate) fn map<R: Serialize + DeserializeOwned>(items: usize, work: impl Fn(usize) -> R) -> Vec<R> {
    let parallelism = std::thread::available_parallelism().map_or(1, usize::from);
    match parallelism.min(items / ITEMS_LEAST) {
        0 | 1 => (0..items).map(work).collect(),
        processes => system::map(items, processes, work),
    }
}

/// What a process says of an item: the result, or what `work` panicked with.
type Said<R> = (usize, Result<R, String>);

/// The answer to one item, as a line.
fn answer<R: Serialize>(item: usize, work: &impl Fn(usize) -> R) -> String {
    let said: Said<R> = match catch_unwind(AssertUnwindSafe(|| work(item))) {
        Ok(result) => (item, Ok(result)),
        Err(payload) => (item, Err(text_of(&*payload))),
    };
    let mut line = serde_json::to_string(&said).expect("results can be written");
    line.push('\n');
    line
}

/// What a panic said.
fn text_of(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without text").to_owned()
}

/// The results in the order of their items.
fn in_order<R: DeserializeOwned>(items: usize, lines: &[String]) -> Vec<R> {
    let mut results: Vec<Option<R>> = (0..items).map(|_| None).collect();
    for line in lines.iter().flat_map(|text| text.lines()) {
        let (item, result): Said<R> = serde_json::from_str(line).expect("a line of a process");
        results[item] = Some(result.unwrap_or_else(|text| panic!("{text}")));
    }
    let all = results.into_iter().enumerate();
    all.map(|(item, result)| result.unwrap_or_else(|| panic!("a process ended before item {item}"))).collect()
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::{FromRawFd, RawFd};

    use super::{DeserializeOwned, Serialize, answer, in_order};

    /// What a pipe holds on Linux before who writes has to wait; on other systems no less, once so much is written.
    const PIPE_BYTES: usize = 1 << 16;

    /// Both ends of a pipe: to read, to write.
    fn pipe() -> (File, File) {
        let mut ends: [RawFd; 2] = [0; 2];
        // SAFETY: two descriptors have room there.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: they are new, and nobody else's.
        ends.map(|end| unsafe { File::from_raw_fd(end) }).into()
    }

    /// The numbers that are left to do, one read for each. All of them are in the pipe before there is a reader, so that each read has a whole one.
    fn next(todo: &mut File) -> Option<usize> {
        let mut item = [0; 4];
        todo.read_exact(&mut item).ok().map(|()| u32::from_ne_bytes(item) as usize)
    }

    pub fn map<R: Serialize + DeserializeOwned>(
        items: usize,
        processes: usize,
        work: impl Fn(usize) -> R,
    ) -> Vec<R> {
        assert!(items * 4 <= PIPE_BYTES, "{items} items are too many");
        let (mut todo, mut items_to) = pipe();
        for item in (0..items).rev() {
            let item = u32::try_from(item).expect("a number of items");
            items_to.write_all(&item.to_ne_bytes()).expect("a pipe holds all items");
        }
        drop(items_to);
        let mut children = Vec::new();
        for _ in 0..processes {
            let (answers, mut answers_to) = pipe();
            // SAFETY: the copy does its work, which needs no other thread of the caller's, and ends without coming back.
            match unsafe { libc::fork() } {
                -1 => panic!("no process: {}", std::io::Error::last_os_error()),
                0 => {
                    while let Some(item) = next(&mut todo) {
                        if answers_to.write_all(answer(item, &work).as_bytes()).is_err() {
                            break;
                        }
                    }
                    // SAFETY: nothing of the caller's is run at its end: that is the caller's.
                    unsafe { libc::_exit(0) }
                }
                child => children.push((child, answers)),
            }
        }
        let lines: Vec<String> = std::thread::scope(|scope| {
            let readers: Vec<_> = children.into_iter().map(|child| scope.spawn(|| all_of(child))).collect();
            readers.into_iter().map(|reader| reader.join().expect("a reader")).collect()
        });
        in_order(items, &lines)
    }

    /// What a child wrote until its end.
    fn all_of((child, mut answers): (libc::pid_t, File)) -> String {
        let mut lines = String::new();
        answers.read_to_string(&mut lines).expect("text of a child");
        // SAFETY: a child that nobody else waits for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        lines
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_items() {
        for items in [0, 1, 500] {
            let squares = map(items, |item| item * item);
            assert!(squares.iter().enumerate().all(|(item, square)| *square == item * item));
            assert_eq!(squares.len(), items);
        }
    }

    #[test]
    fn a_panic_of_a_process_is_one_of_the_caller() {
        let caught = catch_unwind(|| map(100, |item| assert!(item != 7, "item {item}")));
        assert_eq!(text_of(&*caught.unwrap_err()), "item 7");
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_ends_early_is_noticed() {
        let caught = catch_unwind(|| {
            map(100, |item| {
                if item == 7 {
                    // SAFETY: ends the copy, and nothing else.
                    unsafe { libc::_exit(1) }
                }
            })
        });
        assert!(text_of(&*caught.unwrap_err()).contains("ended before item 7"));
    }
}
