//! Models of the waiters in the queues of sleeping locks. A signal is never lost, and hands over
//! what was written before it.

use std::sync::Arc;

use nearlock_core::parking::{Cancellation, GaveUp, Limit, Signal, Waiter};

use crate::engine::{Counter, Engine, Others, Thread};
use crate::model::Model;

/// A waiter, the cancellation of its wait, and data that signals hand over.
struct WaitersState<E: Engine> {
    data: E::Counter,
    waiter: Waiter<E>,
    cancellation: Cancellation<E>,
}

impl<E: Engine> WaitersState<E> {
    fn wake(&self) {
        if let Some(call) = self.waiter.wake() {
            call.make();
        }
    }

    fn write_and_wake(&self) {
        self.data.add_one();
        self.wake();
    }

    fn write_and_grant(&self) {
        self.data.add_one();
        // SAFETY: shared by all threads of the model, until the last has ended.
        if let Some(call) = unsafe { Waiter::grant(&raw const self.waiter) } {
            call.make();
        }
    }

    fn write_and_cancel(&self) {
        self.data.add_one();
        self.cancellation.cancel();
    }

    fn write_when_woken(&self) {
        assert_eq!(self.waiter.park(), Signal::Woken);
        self.data.add_one();
    }

    fn write_when_granted(&self) {
        while self.waiter.park() != Signal::Granted {}
        self.data.add_one();
    }

    fn write_when_cancelled(&self) {
        let limit = Limit { until_ns: None, cancellation: Some(&self.cancellation) };
        let gave_up = limit.watch(&self.waiter, || {
            loop {
                if let Err(gave_up) = self.waiter.park_within(&limit) {
                    break gave_up;
                }
            }
        });
        assert_eq!(gave_up, GaveUp::Cancelled);
        self.data.add_one();
    }

    /// Waits for a moment, and then without a limit.
    fn write_when_woken_late(&self) {
        let signal = self.waiter.park_within(&Limit::until(1));
        if signal == Err(GaveUp::TimedOut) {
            assert_eq!(self.waiter.park(), Signal::Woken);
        }
        self.data.add_one();
    }
}

type Part<E> = fn(&WaitersState<E>);

fn model<E: Engine>(name: &str, waiter: Part<E>, parts: &'static [Part<E>]) -> Model<E> {
    Model::new(name, parts.len() as u32 + 1, Some(if parts.len() > 1 { 2 } else { 4 }), move || {
        let shared = Arc::new(WaitersState::<E> {
            data: E::Counter::default(),
            waiter: Waiter::default(),
            cancellation: Cancellation::default(),
        });
        let mut others = Others::<E>::default();
        for (slot, other) in (1..).zip(parts) {
            let shared = shared.clone();
            others.spawn(Thread { slot: Some(slot), ..Thread::default() }, move || other(&shared));
        }
        waiter(&shared);
        others.join();
    })
}

/// The models of all of these.
pub fn waiters<E: Engine>() -> Vec<Model<E>> {
    vec![
        model("waiter: woken", WaitersState::write_when_woken, &[WaitersState::write_and_wake]),
        model(
            "waiter: woken after its time",
            WaitersState::write_when_woken_late,
            &[WaitersState::write_and_wake],
        ),
        model("waiter: granted", WaitersState::write_when_granted, &[WaitersState::write_and_grant]),
        model(
            "waiter: woken by one, granted by another",
            WaitersState::write_when_granted,
            &[WaitersState::wake, WaitersState::write_and_grant],
        ),
        model("waiter: cancelled", WaitersState::write_when_cancelled, &[WaitersState::write_and_cancel]),
        model(
            "waiter: woken by one, cancelled by another",
            WaitersState::write_when_cancelled,
            &[WaitersState::wake, WaitersState::write_and_cancel],
        ),
    ]
}
