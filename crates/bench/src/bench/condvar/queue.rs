//! A queue of limited size: producers wait while it is full, and consumers while it is empty. A
//! channel of a program is such a queue. With notifications of all threads it is a test that
//! libraries of locks use.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nearlock_core::native::Wait;
use nearlock_workload::Observer;

use super::super::Failure;
use super::super::crew::Members;
use super::super::sample::Outcome;
use super::super::throughput::{Done, Life, Witness, with_counted};
use super::WithCondvar;
use super::case::{Queue, When};
use super::monitor::{Held, Monitor};

/// What the lock protects. Messages are numbered from 0.
struct Messages {
    waiting: VecDeque<u64>,
    /// Number of messages that were put in.
    sent: u64,
    /// Number of messages that were taken out.
    received: u64,
}

/// The condition variables of the monitor. A consumer waits until the queue is filled, and a
/// producer until a slot is emptied.
const FILLED: usize = 0;
const EMPTIED: usize = 1;

struct Channel<L: WithCondvar> {
    of: Queue,
    messages: Monitor<L, Messages, 2>,
    /// Number of messages that consumers have counted themselves.
    received: AtomicU64,
}

/// The result of an operation: that the run is over, or a check of the message.
enum Did {
    Nothing,
    Well,
    Fault,
}

impl<L: WithCondvar> Channel<L> {
    fn new(of: Queue) -> Self {
        let waiting = VecDeque::with_capacity(of.slots);
        let messages = Messages { waiting, sent: 0, received: 0 };
        Self { of, messages: Monitor::new(messages), received: AtomicU64::new(0) }
    }

    /// One operation: waits for one condition variable, and notifies the other one.
    #[inline(always)]
    fn operate(
        &self,
        node: &mut L::Node,
        [waits, notifies]: [usize; 2],
        witness: &mut impl Observer,
        condition: impl Fn(&Messages) -> bool,
        operation: impl FnOnce(&mut Messages) -> Did,
    ) -> Did {
        witness.waiting();
        let Queue { notify, when, .. } = self.of;
        let did = self.messages.section(node, |held: &mut Held<'_, L, Messages, 2>| {
            if !held.wait_until(waits, condition) {
                return Did::Nothing;
            }
            witness.acquired();
            let did = operation(held.data());
            if when == When::Under {
                held.notify(notifies, notify);
            }
            did
        });
        if when == When::After {
            self.messages.notify(notifies, notify);
        }
        did
    }

    #[inline(always)]
    fn send(&self, node: &mut L::Node, witness: &mut impl Observer) -> Did {
        let has_slot = |messages: &Messages| messages.waiting.len() < self.of.slots;
        self.operate(node, [EMPTIED, FILLED], witness, has_slot, |messages| {
            messages.waiting.push_back(messages.sent);
            messages.sent += 1;
            Did::Well
        })
    }

    #[inline(always)]
    fn receive(&self, node: &mut L::Node, witness: &mut impl Observer) -> Did {
        let has_message = |messages: &Messages| !messages.waiting.is_empty();
        self.operate(node, [FILLED, EMPTIED], witness, has_message, |messages| {
            let is_next = messages.waiting.pop_front() == Some(messages.received);
            messages.received += 1;
            if is_next { Did::Well } else { Did::Fault }
        })
    }

    /// Whether the thread with this number is a producer. The threads of the larger side come
    /// first, since the operations of those are counted.
    fn is_producer(&self, thread: usize) -> bool {
        let Queue { producers, consumers, .. } = self.of;
        if producers > consumers { thread < producers } else { thread >= consumers }
    }

    fn work<W: Wait>(&self, thread: usize, witness: &mut Witness<'_, W>) -> Done {
        let mut node = L::Node::default();
        let is_producer = self.is_producer(thread);
        let mut done = Done::default();
        let mut operations = 0;
        loop {
            let did = match is_producer {
                true => self.send(&mut node, witness),
                false => self.receive(&mut node, witness),
            };
            match did {
                Did::Nothing => break,
                Did::Well => {}
                Did::Fault => done.faults += 1,
            }
            operations += 1;
            if !witness.goes_on() {
                break;
            }
        }
        self.messages.finish(&mut node);
        match is_producer {
            true => done.counted = operations,
            false => _ = self.received.fetch_add(operations, Relaxed),
        }
        done
    }

    /// The number of messages that were sent, and of those that are still in the queue.
    fn sent_and_left(&self) -> (u64, u64) {
        let messages = |held: &mut Held<'_, L, Messages, 2>| {
            let messages = held.data();
            (messages.sent, messages.waiting.len() as u64)
        };
        self.messages.section(&mut L::Node::default(), messages)
    }

    /// Fails if a message was lost, after all threads have ended.
    fn check(&self) -> Result<(), Failure> {
        let (sent, left) = self.sent_and_left();
        let received = self.received.load(Relaxed);
        if sent == received + left { Ok(()) } else { Err(Failure::LostMessages { sent, received, left }) }
    }
}

/// One run of one lock.
pub fn measure<W: Wait, L: WithCondvar>(of: Queue, window: Duration) -> Outcome {
    let channel = Arc::new(Channel::<L>::new(of));
    let worked = Arc::clone(&channel);
    let life: Life<W> = Box::new(move |run, thread| {
        run.witnessed(thread, &mut |witness| worked.work(thread, witness));
    });
    let members = Members::Anywhere(of.producers + of.consumers);
    let counted = of.producers.max(of.consumers);
    let outcome = with_counted(members, counted, window, life, &|| channel.sent_and_left().0)?;
    Ok(outcome.and_then(|sample| channel.check().map(|()| sample)))
}

#[cfg(test)]
mod tests {
    use super::super::case::Notify;
    use super::*;
    use nearlock_core::near::mutex::NearMutex;
    use nearlock_os::Os;

    struct Unobserved;

    impl Observer for Unobserved {
        fn goes_on(&mut self) -> bool {
            true
        }
    }

    fn channel() -> Channel<NearMutex<Os>> {
        Channel::new(Queue { producers: 3, consumers: 1, slots: 2, notify: Notify::One, when: When::After })
    }

    #[test]
    fn a_lost_message_is_detected() {
        let channel = channel();
        for _ in 0..2 {
            channel.send(&mut (), &mut Unobserved);
        }
        assert!(matches!(channel.receive(&mut (), &mut Unobserved), Did::Well));
        // The consumer has not counted it.
        assert_eq!(channel.check(), Err(Failure::LostMessages { sent: 2, received: 0, left: 1 }));
        channel.received.store(1, Relaxed);
        assert_eq!(channel.check(), Ok(()));
    }

    #[test]
    fn a_message_out_of_its_order_is_a_fault() {
        let channel = channel();
        for _ in 0..2 {
            channel.send(&mut (), &mut Unobserved);
        }
        channel.messages.section(&mut (), |held| held.data().waiting.pop_front());
        assert!(matches!(channel.receive(&mut (), &mut Unobserved), Did::Fault));
    }

    #[test]
    fn the_larger_side_comes_first() {
        let channel = channel();
        assert_eq!([0, 1, 2, 3].map(|thread| channel.is_producer(thread)), [true, true, true, false]);
    }
}
