//! The documents of the tables, and the claim that each table supports.

use super::{RowKey, Table};

/// A publication, with its tables.
#[derive(Debug)]
pub struct Document {
    /// The subject of the document.
    pub title: &'static str,
    /// The authors, the place and the date.
    pub source: &'static str,
    /// The idea, in a sentence or two.
    pub idea: &'static str,
    /// Results of the document that have no table here, and the reason.
    pub missing: Option<&'static str>,
    /// The tables of the document.
    pub tables: &'static [Claim],
}

/// The claim that a table supports.
#[derive(Debug)]
pub struct Claim {
    /// The name of the table.
    pub table: &'static str,
    /// The claim of the document.
    pub claim: &'static str,
    /// The headline figures of the table.
    pub headlines: &'static [Headline],
}

/// A headline figure of a table: the performance of a variant relative to the base of its
/// comparison.
#[derive(Debug)]
pub struct Headline {
    /// The case, in a few words.
    pub words: &'static str,
    /// The name of the variant.
    pub variant: &'static str,
    /// Values that name the row.
    row: &'static [(&'static str, &'static str)],
}

impl Table {
    /// The document of this table.
    pub fn document(&self) -> &'static Document {
        let has = |document: &&Document| document.tables.iter().any(|claim| claim.table == self.name);
        DOCUMENTS.iter().find(has).expect("a test has looked for each table")
    }
}

impl Claim {
    /// The table.
    pub fn table(&self) -> &'static Table {
        Table::named(self.table).expect("a test has looked for each")
    }
}

impl Headline {
    /// Whether this row is the headline's row.
    pub fn is_of(&self, row: &RowKey) -> bool {
        self.row.iter().all(|(key, value)| row.is(key, value))
    }
}

/// All documents, from the oldest to the newest.
pub const DOCUMENTS: &[Document] = &[
    Document {
        title: "Linux mutex: read before you exchange",
        source: "Waiman Long, \"mutex: Make more scalable by doing less atomic operations\", linux-kernel, \
                 April 2013",
        idea: "Waiters wrote to the locked mutex again and again, and so took its cache line away from the \
               holder. With the patch they read first, and write only if that can succeed.",
        missing: Some(
            "the message's last table, the gains of other mixes of AIM7 on 8 nodes: in the copy that these \
             figures are from, it is cut off after its head, and not filled in",
        ),
        tables: &[
            Claim {
                table: "mutex-high-systime",
                claim: "On 8 nodes the mix high_systime of AIM7 collapses without the patch, and does 2.5 to \
                        4 times as many jobs with it; on 1 and 2 nodes there is practically no change.",
                headlines: &[
                    Headline {
                        words: "AIM7, 8 nodes, SMT",
                        variant: "with",
                        row: &[("users", "1100-2000"), ("nodes", "8"), ("smt", "on")],
                    },
                    Headline {
                        words: "AIM7, 8 nodes",
                        variant: "with",
                        row: &[("users", "1100-2000"), ("nodes", "8"), ("smt", "off")],
                    },
                    Headline {
                        words: "fewer users, 8 nodes, SMT",
                        variant: "with",
                        row: &[("users", "200-1000"), ("nodes", "8"), ("smt", "on")],
                    },
                    Headline {
                        words: "fewer users, 8 nodes",
                        variant: "with",
                        row: &[("users", "200-1000"), ("nodes", "8"), ("smt", "off")],
                    },
                    Headline {
                        words: "AIM7, 1 node, SMT",
                        variant: "with",
                        row: &[("users", "1100-2000"), ("nodes", "1"), ("smt", "on")],
                    },
                ],
            },
            Claim {
                table: "mutex-slowpath-share",
                claim: "The time in the slow path of the mutex falls from 65 to under 1 % of the CPU time on \
                        8 nodes.",
                headlines: &[],
            },
        ],
    },
    Document {
        title: "Linux rwsem: spin before you sleep",
        source: "Tim Chen and others, \"rwsem performance optimizations\", patch series v8, October 2013",
        idea: "The writers of a reader-writer semaphore read before they write, spin while the holder runs, \
               and queue for spinning. Of all threads that would wake the waiters, only one does.",
        missing: None,
        tables: &[
            Claim {
                table: "rwsem-series",
                claim: "When the mutex of a file's mappings becomes an rwsem, two mixes of AIM7 lose 8 %; \
                        with the series except its last patch, all mixes gain 6 to 20 %. Exim gains 5 %.",
                headlines: &[
                    Headline { words: "exim", variant: "+single-waker", row: &[("workload", "exim")] },
                    Headline {
                        words: "AIM7 shared",
                        variant: "preread+spin",
                        row: &[("workload", "aim7-shared")],
                    },
                    Headline {
                        words: "AIM7 high_systime",
                        variant: "preread+spin",
                        row: &[("workload", "aim7-high-systime")],
                    },
                ],
            },
            Claim {
                table: "rwsem-spin-first",
                claim: "Spinning before queueing up brings 5 % for exim and 2 to 8 % for AIM7.",
                headlines: &[],
            },
            Claim {
                table: "rwsem-single-waker",
                claim: "One waker at a time makes high_systime 14 to 15 % faster; without hyperthreading the \
                        whole series makes it 32 % faster.",
                headlines: &[Headline {
                    words: "high_systime, one waker too",
                    variant: "series",
                    row: &[("smt", "off")],
                }],
            },
        ],
    },
    Document {
        title: "FreeBSD: do not lock a locked mutex",
        source: "Mateusz Guzik, \"microoptimize by trying to avoid locking a locked mutex\", \
                 freebsd-current, November 2015",
        idea: "Most of FreeBSD's locks tried a compare-and-swap before they read. The patch reads first: in \
               the paths of the waiters, and also in the fast paths, which its author calls optional.",
        missing: None,
        tables: &[
            Claim {
                table: "freebsd-find",
                claim: "40 processes of find over tmpfs gain about 40 % if waiters read first, and very \
                        little more if fast paths do too.",
                headlines: &[Headline { words: "find over tmpfs", variant: "hard", row: &[("lock", "mtx")] }],
            },
            Claim {
                table: "freebsd-make",
                claim: "With all pre-reads a kernel is built in about 125 seconds instead of about 135.",
                headlines: &[Headline { words: "make -j 40", variant: "hard+fast", row: &[("lock", "mtx")] }],
            },
        ],
    },
    Document {
        title: "CNA: a spin lock that knows its sockets",
        source: "Alex Kogan, \"Add NUMA-awareness to qspinlock\", patch series v13, December 2020",
        idea: "The stock spin lock goes to the first waiter, which mostly runs on another socket. CNA \
               prefers waiters of the holder's socket, for a bounded time, in a lock that is still four \
               bytes.",
        missing: None,
        tables: &[
            Claim {
                table: "cna-locktorture",
                claim: "A lock that all threads acquire: CNA is ahead from 4 threads up, by 77 % with 142, \
                        and loses nothing with one or two.",
                headlines: &[Headline {
                    words: "locktorture, 142 threads",
                    variant: "cna",
                    row: &[("threads", "142")],
                }],
            },
            Claim {
                table: "cna-context1",
                claim: "A test robot saw a loss of 17 % with version 12, which has no shuffle reduction. The \
                        author first found 10 %. With version 13, a more thorough test did not reproduce the \
                        loss. With the reduction it is about 1 %.",
                headlines: &[Headline {
                    words: "context1, version 12",
                    variant: "cna-wo-sro",
                    row: &[("threads", "56")],
                }],
            },
            Claim {
                table: "cna-open1",
                claim: "Threads that open and close files: CNA loses 4 to 6 % with 8 and 16, does two thirds \
                        more work from 32 up, and twice as much with 142.",
                headlines: &[Headline {
                    words: "open1, 142 threads",
                    variant: "cna",
                    row: &[("threads", "142")],
                }],
            },
            Claim {
                table: "cna-lock2",
                claim: "Threads that lock and unlock a record of one file: CNA loses 3 to 6 % with 8 and 16, \
                        does 60 % more work from 32 up, and twice as much with 142.",
                headlines: &[Headline {
                    words: "lock2, 142 threads",
                    variant: "cna",
                    row: &[("threads", "142")],
                }],
            },
            Claim {
                table: "cna-readrandom",
                claim: "A database whose mutex sleeps in the kernel: CNA guards the list of sleepers, and \
                        does 85 % more work with 142 threads.",
                headlines: &[Headline {
                    words: "LevelDB, 142 threads",
                    variant: "cna",
                    row: &[("threads", "142")],
                }],
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{Scale, TABLES};

    #[test]
    fn every_table_is_of_one_document() {
        let mut names: Vec<_> =
            DOCUMENTS.iter().flat_map(|document| document.tables).map(|claim| claim.table().name).collect();
        let mut all: Vec<_> = TABLES.iter().map(|table| table.name).collect();
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all);
    }

    #[test]
    fn a_headline_is_one_published_cell_and_its_base() {
        for claim in DOCUMENTS.iter().flat_map(|document| document.tables) {
            let table = claim.table();
            for headline in claim.headlines {
                let rows: Vec<_> = table.rows().iter().filter(|row| headline.is_of(&row.key)).collect();
                assert_eq!(rows.len(), 1, "{}", headline.words);
                let column =
                    table.variants.iter().position(|v| v.name == headline.variant).expect("a variant");
                assert!(rows[0].values[column].is_some(), "{}", headline.words);
                let has_base = matches!(table.scale, Scale::PercentOver(_)) || rows[0].values[0].is_some();
                assert!(has_base, "{}", headline.words);
            }
        }
    }
}
