//! FreeBSD's: `find` over tmpfs, and a kernel's build, of November 2015.
//!
//! # find-tmpfs
//!
//! "40 find processes traversing tmpfs and contending on mount mtx" (Guzik, "microoptimize by trying to avoid locking a locked
//! mutex", freebsd-current, November 2015). More of it is not said; the machine is taken to be that of the build.
//!
//! What is known, from the sources of FreeBSD 10.1: the mutex of a mount guards its counters. `opendir(3)` asks `fstatfs(2)` whether
//! the directory is a union, which refers to the mount, makes it busy, and undoes both: four sections. `close(2)` of anything
//! announces a write, by a reference and a count, and takes both back together: three. Names that are cached, and their attributes, need
//! none. So a job is a directory, with seven sections; a section touches two lines beside the mutex: that of the
//! references, and that of the other counts and flags.
//!
//! What is estimated: 50 ns for a section, which adds to a few fields, as in make-j. **Fitted**: 55 us of other work for a directory, of some
//! 18 system calls and ten entries, to the 40 % that the pre-read of waiters is published to gain; half to one and a half
//! of it, drawn for each stretch. What find takes for an entry of a cached file system, with two threads on a core, is 3 to 6 us by our
//! estimate, and anything between 35 and 65 us a directory is within 4 points of the 40 %; of these it was chosen with the figure for
//! all pre-reads in view, which it decides (`docs/calibration.md`).
//!
//! # make-j
//!
//! `make -j 40` of a kernel in a jail of FreeBSD 10.2, 135 s without and 125 s with all pre-reads (the same author, the same
//! month, on two sockets of ten cores with two threads each). A job is a compiler's process.
//!
//! What is known: of the CPU time of `buildworld` on 24 cores 13 % were the system's (14393 s and 2111 s; Andric, r263778, March
//! 2014). In FreeBSD 10 a page of memory that a process touches for the first time is taken from the free pages under one mutex
//! of all, and put into a queue under another; when the process ends each is taken again. Two sections of each of two mutexes for a
//! fault. A file that nobody else has open goes from a list of all idle files and back: a third mutex.
//!
//! What is estimated, before the table was scored: 10,000 faults for each second of a compiler (measured with gcc 12 on
//! Linux: 8,800 for a source that takes 0.8 s, 24,000 for one that takes 0.1 s); a hundredth as many files as sections of
//! pages; 50 ns and two lines for a section, which links a page into a list; 0.7 s for a job. A round is 1 ms: ten faults, forty sections
//! of pages and one of files. The work of a round holds the user's part, and all of the system's outside of these sections. It is a slice of the build: the work of linking and of `make` itself is not in it, nor any
//! waiting, and the whole build is taken to be as much faster as its jobs are.
//!
//! Not in it: locks that compilers share as readers (name cache, mappings of all memory), whose readers' attempts the patch
//! leaves as they are; and those of processes, of which there are a few sections for each job.

use super::{Constants, MIX};

pub(super) const FIND_TMPFS: Constants = Constants {
    locks: 1,
    locking_percent: 100,
    rounds: 1,
    round_ns: 55_000,
    sections: 7,
    section_ns: 50,
    lines: 2,
    spinlock_ns: 0,
    ..MIX
};

pub(super) const MAKE_J: Constants = Constants {
    // Free pages, and queues of pages; that of files stands in the place of the root's.
    locks: 2,
    locking_percent: 100,
    rounds: 700,
    round_ns: 1_000_000,
    sections: 40,
    root_sections: 1,
    section_ns: 50,
    lines: 2,
    spinlock_ns: 0,
    ..MIX
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_the_sections_of_its_opening_and_closing() {
        assert_eq!((FIND_TMPFS.rounds, FIND_TMPFS.sections), (1, 4 + 3));
        let entry_ns = FIND_TMPFS.round_ns / 10;
        assert!((3_000..=6_000).contains(&entry_ns), "{entry_ns}");
    }

    #[test]
    fn a_compiler_has_the_sections_of_its_faults() {
        let faults_a_second = 10_000;
        let sections_a_second = 1_000_000_000 / MAKE_J.round_ns * MAKE_J.sections;
        assert_eq!(sections_a_second, faults_a_second * 4);
        let files = sections_a_second / MAKE_J.sections * MAKE_J.root_sections;
        assert_eq!(files, 1_000);
        let job_ns = MAKE_J.rounds * MAKE_J.round_ns;
        assert_eq!(job_ns, 700_000_000);
        // Far less than the system's share of a build: most of that is outside of these sections.
        let in_sections_ns = MAKE_J.sections * MAKE_J.section_ns;
        assert!(in_sections_ns * 100 < 13 * MAKE_J.round_ns);
    }
}
