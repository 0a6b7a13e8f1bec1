//! FreeBSD's: `find` over tmpfs, and a kernel's build, of November 2015.
//!
//! # find-tmpfs
//!
//! "40 find processes traversing tmpfs and contending on mount mtx" (Guzik, "microoptimize by
//! trying to avoid locking a locked mutex", freebsd-current, November 2015). More of it is not
//! said; the machine is taken to be that of the build.
//!
//! What is known, from the sources of FreeBSD 10.1: the mutex of a mount guards its counters.
//! `opendir(3)` asks `fstatfs(2)` whether the directory is a union, which refers to the mount,
//! makes it busy, and undoes both: four sections. `close(2)` of anything announces a write, by a
//! reference and a count, and takes both back together: three. Names that are cached, and their
//! attributes, need none. So a job is a directory, with seven sections; a section touches two lines
//! beside the mutex: that of the references, and that of the other counts and flags.
//!
//! What is estimated: 50 ns for a section, which adds to a few fields. **Fitted**: 55 us of other
//! work for a directory, of some 18 system calls and ten entries, to the 40 % that the pre-read of
//! waiters is published to gain; half to one and a half of it, drawn for each stretch. What find
//! takes for an entry of a cached file system, with two threads on a core, is 3 to 6 us by our
//! estimate, and anything between 35 and 65 us a directory is within 4 points of the 40 %; of these
//! it was chosen with the figure for all pre-reads in view, which it decides
//! (`docs/calibration.md`).
//!
//! # make-j
//!
//! `make -j 40` of a kernel in a jail of FreeBSD 10.2, 135 s without and 125 s with all pre-reads
//! (the same author, the same month, on two sockets of ten cores with two threads each). A job is a
//! compiler's process.
//!
//! What is known: of the CPU time of `buildworld` on 24 cores 13 % were the system's (14393 s and
//! 2111 s; Andric, r263778, March 2014). In FreeBSD 10 a page of memory that a process touches for
//! the first time is taken from the free pages under one mutex of all, and put into a queue under
//! another; when the process ends, each page is taken out of the one and put back into the other,
//! page by page. A file that nobody else has open goes from a list of all idle files and back: a
//! third mutex. It
//! was said of other machines that builds contend these mutexes: "If several such processes are
//! exiting or execing in parallel, the mutex was highly contended on the address space demolition"
//! (Belousov, of the later change that puts many free pages back at a time). An earlier form of
//! that change was "diagnosed and tested by: mjg", the author of the pre-reads. With less contention at
//! the locks of free pages and their queues "highly parallel builds" came up against the next lock
//! (FreeBSD's review D8921). Of the published build's
//! locks nothing is said.
//!
//! How many pages: two builds whose faults were counted. `buildworld` of FreeBSD 10.0-CURRENT, a
//! kernel with the checks of a developer's (28 % of its time were the system's), on one thread of a
//! Xeon of the Pentium 4's kind, 2.8 GHz: 658 million in 28288 s of CPU time, 23,300 a second
//! ("Kernel performance tests on FreeBSD 10.0-CURRENT", September 2012). The kernel of Linux 4.13
//! on eight hardware threads of a processor of Intel's: 31.5 million in 1120 s, 28,100 a second, by
//! 29,135 processes, 1,080 faults each in 38 ms (Vermeulen, perf.mvermeulen.com,
//! phoronix/build-linux-kernel). The first processor is slower than the published one, the second
//! ran faster threads than two to a core at work on the system; neither figure is scaled. So 25,000
//! faults a second, of which four fifths, by our estimate, are for new pages or copies, and the
//! others for pages of files that are there: 20,000 pages a second, and 1,000 for a process,
//! rounded from 865, which so lives for 50 ms.
//!
//! What else is estimated: 200 ns for a section, of which 50 link a page into a list, and the
//! others are for lines that some other process had last, 50 ns away in the socket and 145 across.
//! Under the mutex of free pages these are two misses one after the other: a page's structure or
//! its reservation's, which says where the neighbours are, and theirs, since with each page the
//! reservation of 2 MB that it is of moves to the end of the queue of all that are partly used.
//! Under that of the page queue it is one: the neighbours' structures. (`vm_reserv.c` and
//! `vm_page.c` of FreeBSD 10.) Two lines besides, of the list's head and the counts; 100 ns between
//! two sections of a process that ends; 1,000 files a second, each off the list and on it again. A
//! job is a process. A round is 0.5 ms: ten pages, twenty sections of them and one of files. The
//! work of a round holds the user's part, and all of the system's outside of these sections. It is
//! a slice of the build: the work of linking and of `make` itself is not in it, nor any
//! waiting, and the whole build is taken to be as much faster as its jobs are.
//!
//! **Seen**: all of make. An earlier form had 10,000 faults a second, by a compiler that was
//! measured on Linux, gave the pages back evenly over time, and its sections took 50 ns: nothing
//! was gained. By how much it gains with more faults and longer sections was known when these were
//! estimated anew, and that sections of 150 ns, one miss in each, gain half as much as is
//! published, when 200 took their place because the misses had been counted.
//!
//! Not in it: locks that compilers share as readers (name cache, mappings of all memory), whose
//! readers' attempts the patch leaves as they are; and those of processes, of which there are a few
//! sections for each job.

use super::profiles::{Constants, MIX};

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
    rounds: 100,
    round_ns: 500_000,
    sections: 20,
    root_sections: 1,
    end_sections: 2_000,
    end_step_ns: 100,
    section_ns: 200,
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
    fn a_compiler_has_the_sections_of_its_pages() {
        let counted = [(658_370_000.0, 20_462.0 + 7_826.0), (31_486_712.0, 1_078.81 + 41.44)];
        let mean = counted.iter().map(|(faults, cpu_s)| faults / cpu_s).sum::<f64>() / 2.0;
        let rounds_a_second = 1_000_000_000 / MAKE_J.round_ns;
        let pages_a_second = rounds_a_second * MAKE_J.sections / 2;
        assert_eq!(pages_a_second, 20_000);
        assert!((0.75..0.85).contains(&(pages_a_second as f64 / mean)), "four fifths of {mean}");
        let pages = MAKE_J.rounds * MAKE_J.sections / 2;
        let counted = 31_486_712 * 4 / 5 / 29_135;
        assert!((counted..=counted * 6 / 5).contains(&pages), "of a process, rounded: {pages}, {counted}");
        assert_eq!(MAKE_J.end_sections, 2 * pages, "all are given back");
        // One miss of the queue's mutex, two of that of free pages, each 50 or 145 ns away.
        let misses_ns = (1 + 2) * (50 + 145) / 2 / 2;
        assert!(MAKE_J.section_ns.abs_diff(50 + misses_ns) < 10);
        let files_a_second = rounds_a_second * MAKE_J.root_sections / 2;
        assert_eq!(files_a_second, 1_000);
    }
}
