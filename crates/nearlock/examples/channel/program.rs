// A channel that holds a few values. Senders wait while it is full. Receivers wait while it is
// empty, for a limited time.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, MappedMutexGuard, Mutex, MutexGuard, WaitTimeoutResult};

const PLACES: usize = 8;
const SENDERS: u64 = 4;
const VALUES_EACH: u64 = 50_000;
const RECEIVERS: usize = 3;
const PATIENCE: Duration = Duration::from_micros(200);

#[derive(Debug, Default)]
struct Channel {
    values: Mutex<VecDeque<u64>>,
    has_place: Condvar,
    has_value: Condvar,
}

impl Channel {
    fn send(&self, value: u64) {
        let mut values = self.values.lock();
        self.has_place.wait_while(&mut values, |values| values.len() == PLACES);
        values.push_back(value);
        self.has_value.notify_one();
    }

    // None if no value has arrived in time.
    fn receive(&self) -> Option<u64> {
        let mut values = self.values.lock();
        let waited: WaitTimeoutResult =
            self.has_value.wait_while_for(&mut values, |values| values.is_empty(), PATIENCE);
        if waited.timed_out() {
            return None;
        }
        let value = values.pop_front();
        // The thread that this wakes waits for the mutex.
        self.has_place.notify_one();
        value
    }

    fn oldest(&self) -> Result<MappedMutexGuard<'_, u64>, MutexGuard<'_, VecDeque<u64>>> {
        MutexGuard::try_map(self.values.lock(), VecDeque::front_mut)
    }
}

fn main() {
    static CHANNEL: Channel =
        Channel { values: Mutex::new(VecDeque::new()), has_place: Condvar::new(), has_value: Condvar::new() };
    let left = &Mutex::new(SENDERS * VALUES_EACH);
    let (sum, late) = std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            scope
                .spawn(move || (0..VALUES_EACH).for_each(|value| CHANNEL.send(sender * VALUES_EACH + value)));
        }
        let receivers: Vec<_> = (0..RECEIVERS)
            .map(|_| {
                scope.spawn(move || {
                    let (mut sum, mut late) = (0, 0);
                    while *left.lock() > 0 {
                        match CHANNEL.receive() {
                            Some(value) => {
                                sum += value;
                                *left.lock() -= 1;
                            }
                            None => late += 1,
                        }
                    }
                    (sum, late)
                })
            })
            .collect();
        let received = receivers.into_iter().map(|receiver| receiver.join().expect("receivers do not panic"));
        received.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    });
    let all = SENDERS * VALUES_EACH;
    assert_eq!(sum, all * (all - 1) / 2, "each value once");
    assert!(CHANNEL.oldest().is_err(), "nothing is left");
    assert!(CHANNEL.values.try_lock_for(PATIENCE).is_some_and(|values| values.is_empty()));
    println!("{RECEIVERS} receivers had {all} values, and timed out {late} times");
}
