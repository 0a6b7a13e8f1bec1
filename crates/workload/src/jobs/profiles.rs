//! Which jobs each mix of AIM7 consists of, and exim, page faults and mappings: profiles of lock use, not programs.
//!
//! # What is known of AIM7
//!
//! - A mix is a workfile: tests with weights ("hits"). The shares below are counted from the workfiles of the re-aim
//!   sources (davidlohr/areaim, `data/workfile.*`), whose headers do not always give the sums that their lines have.
//! - `fork_test` forks and waits 100 times, `exec_test` 5 times with a program (`creat_clo.c` there, registered
//!   arguments). How often `shell_rtns_*` do is in scripts that we have not seen: 10 is an estimate.
//! - All users are forked by one process, and a kernel since 2.6.36 locks the *root* of all anonymous memory that
//!   descends from one process ("mm: always lock the root (oldest) anon_vma"); since 3.1 once for each mapping that is
//!   copied or torn down. So forks and exits of all users meet at one lock.
//! - That this is the mutex of the table `mutex-high-systime` is an *inference*: Long writes that 3.8 is "not mutex limited
//!   anymore" for high_systime, and what 3.8 changed is that this mutex became an rwsem (5a505085f043). The message
//!   itself names no mutex.
//! - `brk` does not take it: growing the end of a mapping has not since 2.6.32 ("mmap: avoid unnecessary anon_vma lock
//!   acquisition in vma_adjust()", which was found with AIM7's mix shared).
//! - The rows of AIM7 in `rwsem-series` are about `i_mmap_mutex` turned into an rwsem. Forks, execs and exits take it once
//!   for each mapping of a file, at a few files that all share (the program, its library, the loader): the same
//!   moments, so the same profile.
//!
//! # What is fitted, and what is estimated
//!
//! high_systime is fitted to cells of `mutex-high-systime` that were named for it beforehand: the work of a round to 126036
//! jobs per minute on one node (4.76 ms of CPU time for a job), and the number of rounds to 198409 on two, which is less
//! than twice as many. So the mutex itself is what limits two nodes and more, with the patch too: most of those who wait
//! then spin in `mutex_spin_on_owner`, a function of its own, or sleep, and neither is in the 0.4 % to 1 % of CPU time that a
//! profiler saw in the mutex's slow path. That nothing else limits them is an *assumption*. The section was to be fitted
//! to the third cell, 42799 on eight nodes without the patch, which *is not reached* by any: the shorter the section, the
//! deeper the collapse, and so it is as short as changing a list can be, 100 ns and one line.
//!
//! - Sections are spread evenly over the work of all jobs, one to a round, as if every job were the mean of all; an
//!   *assumption*. Where one job takes 18 of them within 180 us, a few tasks saturate the mutex, all others sleep in its queue, and
//!   nothing collapses. 245 in a mean job that forks 5.7 times are 43 to a fork with its exit: some 14 mappings with
//!   anonymous memory, each of which takes the lock once to share what is there, once for its own and once at the exit.
//! - Users wait for 65 ms in each job: a tenth of the rounds ends in a sleep of 2.65 ms. For what they wait nobody
//!   says. But 10 to 100 users show no difference between with and without, so that they keep few of 80 CPUs busy; and on each
//!   machine 200 to 1000 users do less than 1100 to 2000. Chosen with these rows in view.
//!
//! Other mixes have no published rate. A fork with its exit takes about 180 us of CPU time,
//! and copies about 6 mappings with anonymous memory: 18 sections. What such a section does is to link a few list entries: a
//! fraction of a microsecond, and 4 lines. A step of other work takes 87 us, and ends in a section of 7 us of a spinlock that all
//! share. Disks are fast, as those of the publications (memory, or many): 100 us. All of this is estimated.
//!
//! | mix | locking jobs, of all hits | rounds of one |
//! |---|---|---|
//! | `alltests` | exec 20, fork 10, shell 40 of 1000 | 21, the mean |
//! | `custom` | fork 10 of 410 | 100 |
//! | `disk` | none; creating, copying and removing files is 80 of 400 (disk_cp, bcp, dio_cp, sync_disk_cp) | 20, estimate |
//! | `high_systime` | exec 20, fork 10, shell 40 of 260: forks in 27 % of the jobs, 21 times, spread over all | 245 of one section |
//! | `shared` | exec 20, fork 10, shell 20 of 780 | 26, the mean |
//! | `short` | shared_memory 20 of 340: the lock of all segments | 100, estimate |
//! | `fserver` | creat_clo 20, dir_rtns 20, link_test 20 of 595: directories | 100, estimate |
//! | `new_fserver` | the same of 580 | 100, estimate |
//! | `compute` | none but shared_memory 10 of 820 | 20, estimate |
//!
//! Why `disk` gained from a faster rwsem nobody says; that its files' mappings are the reason is an *assumption*.
//!
//! # The others
//!
//! `exim`: MOSBENCH's mail server, a client for each core; the server forks for each connection, and twice for each
//! message. A message is a job. "The lock protecting the anon-vma tree is stressed due to heavy forking" (Chen, "Performance
//! regression from switching lock to rw-sem for anon-vma tree", June 2013). The work of a round is fitted to the 4.8 % that
//! the series without the single waker is published to gain, once the sections were taken to be 10; the rest is estimated.
//!
//! `page-fault`: threads of one process that touch new pages, 95 % of what they do, and map and unmap, as AIM7's page_test
//! with threads; 0.3 us as a reader and 2 us as a writer. `mmap`: will-it-scale's mmap1 with threads, each of which maps
//! and unmaps its own region: writers only. Lengths are estimates.

/// One of the profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Profile {
    /// All tests of AIM7.
    Alltests,
    /// Pipes, files and forks.
    Custom,
    /// Files.
    Disk,
    /// System calls: forks, programs, memory, pipes; no disk.
    HighSystime,
    /// A shared system.
    Shared,
    /// Short tests.
    Short,
    /// A file server.
    Fserver,
    /// A file server that does not wait for its disk.
    NewFserver,
    /// Arithmetic: the control.
    Compute,
    /// A mail server.
    Exim,
    /// Page faults of one process.
    PageFault,
    /// Mappings of one process.
    Mmap,
}

/// The constants of a profile, each of which is a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// How many locks the locking jobs draw from.
    pub locks: u64,
    /// Of 100 jobs, how many take the locks.
    pub locking_percent: u64,
    /// Rounds of a locking job.
    pub rounds: u64,
    /// Work of a round outside of its sections, in ns.
    pub round_ns: u64,
    /// Sections of a round.
    pub sections: u64,
    /// Work inside a writer's section, in ns.
    pub section_ns: u64,
    /// Lines that a section touches.
    pub lines: u64,
    /// Of 100 sections, how many only read.
    pub read_percent: u64,
    /// Work inside a reader's section, in ns.
    pub read_section_ns: u64,
    /// Of 100 writers' sections, how many sleep inside.
    pub sleep_inside_percent: u64,
    /// For how long, in ns.
    pub sleep_inside_ns: u64,
    /// Steps of a quiet job.
    pub steps: u64,
    /// Work of a step, in ns.
    pub step_ns: u64,
    /// Of 100 steps and rounds, how many end asleep.
    pub sleep_percent: u64,
    /// For how long, in ns.
    pub sleep_ns: u64,
    /// Work inside a section of the spinlock, in ns; 0: there is none.
    pub spinlock_ns: u64,
}

/// What all mixes have in common that are not described by more than their workfile. See the [module](self) for what is
/// known and what is estimated.
const MIX: Constants = Constants {
    locks: 1,
    locking_percent: 27,
    rounds: 21,
    round_ns: 180_000,
    sections: 18,
    section_ns: 500,
    lines: 4,
    read_percent: 0,
    read_section_ns: 500,
    sleep_inside_percent: 0,
    sleep_inside_ns: 0,
    steps: 50,
    step_ns: 87_000,
    sleep_percent: 0,
    sleep_ns: 0,
    spinlock_ns: 7_000,
};

/// Forks and programs, without disk: sections spread over mean jobs.
const HIGH_SYSTIME: Constants = Constants {
    locking_percent: 100,
    rounds: 245,
    round_ns: 18_980,
    sections: 1,
    section_ns: 100,
    read_section_ns: 100,
    lines: 1,
    sleep_percent: 10,
    sleep_ns: 2_650_000,
    spinlock_ns: 0,
    ..MIX
};

/// Files, on disks that answer in 100 us; a tenth of the steps of a disk test wait for one.
const DISK: Constants =
    Constants { locking_percent: 20, rounds: 20, sections: 4, sleep_percent: 10, sleep_ns: 100_000, ..MIX };

/// Directories, 8 of them; of the holders a tenth sleeps.
const FSERVER: Constants = Constants {
    locks: 8,
    locking_percent: 10,
    rounds: 100,
    round_ns: 10_000,
    sections: 2,
    section_ns: 3_000,
    sleep_inside_percent: 10,
    sleep_inside_ns: 50_000,
    ..DISK
};

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 12] = [
        Profile::Alltests,
        Profile::Custom,
        Profile::Disk,
        Profile::HighSystime,
        Profile::Shared,
        Profile::Short,
        Profile::Fserver,
        Profile::NewFserver,
        Profile::Compute,
        Profile::Exim,
        Profile::PageFault,
        Profile::Mmap,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Alltests => "aim7-alltests",
            Profile::Custom => "aim7-custom",
            Profile::Disk => "aim7-disk",
            Profile::HighSystime => "aim7-high-systime",
            Profile::Shared => "aim7-shared",
            Profile::Short => "aim7-short",
            Profile::Fserver => "aim7-fserver",
            Profile::NewFserver => "aim7-new-fserver",
            Profile::Compute => "aim7-compute",
            Profile::Exim => "exim",
            Profile::PageFault => "page-fault",
            Profile::Mmap => "mmap",
        }
    }

    /// The constants that stand for it.
    pub const fn constants(self) -> Constants {
        match self {
            Profile::Alltests => Constants { locking_percent: 7, sleep_percent: 3, sleep_ns: 100_000, ..MIX },
            Profile::Custom => {
                Constants { locking_percent: 2, rounds: 100, sleep_percent: 6, sleep_ns: 100_000, ..MIX }
            }
            Profile::Disk => DISK,
            Profile::HighSystime => HIGH_SYSTIME,
            Profile::Shared => {
                Constants { locking_percent: 6, rounds: 26, sleep_percent: 2, sleep_ns: 100_000, ..MIX }
            }
            Profile::Short => {
                Constants { locking_percent: 6, rounds: 100, round_ns: 20_000, sections: 3, ..MIX }
            }
            Profile::Fserver => FSERVER,
            Profile::NewFserver => Constants { sleep_percent: 5, ..FSERVER },
            Profile::Compute => Constants { locking_percent: 1, rounds: 20, sections: 3, ..MIX },
            Profile::Exim => Constants {
                locking_percent: 100,
                rounds: 3,
                round_ns: 1_360_000,
                sections: 10,
                spinlock_ns: 0,
                ..MIX
            },
            Profile::PageFault => Constants {
                locking_percent: 100,
                rounds: 100,
                round_ns: 1_000,
                sections: 1,
                section_ns: 2_000,
                read_percent: 95,
                read_section_ns: 300,
                lines: 2,
                spinlock_ns: 0,
                ..MIX
            },
            Profile::Mmap => Constants {
                locking_percent: 100,
                rounds: 100,
                round_ns: 1_000,
                sections: 2,
                section_ns: 1_000,
                spinlock_ns: 0,
                ..MIX
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_numbered_and_named_once() {
        for (index, profile) in Profile::ALL.into_iter().enumerate() {
            assert_eq!(profile as usize, index);
            assert!(!Profile::ALL[..index].iter().any(|other| other.name() == profile.name()));
        }
    }

    #[test]
    fn a_job_of_high_systime_takes_what_the_published_rate_leaves_it() {
        let Constants {
            locking_percent,
            rounds,
            round_ns,
            sections,
            section_ns,
            steps,
            step_ns,
            spinlock_ns,
            ..
        } = Profile::HighSystime.constants();
        let locking_ns = rounds * (round_ns + sections * section_ns + spinlock_ns);
        let quiet_ns = steps * (step_ns + spinlock_ns);
        let mean_ns = (locking_percent * locking_ns + (100 - locking_percent) * quiet_ns) / 100;
        // Ten CPUs, a minute, 126036 jobs.
        let published_ns = 600_000_000_000 / 126_036;
        assert!(mean_ns.abs_diff(published_ns) < published_ns / 10, "{mean_ns} {published_ns}");
    }

    #[test]
    fn a_mean_job_of_high_systime_has_the_forks_of_its_workfile() {
        let Constants { locking_percent, rounds, sections, .. } = Profile::HighSystime.constants();
        assert_eq!((locking_percent, sections), (100, 1), "each round of each job has one section");
        // Of 260 hits exec has 20, fork 10, shell 40; they fork 5, 100 and 10 times.
        let forks = (20.0 * 5.0 + 10.0 * 100.0 + 40.0 * 10.0) / 260.0;
        let per_fork = rounds as f64 / forks;
        assert!((per_fork - 3.0 * 14.0).abs() < 3.0, "three sections for each of 14 mappings: {per_fork}");
    }

    #[test]
    fn shares_are_those_of_the_workfiles() {
        let percent = |hits: u64, of: u64| (hits * 100 + of / 2) / of;
        for (profile, hits, of) in [
            (Profile::Alltests, 70, 1000),
            (Profile::Custom, 10, 410),
            (Profile::Disk, 80, 400),
            (Profile::Shared, 50, 780),
            (Profile::Short, 20, 340),
            (Profile::Fserver, 60, 595),
            (Profile::NewFserver, 60, 580),
            (Profile::Compute, 10, 820),
        ] {
            assert_eq!(profile.constants().locking_percent, percent(hits, of), "{}", profile.name());
        }
    }
}
