//! Which models each lock of core's list has.

mod cna;

use nearlock_core::classic::clh::ClhLock;
use nearlock_core::classic::cohort::CohortLock;
use nearlock_core::classic::hmcs::HmcsLock;
use nearlock_core::classic::mcs::McsLock;
use nearlock_core::classic::tas::TasLock;
use nearlock_core::classic::ticket::TicketLock;
use nearlock_core::classic::ttas::{NoPreRead, TtasLock};
use nearlock_core::events::LockEvent;
use nearlock_core::linux::cna::{Cna, NoShuffleReduction};
use nearlock_core::linux::cna_v13::CnaV13;
use nearlock_core::linux::qspinlock::{
    Fifo, Node, ParkOnly, Preemptible, QSpinLock, QSpinTuning, StealHybrid, StealOnce, WaitLate, WakefulHead,
    WholeWord,
};
use nearlock_core::platform::LocalNodes;
use nearlock_core::raw::RawTryLock;
use nearlock_core::settings::Setting;
use nearlock_core::tuning::Standard;

use crate::engine::Engine;
use crate::exclusion::{counting, held_at_first, on_numa_nodes, one_node_for_two_locks, trying};
use crate::loom::Loom;
use crate::model::Model;
use crate::staged::{
    Queue, Stage, queue_at_work, queued_against_nameless, queued_against_pending, without_node,
};

/// The models of the lock called `name`; none if it has none yet.
pub fn models_of(name: &str) -> Vec<Model> {
    use LockEvent::{KickUnlock, KickWaiter, Stealing, WaitHead, WaitNode};
    match name {
        "tas" => word_lock::<TasLock<Loom>>(name),
        "ttas" => word_lock::<TtasLock<Loom>>(name),
        "ttas-no-preread" => word_lock::<TtasLock<Loom, NoPreRead>>(name),
        "ticket" => word_lock::<TicketLock<Loom>>(name),
        "mcs" => queue_lock::<McsLock<Loom>>(name),
        "clh" => queue_lock::<ClhLock<Loom>>(name),
        "cohort" => numa_lock::<CohortLock<Loom>>(name, || Loom::set(Setting::CohortLocalPassLimit, 0)),
        "hmcs" => numa_lock::<HmcsLock<Loom>>(name, || Loom::set(Setting::HmcsLocalPassLimit, 0)),
        "qspinlock" => qspin::<Fifo, Standard>(name),
        "qspinlock-whole-word" => qspin::<Fifo, WholeWord>(name),
        "qspinlock-steal-once" => competing::<Fifo, StealOnce>(name, 1, &[Stealing]),
        "qspinlock-steal" => competing::<Fifo, StealHybrid>(name, 1, &[Stealing]),
        "qspinlock-park" => {
            competing::<Fifo, ParkOnly>(name, 2, &[WaitNode, WaitHead, KickUnlock, KickWaiter])
        }
        "qspinlock-preemptible" => {
            competing::<Fifo, Preemptible>(name, 1, &[Stealing, WaitNode, WaitHead, KickUnlock, KickWaiter])
        }
        "qspinlock-preemptible-late" => {
            competing::<Fifo, WaitLate>(name, 1, &[Stealing, WaitNode, WaitHead, KickUnlock, KickWaiter])
        }
        "qspinlock-preemptible-head" => {
            competing::<Fifo, WakefulHead>(name, 1, &[Stealing, WaitNode, KickWaiter])
        }
        "cna" => both(qspin::<Cna, Standard>(name), cna::final_form(name)),
        "cna-preemptible" => cna::preemptible(name),
        "cna-v13" => both(qspin::<CnaV13, Standard>(name), cna::v13::<Standard>(name)),
        "cna-v13-no-sro" => {
            both(qspin::<CnaV13<NoShuffleReduction>, Standard>(name), cna::v13::<NoShuffleReduction>(name))
        }
        _ => Vec::new(),
    }
}

fn both(mut models: Vec<Model>, more: Vec<Model>) -> Vec<Model> {
    models.extend(more);
    models
}

fn word_lock<L: RawTryLock>(name: &str) -> Vec<Model> {
    vec![
        counting::<Loom, L>(name, 2, 1, None),
        trying::<Loom, L>(name, None),
        counting::<Loom, L>(name, 3, 1, Some(2)),
    ]
}

/// Of a lock whose nodes the callers bring.
fn queue_lock<L: RawTryLock>(name: &str) -> Vec<Model> {
    let mut models = word_lock::<L>(name);
    models.push(one_node_for_two_locks::<Loom, L>(name, Some(3)));
    models
}

/// Of a lock with a queue per NUMA node, whose pass limit `never_pass` sets to 0.
fn numa_lock<L: RawTryLock>(name: &str, never_pass: fn()) -> Vec<Model> {
    let mut models = queue_lock::<L>(name);
    models.extend([
        on_numa_nodes::<Loom, L>(name, "passing", &[0, 0], 3, || ()).reaching(&[LockEvent::LocalPass]),
        on_numa_nodes::<Loom, L>(name, "passing", &[0, 0, 0], 2, || ()).reaching(&[LockEvent::LocalPass]),
        on_numa_nodes::<Loom, L>(name, "never passing", &[0, 0], 3, never_pass)
            .reaching(&[LockEvent::PassLimit]),
        on_numa_nodes::<Loom, L>(name, "never passing", &[0, 0, 1], 2, never_pass)
            .reaching(&[LockEvent::PassLimit]),
    ]);
    models
}

fn qspin<Q: Stage<Loom>, T: QSpinTuning>(name: &str) -> Vec<Model>
where
    Loom: LocalNodes<Node<Loom, Q::Part>>,
{
    type Lock<Q, T> = QSpinLock<Loom, Q, T>;
    let two_newcomers = Queue { newcomers: &[1, 2], ..Queue::default() };
    vec![
        counting::<Loom, Lock<Q, T>>(name, 2, 1, None).reaching(&[LockEvent::Pending]),
        trying::<Loom, Lock<Q, T>>(name, None),
        counting::<Loom, Lock<Q, T>>(name, 2, 2, Some(3)),
        counting::<Loom, Lock<Q, T>>(name, 3, 1, Some(3)),
        held_at_first::<Loom, Lock<Q, T>>(name, 3, Some(3)).reaching(&[LockEvent::Pending]),
        queue_at_work::<Loom, Q, T>(name, "two newcomers behind a head", two_newcomers, Some(2), || ()),
        queued_against_pending::<Loom, Q, T>(name, Some(3)),
        queued_against_nameless::<Loom, Q, T>(name, Some(3)).reaching(&[LockEvent::NoNode]),
        without_node::<Loom, Q, T>(name, Some(3)).reaching(&[LockEvent::NoNode]),
    ]
}

/// With the switches for preempted waiters, under which these events must be met; the largest model with so many preemptions.
fn competing<Q: Stage<Loom>, T: QSpinTuning>(
    name: &str,
    preemptions: usize,
    reaches: &'static [LockEvent],
) -> Vec<Model>
where
    Loom: LocalNodes<Node<Loom, Q::Part>>,
{
    type Lock<Q, T> = QSpinLock<Loom, Q, T>;
    let (one, two) =
        (Queue { main: &[1], ..Queue::default() }, Queue { newcomers: &[1, 2], ..Queue::default() });
    let waiter_and_newcomer = Queue { newcomers: &[2], ..one };
    vec![
        counting::<Loom, Lock<Q, T>>(name, 2, 1, None),
        trying::<Loom, Lock<Q, T>>(name, Some(3)),
        counting::<Loom, Lock<Q, T>>(name, 2, 2, Some(2)),
        counting::<Loom, Lock<Q, T>>(name, 3, 1, Some(1)),
        held_at_first::<Loom, Lock<Q, T>>(name, 3, Some(1)),
        queue_at_work::<Loom, Q, T>(name, "a waiter behind a head", one, Some(3), || ()),
        queue_at_work::<Loom, Q, T>(name, "a waiter and a newcomer", waiter_and_newcomer, Some(2), || ())
            .reaching(reaches),
        queue_at_work::<Loom, Q, T>(name, "two newcomers behind a head", two, Some(preemptions), || ()),
        without_node::<Loom, Q, T>(name, Some(2)).reaching(&[LockEvent::NoNode]),
    ]
}
