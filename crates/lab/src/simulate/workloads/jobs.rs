//! Users with jobs, as simulated: AIM7 and others. All of them are one workload with different
//! [constants](profiles).

mod freebsd;
mod profiles;

use std::rc::Rc;

use nearlock_sim::Sim;
use nearlock_sim::spec::MachineSpec;
use nearlock_workload::jobs::{CommonState, Guarded, Params, Root, User};
use nearlock_workload::sections::WorkLength;
use nearlock_workload::{Gate, LINES_MAX};

use crate::lockstat::Class;
use crate::settings::fields::{Field, MILLISECOND_NS, SECOND_NS, Words};
use crate::simulate::facts::{Facts, OtherLock, farthest_ns};
use crate::simulate::seating::{Seat, Seating};
use crate::simulate::workload::Workload;

pub use profiles::{Constants, Jobs};

/// More users than in any publication, and as many as a qspinlock can name.
const USERS_MAX: usize = 10_000;

impl Words for Root {
    const WORDS: &'static [(&'static str, Self)] =
        &[("tested", Root::Last), ("rwsem-xadd-base", Root::Rwsem)];
}

impl Workload for Jobs {
    const FIELDS: &'static [Field<Self>] = &[
        Field::word(
            "root-lock",
            |users| &mut users.constants.root,
            "The root's lock: another instance of the tested lock, or always Linux' reader-writer semaphore \
             of 3.10.",
        ),
        Field::number(
            "locks",
            "locks",
            1..=64,
            |users| &mut users.constants.locks,
            "Number of locks from which the locking jobs choose at random.",
        ),
        Field::percent(
            "locking-percent",
            |users| &mut users.constants.locking_percent,
            "Percentage of jobs that take the locks. From AIM7's workfiles.",
        ),
        Field::number(
            "jobs",
            "jobs",
            0..=10_000,
            |users| &mut users.constants.jobs,
            "Jobs after which a user ends, with one more round; 0: never. If users end, the whole run is \
             counted, to the end of the last user.",
        ),
        Field::number(
            "rounds",
            "rounds",
            1..=10_000,
            |users| &mut users.constants.rounds,
            "Rounds of a locking job.",
        ),
        Field::number(
            "round-ns",
            "ns",
            0..=100 * MILLISECOND_NS,
            |users| &mut users.constants.round_ns,
            "Mean work of a round outside of its sections.",
        ),
        Field::number(
            "sections",
            "sections",
            1..=1000,
            |users| &mut users.constants.sections,
            "Sections of a round, in addition to those of the root's lock.",
        ),
        Field::number(
            "root-sections",
            "sections",
            0..=1000,
            |users| &mut users.constants.root_sections,
            "Sections of a round that take one more lock, as writers: that of the root of all memory.",
        ),
        Field::number(
            "end-sections",
            "sections",
            0..=100_000,
            |users| &mut users.constants.end_sections,
            "Sections at the end of a job that takes locks, one after the other, to tear down what it has.",
        ),
        Field::ns(
            "end-step-ns",
            |users| &mut users.constants.end_step_ns,
            "Work between two of these sections.",
        ),
        Field::ns(
            "section-ns",
            |users| &mut users.constants.section_ns,
            "Work inside a writer's section, without its accesses to lines.",
        ),
        Field::number(
            "long-every",
            "sections",
            0..=1_000_000,
            |users| &mut users.constants.long_every,
            "One of this many writers' sections is long; 0: none.",
        ),
        Field::number(
            "long-section-ns",
            "ns",
            0..=10 * MILLISECOND_NS,
            |users| &mut users.constants.long_section_ns,
            "Mean work inside a long section.",
        ),
        Field::number(
            "lines",
            "lines",
            1..=LINES_MAX as u64,
            |users| &mut users.constants.lines,
            "Shared lines that a section touches.",
        ),
        Field::percent(
            "read-percent",
            |users| &mut users.constants.read_percent,
            "Percentage of sections that only read. For a lock without readers, they are writers' sections.",
        ),
        Field::ns(
            "read-section-ns",
            |users| &mut users.constants.read_section_ns,
            "Work inside a reader's section, without its accesses to lines.",
        ),
        Field::percent(
            "sleep-inside-percent",
            |users| &mut users.constants.sleep_inside_percent,
            "Percentage of writers' sections that sleep inside.",
        ),
        Field::ns(
            "sleep-inside-ns",
            |users| &mut users.constants.sleep_inside_ns,
            "Mean length of such a sleep.",
        ),
        Field::number(
            "steps",
            "steps",
            1..=10_000,
            |users| &mut users.constants.steps,
            "Steps of a job that takes no lock.",
        ),
        Field::number(
            "step-ns",
            "ns",
            1..=100 * MILLISECOND_NS,
            |users| &mut users.constants.step_ns,
            "Mean work of such a step.",
        ),
        Field::percent(
            "sleep-percent",
            |users| &mut users.constants.sleep_percent,
            "Percentage of steps and rounds that end with a sleep, for a disk.",
        ),
        Field::number(
            "sleep-ns",
            "ns",
            0..=SECOND_NS,
            |users| &mut users.constants.sleep_ns,
            "For how long, on average.",
        ),
        Field::ns(
            "spinlock-ns",
            |users| &mut users.constants.spinlock_ns,
            "Work inside a section of the spinlock that all users share, once in each step and round; 0: no \
             section.",
        ),
        Field::number(
            "updates",
            "updates",
            0..=1000,
            |users| &mut users.constants.updates,
            "Updates of a counter that all users share, in each step and on the way to each section.",
        ),
        Field::number(
            "users-per-update",
            "users",
            0..=1_000_000,
            |users| &mut users.constants.users_per_update,
            "Number of users for which there is one such update more; 0: never.",
        ),
    ];

    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn facts(&self, machine: &MachineSpec) -> Facts {
        let constants = &self.constants;
        let root = OtherLock { index: constants.locks as usize, name: "root", class: Class::Rw };
        Facts {
            threads_max: USERS_MAX,
            locks_of_each: constants.locks as usize + usize::from(constants.root_sections > 0),
            other: (constants.root == Root::Rwsem).then_some(root),
            jobs: Some(constants.jobs),
            section_ns_max: constants.section_ns_max(machine),
            long_section_ns_max: if constants.long_every > 0 { 3 * constants.long_section_ns / 2 } else { 0 },
            away_ns_max: if constants.sleep_percent > 0 { 2 * constants.sleep_ns } else { 0 },
            ..Facts::on(machine)
        }
    }

    /// There may be fewer CPUs than users.
    fn start<L: Gate>(&self, seating: &mut Seating<'_>) {
        let params = self.constants.params(seating.threads);
        let locks = self.constants.locks as usize + usize::from(params.has_root_among_locks());
        let guarded = seating.machine.place_slice(0, locks, Guarded::<Sim, L>::default);
        let common = seating.machine.place(seating.spec.sockets - 1, CommonState::<Sim>::default());
        let shared = Rc::new((guarded, common));
        seating.seat(|Seat { seed, mut node, mut scribe, .. }| {
            let shared = Rc::clone(&shared);
            move || {
                let (guarded, common) = &*shared;
                let tally = User::new(guarded, common, &mut node.0, params, seed).run(&mut scribe);
                scribe.note_torn(tally.torn);
            }
        });
    }
}

impl Constants {
    /// The maximum time of a section and the way to the next one, in ns, without about 20 line
    /// transfers. Long sections are included with twice their mean. Jobs without sections are not
    /// included, since a thread that takes no lock does not wait.
    fn section_ns_max(&self, machine: &MachineSpec) -> u64 {
        let long_ns = (2 * self.long_section_ns).checked_div(self.long_every).unwrap_or(0);
        let inside_ns = self.section_ns.max(self.read_section_ns) + long_ns;
        let asleep_ns = if self.sleep_inside_percent > 0 { 2 * self.sleep_inside_ns } else { 0 };
        inside_ns + asleep_ns + (self.lines as f64 * farthest_ns(machine)) as u64
    }

    fn params(&self, users: usize) -> Params {
        Params {
            locking_percent: self.locking_percent,
            rounds: self.rounds,
            round: WorkLength::of_ns(self.round_ns),
            sections: self.sections,
            root_sections: self.root_sections,
            root: self.root,
            end_sections: self.end_sections,
            end_step: WorkLength::of_ns(self.end_step_ns),
            jobs: self.jobs,
            section: WorkLength::of_ns(self.section_ns),
            long_every: self.long_every,
            long_section: WorkLength::of_ns(self.long_section_ns),
            read_section: WorkLength::of_ns(self.read_section_ns),
            sleep_inside_percent: self.sleep_inside_percent,
            sleep_inside_ns: self.sleep_inside_ns,
            lines: self.lines as usize,
            read_percent: self.read_percent,
            steps: self.steps,
            step: WorkLength::of_ns(self.step_ns),
            sleep_percent: self.sleep_percent,
            sleep_ns: self.sleep_ns,
            spinlock: WorkLength::of_ns(self.spinlock_ns),
            updates: self.updates_among(users as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_the_updates_of_their_number_and_the_end_of_their_profile() {
        let updates = |users| Jobs::named("aim7-high-systime").constants.params(users).updates;
        assert_eq!([200, 2000].map(updates), [26, 53]);
        let make = Jobs::named("make-j").constants.params(40);
        assert_eq!((make.end_sections, make.end_step.ns), (2000, 100));
    }
}
