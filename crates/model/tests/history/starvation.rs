//! Waiters of qspinlock that others overtake forever. The scheduler works against one waiter. The
//! tests measure how often others have had the lock between one step of the waiter and its next.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use nearlock_collection::linux::qspinlock::{Fifo, LOCKED, Node, PENDING, QSpinLock, QSpinTuning};
use nearlock_core::platform::{Atomic, LentNode, LocalNodes, Park, Platform, SplitWord};
use nearlock_core::raw::RawLock;
use nearlock_model::exclusion::counting;
use nearlock_model::loom::Loom;
use nearlock_model::shuttle::Shuttle;
use nearlock_model::shuttle::adversary::{self, Contest, Seen, overtaken};

use crate::qspinlock::word_of;
use crate::row_of;

fn contest(others: u32, rounds: u32) -> Contest {
    Contest { others, rounds, schedules: 5, seed: 1 }
}

/// With the bug the waiter is overtaken for as long as the others come. Without it the waiter is
/// overtaken at most `bound` times, however long they come.
fn starves(
    test: &str,
    others: u32,
    bound: u32,
    bug: impl Fn(Contest) -> u32,
    today: impl Fn(Contest) -> u32,
) {
    let row = row_of(test);
    let stated = format!("overtaken in most rounds of {others}; now at most {bound} times");
    assert!(row.contains(&stated), "docs/internals/history*.md do not say of {test}: {stated}");
    for rounds in [50, 200] {
        let (bug, today) = (bug(contest(others, rounds)), today(contest(others, rounds)));
        eprintln!("{test}: {others} others, {rounds} rounds each: {bug}, now {today}");
        assert!(bug > others * rounds / 2, "{test}: in {rounds} rounds overtaken {bug} times");
        assert!(today <= bound, "{test}: in {rounds} rounds overtaken {today} times");
    }
}

#[test]
fn qspinlock_unbounded_pending_wait() {
    nearlock_core::tuning! {
        struct Unbounded: QSpinTuning {
            pending_turns_max: u32 = u32::MAX;
        }
    }
    /// Whenever the waiter looks, a thread is about to lock as the pending waiter, each time
    /// another one.
    fn about_to_take() -> impl Fn(Seen) -> bool {
        let before = Cell::new(false);
        move |seen| {
            let now = seen.now == PENDING;
            !before.replace(now) && now
        }
    }
    starves(
        "qspinlock_unbounded_pending_wait",
        2,
        16,
        |contest| {
            overtaken::<QSpinLock<Shuttle, Fifo, Unbounded>>(contest, adversary::word_of, about_to_take())
        },
        |contest| overtaken::<QSpinLock<Shuttle>>(contest, adversary::word_of, about_to_take()),
    );
}

#[test]
fn qspinlock_pending_by_exchange() {
    // Whenever the waiter takes a step, the word has changed since the waiter looked.
    let changed = |seen: Seen| seen.now != seen.then;
    starves(
        "qspinlock_pending_by_exchange",
        1,
        4,
        |contest| overtaken::<ByExchange<Shuttle>>(contest, |lock| adversary::word_of(&lock.0), changed),
        |contest| overtaken::<QSpinLock<Shuttle>>(contest, adversary::word_of, changed),
    );
    // It is a correct lock all the same.
    counting::<Loom, ByExchange<Loom>>("by-exchange", 2, 2, Some(2)).check();
    counting::<Loom, ByExchange<Loom>>("by-exchange", 3, 1, Some(2)).check();
}

/// A qspinlock whose first waiter sets pending by a compare-exchange, in a loop.
struct ByExchange<P: Platform>(QSpinLock<P>);

impl<P: Platform> Default for ByExchange<P> {
    fn default() -> Self {
        Self(QSpinLock::default())
    }
}

impl<P: Park + LocalNodes<Node<P, ()>>> ByExchange<P> {
    /// Locks (true), or becomes the pending waiter (false). An error if there are other waiters.
    fn take_or_mark(&self) -> Result<bool, ()> {
        let mut val = 0;
        while val & !LOCKED == 0 {
            // 0,0,0 -> 0,0,1 or 0,0,1 -> 0,1,1
            let new = if val == 0 { LOCKED } else { LOCKED | PENDING };
            // Ordering: Acquire, pairs with the Release in `unlock`. Relaxed on failure: the value
            // is only tried again.
            match word_of(&self.0).compare_exchange(val, new, Acquire, Relaxed) {
                Ok(_) => return Ok(val == 0),
                Err(seen) => val = seen,
            }
        }
        Err(())
    }
}

// SAFETY: as qspinlock, whose word, steps and invariants it shares.
unsafe impl<P: Park + LocalNodes<Node<P, ()>>> RawLock for ByExchange<P> {
    type Node = ();

    unsafe fn lock(&self, _node: &()) {
        match self.take_or_mark() {
            Ok(true) => {}
            Ok(false) => {
                // Ordering: Acquire, pairs with the Release in `unlock`.
                P::wait_until(word_of(&self.0), Acquire, |v| v & LOCKED == 0);
                word_of(&self.0).store_low_half(LOCKED as u16, Relaxed);
            }
            // SAFETY: just lent.
            Err(()) => P::with_node(|lent: Option<LentNode<Node<P, ()>>>| unsafe {
                self.0.lock_queued(&lent.expect("each thread has a node"));
            }),
        }
    }

    unsafe fn unlock(&self, node: &()) {
        // SAFETY: the condition of the caller.
        unsafe { self.0.unlock(node) }
    }
}
