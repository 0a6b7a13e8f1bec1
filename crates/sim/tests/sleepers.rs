//! Locks whose waiters sleep, with more tasks than CPUs.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_collection::subjects::{LockVisitor, Subject};
use nearlock_core::platform::{Atomic, Platform, Random, Work};
use nearlock_core::raw::RawTryLock;
use nearlock_sim::account::Times;
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Sim};

type Word = <Sim as Platform>::U32;

const TASKS: usize = 60;
const SECTIONS: u32 = 30;

/// Eight CPUs on two sockets, and many tasks that lock, sleep now and then, and give way.
struct Crowd<'a> {
    preemption: &'a str,
}

impl LockVisitor<Sim> for Crowd<'_> {
    type Output = Times;

    fn visit<L: RawTryLock>(self) -> Times {
        let mut spec = MachineSpec::builtin("ivybridge-ep-2s").unwrap();
        for (key, value) in [("cores-per-socket", "4"), ("smt", "1"), ("preemption", self.preemption)] {
            spec.set(key, value).unwrap();
        }
        let machine = Machine::new(&spec, 5);
        let shared = Rc::new((machine.place(0, L::default()), machine.place(1, Word::ZERO)));
        for task in 0..TASKS {
            let node = machine.place(0, L::Node::default());
            let shared = Rc::clone(&shared);
            machine.spawn(task % 8, 50 * task as u64, move || {
                let (lock, sum) = &*shared;
                for _ in 0..SECTIONS {
                    // SAFETY: the node belongs to the task and does not move. `unlock` follows
                    // `lock`.
                    unsafe {
                        lock.lock(&node);
                        let before = sum.load(Relaxed);
                        Sim::busy_ns(u64::from(Sim::random_u32() % 20_000));
                        sum.store(before + 1, Relaxed);
                        lock.unlock(&node);
                    }
                    match Sim::random_u32() % 4 {
                        0 => Sim::sleep_ns(20_000),
                        1 => Sim::busy_ns(100_000),
                        _ => Sim::may_give_way(),
                    }
                }
            });
        }
        assert_eq!(machine.run_until(10_000_000_000), Pause::Finished);
        assert_eq!(shared.1.load(Relaxed), TASKS as u32 * SECTIONS, "sections of several tasks overlapped");
        machine.times()
    }
}

#[test]
fn locks_that_sleep_exclude_and_wake_in_any_schedule() {
    for name in [
        "qspinlock-park",
        "qspinlock-preemptible",
        "cna-preemptible",
        "linux-counter-mutex",
        "linux-mutex",
        "rwsem-xadd",
    ] {
        let subject = Subject::named(name).unwrap_or_else(|| panic!("no lock {name}"));
        let [voluntary, anywhere] =
            ["voluntary", "anywhere"].map(|preemption| subject.visit::<Sim, _>(Crowd { preemption }));
        for times in [voluntary, anywhere] {
            assert!(times.asleep_ns > 0 && times.waiting_ns > 0 && times.wake_ups > 0, "{name}: {times:?}");
        }
    }
}
