//! Threads in loops of system calls, as a simulation makes them.

use std::rc::Rc;

use nearlock_core::raw::RawLock;
use nearlock_sim::spec::{Access, MachineSpec};
use nearlock_sim::{Machine, Sim};
use nearlock_workload::sections::Spell;
use nearlock_workload::will_it_scale::lock2::Lock2;
use nearlock_workload::will_it_scale::open1::Open1;
use nearlock_workload::will_it_scale::{CallConstants, Caller, Calls, Params, Testcase};
use rand_core::Rng;

use super::Simulation;
use super::journal::Journal;
use super::workload::{queue_node, seat};

/// How many locks a thread takes, one after the other.
pub(super) fn locks_of_each(calls: Calls) -> usize {
    match calls {
        Calls::Open1 => 1,
        Calls::Lock2 => 2,
    }
}

/// Between the beginnings of two threads, in ns: all sleep at first, and are woken one after the other.
pub(super) fn start_ns(machine: &MachineSpec) -> u64 {
    machine.model.wake_latency_ns as u64
}

/// What a section, a section of each other lock and the way to the next take at most, in ns, but for a score of
/// transfers.
pub(super) fn section_ns_max(constants: &CallConstants, machine: &MachineSpec) -> u64 {
    let farthest_ns = machine.latency(Access::LoadMemory, machine.distances.len() - 1);
    constants.section_ns + 2 * constants.call_ns + (constants.lines as f64 * farthest_ns) as u64
}

/// Puts it on the machine, a thread to each CPU that the seed draws.
pub(super) fn spawn<L: RawLock>(
    calls: Calls,
    constants: &CallConstants,
    machine: &Machine,
    simulation: &Simulation,
    journal: &Rc<Journal>,
    seeds: &mut impl Rng,
) {
    match calls {
        Calls::Open1 => spawn_callers::<L, Open1<Sim, L>>(constants, machine, simulation, journal, seeds),
        Calls::Lock2 => spawn_callers::<L, Lock2<Sim, L>>(constants, machine, simulation, journal, seeds),
    }
}

fn spawn_callers<L: RawLock, T: Testcase<Sim, L>>(
    constants: &CallConstants,
    machine: &Machine,
    simulation: &Simulation,
    journal: &Rc<Journal>,
    seeds: &mut impl Rng,
) {
    let spell = |ns| Spell { ns, turns: 0 };
    let params = Params {
        call: spell(constants.call_ns),
        section: spell(constants.section_ns),
        lines: constants.lines as usize,
    };
    let each = machine.place_slice(0, simulation.threads, T::Each::default);
    let shared = Rc::new((machine.place(0, T::default()), each));
    seat(machine, simulation, journal, seeds, &mut |mut seat| {
        let shared = Rc::clone(&shared);
        let mut node = queue_node::<L::Node>(machine, &seat);
        Box::new(move || {
            let (test, each) = &*shared;
            let caller = Caller::new(seat.thread, &mut node.0, params, seat.seed);
            caller.run::<Sim, T>(test, each, &mut seat.scribe);
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Fault, Limits, Placement, Simulated, Start, Workload, simulate};
    use nearlock_collection::subjects::Subject;
    use nearlock_core::settings::Setting;

    const BOTH: [Calls; 2] = [Calls::Open1, Calls::Lock2];

    fn cell(calls: Calls, lock: &str, threads: usize) -> Simulation {
        Simulation {
            machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
            workload: Workload::Calls(calls, calls.constants()),
            lock: Subject::named(lock).unwrap(),
            placement: Placement::Near,
            start: Start::default(),
            threads,
            seed: 5,
            settings: Setting::DEFAULTS,
            limits: Limits { warm_up_ns: 500_000, window_ns: 1_000_000, ..Limits::default() },
            lockstat: false,
        }
    }

    fn ops_per_us(cell: &Simulation) -> f64 {
        simulate(cell).unwrap().ops_per_us
    }

    #[test]
    fn calls_are_made_at_every_lock_and_repeat() {
        for calls in BOTH {
            for lock in Subject::working() {
                for threads in [1, 8, 40] {
                    let cell = cell(calls, lock.name, threads);
                    let first = simulate(&cell).unwrap();
                    assert_eq!(simulate(&cell).unwrap(), first);
                    assert!(first.ops_per_us > 0.01 && first.workload == calls.name(), "{first:?}");
                }
            }
        }
    }

    #[test]
    fn who_excludes_nobody_is_found_out() {
        for calls in BOTH {
            let fault = simulate(&cell(calls, "lock-busted", 36)).unwrap_err().fault;
            assert!(matches!(fault, Fault::Exclusion { .. }), "{fault}");
        }
    }

    #[test]
    fn what_a_call_consists_of_shows() {
        for calls in BOTH {
            let plain = calls.constants();
            let ops = |threads, constants| {
                let workload = Workload::Calls(calls, constants);
                ops_per_us(&Simulation { workload, ..cell(calls, "qspinlock", threads) })
            };
            let alone = ops(1, CallConstants { call_ns: 2 * plain.call_ns, ..plain });
            assert!((0.45..0.6).contains(&(alone / ops(1, plain))), "{calls:?}");
            for changed in [
                CallConstants { section_ns: plain.section_ns + 300, ..plain },
                CallConstants { lines: plain.lines + 4, ..plain },
            ] {
                assert!(ops(16, changed) < 0.9 * ops(16, plain), "{changed:?}");
            }
        }
    }

    #[test]
    fn each_lock_of_a_call_is_told_from_the_other() {
        let of = |calls, lockstat| {
            let cell = Simulation { lockstat, ..cell(calls, "qspinlock", 16) };
            let Simulated { lockstat, .. } = simulate(&cell).unwrap();
            lockstat.map(|locks| locks.iter().map(|lock| lock.name.clone()).collect::<Vec<_>>())
        };
        assert_eq!(of(Calls::Open1, true).unwrap(), ["qspinlock"]);
        assert_eq!(of(Calls::Lock2, true).unwrap(), ["qspinlock#0", "qspinlock#1"]);
        assert_eq!(of(Calls::Lock2, false), None);
    }
}
