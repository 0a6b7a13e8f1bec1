//! Models of the condition variable. Each thread that waits for a token gets one in the end,
//! whichever threads give up meanwhile, and however tokens are announced.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use nearlock_core::events::LockEvent::{self, CondvarGiveUp, CondvarLate, CondvarMove, CondvarWake};
use nearlock_core::near::condvar::{NearCondvar, Unnotified};
use nearlock_core::near::mutex::NearMutex;
use nearlock_core::parking::{Cancellation, Limit};
use nearlock_core::platform::Clock;
use nearlock_core::raw::RawLock;

use crate::engine::{Counter, Engine, Others};
use crate::exclusion::in_slot;
use crate::model::Model;
use crate::shuttle::Shuttle;

/// What a thread of a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Waits for a token, and takes it.
    Take,
    /// The same, but gives up after a time, which passes while it sleeps. If it gets a token it
    /// gives it back.
    BorrowInTime,
    /// The same, but gives up when it is cancelled.
    BorrowUnlessCancelled,
    /// Cancels the wait of [`Act::BorrowUnlessCancelled`].
    Cancel,
    /// Adds a token, and notifies one waiter under the mutex.
    Give,
    /// The same, but notifies after it has unlocked the mutex.
    GiveAndNotify,
    /// Adds this many tokens, and notifies all waiters under the mutex.
    GiveAll(u32),
    /// Waits for one notification, whatever tokens there are.
    AwaitNotification,
    /// Writes, without the mutex, and notifies one waiter as soon as there is one.
    WriteAndNotify,
}

/// The time of [`Act::BorrowInTime`], in ns.
const TIME_NS: u64 = 1;

struct CondvarState<E: Engine> {
    mutex: NearMutex<E>,
    condvar: NearCondvar<E>,
    cancellation: Cancellation<E>,
    /// Accessed under the mutex, like the sections.
    tokens: AtomicU32,
    sections: E::Counter,
    written: E::Counter,
}

impl<E: Engine> CondvarState<E> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: NearMutex::default(),
            condvar: NearCondvar::default(),
            cancellation: Cancellation::default(),
            tokens: AtomicU32::new(0),
            sections: E::Counter::default(),
            written: E::Counter::default(),
        })
    }

    fn inside<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the node is (), and unlock follows lock.
        unsafe {
            self.mutex.lock(&());
            self.sections.add_one();
            let r = f();
            self.sections.add_one();
            self.mutex.unlock(&());
            r
        }
    }

    /// To be called under the mutex.
    fn wait(&self, limit: &Limit<'_, E>) -> Result<(), Unnotified> {
        // SAFETY: callers hold the mutex.
        let result = unsafe { self.condvar.wait(&self.mutex, limit) };
        self.sections.add_one();
        result
    }

    /// To be called under the mutex. Takes a token, and returns whether there was one. A thread
    /// that gives up does not look again.
    fn has_token(&self, limit: &Limit<'_, E>) -> bool {
        while self.tokens.load(Relaxed) == 0 {
            if self.wait(limit).is_err() {
                return false;
            }
        }
        self.tokens.fetch_sub(1, Relaxed);
        true
    }

    fn put(&self, tokens: u32) {
        self.tokens.fetch_add(tokens, Relaxed);
    }

    fn give(&self) {
        self.inside(|| {
            self.put(1);
            self.condvar.notify_one();
        });
    }

    fn borrow(&self, limit: &Limit<'_, E>) {
        if self.inside(|| self.has_token(limit)) {
            self.give();
        }
    }

    fn act(&self, act: Act) {
        match act {
            Act::Take => assert!(self.inside(|| self.has_token(&Limit::NONE))),
            Act::BorrowInTime => self.borrow(&Limit::until(E::now_ns() + TIME_NS)),
            Act::BorrowUnlessCancelled => {
                self.borrow(&Limit { until_ns: None, cancellation: Some(&self.cancellation) });
            }
            Act::Cancel => self.cancellation.cancel(),
            Act::Give => self.give(),
            Act::GiveAndNotify => {
                self.inside(|| self.put(1));
                self.condvar.notify_one();
            }
            Act::GiveAll(tokens) => self.inside(|| {
                self.put(tokens);
                self.condvar.notify_all();
            }),
            Act::AwaitNotification => {
                assert_eq!(self.inside(|| self.wait(&Limit::NONE)), Ok(()));
                self.written.add_one();
            }
            Act::WriteAndNotify => {
                self.written.add_one();
                (0..).take_while(|_| !self.condvar.notify_one()).for_each(E::cpu_relax);
            }
        }
    }

    fn act_all(&self, acts: &[Act]) {
        acts.iter().for_each(|act| self.act(*act));
    }
}

/// Each thread does what its list says. At the end this many tokens are left.
fn acting<E: Engine>(
    acts: &'static [&'static [Act]],
    tokens_left: u32,
    preemptions: usize,
    reaches: &'static [LockEvent],
) -> Model<E> {
    let lists: Vec<_> = acts.iter().map(|acts| format!("{acts:?}")).collect();
    let title = format!("condvar: {}", lists.join(" "));
    let model = Model::new(title, acts.len() as u32, Some(preemptions), move || {
        let shared = CondvarState::<E>::new();
        let mut others = Others::<E>::default();
        for (slot, acts) in (1..).zip(&acts[1..]) {
            let shared = shared.clone();
            others.spawn(in_slot(slot), move || shared.act_all(acts));
        }
        shared.act_all(acts[0]);
        others.join();
        assert_eq!(shared.tokens.load(Relaxed), tokens_left);
        assert_eq!(shared.condvar.notify_all(), 0, "no thread waits");
        shared.inside(|| ());
    });
    model.reaching(reaches)
}

/// All of these models.
pub fn models<E: Engine>() -> Vec<Model<E>> {
    use Act::*;
    vec![
        acting(&[&[Give], &[Take]], 0, 3, &[CondvarWake]),
        acting(&[&[GiveAndNotify], &[Take]], 0, 3, &[CondvarWake]),
        acting(&[&[WriteAndNotify], &[AwaitNotification]], 0, 3, &[CondvarWake]),
        acting(&[&[Give], &[BorrowInTime]], 1, 2, &[CondvarGiveUp, CondvarLate, CondvarWake]),
        acting(&[&[Cancel, Give], &[BorrowUnlessCancelled]], 1, 2, &[CondvarGiveUp, CondvarWake]),
        acting(&[&[Take], &[Take], &[Give, Give]], 0, 1, &[CondvarWake]),
        acting(&[&[Take], &[Take], &[GiveAll(2)]], 0, 1, &[CondvarWake, CondvarMove]),
        acting(&[&[Take], &[BorrowInTime], &[Give]], 0, 1, &[CondvarGiveUp]),
        acting(&[&[Take], &[BorrowUnlessCancelled], &[Give, Cancel]], 0, 1, &[CondvarGiveUp]),
    ]
}

/// The longest wait of a taker of a crowd, in ns: from no time to some sleeps. None: without a
/// limit.
const LIMITS_NS: [Option<u64>; 5] = [Some(0), Some(500), Some(5_000), None, None];
/// One in this many waits has a cancellation. Each time it gives tokens, the giver cancels the wait
/// of a random taker, if that has a cancellation.
const CANCELLABLE: u32 = 3;

struct Crowd {
    shared: Arc<CondvarState<Shuttle>>,
    /// Indexed by taker.
    cancellations: Mutex<Vec<Option<Arc<Cancellation<Shuttle>>>>>,
}

impl Crowd {
    /// Takes a token, however often it gives up before.
    fn take(&self, taker: usize) {
        loop {
            let cancellation = (Shuttle::below(CANCELLABLE) == 0).then(Arc::<Cancellation<_>>::default);
            self.cancellations.lock().unwrap()[taker].clone_from(&cancellation);
            let limit_ns = LIMITS_NS[Shuttle::below(LIMITS_NS.len() as u32) as usize];
            let until_ns = limit_ns.map(|limit_ns| Shuttle::now_ns() + limit_ns);
            let limit = Limit { until_ns, cancellation: cancellation.as_deref() };
            if self.shared.inside(|| self.shared.has_token(&limit)) {
                return;
            }
        }
    }

    /// Gives up to this many tokens in some way, and returns how many.
    fn give(&self, at_most: u32) -> u32 {
        let chosen = {
            let cancellations = self.cancellations.lock().unwrap();
            cancellations[Shuttle::below(cancellations.len() as u32) as usize].clone()
        };
        if let Some(cancellation) = chosen {
            cancellation.cancel();
        }
        let tokens = 1 + Shuttle::below(at_most);
        match Shuttle::below(3) {
            0 => self.shared.act(Act::GiveAll(tokens)),
            1 => (0..tokens).for_each(|_| self.shared.act(Act::GiveAndNotify)),
            _ => (0..tokens).for_each(|_| self.shared.act(Act::Give)),
        }
        tokens
    }
}

/// This many threads that take tokens, each this many, within all kinds of limits. The first thread
/// gives them.
pub fn crowd(takers: usize, each: u32) -> Model<Shuttle> {
    let title = format!("condvar: {takers} threads that take {each} tokens each");
    Model::new(title, takers as u32 + 1, None, move || {
        let cancellations = Mutex::new(vec![None; takers]);
        let crowd = Arc::new(Crowd { shared: CondvarState::new(), cancellations });
        let mut others = Others::<Shuttle>::default();
        for taker in 0..takers {
            let crowd = crowd.clone();
            let work = move || (0..each).for_each(|_| crowd.take(taker));
            others.spawn(in_slot(taker as u32 + 1), work);
        }
        let mut left = takers as u32 * each;
        while left > 0 {
            left -= crowd.give(left);
        }
        others.join();
        assert_eq!(crowd.shared.tokens.load(Relaxed), 0);
    })
}
