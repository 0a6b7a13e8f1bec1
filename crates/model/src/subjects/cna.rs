//! Models of CNA's queues.

use nearlock_collection::linux::cna::{Cna, CnaTuning};
use nearlock_collection::linux::cna_v13::CnaV13;
use nearlock_collection::linux::qspinlock::{Node, Preemptible, QSpinTuning};
use nearlock_core::events::LockEvent::{CnaFlush, CnaSplice, CnaTailSplice, CnaTailUpdateFailed, WaitNode};
use nearlock_core::platform::LocalNodes;
use nearlock_core::tuning::Standard;

use crate::loom::Loom;
use crate::model::Model;
use crate::staged::{Queue, Stage, queue_at_work, queue_of_held_lock};

const EMPTY: Queue = Queue::NOBODY;
const MOVED: Queue = Queue { secondary: &[1], ..EMPTY };

/// The models of the final form, whose head sorts while another thread holds the lock.
pub fn final_form(name: &str) -> Vec<Model> {
    let held = |situation, queue, preemptions| held::<Standard>(name, situation, queue, preemptions);
    let mut models = secondary_queue::<Cna, Standard>(name).to_vec();
    models.extend([
        held("near, far", Queue { main: &[2, 1], ..EMPTY }, 2),
        held("far, near", Queue { main: &[1, 2], ..EMPTY }, 2).reaching(&[CnaSplice, CnaTailSplice]),
        held("far, and a newcomer", Queue { main: &[1], newcomers: &[2], ..EMPTY }, 1)
            .reaching(&[CnaSplice, CnaTailSplice]),
        held("two newcomers", Queue { newcomers: &[1, 2], ..EMPTY }, 1).reaching(&[CnaSplice]),
        held("an urgent newcomer", Queue { newcomers: &[1, 2], urgent: &[1], ..EMPTY }, 1),
        held("one moved; far, near", Queue { main: &[3, 2], ..MOVED }, 1)
            .reaching(&[CnaSplice, CnaTailSplice]),
        held("far, and a migrant", Queue { main: &[1], migrants: &[2], ..EMPTY }, 1)
            .reaching(&[CnaSplice, CnaTailSplice]),
        held("one moved; a migrant", Queue { migrants: &[2], ..MOVED }, 1).reaching(&[CnaTailSplice]),
    ]);
    models
}

/// A few of them with the switches for preempted waiters. The urgent waiter reads what the head has
/// done to its node before it competes for the word.
pub fn preemptible(name: &str) -> Vec<Model> {
    let [near_newcomer, _, flushed, _] = secondary_queue::<Cna, Preemptible>(name);
    let far_near = held::<Preemptible>(name, "far, near", Queue { main: &[1, 2], ..EMPTY }, 1);
    let urgent = Queue { main: &[2], urgent: &[2], ..MOVED };
    let urgent = queue_at_work::<Loom, Cna, Preemptible>(name, "one moved; urgent", urgent, Some(2), || ());
    vec![
        near_newcomer,
        flushed,
        far_near.reaching(&[CnaSplice, CnaTailSplice, WaitNode]),
        urgent.reaching(&[CnaTailSplice, WaitNode]),
    ]
}

fn held<T: QSpinTuning>(name: &str, situation: &str, queue: Queue, preemptions: usize) -> Model {
    queue_of_held_lock::<Loom, Cna, T>(name, situation, queue, Some(preemptions), || ())
}

/// The models of version 13, whose head sorts in any case.
pub fn v13<T: CnaTuning>(name: &str) -> Vec<Model> {
    let staged = |situation, queue, preemptions, set| {
        queue_at_work::<Loom, CnaV13<T>, Standard>(name, situation, queue, Some(preemptions), set)
    };
    let early = || ();
    let unsorted = || Loom::set_random(1);
    let mut models = secondary_queue::<CnaV13<T>, Standard>(name).to_vec();
    models.extend([
        staged("near, far", Queue { main: &[2, 1], ..EMPTY }, 2, early),
        staged("far, near", Queue { main: &[1, 2], ..EMPTY }, 2, early).reaching(&[CnaSplice, CnaTailSplice]),
        staged("far, near, and random bits", Queue { main: &[1, 2], ..EMPTY }, 2, unsorted),
        staged("three newcomers", Queue { newcomers: &[1, 2, 3], ..EMPTY }, 1, early).reaching(&[CnaSplice]),
        staged("an urgent newcomer", Queue { newcomers: &[1, 2], urgent: &[1], ..EMPTY }, 2, early),
        staged("one moved; far, near", Queue { main: &[3, 2], ..MOVED }, 2, early)
            .reaching(&[CnaSplice, CnaTailSplice]),
        staged("far, and a migrant", Queue { main: &[1], migrants: &[2], ..EMPTY }, 2, early)
            .reaching(&[CnaSplice, CnaTailSplice]),
        staged("one moved; a migrant", Queue { migrants: &[2], ..MOVED }, 2, early)
            .reaching(&[CnaTailSplice]),
    ]);
    models
}

/// The fate of a secondary queue, whichever thread has made it.
fn secondary_queue<Q: Stage<Loom>, T: QSpinTuning>(name: &str) -> [Model; 4]
where
    Loom: LocalNodes<Node<Loom, Q::Part>>,
{
    let staged = |situation, queue, set| queue_at_work::<Loom, Q, T>(name, situation, queue, Some(2), set);
    let early = || ();
    let late = || Loom::set_now_ns(1_000_000_000);
    [
        staged("one moved; a near newcomer", Queue { newcomers: &[2], ..MOVED }, early)
            .reaching(&[CnaTailSplice, CnaTailUpdateFailed]),
        staged("one moved; a far newcomer", Queue { newcomers: &[3], ..MOVED }, early)
            .reaching(&[CnaTailSplice, CnaTailUpdateFailed]),
        staged("threshold passed; a near waiter", Queue { main: &[2], ..MOVED }, late).reaching(&[CnaFlush]),
        staged("threshold passed; a newcomer", Queue { newcomers: &[2], ..MOVED }, late).reaching(&[
            CnaTailSplice,
            CnaTailUpdateFailed,
            CnaFlush,
        ]),
    ]
}
