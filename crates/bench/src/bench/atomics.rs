//! Number of atomic read-modify-writes of an uncontended lock and unlock.
//!
//! No native counter exists for them. So one task of a simulated machine, where each access is
//! visible, runs the same source. The simulated time is not used.

use std::cell::Cell;
use std::rc::Rc;

use nearlock_collection::subjects::{LockVisitor, Subject};
use nearlock_core::raw::{RawRwLock, RawTryLock};
use nearlock_core::settings::Setting;
use nearlock_sim::spec::MachineSpec;
use nearlock_sim::{Machine, Pause, Sim};

use nearlock_lab::lockstat::Mode;

/// The smallest machine. The choice does not matter.
const MACHINE: &str = "cortex-a7-quad";
/// Number of pairs, in case the pairs differ. The first one of all is not counted: some locks enter
/// another state then.
const PAIRS: u32 = 100;
/// Time limit of the run in ns of virtual time, far longer than it can take.
const LONGEST_NS: u64 = 1_000_000_000;

/// Puts a lock on a machine, for a writer or a reader.
struct Place<'a> {
    machine: &'a Machine,
    mode: Mode,
}

/// Locks and unlocks once.
type Pair = Box<dyn Fn()>;

impl LockVisitor<Sim> for Place<'_> {
    type Output = Pair;

    fn visit<L: RawTryLock>(self) -> Self::Output {
        let (lock, node) = (self.machine.place(0, L::default()), self.machine.place(0, L::Node::default()));
        // SAFETY: node and lock stay in place, and only the one task that calls this uses them.
        Box::new(move || unsafe {
            lock.lock(&node);
            lock.unlock(&node);
        })
    }

    fn visit_rw<L: RawRwLock>(self) -> Self::Output {
        if self.mode == Mode::Writer {
            return self.visit::<L>();
        }
        let (lock, node) = (self.machine.place(0, L::default()), self.machine.place(0, L::Node::default()));
        // SAFETY: as above.
        Box::new(move || unsafe {
            lock.lock_shared(&node);
            lock.unlock_shared(&node);
        })
    }
}

/// Read-modify-writes for each uncontended lock and unlock; `None` if the run does not end.
pub fn per_pair(lock: &Subject, settings: [u64; Setting::COUNT]) -> Option<f64> {
    count(lock, settings, Mode::Writer)
}

/// As [`per_pair`] for a reader, if the lock has readers.
pub fn per_shared_pair(lock: &Subject, settings: [u64; Setting::COUNT]) -> Option<f64> {
    count(lock, settings, Mode::Reader)
}

fn count(lock: &Subject, settings: [u64; Setting::COUNT], mode: Mode) -> Option<f64> {
    let machine = Machine::new(&MachineSpec::builtin(MACHINE).expect("is built in"), 1);
    machine.set_settings(lock.settings_over(settings));
    machine.set_switches(lock.switches());
    let pair = lock.visit(Place { machine: &machine, mode });
    let first = Rc::new(Cell::new(0));
    let of_first = Rc::clone(&first);
    machine.spawn(0, 0, move || {
        pair();
        of_first.set(Machine::current_counters().atomics);
        (0..PAIRS).for_each(|_| pair());
    });
    let ended = machine.run_until(LONGEST_NS) == Pause::Finished;
    ended.then(|| (machine.counters().atomics - first.get()) as f64 / f64::from(PAIRS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_locks_have_known_numbers_of_atomics() {
        for (lock, expected) in [
            ("tas", 1.0),
            ("ttas", 1.0),
            ("ticket", 1.0),
            ("mcs", 2.0),
            ("qspinlock", 1.0),
            ("qspinlock-whole-word", 2.0),
            ("linux-mutex", 2.0),
            ("rwsem", 2.0),
            ("std-mutex-protocol", 2.0),
            ("parking-lot-0.12-protocol", 2.0),
            ("parking-lot-0.13-protocol", 2.0),
            ("near-mutex", 1.0),
            ("lock-busted", 0.0),
        ] {
            let lock = Subject::named(lock).expect("is in the list");
            assert_eq!(per_pair(lock, Setting::DEFAULTS), Some(expected), "{}", lock.name);
        }
    }

    #[test]
    fn atomics_of_readers_are_counted_if_the_lock_has_readers() {
        for (lock, expected) in [
            ("rwsem", Some(2.0)),
            ("rwsem-xadd-base", Some(2.0)),
            ("glibc-rwlock", Some(2.0)),
            ("std-rwlock-protocol", Some(2.0)),
            ("parking-lot-0.13-rwlock-protocol", Some(2.0)),
            ("lock-none", Some(0.0)),
        ] {
            let lock = Subject::named(lock).expect("is in the list");
            assert_eq!(per_shared_pair(lock, Setting::DEFAULTS), expected, "{}", lock.name);
        }
    }

    #[test]
    fn every_working_lock_makes_a_constant_number_of_atomics() {
        for lock in Subject::working() {
            let each = per_pair(lock, Setting::DEFAULTS).expect("it ends");
            assert!(each >= 1.0 && each.fract() == 0.0, "{}: {each}", lock.name);
        }
    }
}
