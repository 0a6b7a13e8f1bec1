//! The constants of the workloads of users with jobs: the same keys for each.

use nearlock_workload::LINES_MAX;
use nearlock_workload::jobs::profiles::Profile;

use super::{Group, MILLISECOND_NS, Number, SECOND_NS};

/// All numbers of one profile.
macro_rules! numbers_of {
    ($profile:ident, $name:literal) => {
        &[
            number!($profile, $name, locks, "locks", "locks", 1, 64, "How many locks the locking jobs draw from."),
            number!(
                $profile,
                $name,
                locking_percent,
                "locking-percent",
                "%",
                0,
                100,
                "Of 100 jobs, how many take the locks: from AIM7's workfiles."
            ),
            number!(
                $profile,
                $name,
                jobs,
                "jobs",
                "jobs",
                0,
                10_000,
                "Jobs after which a user ends, with one more round; 0: never. Counted is then the whole run, to the end of the \
                 last user."
            ),
            number!($profile, $name, rounds, "rounds", "rounds", 1, 10_000, "Rounds of a locking job."),
            number!(
                $profile,
                $name,
                round_ns,
                "round-ns",
                "ns",
                0,
                100 * MILLISECOND_NS,
                "Work of a round outside of its sections, on average."
            ),
            number!(
                $profile,
                $name,
                sections,
                "sections",
                "sections",
                1,
                1000,
                "Sections of a round, beside those of the root's lock."
            ),
            number!(
                $profile,
                $name,
                root_sections,
                "root-sections",
                "sections",
                0,
                1000,
                "Sections of a round that take one further lock, as writers: that of the root of all memory."
            ),
            number!(
                $profile,
                $name,
                end_sections,
                "end-sections",
                "sections",
                0,
                100_000,
                "Sections at the end of a job that takes locks, one after the other: what it has is taken apart."
            ),
            number!(
                $profile,
                $name,
                end_step_ns,
                "end-step-ns",
                "ns",
                0,
                MILLISECOND_NS,
                "Work between two of these."
            ),
            number!(
                $profile,
                $name,
                section_ns,
                "section-ns",
                "ns",
                0,
                MILLISECOND_NS,
                "Work inside a writer's section, beside its lines."
            ),
            number!(
                $profile,
                $name,
                long_every,
                "long-every",
                "sections",
                0,
                1_000_000,
                "Of so many writers' sections, one is long; 0: none is."
            ),
            number!(
                $profile,
                $name,
                long_section_ns,
                "long-section-ns",
                "ns",
                0,
                10 * MILLISECOND_NS,
                "Work inside a long one, on average."
            ),
            number!(
                $profile,
                $name,
                lines,
                "lines",
                "lines",
                1,
                LINES_MAX as u64,
                "Shared lines that a section touches."
            ),
            number!(
                $profile,
                $name,
                read_percent,
                "read-percent",
                "%",
                0,
                100,
                "Of 100 sections, how many only read; a lock without readers takes them as writers."
            ),
            number!(
                $profile,
                $name,
                read_section_ns,
                "read-section-ns",
                "ns",
                0,
                MILLISECOND_NS,
                "Work inside a reader's section, beside its lines."
            ),
            number!(
                $profile,
                $name,
                sleep_inside_percent,
                "sleep-inside-percent",
                "%",
                0,
                100,
                "Of 100 writers' sections, how many sleep inside."
            ),
            number!(
                $profile,
                $name,
                sleep_inside_ns,
                "sleep-inside-ns",
                "ns",
                0,
                MILLISECOND_NS,
                "For how long, on average."
            ),
            number!($profile, $name, steps, "steps", "steps", 1, 10_000, "Steps of a job that takes no lock."),
            number!(
                $profile,
                $name,
                step_ns,
                "step-ns",
                "ns",
                1,
                100 * MILLISECOND_NS,
                "Work of such a step, on average."
            ),
            number!(
                $profile,
                $name,
                sleep_percent,
                "sleep-percent",
                "%",
                0,
                100,
                "Of 100 steps and rounds, how many end asleep: for a disk."
            ),
            number!($profile, $name, sleep_ns, "sleep-ns", "ns", 0, SECOND_NS, "For how long, on average."),
            number!(
                $profile,
                $name,
                spinlock_ns,
                "spinlock-ns",
                "ns",
                0,
                MILLISECOND_NS,
                "Work inside a section of the spinlock that all users share, once in each step and round; 0: there is none."
            ),
            number!(
                $profile,
                $name,
                updates,
                "updates",
                "updates",
                0,
                1000,
                "Updates of a counter that all users share, in each step and on the way to each section."
            ),
            number!(
                $profile,
                $name,
                users_per_update,
                "users-per-update",
                "users",
                0,
                1_000_000,
                "For so many users there is one such update more; 0: never."
            ),
        ]
    };
}

macro_rules! number {
    ($profile:ident, $name:literal, $field:ident, $key:literal, $unit:literal, $min:expr, $max:expr, $summary:literal) => {
        Number {
            name: concat!($name, ".", $key),
            group: Group::Workload,
            unit: $unit,
            min: $min,
            max: $max,
            summary: $summary,
            field: |c| &mut c.jobs[Profile::$profile as usize].$field,
        }
    };
}

/// By profile.
const NUMBERS: [&[Number]; Profile::ALL.len()] = [
    numbers_of!(Alltests, "aim7-alltests"),
    numbers_of!(Custom, "aim7-custom"),
    numbers_of!(Disk, "aim7-disk"),
    numbers_of!(HighSystime, "aim7-high-systime"),
    numbers_of!(HighSystimeForks, "aim7-high-systime-forks"),
    numbers_of!(Shared, "aim7-shared"),
    numbers_of!(Short, "aim7-short"),
    numbers_of!(Fserver, "aim7-fserver"),
    numbers_of!(NewFserver, "aim7-new-fserver"),
    numbers_of!(Compute, "aim7-compute"),
    numbers_of!(Exim, "exim"),
    numbers_of!(PageFault, "page-fault"),
    numbers_of!(Mmap, "mmap"),
    numbers_of!(FindTmpfs, "find-tmpfs"),
    numbers_of!(MakeJ, "make-j"),
];

/// All numbers, key by key.
pub(super) fn numbers() -> impl Iterator<Item = &'static Number> {
    (0..NUMBERS[0].len()).flat_map(|key| NUMBERS.iter().map(move |of_profile| &of_profile[key]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Configuration;

    #[test]
    fn every_constant_of_every_profile_is_a_setting_of_its_own() {
        for (profile, numbers) in Profile::ALL.into_iter().zip(NUMBERS) {
            for number in numbers {
                assert!(number.name.starts_with(&format!("{}.", profile.name())), "{}", number.name);
                let mut configuration = Configuration::new(Group::ALL);
                let default = *(number.field)(&mut configuration);
                assert!((number.min..=number.max).contains(&default), "{}", number.name);
                let other = if default == number.max { number.min } else { default + 1 };
                configuration.set(&format!("{}={other}", number.name)).unwrap();
                let changed = Profile::ALL
                    .into_iter()
                    .filter(|&profile| configuration.jobs[profile as usize] != profile.constants());
                assert_eq!(changed.collect::<Vec<_>>(), [profile], "{}", number.name);
            }
        }
        assert_eq!(numbers().count(), Profile::ALL.len() * NUMBERS[0].len());
    }
}
