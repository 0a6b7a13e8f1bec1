//! All short sequences of events in CNA's queues, compared with a reference of two plain queues.

use core::sync::atomic::Ordering::Relaxed;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::{Queues, tail};
use crate::linux::cna::queues::CnaPart;
use crate::linux::qspinlock::{LOCKED, QSpinTuning, QueuePolicy, Tail};
use crate::platform::{Atomic, Platform, ZeroNode};
use crate::testing::{HAPPENINGS_MAX, NOW_NS, NUMA_NODE, OneThread};

crate::tuning! {
    /// A head that sorts for as many turns as there may be waiters, even if the lock stays busy.
    struct Brief: QSpinTuning {
        park_head: bool = true;
        head_turns: u32 = HAPPENINGS_MAX as u32;
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A waiter on this NUMA node queues.
    Comes(u32),
    /// The head sorts, takes the lock, and hands over.
    Turn,
    /// As `Turn`, long after the secondary queue was begun. Only if there is one.
    LateTurn,
    /// As `Turn`, but a waiter on this NUMA node queues just before the head would clear the tail.
    /// Only if the main queue is empty.
    TurnMet(u32),
}

use Happening::{Comes, LateTurn, Turn, TurnMet};

const ALL: [Happening; 6] = [Comes(0), Comes(1), Turn, LateTurn, TurnMet(0), TurnMet(1)];

/// The rules of a version.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The number of waiters that a head moves at most.
    pub moves_max: usize,
    /// Whether the next waiter counts as on the head's NUMA node even without a secondary queue.
    pub next_counts_as_near: bool,
}

/// The queues as they should be, by the slots of the waiters.
#[derive(Default)]
struct Reference {
    head: Option<u32>,
    main: VecDeque<u32>,
    secondary: VecDeque<u32>,
    /// By slot: the NUMA node that the waiter counts as being on.
    numa_nodes: [u32; 10],
}

impl Reference {
    fn comes(&mut self, numa_node: u32) -> u32 {
        let used = self.head.iter().chain(&self.main).chain(&self.secondary);
        let slot = (0..).find(|slot| !used.clone().any(|used| used == slot)).expect("some slot is free");
        self.numa_nodes[slot as usize] = numa_node;
        match self.head {
            None => self.head = Some(slot),
            Some(_) => self.main.push_back(slot),
        }
        slot
    }

    fn is_far(&self, slot: u32) -> bool {
        self.head.is_some_and(|head| self.numa_nodes[slot as usize] != self.numa_nodes[head as usize])
    }

    fn sort(&mut self, rules: Rules) {
        for _ in 0..rules.moves_max {
            if self.main.len() < 2 || !self.is_far(self.main[0]) {
                return;
            }
            self.secondary.extend(self.main.pop_front());
        }
    }

    /// The head leaves. If `is_flushing`, or if the main queue is empty, the secondary queue moves
    /// to the front.
    fn hand_over(&mut self, rules: Rules, is_flushing: bool) {
        if is_flushing || self.main.is_empty() {
            self.secondary.append(&mut self.main);
            self.main.append(&mut self.secondary);
        } else if rules.next_counts_as_near || !self.secondary.is_empty() {
            let head = self.head.expect("there is a head");
            self.numa_nodes[self.main[0] as usize] = self.numa_nodes[head as usize];
        }
        self.head = self.main.pop_front();
    }
}

/// The real queues, and the reference.
struct Trial<S> {
    queues: Queues<S>,
    word: <OneThread as Platform>::U32,
    reference: Reference,
    rules: Rules,
}

impl<S: ZeroNode + Default + Send + Sync + 'static> Trial<S> {
    fn comes<Q: QueuePolicy<OneThread, Part = CnaPart<OneThread, S>>>(&mut self, numa_node: u32) {
        let last = self.reference.main.back().copied().or(self.reference.head);
        let slot = self.reference.comes(numa_node);
        self.queues.waiter(slot, numa_node);
        NUMA_NODE.set(numa_node);
        Q::prepare(self.queues.node(slot), tail(slot));
        self.word.store(tail(slot).bits(), Relaxed);
        if let Some(last) = last {
            self.queues.node(last).next.store(self.queues.pointer(slot), Relaxed);
        }
    }

    /// A turn of the head, during which a waiter may queue.
    fn turn<Q: QueuePolicy<OneThread, Part = CnaPart<OneThread, S>>>(
        &mut self,
        head: u32,
        is_late: bool,
        comes: Option<u32>,
    ) {
        let is_flushing = is_late && !self.reference.secondary.is_empty();
        let node = self.queues.node(head);
        self.word.fetch_or(LOCKED, Relaxed);
        // SAFETY: the node in this slot is the head's, here and below.
        unsafe { Q::became_head::<Brief>(&self.word, node) };
        if !is_flushing {
            self.reference.sort(self.rules);
        }
        let val = self.word.fetch_and(!LOCKED, Relaxed) & !LOCKED;
        comes.into_iter().for_each(|numa_node| self.comes::<Q>(numa_node));
        // SAFETY: as above.
        let is_clear =
            val == tail(head).bits() && unsafe { Q::try_clear_tail::<Brief>(&self.word, val, node) }.is_ok();
        if !is_clear {
            // SAFETY: as above; a waiter is linked behind it.
            unsafe { Q::hand_over::<Brief>(node, node.next.load(Relaxed)) };
        }
        self.word.fetch_and(!LOCKED, Relaxed);
        self.reference.hand_over(self.rules, is_flushing);
    }

    /// False if the event cannot happen now, or would be the same as another one.
    fn happens<Q: QueuePolicy<OneThread, Part = CnaPart<OneThread, S>>>(&mut self, what: Happening) -> bool {
        let reference = &self.reference;
        match (what, reference.head) {
            (Comes(numa_node), _) => self.comes::<Q>(numa_node),
            (Turn, Some(head)) => self.turn::<Q>(head, false, None),
            (LateTurn, Some(head)) if !reference.secondary.is_empty() => {
                NOW_NS.set(NOW_NS.get() + 1_000_000_000);
                self.turn::<Q>(head, true, None);
            }
            (TurnMet(numa_node), Some(head)) if reference.main.is_empty() => {
                self.turn::<Q>(head, false, Some(numa_node));
            }
            _ => return false,
        }
        true
    }

    /// The slots that follow the given one, up to the last one or up to the first one again.
    fn chain(&self, from: Option<u32>) -> Vec<u32> {
        let mut slots = vec![];
        let mut next = from;
        while let Some(slot) = next.filter(|slot| !slots.contains(slot)) {
            slots.push(slot);
            next = self.queues.next_of(slot);
        }
        slots
    }

    fn is_as_it_should_be(&self) -> bool {
        let reference = &self.reference;
        let Some(head) = reference.head else {
            return self.word.load(Relaxed) == 0;
        };
        let last = Tail::decode(self.queues.granted(head));
        let secondary = self.chain(last.and_then(|last| self.queues.next_of(last.slot)));
        let last_of_main = *reference.main.back().unwrap_or(&head);
        let mut waiters = reference.main.iter().chain(&reference.secondary);
        self.word.load(Relaxed) == tail(last_of_main).bits()
            && reference.main == self.chain(self.queues.next_of(head))
            && self.queues.next_of(last_of_main).is_none()
            && reference.secondary == secondary
            && last.map(|last| last.slot) == reference.secondary.back().copied()
            && waiters.clone().all(|&slot| self.queues.granted(slot) == 0)
            && waiters.all(|&slot| self.queues.numa_node(slot) == reference.numa_nodes[slot as usize])
    }
}

/// A shortest sequence after which the policy's queues differ from the reference.
pub fn counterexample<Q, S>(rules: Rules) -> Option<Vec<Happening>>
where
    Q: QueuePolicy<OneThread, Part = CnaPart<OneThread, S>>,
    S: ZeroNode + Default + Send + Sync + 'static,
{
    let mut sequences = vec![vec![Comes(0)]];
    for _ in 1..HAPPENINGS_MAX {
        let mut longer = Vec::new();
        for sequence in sequences {
            for what in ALL {
                let mut sequence = sequence.clone();
                sequence.push(what);
                match is_right::<Q, S>(&sequence, rules) {
                    Some(true) => longer.push(sequence),
                    Some(false) => return Some(sequence),
                    None => {}
                }
            }
        }
        sequences = longer;
    }
    None
}

/// Whether the queues agree with the reference in the end. `None` if the sequence cannot happen.
fn is_right<Q, S>(sequence: &[Happening], rules: Rules) -> Option<bool>
where
    Q: QueuePolicy<OneThread, Part = CnaPart<OneThread, S>>,
    S: ZeroNode + Default + Send + Sync + 'static,
{
    NOW_NS.set(1_000_000_000);
    let queues = Queues::new(&[]);
    let mut trial = Trial { queues, word: Atomic::new(0), reference: Reference::default(), rules };
    sequence.iter().all(|&what| trial.happens::<Q>(what)).then(|| trial.is_as_it_should_be())
}
