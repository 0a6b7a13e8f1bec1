//! Which jobs each mix of AIM7 consists of, and exim, page faults and mappings: profiles of lock
//! use, not programs.
//!
//! # What is known of AIM7
//!
//! - A mix is a workfile: tests with weights ("hits"). The shares below are counted from the
//!   workfiles of the re-aim sources (davidlohr/areaim, `data/workfile.*`), whose headers do not
//!   always give the sums that their lines have.
//! - `fork_test` forks and waits 100 times, `exec_test` 5 times with a program (`creat_clo.c`
//!   there, registered arguments). How often `shell_rtns_*` do is in scripts that we have not seen:
//!   10 is an estimate.
//! - All users are forked by one process, and a kernel since 2.6.36 locks the *root* of all
//!   anonymous memory that descends from one process ("mm: always lock the root (oldest)
//!   anon_vma"); since 3.1 once for each mapping that is copied or torn down. So forks and exits of
//!   all users meet at one lock.
//! - That this is the mutex of the table `mutex-high-systime` is an *inference*: Long writes that
//!   3.8 is "not mutex limited anymore" for high_systime, and what 3.8 changed is that this mutex
//!   became an rwsem (5a505085f043). The message itself names no mutex.
//! - `brk` does not take it: growing the end of a mapping has not since 2.6.32 ("mmap: avoid
//!   unnecessary anon_vma lock acquisition in vma_adjust()", which was found with AIM7's mix
//!   shared).
//! - The rows of AIM7 in `rwsem-series` are about `i_mmap_mutex` turned into an rwsem, against "a
//!   vanilla 3.10-rc5" (Bueso, "mm: i_mmap_mutex to rwsem", June 2013). Forks, execs and exits take
//!   it once for each mapping of a file, at a few files that all share (the program, its library,
//!   the loader). Beside it there is the lock of the root, which in 3.10 is an rwsem already: so it
//!   gets the series too, and the kernel that is compared with has it without. The same letters say
//!   that the loss of 8 % is "when keeping all writers", and that the gains are "beyond 500 users".
//! - A run is timed from the signal that starts all users, who have been forked before, to the end
//!   of the last (reaim's `driver.c`). Each user gets `hits / all hits * 100` jobs of each test,
//!   rounded, one at least. So users that take no lock in their jobs take it when they end, and
//!   they end together.
//! - How long each test takes: results of AIM9, the same tests one at a time (x86-64, Linux 2.6.21,
//!   Lameter, "Quicklists for page table pages V4", linux-mm, March 2007). The sum of
//!   high_systime's is 3.50 ms a job; the published 4.76 ms on one node are 1.36 times that, and so
//!   much longer all tests are taken to be. But for two. `sieve` waits for memory, and caches have
//!   grown: 66 % of the time of mix custom is spent in it, which does 200350 jobs per minute on 24
//!   cores of 2.7 GHz (kernel test robot, October 2024): 88 ms at 2.13 GHz. And the disk mix:
//!   5678233 jobs per minute with 96.61 s + 5.81 s of CPU time for 3000 users, on xfs in memory
//!   (Long, "locking/qspinlock: Use a simple write to grab the lock"): 0.34 ms.
//! - Disks are memory: HP's `run_reaim` makes the file systems so. Nobody sleeps for them.
//!
//! # What is fitted, and what is estimated
//!
//! high_systime is fitted to cells of `mutex-high-systime` that were named for it beforehand:
//!
//! - the work of a round, to 126036 jobs per minute on one node (4.76 ms of CPU time for a job);
//! - the updates of a counter that all share, to 198409 on two, which is less than twice as many;
//! - the sections, to 42799 on eight nodes without the patch. The simulation has half as many
//!   again. Nearer to that, forty processors would lose 5 % with 1100 to 2000 users.
//!
//! The rest:
//!
//! - What else than the mutex does not scale is not known; that it can be stood for by updates of
//!   one counter is an *assumption*. The number of them that is fitted on two nodes gives four and
//!   eight with the patch and without hyperthreading within a tenth, since the line's way gets
//!   longer.
//! - That number grows with the users; an *inference* from the rows with the patch. One and two
//!   nodes without hyperthreading say what a user does where nothing limits it: 220 to 228 jobs per
//!   minute. So the means of 200 to 1000 users, 130508 on four nodes and 124032 on eight, are those
//!   of limits of 188000 or more and of 167000 or more; with 1100 to 2000 users the means are
//!   158592 and 145011. What limits them grows with the users, then; what it is nobody says (lists
//!   of processes that somebody walks through?), nor by how much. That of those with 1500 users
//!   half are there with any number, and half come with the users, is an *assumption*: the middle
//!   between none and all. **Seen**: all rows.
//! - Sections are spread evenly over the work of all jobs, one to a round, as if every job were the
//!   mean of all; an *assumption*. Where one job takes 18 of them within 180 us, a few tasks
//!   saturate the mutex, all others sleep in its queue, and nothing collapses.
//!   A mean job forks 5.8 times, and 53 sections are 9 to a fork with its exit. Three mappings with
//!   anonymous memory would explain that (data, heap and stack). Each takes the lock once to share
//!   what is there, once for its own and once at the exit. 0.6 us and 2 lines are an estimate,
//!   chosen with all rows in view.
//! - One section in 500 is long, 0.3 ms; an *assumption*. The lock of the root is also that of
//!   whoever walks through all mappings of a page, as reclaim, migration and the splitting of huge
//!   pages do: of 1500 processes, at 0.2 us each; it is no shorter with fewer. How often that is
//!   nobody says. It is what a collapse begins with: all who come meanwhile wait together. Where it
//!   then goes on depends on how many they can be. **Seen**: chosen with all rows in view.
//! - Users wait 0.24 s in each job: 47 of 100 rounds end in a sleep of 9.8 ms. For what they wait
//!   nobody says: for children, pipes and sockets. It follows from the difference between the two
//!   ranges of users, the same for one, two, four and eight nodes: so 200 users do 48000 jobs per
//!   minute, and 10 to 100 keep few CPUs busy. Chosen with these rows in view. Users that wake up
//!   are a supply of runnable tasks, without which a collapse is shallower.
//!
//! In the other mixes, too, a fork with its exit has 9 sections at the root's lock, as the table of
//! the mutex says (18 at first: their cells had been scored by then), and a user's end has the
//! third of them that tears down. What such a section does is to link a few entries of a list or a
//! tree: a fraction of a microsecond, and 4 lines; estimated. None of them is long there. The
//! mappings of files of a small program: 3 of its own, 4 of the C library, 3 of the loader; each is
//! copied and torn down: 20 sections over 3 locks. A program that is executed tears down what the
//! fork has copied and maps its own: 43 with its exit, at the root's lock those of the fork only.
//! `exec_test` does so 5 times with a script that runs a second program; a shell test once, with
//! about four programs (its scripts have not been seen). So a round is a fork, and has the mean of
//! all: 31 sections beside the root's 9 where programs are executed.
//!
//! A spinlock stands for what else does not scale: 7 us of it 10 times a job, an estimate. The disk
//! mix hardly waits for spinlocks on xfs (the same change of Long's makes 1 % there); nor, it is
//! assumed, the short one.
//!
//! | mix | locking jobs, of a list of 100 | rounds of one | ms of a job |
//! |---|---|---|---|
//! | `alltests` | fork 1, exec 2, shell 4 | 16, the mean | 9.98 |
//! | `custom` | fork 2 | 100 | 7.8 |
//! | `disk` | none: its users' ends | | 0.34 |
//! | `high_systime` | forks in 27 % of the jobs, 21 times, spread over all | 53 of one section | 4.76 |
//! | `high_systime` with forks | fork 4, exec 8, shell 16 | 16, the mean | 4.76 |
//! | `shared` | fork 1, exec 3, shell 3 | 17, the mean | 9.65 |
//! | `short` | none: its users' ends | | 0.33 |
//! | `fserver` | creat_clo 20, dir_rtns 20, link_test 20 of 595 hits: directories | 100, estimate | as high_systime |
//! | `new_fserver` | the same of 580 | 100, estimate | as high_systime |
//! | `compute` | none but shared_memory 10 of 820 | 20, estimate | as high_systime |
//!
//! high_systime has a second profile, in which the forks are in some of the jobs, as the other
//! mixes have them, and the locks of files beside the root's; the table of 3.7 has the root's
//! alone. Its users do a quarter of their list, to save time.
//!
//! Not in the profiles: who *reads* under `i_mmap`'s lock. The same author saw "gains from sharing
//! the lock, in disk workloads ~+15%" (May 2014); how often a mix reads is said nowhere.
//!
//! # The others
//!
//! `exim`: MOSBENCH's mail server, a client for each core; the server forks for each connection,
//! and twice for each message. A message is a job. "The lock protecting the anon-vma tree is
//! stressed due to heavy forking" (Chen, "Performance regression from switching lock to rw-sem for
//! anon-vma tree", June 2013). The work of a round is fitted to the 4.8 % that the series without
//! the single waker is published to gain, once the sections were taken to be 10; the rest is
//! estimated.
//!
//! `page-fault`: threads of one process that touch new pages, 95 % of what they do, and map and
//! unmap, as AIM7's page_test with threads; 0.3 us as a reader and 2 us as a writer. `mmap`:
//! will-it-scale's mmap1 with threads, each of which maps and unmaps its own region: writers only.
//! Lengths are estimates.
//!
//! `find-tmpfs` and `make-j` are FreeBSD's: `freebsd.rs` says what is known of them.

use nearlock_workload::jobs::Root;

use super::freebsd;

/// Users with the jobs of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// The name on the command line.
    pub name: &'static str,
    /// What they do, in a sentence.
    pub summary: &'static str,
    /// The constants that stand for it.
    pub constants: Constants,
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
    /// Sections of a round, beside those of the root's lock.
    pub sections: u64,
    /// Sections of a round that take the root's lock.
    pub root_sections: u64,
    /// Which lock that is.
    pub root: Root,
    /// Sections at the end of a locking job, one after the other.
    pub end_sections: u64,
    /// Work between two of them, in ns.
    pub end_step_ns: u64,
    /// Jobs after which a user ends; 0: never.
    pub jobs: u64,
    /// Work inside a writer's section, in ns.
    pub section_ns: u64,
    /// Of so many writers' sections, one is long; 0: none is.
    pub long_every: u64,
    /// Work inside a long one, in ns.
    pub long_section_ns: u64,
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
    /// Updates of a counter that all users share, in each step and on the way to each section.
    pub updates: u64,
    /// For so many users there is one update more; 0: never.
    pub users_per_update: u64,
}

impl Constants {
    /// Updates of the counter with so many users.
    pub fn updates_among(&self, users: u64) -> u64 {
        self.updates + users.checked_div(self.users_per_update).unwrap_or(0)
    }
}

/// What all mixes have in common that are not described by more than their workfile. See the
/// [module](self) for what is known and what is estimated.
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

/// Forks and programs, without disk: sections spread over mean jobs.
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

/// Some jobs fork and execute programs: sections of the locks of three files, and of the root of
/// their memory.
const SOME_FORKS: Constants =
    Constants { locks: 3, sections: 31, root_sections: 9, jobs: 100, steps: 10, ..MIX };

/// Neither forks nor programs. A round is a user's end: its mappings are torn down.
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

/// Directories, 8 of them; of the holders a tenth sleeps. Disks answer in 100 us.
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
    /// All of them, with their defaults.
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
            summary: "the same with its forks in some of the jobs, and the locks of three files beside the root's",
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
            summary: "threads of one process that touch new pages, as readers, and map, as writers",
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
            summary: "FreeBSD's find over a file system in memory: traversers at the mutex of its mount",
            constants: freebsd::FIND_TMPFS,
        },
        Self {
            name: "make-j",
            summary: "a kernel's build under FreeBSD: compilers at the mutexes of free pages and of their queues",
            constants: freebsd::MAKE_J,
        },
    ];
}

#[cfg(test)]
mod tests;
