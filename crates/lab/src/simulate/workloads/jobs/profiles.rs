//! The jobs of each mix of AIM7, and of exim, page faults and mappings. These are profiles of lock
//! use, not programs.
//!
//! # Known facts about AIM7
//!
//! - A mix is a workfile: tests with weights ("hits"). The shares below are counted from the
//!   workfiles of the re-aim sources (davidlohr/areaim, `data/workfile.*`). Their headers do not
//!   always give the sums of their lines.
//! - `fork_test` forks and waits 100 times. `exec_test` does so 5 times with a program
//!   (`creat_clo.c` there, registered arguments). The count of `shell_rtns_*` is in scripts that we
//!   have not seen: 10 is an estimate.
//! - All users are forked by one process. Since 2.6.36 a kernel locks the *root* of all anonymous
//!   memory that descends from one process ("mm: always lock the root (oldest) anon_vma"). Since
//!   3.1 it does so once for each mapping that is copied or torn down. Forks and exits of all users
//!   therefore contend for one lock.
//! - The claim that this is the mutex of the table `mutex-high-systime` is an *inference*. Long
//!   writes that 3.8 is "not mutex limited anymore" for high_systime, and in 3.8 this mutex became
//!   an rwsem (5a505085f043). The message itself names no mutex.
//! - `brk` does not take the lock. Since 2.6.32 it is not needed to grow the end of a mapping
//!   ("mmap: avoid unnecessary anon_vma lock acquisition in vma_adjust()", which was found with
//!   AIM7's mix shared).
//! - The rows of AIM7 in `rwsem-series` are about `i_mmap_mutex` turned into an rwsem, against "a
//!   vanilla 3.10-rc5" (Bueso, "mm: i_mmap_mutex to rwsem", June 2013). Forks, execs and exits take
//!   it once for each mapping of a file, at a few files that all users share (the program, its
//!   library, the loader). In addition there is the lock of the root, which in 3.10 is already an
//!   rwsem. It therefore gets the series too, and the base kernel has it without the series. The
//!   same letters say that the loss of 8 % is "when keeping all writers", and that the gains are
//!   "beyond 500 users".
//! - A run is timed from the signal that starts all users, which have been forked before, to the
//!   end of the last user (reaim's `driver.c`). Each user gets `hits / all hits * 100` jobs of each
//!   test, rounded, and at least one. Users whose jobs take no lock therefore take it when they
//!   end, and they end at the same time.
//! - The duration of each test is taken from results of AIM9, which runs the same tests one at a
//!   time. (Source: x86-64, Linux 2.6.21, Lameter, "Quicklists for page table pages V4", linux-mm,
//!   March 2007.) The sum of high_systime's tests is 3.50 ms per job. The published 4.76 ms on one
//!   node are 1.36 times as long, and all tests are assumed to take longer by this factor, with two
//!   exceptions. `sieve` waits for memory, and caches have grown: mix custom spends 66 % of its
//!   time in it. This mix does 200350 jobs per minute on 24 cores of 2.7 GHz (kernel test robot,
//!   October 2024), which gives 88 ms for `sieve` at 2.13 GHz. The other exception is the disk mix.
//!   On xfs in memory it does 5678233 jobs per minute with 96.61 s + 5.81 s of CPU time for 3000
//!   users (Long, "locking/qspinlock: Use a simple write to grab the lock"). This gives 0.34 ms.
//! - Disks are memory, since HP's `run_reaim` makes the file systems that way. No user sleeps for
//!   them.
//!
//! # Fitted and estimated values
//!
//! high_systime is fitted to cells of `mutex-high-systime` that were named for this purpose before:
//!
//! - The work of a round is fitted to 126036 jobs per minute on one node (4.76 ms of CPU time per
//!   job).
//! - The updates of a counter that all users share are fitted to 198409 on two nodes, which is less
//!   than twice as many.
//! - The sections are fitted to 42799 on eight nodes without the patch. The simulation gives one
//!   and a half times as many. Closer to that, forty processors would lose 5 % with 1100 to 2000
//!   users.
//!
//! The other values:
//!
//! - The limit to scaling other than the mutex is not known. It is an *assumption* that updates of
//!   one counter can represent it. The number of updates is fitted on two nodes. With it, four and
//!   eight nodes with the patch and without hyperthreading are within a tenth, since the line's
//!   path gets longer.
//! - The number of updates grows with the users. This is an *inference* from the rows with the
//!   patch. One and two nodes without hyperthreading show that a user does 220 to 228 jobs per
//!   minute if nothing limits it. The means of 200 to 1000 users are 130508 on four nodes and
//!   124032 on eight. They therefore correspond to limits of at least 188000 and 167000. With 1100
//!   to 2000 users the means are 158592 and 145011. The limiting cost therefore grows with the
//!   users. Its cause is not published (lists of processes that are traversed?), nor is its growth.
//!   The middle between none and all is *assumed*: at 1500 users, half of it is independent of the
//!   number of users, and half grows with it. **Seen**: all rows.
//! - Sections are spread evenly over the work of all jobs, one to a round, as if every job were the
//!   mean of all jobs. This is an *assumption*. If one job takes 18 sections within 180 us, a few
//!   tasks saturate the mutex, all others sleep in its queue, and nothing collapses. A mean job
//!   forks 5.8 times, and 53 sections are 9 for each fork with its exit. Three mappings with
//!   anonymous memory (data, heap and stack) would explain this number. Each takes the lock once to
//!   share the existing memory, once for its own memory and once at the exit. The values of 0.6 us
//!   and 2 lines are estimates, chosen with all rows in view.
//! - One section in 500 is long, 0.3 ms. This is an *assumption*. The lock of the root is also
//!   taken to walk through all mappings of a page, as reclaim, migration and the splitting of huge
//!   pages do. With 1500 processes at 0.2 us each this takes 0.3 ms. The section is not shorter
//!   with fewer processes. Its frequency is not published. A collapse begins with it, since all
//!   users that arrive meanwhile wait together. The further course depends on how many they can be.
//!   **Seen**: chosen with all rows in view.
//! - Users wait 0.24 s in each job: 47 of 100 rounds end in a sleep of 9.8 ms. The cause is not
//!   published; it may be children, pipes and sockets. The value follows from the difference
//!   between the two ranges of users, which is the same for one, two, four and eight nodes. With
//!   it, 200 users do 48000 jobs per minute, and 10 to 100 users keep few CPUs busy. It was chosen
//!   with these rows in view. Users that wake up are a supply of runnable tasks. Without it a
//!   collapse is less deep.
//!
//! In the other mixes, too, a fork with its exit has 9 sections at the root's lock, as in the table
//! of the mutex. (With the first value, 18, their cells had already been scored.) The end of a user
//! has the third of them that tears down. Such a section links a few entries of a list or a tree.
//! It is estimated to take a fraction of a microsecond and 4 lines. None of the sections is long in
//! these mixes. The file mappings of a small program are 3 of its own, 4 of the C library and 3 of
//! the loader. Each is copied and torn down, which gives 20 sections over 3 locks. A program that
//! is executed tears down the mappings that the fork has copied, and maps its own. With its exit
//! this gives 43 sections, but at the root's lock only those of the fork. `exec_test` does so 5
//! times with a script that runs a second program. A shell test does so once, with about four
//! programs (its scripts have not been seen). A round is therefore a fork, and has the mean of all:
//! 31 sections in addition to the root's 9 if programs are executed.
//!
//! A spinlock represents the other limits to scaling, with 7 us of it 10 times per job. This is an
//! estimate. The disk mix on xfs hardly waits for spinlocks (the same change of Long's makes 1 %
//! there). The short mix is assumed not to wait for them either.
//!
//! | mix | locking jobs, of a list of 100 | rounds of one | ms of a job |
//! |---|---|---|---|
//! | `alltests` | fork 1, exec 2, shell 4 | 16, the mean | 9.98 |
//! | `custom` | fork 2 | 100 | 7.8 |
//! | `disk` | none: its users' ends | | 0.34 |
//! | `high_systime` | 21 forks in 27 % of the jobs, spread over all | 53 of one section | 4.76 |
//! | `high_systime` with forks | fork 4, exec 8, shell 16 | 16, the mean | 4.76 |
//! | `shared` | fork 1, exec 3, shell 3 | 17, the mean | 9.65 |
//! | `short` | none: its users' ends | | 0.33 |
//! | `fserver` | creat_clo, dir_rtns, link_test, each 20 of 595 hits | 100, estimate | 4.76 |
//! | `new_fserver` | the same of 580 | 100, estimate | 4.76 |
//! | `compute` | only shared_memory 10 of 820 | 20, estimate | 4.76 |
//!
//! The locks of `fserver` and `new_fserver` are those of directories. The last three lines have the
//! time per job of `high_systime`.
//!
//! high_systime has a second profile. Its forks are in some of the jobs, as in the other mixes, and
//! it has the locks of files in addition to the root's. The table of 3.7 has only the root's lock.
//! The users of the second profile do a quarter of their list, to save time.
//!
//! The profiles do not include *readers* under `i_mmap`'s lock. The same author saw "gains from
//! sharing the lock, in disk workloads ~+15%" (May 2014). How often a mix reads is not published.
//!
//! # The other workloads
//!
//! `exim` is MOSBENCH's mail server, with a client for each core. The server forks for each
//! connection, and twice for each message. A message is a job. "The lock protecting the anon-vma
//! tree is stressed due to heavy forking" (Chen, "Performance regression from switching lock to
//! rw-sem for anon-vma tree", June 2013). The sections are assumed to be 10. The work of a round
//! was then fitted to the published gain of 4.8 % by the series without the single waker. The other
//! values are estimated.
//!
//! `page-fault` has threads of one process that touch new pages in 95 % of their sections, and
//! otherwise map and unmap, like AIM7's page_test with threads. A reader takes 0.3 us and a writer
//! 2 us. `mmap` is will-it-scale's mmap1 with threads. Each maps and unmaps its own region, so that
//! there are only writers. The lengths are estimates.
//!
//! `find-tmpfs` and `make-j` are workloads of FreeBSD: see `freebsd.rs`.

use nearlock_workload::jobs::Root;

use super::freebsd;

/// Users with the jobs of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// The name on the command line.
    pub name: &'static str,
    /// A sentence about the users.
    pub summary: &'static str,
    /// The constants of the profile.
    pub constants: Constants,
}

/// The constants of a profile, each of which is a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// The number of locks from which the locking jobs choose.
    pub locks: u64,
    /// The percentage of jobs that take the locks.
    pub locking_percent: u64,
    /// The rounds of a locking job.
    pub rounds: u64,
    /// Work of a round outside its sections, in ns.
    pub round_ns: u64,
    /// Sections of a round, in addition to those of the root's lock.
    pub sections: u64,
    /// Sections of a round that take the root's lock.
    pub root_sections: u64,
    /// The kind of the root's lock.
    pub root: Root,
    /// Sections at the end of a locking job, one after the other.
    pub end_sections: u64,
    /// Work between two of these sections, in ns.
    pub end_step_ns: u64,
    /// The number of jobs after which a user ends. 0 means never.
    pub jobs: u64,
    /// Work inside a writer's section, in ns.
    pub section_ns: u64,
    /// One in this many writers' sections is long. 0 means none.
    pub long_every: u64,
    /// Work inside a long section, in ns.
    pub long_section_ns: u64,
    /// Lines that a section touches.
    pub lines: u64,
    /// The percentage of sections that only read.
    pub read_percent: u64,
    /// Work inside a reader's section, in ns.
    pub read_section_ns: u64,
    /// The percentage of writers' sections that sleep inside.
    pub sleep_inside_percent: u64,
    /// The length of this sleep, in ns.
    pub sleep_inside_ns: u64,
    /// The steps of a quiet job.
    pub steps: u64,
    /// Work of a step, in ns.
    pub step_ns: u64,
    /// The percentage of steps and rounds that end with a sleep.
    pub sleep_percent: u64,
    /// The length of this sleep, in ns.
    pub sleep_ns: u64,
    /// Work inside a section of the spinlock, in ns. 0 means that there is none.
    pub spinlock_ns: u64,
    /// Updates of a counter that all users share, in each step and on the way to each section.
    pub updates: u64,
    /// One update is added for each such number of users. 0 means never.
    pub users_per_update: u64,
}

impl Constants {
    /// Updates of the counter with this many users.
    pub fn updates_among(&self, users: u64) -> u64 {
        self.updates + users.checked_div(self.users_per_update).unwrap_or(0)
    }
}

/// The common constants of mixes that are described only by their workfile. See the [module](self)
/// for known facts and estimates.
pub(super) const MIX: Constants = Constants {
    locks: 1,
    locking_percent: 27,
    rounds: 21,
    round_ns: 180_000,
    sections: 1,
    root_sections: 0,
    root: Root::Last,
    end_sections: 0,
    end_step_ns: 100,
    jobs: 0,
    section_ns: 500,
    long_every: 0,
    long_section_ns: 300_000,
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
    updates: 0,
    users_per_update: 0,
};

/// Forks and programs, without disk. Sections are spread over mean jobs.
const HIGH_SYSTIME: Constants = Constants {
    locking_percent: 100,
    rounds: 53,
    round_ns: 78_700,
    sections: 1,
    section_ns: 600,
    long_every: 500,
    read_section_ns: 600,
    lines: 2,
    sleep_percent: 47,
    sleep_ns: 9_800_000,
    spinlock_ns: 0,
    updates: 23,
    users_per_update: 65,
    ..MIX
};

/// Some jobs fork and execute programs. They take the locks of three files, and that of the root of
/// their memory.
const SOME_FORKS: Constants =
    Constants { locks: 3, sections: 31, root_sections: 9, jobs: 100, steps: 10, ..MIX };

/// Neither forks nor programs. A round is a user's end, which tears down its mappings.
const NO_FORKS: Constants = Constants {
    locks: 3,
    locking_percent: 0,
    rounds: 1,
    round_ns: 55_000,
    sections: 10,
    root_sections: 3,
    jobs: 100,
    steps: 4,
    spinlock_ns: 0,
    ..MIX
};

/// 8 directories. A tenth of the holders sleep. Disks answer in 100 us.
const FSERVER: Constants = Constants {
    locks: 8,
    locking_percent: 10,
    rounds: 100,
    round_ns: 10_000,
    sections: 2,
    section_ns: 3_000,
    sleep_inside_percent: 10,
    sleep_inside_ns: 50_000,
    sleep_percent: 10,
    sleep_ns: 100_000,
    ..MIX
};

/// Threads that map and unmap.
const MMAP: Constants = Constants {
    locking_percent: 100,
    rounds: 100,
    round_ns: 1_000,
    sections: 2,
    section_ns: 1_000,
    spinlock_ns: 0,
    ..MIX
};

impl Jobs {
    /// All profiles, with their defaults.
    pub const ALL: [Self; 15] = [
        Self {
            name: "aim7-alltests",
            summary: "AIM7 with all its tests, as users with jobs, some of which take kernel locks",
            constants: Constants {
                locking_percent: 7,
                rounds: 16,
                round_ns: 570_000,
                step_ns: 1_000_000,
                ..SOME_FORKS
            },
        },
        Self {
            name: "aim7-custom",
            summary: "AIM7's pipes, files and forks",
            constants: Constants {
                locking_percent: 2,
                rounds: 100,
                round_ns: 146_000,
                sections: 20,
                step_ns: 760_000,
                ..SOME_FORKS
            },
        },
        Self {
            name: "aim7-disk",
            summary: "AIM7's files",
            constants: Constants { step_ns: 85_000, ..NO_FORKS },
        },
        Self {
            name: "aim7-high-systime",
            summary: "AIM7's system calls without disk: forks, programs, memory, pipes",
            constants: HIGH_SYSTIME,
        },
        Self {
            name: "aim7-high-systime-forks",
            summary: "AIM7's system calls, with forks in some jobs, and with the locks of three files too",
            constants: Constants {
                locking_percent: 28,
                rounds: 16,
                round_ns: 570_000,
                step_ns: 273_000,
                jobs: 25,
                ..SOME_FORKS
            },
        },
        Self {
            name: "aim7-shared",
            summary: "AIM7's shared system: two fifths arithmetic, some disk, some forks",
            constants: Constants {
                locking_percent: 7,
                rounds: 17,
                round_ns: 555_000,
                step_ns: 963_000,
                ..SOME_FORKS
            },
        },
        Self {
            name: "aim7-short",
            summary: "AIM7's short tests",
            constants: Constants { step_ns: 82_000, ..NO_FORKS },
        },
        Self {
            name: "aim7-fserver",
            summary: "AIM7's file server: directories whose holders sometimes sleep",
            constants: FSERVER,
        },
        Self {
            name: "aim7-new-fserver",
            summary: "AIM7's file server that waits less for its disk",
            constants: Constants { sleep_percent: 5, ..FSERVER },
        },
        Self {
            name: "aim7-compute",
            summary: "AIM7's arithmetic, the control",
            constants: Constants { locking_percent: 1, rounds: 20, sections: 3, ..MIX },
        },
        Self {
            name: "exim",
            summary: "a mail server that forks for each connection and message; a client for each core",
            constants: Constants {
                locking_percent: 100,
                rounds: 3,
                round_ns: 1_370_000,
                sections: 10,
                spinlock_ns: 0,
                ..MIX
            },
        },
        Self {
            name: "page-fault",
            summary: "threads of one process that touch new pages as readers, and map as writers",
            constants: Constants {
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
        },
        Self {
            name: "mmap",
            summary: "threads of one process that map and unmap: writers only",
            constants: MMAP,
        },
        Self {
            name: "find-tmpfs",
            summary: "FreeBSD's find over a file system in memory: contention for the mutex of its mount",
            constants: freebsd::FIND_TMPFS,
        },
        Self {
            name: "make-j",
            summary: "a kernel's build under FreeBSD: contention for the mutexes of free pages and their \
                      queues",
            constants: freebsd::MAKE_J,
        },
    ];
}

#[cfg(test)]
mod tests;
