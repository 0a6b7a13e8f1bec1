//! Threads that call the system in loops, as simulated: will-it-scale.

use std::rc::Rc;

use nearlock_sim::Sim;
use nearlock_sim::spec::MachineSpec;
use nearlock_workload::sections::WorkLength;
use nearlock_workload::will_it_scale::lock2::Lock2;
use nearlock_workload::will_it_scale::open1::Open1;
use nearlock_workload::will_it_scale::{CallConstants, Caller, Calls, Params, Testcase};
use nearlock_workload::{Gate, LINES_MAX};

use crate::settings::fields::Field;
use crate::simulate::facts::{Facts, farthest_ns};
use crate::simulate::seating::{Seat, Seating};
use crate::simulate::workload::Workload;

/// Threads that call the system in loops.
#[derive(Clone, Debug)]
pub struct WillItScale {
    /// The calls.
    pub calls: Calls,
    /// The constants of the calls.
    pub constants: CallConstants,
}

impl WillItScale {
    /// All loops, with their defaults.
    pub const ALL: [Self; 2] = [Self::of(Calls::Open1), Self::of(Calls::Lock2)];

    const fn of(calls: Calls) -> Self {
        Self { calls, constants: calls.constants() }
    }
}

impl Workload for WillItScale {
    const FIELDS: &'static [Field<Self>] = &[
        Field::ns(
            "call-ns",
            |test| &mut test.constants.call_ns,
            "Mean work of a call outside of its sections, drawn from half to one and a half of this. \
             Fitted: published stock figure at one thread.",
        ),
        Field::ns(
            "section-ns",
            |test| &mut test.constants.section_ns,
            "Work inside a section, without its memory accesses. Fitted: published stock figures at 8 and \
             142 threads.",
        ),
        Field::number(
            "lines",
            "lines",
            0..=LINES_MAX as u64,
            |test| &mut test.constants.lines,
            "Shared lines that a section reads and writes, in addition to those of the lock and of what the \
             calls themselves touch. Fitted with the above.",
        ),
    ];

    fn name(&self) -> &'static str {
        self.calls.name()
    }

    fn summary(&self) -> &'static str {
        match self.calls {
            Calls::Open1 => {
                "will-it-scale: threads of one process open and close a file each, all in one directory. \
                 They contend for the lock of its descriptors, the lockref of the directory (a count, and a \
                 lock that is taken only if a compare-exchange is not enough) and the count of the \
                 credentials"
            }
            Calls::Lock2 => {
                "will-it-scale: threads of one process lock and unlock the same record of one file. They \
                 contend for the lock of the list of records and for that of the descriptors"
            }
        }
    }

    fn facts(&self, machine: &MachineSpec) -> Facts {
        let CallConstants { call_ns, section_ns, lines } = self.constants;
        Facts {
            locks_of_each: match self.calls {
                Calls::Open1 => 1,
                Calls::Lock2 => 2,
            },
            // Includes a section of each other lock.
            section_ns_max: section_ns + 2 * call_ns + (lines as f64 * farthest_ns(machine)) as u64,
            // All threads sleep at first, and are woken one after the other.
            start_ns: machine.model.wake_latency_ns as u64,
            ..Facts::on(machine)
        }
    }

    fn start<L: Gate>(&self, seating: &mut Seating<'_>) {
        match self.calls {
            Calls::Open1 => self.start_callers::<L, Open1<Sim, L>>(seating),
            Calls::Lock2 => self.start_callers::<L, Lock2<Sim, L>>(seating),
        }
    }
}

impl WillItScale {
    fn start_callers<L: Gate, T: Testcase<Sim, L>>(&self, seating: &mut Seating<'_>) {
        let params = Params {
            call: WorkLength::of_ns(self.constants.call_ns),
            section: WorkLength::of_ns(self.constants.section_ns),
            lines: self.constants.lines as usize,
        };
        let each = seating.machine.place_slice(0, seating.threads, T::Each::default);
        let shared = Rc::new((seating.machine.place(0, T::default()), each));
        seating.seat(|Seat { thread, seed, mut node, mut scribe }| {
            let shared = Rc::clone(&shared);
            move || {
                let (test, each) = &*shared;
                Caller::<L>::new(thread, &mut node.0, params, seed).run::<Sim, T>(test, each, &mut scribe);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Fault, Limits, Placement, Simulated, Simulation, Start, simulate};
    use nearlock_collection::subjects::Subject;
    use nearlock_core::settings::Setting;

    const BOTH: [Calls; 2] = [Calls::Open1, Calls::Lock2];

    fn cell(calls: Calls, lock: &str, threads: usize) -> Simulation {
        Simulation {
            machine: MachineSpec::builtin("haswell-ex-4s").unwrap(),
            workload: Box::new(WillItScale::of(calls)),
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
    fn calls_are_made_at_every_algorithm_and_repeat() {
        for calls in BOTH {
            for lock in Subject::working().filter(|lock| lock.positions.is_empty()) {
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
    fn a_lock_without_exclusion_is_detected() {
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
                let workload = Box::new(WillItScale { calls, constants });
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
