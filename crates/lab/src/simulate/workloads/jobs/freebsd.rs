//! Workloads of FreeBSD in November 2015: `find` over tmpfs, and the build of a kernel.
//!
//! # find-tmpfs
//!
//! "40 find processes traversing tmpfs and contending on mount mtx" (Guzik, "microoptimize by
//! trying to avoid locking a locked mutex", freebsd-current, November 2015). The message tells no
//! more. The machine is assumed to be that of the build.
//!
//! Known from the sources of FreeBSD 10.1: the mutex of a mount guards its counters. `opendir(3)`
//! calls `fstatfs(2)` to find out whether the directory is a union. This call references the mount,
//! makes it busy, and undoes both, with four sections. `close(2)` of any file announces a write
//! with a reference and a count, and takes back both together, with three sections. Cached names
//! and their attributes need no section. A job is therefore a directory with seven sections. A
//! section touches two lines besides the mutex: the line of the references, and the line of the
//! other counts and flags.
//!
//! Estimated: 50 ns for a section, which adds to a few fields. **Fitted**: 55 us of other work for
//! a directory, with about 18 system calls and ten entries. The length of each stretch is drawn
//! from half to one and a half of the mean. The work is fitted to the published gain of 40 % by the
//! pre-read of waiters. By our estimate, find takes 3 to 6 us for an entry of a cached file system,
//! with two threads on a core. Values from 35 to 65 us for a directory give gains of 44 to 48 %
//! today. The value was chosen among these with the figure for all pre-reads in view, which it
//! determines (`docs/laboratory/calibration-freebsd.md`).
//!
//! # make-j
//!
//! `make -j 40` of a kernel in a jail of FreeBSD 10.2. It takes 135 s without and 125 s with all
//! pre-reads (the same author, the same month, on two sockets of ten cores with two threads each).
//! A job is a process of the compiler.
//!
//! Known: 13 % of the CPU time of `buildworld` on 24 cores was system time (14393 s and 2111 s;
//! Andric, r263778, March 2014). In FreeBSD 10, a process that touches a new page of memory takes
//! it from the free pages under one global mutex. It puts the page into a queue under another. When
//! the process ends, each page is moved back from the queue to the free pages, page by page. A file
//! that no other process has open is moved from a list of all idle files and back, under a third
//! mutex. Builds on other machines contended for these mutexes: "If several such processes are
//! exiting or execing in parallel, the mutex was highly contended on the address space demolition"
//! (Belousov, about the later change that puts back many free pages at a time). An earlier form of
//! that change was "diagnosed and tested by: mjg", the author of the pre-reads. With less
//! contention for the locks of free pages and their queues, the next lock limited "highly parallel
//! builds" (FreeBSD's review D8921). The locks of the published build are not described.
//!
//! The number of pages follows from two builds with counted faults. The first is `buildworld` of
//! FreeBSD 10.0-CURRENT, on one thread of a Pentium 4 class Xeon with 2.8 GHz. The kernel had a
//! developer's checks, and 28 % of the time was system time. There were 658 million faults in 28288
//! s of CPU time, 23,300 a second ("Kernel performance tests on FreeBSD 10.0-CURRENT", September
//! 2012). The second is the kernel of Linux 4.13 on eight hardware threads of an Intel processor.
//! There were 31.5 million faults in 1120 s, 28,100 a second. They came from 29,135 processes, with
//! 1,080 faults each in 38 ms (Vermeulen, perf.mvermeulen.com, phoronix/build-linux-kernel). The
//! first processor is slower than the published one. The second ran its threads faster than two
//! threads to a core run the work of the system. Neither figure is scaled. The rate is thus taken
//! to be 25,000 faults a second. By our estimate, four fifths of them are for new pages or copies,
//! and the others for pages of files that are already in memory. This gives 20,000 pages a second.
//! A process has 1,000 pages, rounded from 865, and therefore lives for 50 ms.
//!
//! Estimated: 200 ns for a section. Linking a page into a list takes 50 ns. The rest is for lines
//! that another process had last, which are 50 ns away within the socket and 145 ns across sockets.
//! Under the mutex of free pages there are two misses in sequence. The first is for the structure
//! of a page or of its reservation, which points to the neighbours. The second is for the
//! neighbours' structures. With each page, the reservation of 2 MB that contains it moves to the
//! end of the queue of all partly used reservations. Under the mutex of the page queue there is one
//! miss, for the neighbours' structures. (`vm_reserv.c` and `vm_page.c` of FreeBSD 10.) In addition
//! there are two lines, of the list's head and of the counts. A process that ends spends 100 ns
//! between two sections. There are 1,000 files a second, each of which leaves the list and returns
//! to it. A job is a process. A round is 0.5 ms: ten pages with twenty sections, and one section of
//! files. The work of a round includes the user time and all system time outside these sections.
//! This is a part of the build: it does not include the work of linking and of `make` itself, or
//! any waiting. The whole build is assumed to gain as much as its jobs.
//!
//! **Seen**: all of make. An earlier form had 10,000 faults a second, from a compiler that was
//! measured on Linux, returned the pages evenly over time, and had sections of 50 ns. It gained
//! nothing. The gain with more faults and longer sections was known when these values were
//! estimated again. Sections of 150 ns, with one miss in each, gain half of the published figure.
//! This was also known when 200 ns replaced them, because the misses had been counted.
//!
//! Not included are locks that compilers share as readers (name cache, mappings of all memory),
//! since the patch does not change readers' attempts. Locks of processes are not included either,
//! since each job has only a few sections of them.

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
    // Free pages and queues of pages. The lock of files takes the place of the root's lock.
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
        // One miss under the queue's mutex and two under that of free pages, each 50 or 145 ns
        // away.
        let misses_ns = (1 + 2) * (50 + 145) / 2 / 2;
        assert!(MAKE_J.section_ns.abs_diff(50 + misses_ns) < 10);
        let files_a_second = rounds_a_second * MAKE_J.root_sections / 2;
        assert_eq!(files_a_second, 1_000);
    }
}
