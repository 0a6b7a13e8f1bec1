//! Users with jobs, as a simulation makes them.

use std::rc::Rc;

use nearlock_sim::spec::{Access, MachineSpec};
use nearlock_sim::{Machine, Sim};
use nearlock_workload::Gate;
use nearlock_workload::jobs::profiles::Constants;
use nearlock_workload::jobs::{Guarded, Params, Rest, User};
use nearlock_workload::sections::Spell;
use rand_core::Rng;

use super::Simulation;
use super::journal::Journal;
use super::workload::{queue_node, seat};

/// More users than any publication has; as many as a qspinlock can name.
pub(super) const USERS_MAX: usize = 10_000;

/// What a section and the way to the next take at most, in ns, but for a score of transfers and for long sections, of which it
/// has twice the mean. A job without sections is no way to the next: who does not ask for a lock does not wait.
pub(super) fn section_ns_max(constants: &Constants, machine: &MachineSpec) -> u64 {
    let farthest_ns = machine.latency(Access::LoadMemory, machine.distances.len() - 1);
    let long_ns = (2 * constants.long_section_ns).checked_div(constants.long_every).unwrap_or(0);
    let inside_ns = constants.section_ns.max(constants.read_section_ns) + long_ns;
    let asleep_ns = if constants.sleep_inside_percent > 0 { 2 * constants.sleep_inside_ns } else { 0 };
    inside_ns + asleep_ns + (constants.lines as f64 * farthest_ns) as u64
}

/// What a long section takes at most, in ns; 0: none is long.
pub(super) fn long_section_ns_max(constants: &Constants) -> u64 {
    if constants.long_every > 0 { 3 * constants.long_section_ns / 2 } else { 0 }
}

/// How many locks a user takes, one after the other.
pub(super) fn locks_of_each(constants: &Constants) -> usize {
    constants.locks as usize + usize::from(constants.root_sections > 0)
}

fn params(constants: &Constants, users: usize) -> Params {
    let spell = |ns| Spell { ns, turns: 0 };
    Params {
        locking_percent: constants.locking_percent,
        rounds: constants.rounds,
        round: spell(constants.round_ns),
        sections: constants.sections,
        root_sections: constants.root_sections,
        root: constants.root,
        end_sections: constants.end_sections,
        end_step: spell(constants.end_step_ns),
        jobs: constants.jobs,
        section: spell(constants.section_ns),
        long_every: constants.long_every,
        long_section: spell(constants.long_section_ns),
        read_section: spell(constants.read_section_ns),
        sleep_inside_percent: constants.sleep_inside_percent,
        sleep_inside_ns: constants.sleep_inside_ns,
        lines: constants.lines as usize,
        read_percent: constants.read_percent,
        steps: constants.steps,
        step: spell(constants.step_ns),
        sleep_percent: constants.sleep_percent,
        sleep_ns: constants.sleep_ns,
        spinlock: spell(constants.spinlock_ns),
        updates: constants.updates_among(users as u64),
    }
}

/// Puts them on the machine, whose CPUs may be fewer than the users.
pub(super) fn spawn<G: Gate>(
    constants: &Constants,
    machine: &Machine,
    simulation: &Simulation,
    journal: &Rc<Journal>,
    seeds: &mut impl Rng,
) {
    let params = params(constants, simulation.threads);
    let locks = constants.locks as usize + usize::from(params.has_root_among_locks());
    let guarded = machine.place_slice(0, locks, Guarded::<Sim, G>::default);
    let shared = Rc::new((guarded, machine.place(simulation.machine.sockets - 1, Rest::<Sim>::default())));
    seat(machine, simulation, journal, seeds, &mut |mut seat| {
        let (shared, journal) = (Rc::clone(&shared), Rc::clone(journal));
        let mut node = queue_node::<G::Node>(machine, &seat);
        Box::new(move || {
            let (guarded, rest) = &*shared;
            let node = &mut node.0;
            let tally = User::<Sim, G>::new(guarded, rest, node, params, seat.seed).run(&mut seat.scribe);
            journal.note_torn(tally.torn);
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearlock_workload::jobs::profiles::Profile;

    #[test]
    fn users_have_the_updates_of_their_number_and_the_end_of_their_profile() {
        let updates = |users| params(&Profile::HighSystime.constants(), users).updates;
        assert_eq!([200, 2000].map(updates), [26, 53]);
        let make = params(&Profile::MakeJ.constants(), 40);
        assert_eq!((make.end_sections, make.end_step.ns), (2000, 100));
    }
}
