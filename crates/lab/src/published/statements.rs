//! Statements of the publications about their tables. Each is a sentence with a condition on the
//! figures.
//!
//! A difference counts as an effect if it exceeds two standard errors. This is up to 2 % if
//! deviations over 25 runs are published, otherwise 5 %. Figures that are said to be alike, or not
//! to fall, may differ by a little more.

use std::fmt;

use super::{RowKey, Rows, Table};

/// A statement of a publication about its figures.
#[derive(Debug)]
pub struct Statement {
    /// The sentence.
    pub text: &'static str,
    compared: Compared,
    expected: Expected,
}

/// The cells that are compared.
#[derive(Debug)]
enum Compared {
    /// Each of these variants is compared with `to`, in each of these rows.
    Variants { of: &'static [&'static str], to: &'static str, rows: Rows },
    /// Each of these variants is compared with itself at another number of threads.
    Threads { variants: &'static [&'static str], of: usize, to: usize },
    /// Each of these variants is compared with the base of its figures, in each of these rows.
    Base { of: &'static [&'static str], rows: Rows },
}

/// The condition on the ratio of the two cells. 0.02 is 2 %.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Greater than 1 by more than this.
    Above(f64),
    /// Less than 1 by more than this.
    Below(f64),
    /// Not less than 1 by more than this.
    NotBelow(f64),
    /// Within this much of 1.
    Alike(f64),
    /// Greater than 1 by an amount in this range.
    Between(f64, f64),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Expected::Between(low, high) = self {
            return write!(f, "by {:.0} to {:.0} %", low * 100.0, high * 100.0);
        }
        let (words, share) = match *self {
            Expected::Above(share) | Expected::Below(share) => ("by more than", share),
            Expected::NotBelow(share) => ("by no more than", share),
            Expected::Alike(share) | Expected::Between(share, _) => ("within", share),
        };
        write!(f, "{words} {:.0} %", share * 100.0)
    }
}

impl Expected {
    fn holds(self, ratio: f64) -> bool {
        match self {
            Expected::Above(share) => ratio > 1.0 + share,
            Expected::Below(share) => ratio < 1.0 - share,
            Expected::NotBelow(share) => ratio >= 1.0 - share,
            Expected::Alike(share) => (ratio - 1.0).abs() <= share,
            Expected::Between(low, high) => (1.0 + low..=1.0 + high).contains(&ratio),
        }
    }
}

/// The sentence and its margin.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.expected)
    }
}

/// A cell: variant and row.
type Place = (&'static str, RowKey);

impl Statement {
    /// Whether the statement is true of these figures. `figure` gives a figure by variant and row
    /// of the table. The result is `None` if a figure of the statement is missing.
    pub fn holds(&self, table: &Table, figure: impl Fn(&str, &RowKey) -> Option<f64>) -> Option<bool> {
        let figure = |(variant, row): Place| figure(variant, &row);
        self.pairs(table).into_iter().try_fold(true, |holds, (of, to)| {
            let to = to.map_or(Some(0.0), figure)?;
            Some(holds && self.expected.holds(table.ratio(figure(of)?, to)))
        })
    }

    /// The pairs of cells that the statement compares. The second is `None` if it is the base of
    /// the figures.
    fn pairs(&self, table: &Table) -> Vec<(Place, Option<Place>)> {
        let keys = |rows: Rows| -> Vec<RowKey> {
            table.rows().iter().map(|row| &row.key).filter(|key| rows.contain(key)).cloned().collect()
        };
        match self.compared {
            Compared::Variants { of, to, rows } => {
                let pair = |of, key: RowKey| ((of, key.clone()), Some((to, key)));
                of.iter().flat_map(|&of| keys(rows).into_iter().map(move |key| pair(of, key))).collect()
            }
            Compared::Threads { variants, of, to } => {
                let at = |variant, threads| (variant, RowKey::of_threads(threads));
                variants.iter().map(|&variant| (at(variant, of), Some(at(variant, to)))).collect()
            }
            Compared::Base { of, rows } => {
                of.iter().flat_map(|&of| keys(rows).into_iter().map(move |key| ((of, key), None))).collect()
            }
        }
    }
}

const BOTH: &[&str] = &["cna-wo-sro", "cna"];
const FROM_32: Rows = Rows::Threads(&[32, 36, 72, 108, 142]);
const FROM_8: Rows = Rows::Threads(&[8, 16, 32, 36, 72, 108, 142]);

/// Statements about the locktorture table.
pub(super) const LOCKTORTURE: &[Statement] = &[
    Statement {
        text: "CNA and stock are alike at 1 and 2 threads",
        compared: Compared::Variants { of: BOTH, to: "stock", rows: Rows::Threads(&[1, 2]) },
        expected: Expected::Alike(0.05),
    },
    Statement {
        text: "CNA is ahead of stock at 4 threads",
        compared: Compared::Variants { of: BOTH, to: "stock", rows: Rows::Threads(&[4]) },
        expected: Expected::Above(0.02),
    },
    Statement {
        text: "CNA is ahead of stock from 8 threads up",
        compared: Compared::Variants { of: BOTH, to: "stock", rows: FROM_8 },
        expected: Expected::Above(0.02),
    },
    Statement {
        text: "stock falls from 36 to 142 threads",
        compared: Compared::Threads { variants: &["stock"], of: 142, to: 36 },
        expected: Expected::Below(0.02),
    },
    Statement {
        text: "CNA does not fall from 36 to 142 threads",
        compared: Compared::Threads { variants: BOTH, of: 142, to: 36 },
        expected: Expected::NotBelow(0.03),
    },
    Statement {
        text: "the shuffle reduction makes no difference from 8 threads up",
        compared: Compared::Variants { of: &["cna"], to: "cna-wo-sro", rows: FROM_8 },
        expected: Expected::Alike(0.05),
    },
];

/// Statements about context1.
pub(super) const CONTEXT1: &[Statement] = &[
    Statement {
        text: "CNA without shuffle reduction is behind stock",
        compared: Compared::Variants { of: &["cna-wo-sro"], to: "stock", rows: Rows::Threads(&[56]) },
        expected: Expected::Below(0.05),
    },
    Statement {
        text: "CNA with shuffle reduction is ahead of CNA without it",
        compared: Compared::Variants { of: &["cna"], to: "cna-wo-sro", rows: Rows::Threads(&[56]) },
        expected: Expected::Above(0.05),
    },
];

const FROM_16: Rows = Rows::Threads(&[16, 32, 36, 72, 108, 142]);

const AHEAD_FROM_32: Statement = Statement {
    text: "CNA is ahead of stock from 32 threads up",
    compared: Compared::Variants { of: BOTH, to: "stock", rows: FROM_32 },
    expected: Expected::Above(0.4),
};

/// Statements about open1 and lock2. At 8 threads, the deficit of CNA is within two standard errors
/// or hardly larger.
pub(super) const CALLS: &[Statement] = &[
    Statement {
        text: "CNA and stock are alike at 1 to 8 threads",
        compared: Compared::Variants { of: BOTH, to: "stock", rows: Rows::Threads(&[1, 2, 4, 8]) },
        expected: Expected::Alike(0.05),
    },
    Statement {
        text: "CNA is behind stock at 16 threads",
        compared: Compared::Variants { of: BOTH, to: "stock", rows: Rows::Threads(&[16]) },
        expected: Expected::Below(0.032),
    },
    Statement {
        text: "stock falls from 16 to 32 threads",
        compared: Compared::Threads { variants: &["stock"], of: 32, to: 16 },
        expected: Expected::Below(0.05),
    },
    AHEAD_FROM_32,
    Statement {
        text: "CNA is as fast at 142 threads as at 36",
        compared: Compared::Threads { variants: BOTH, of: 142, to: 36 },
        expected: Expected::Alike(0.03),
    },
    Statement {
        text: "the shuffle reduction makes no difference from 16 threads up",
        compared: Compared::Variants { of: &["cna"], to: "cna-wo-sro", rows: FROM_16 },
        expected: Expected::Alike(0.05),
    },
];

/// Statements about readrandom. At 4, 8 and 16 threads the published deviations are 12 to 20 % of
/// the figures, and no statement uses these figures.
pub(super) const READRANDOM: &[Statement] = &[
    Statement {
        text: "CNA and stock are alike at 1 and 2 threads",
        compared: Compared::Variants { of: BOTH, to: "stock", rows: Rows::Threads(&[1, 2]) },
        expected: Expected::Alike(0.05),
    },
    Statement {
        text: "stock falls from 8 to 142 threads",
        compared: Compared::Threads { variants: &["stock"], of: 142, to: 8 },
        expected: Expected::Below(0.2),
    },
    AHEAD_FROM_32,
    Statement {
        text: "CNA is as fast at 142 threads as at 36",
        compared: Compared::Threads { variants: BOTH, of: 142, to: 36 },
        expected: Expected::Alike(0.04),
    },
    Statement {
        text: "the shuffle reduction makes no difference from 32 threads up",
        compared: Compared::Variants { of: &["cna"], to: "cna-wo-sro", rows: FROM_32 },
        expected: Expected::Alike(0.05),
    },
];

const MANY_USERS_AT_1_AND_2: Rows = Rows::With(&[
    &[("users", "1100-2000"), ("nodes", "1")],
    &[("users", "1100-2000"), ("nodes", "2")],
    &[("users", "200-1000"), ("nodes", "1")],
    &[("users", "200-1000"), ("nodes", "2")],
]);

/// Statements about AIM7's high_systime with the counter mutex.
pub(super) const MUTEX_HIGH_SYSTIME: &[Statement] = &[
    Statement {
        text: "at 8 nodes the patch is a gain",
        compared: Compared::Variants {
            of: &["with"],
            to: "without",
            rows: Rows::With(&[
                &[("users", "1100-2000"), ("nodes", "8")],
                &[("users", "200-1000"), ("nodes", "8")],
            ]),
        },
        expected: Expected::Above(0.05),
    },
    Statement {
        text: "the patch has practically no impact on 1 and 2 nodes",
        compared: Compared::Variants { of: &["with"], to: "without", rows: MANY_USERS_AT_1_AND_2 },
        expected: Expected::Alike(0.05),
    },
    Statement {
        text: "the patch makes no difference at 10 to 100 users",
        compared: Compared::Variants {
            of: &["with"],
            to: "without",
            rows: Rows::With(&[&[("users", "10-100")]]),
        },
        expected: Expected::Alike(0.01),
    },
];

/// Statements about its profile.
pub(super) const MUTEX_SLOWPATH_SHARE: &[Statement] = &[Statement {
    text: "the patch cuts the time in the slow path at 4 and 8 nodes",
    compared: Compared::Variants {
        of: &["with"],
        to: "without",
        rows: Rows::With(&[&[("nodes", "4")], &[("nodes", "8")]]),
    },
    expected: Expected::Below(0.05),
}];

const MIXES: Rows = Rows::With(&[
    &[("workload", "aim7-alltests")],
    &[("workload", "aim7-custom")],
    &[("workload", "aim7-disk")],
    &[("workload", "aim7-high-systime")],
    &[("workload", "aim7-shared")],
    &[("workload", "aim7-short")],
]);

/// Statements about the rwsem series.
pub(super) const RWSEM_SERIES: &[Statement] = &[
    Statement {
        text: "shared and high_systime lose when the mutex becomes an rwsem without the series",
        compared: Compared::Base {
            of: &["rwsem"],
            rows: Rows::With(&[&[("workload", "aim7-high-systime")], &[("workload", "aim7-shared")]]),
        },
        expected: Expected::Below(0.05),
    },
    Statement {
        text: "all mixes gain with the series except its last patch",
        compared: Compared::Base { of: &["preread+spin"], rows: MIXES },
        expected: Expected::Above(0.05),
    },
];

/// Statements about the last patch of the series.
pub(super) const RWSEM_SINGLE_WAKER: &[Statement] = &[
    Statement {
        text: "the single waker alone makes high_systime faster",
        compared: Compared::Variants { of: &["single-waker"], to: "base", rows: Rows::ALL },
        expected: Expected::Above(0.05),
    },
    Statement {
        text: "the rest of the series adds to this gain",
        compared: Compared::Variants {
            of: &["series"],
            to: "single-waker",
            rows: Rows::With(&[&[("smt", "off")]]),
        },
        expected: Expected::Above(0.05),
    },
];

/// Statements about the fifth version of the series.
pub(super) const RWSEM_SPIN_FIRST: &[Statement] = &[Statement {
    text: "spinning before the queue makes AIM7 faster",
    compared: Compared::Base { of: &["spin-first"], rows: MIXES },
    expected: Expected::Between(0.02, 0.08),
}];

pub(super) const OF_MTX: Rows = Rows::With(&[&[("lock", "mtx")]]);

/// Statements about find over tmpfs.
pub(super) const FREEBSD_FIND: &[Statement] = &[
    Statement {
        text: "find gains when waiters read first",
        compared: Compared::Variants { of: &["hard"], to: "without", rows: OF_MTX },
        expected: Expected::Above(0.05),
    },
    Statement {
        text: "fast paths that also read first add very little",
        compared: Compared::Variants { of: &["hard+fast"], to: "hard", rows: OF_MTX },
        expected: Expected::Alike(0.05),
    },
];

/// Statements about the build of a kernel.
pub(super) const FREEBSD_MAKE: &[Statement] = &[Statement {
    text: "the build is faster with all pre-reads",
    compared: Compared::Variants { of: &["hard+fast"], to: "without", rows: OF_MTX },
    expected: Expected::Above(0.05),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{Published, Scale, TABLES, insignificant};

    /// The published figure of this cell, if there is one.
    fn value(table: &Table, (variant, key): &Place) -> Option<Published> {
        let column = table.variants.iter().position(|v| v.name == *variant).expect("a variant");
        table.rows().iter().find(|row| row.key == *key).expect("a row").values[column]
    }

    /// The pairs of published figures that the statement compares.
    fn values(table: &Table, statement: &Statement) -> Vec<(Published, Published)> {
        let pairs = statement.pairs(table);
        assert!(!pairs.is_empty(), "{statement}");
        const BASE: Published = Published { mean: 0.0, sd: None };
        let to = |to: &Option<Place>| to.as_ref().map_or(Some(BASE), |to| value(table, to));
        pairs.iter().filter_map(|(of, base)| value(table, of).zip(to(base))).collect()
    }

    #[test]
    fn what_is_published_is_true_of_the_published_figures() {
        for &table in TABLES {
            assert!(!table.statements.is_empty(), "{}", table.name);
            for statement in table.statements {
                for (of, to) in values(table, statement) {
                    assert!(
                        statement.expected.holds(table.ratio(of.mean, to.mean)),
                        "{}: {statement}",
                        table.name
                    );
                }
            }
        }
    }

    #[test]
    fn what_counts_exceeds_two_standard_errors() {
        for &table in TABLES {
            for statement in table.statements {
                let (Expected::Above(margin)
                | Expected::Below(margin)
                | Expected::NotBelow(margin)
                | Expected::Alike(margin)
                // A published range itself states the margin.
                | Expected::Between(_, margin)) = statement.expected;
                for (of, to) in values(table, statement) {
                    assert!(margin >= insignificant(of, to), "{statement}: {}", insignificant(of, to));
                }
            }
        }
    }

    /// Whether the statement holds if the figures are changed.
    fn with(table: &Table, statement: &Statement, change: impl Fn(&Place) -> f64) -> bool {
        let figure = |variant: &str, key: &RowKey| {
            let variant = table.variants.iter().find(|v| v.name == variant)?;
            Some(change(&(variant.name, key.clone())))
        };
        statement.holds(table, figure).expect("every cell has a figure")
    }

    #[test]
    fn each_can_fail() {
        for &table in TABLES {
            for statement in table.statements {
                // A figure that is not published is taken to equal its base, or to be in the middle
                // of a published range.
                let pairs = statement.pairs(table);
                let middle = |place: &Place| match statement.expected {
                    Expected::Between(low, high) => 50.0 * (low + high),
                    _ => {
                        let pair = pairs.iter().find(|(of, _)| of == place);
                        let to = pair.and_then(|(_, to)| value(table, to.as_ref()?));
                        to.map_or(1.0, |value| value.mean)
                    }
                };
                let mean = |place: &Place| value(table, place).map_or_else(|| middle(place), |v| v.mean);
                assert!(with(table, statement, mean), "{statement}");
                let swapped = with(table, statement, |place| {
                    let other = pairs.iter().find_map(|(of, to)| match (place, to) {
                        (place, Some(to)) if place == of => Some(mean(to)),
                        (place, Some(to)) if place == to => Some(mean(of)),
                        (place, None) if place == of => Some(-mean(of)),
                        _ => None,
                    });
                    other.unwrap_or_else(|| mean(place))
                });
                let higher = with(table, statement, |place| {
                    let is_of = pairs.iter().any(|(of, _)| of == place);
                    match table.scale {
                        Scale::PercentOver(_) => mean(place) + if is_of { 8.0 } else { 0.0 },
                        _ => mean(place) * if is_of { 1.08 } else { 1.0 },
                    }
                });
                let fails = match statement.expected {
                    Expected::Alike(_) | Expected::Between(..) => !higher,
                    _ => !swapped,
                };
                assert!(fails, "{statement}");
            }
        }
    }

    #[test]
    fn margins_are_on_the_side_that_matters() {
        for (expected, true_of, false_of) in [
            (Expected::Above(0.02), 1.03, 1.01),
            (Expected::Below(0.02), 0.97, 0.99),
            (Expected::NotBelow(0.03), 0.98, 0.96),
            (Expected::NotBelow(0.03), 2.0, 0.5),
            (Expected::Alike(0.05), 1.04, 1.06),
            (Expected::Alike(0.05), 0.96, 0.94),
            (Expected::Between(0.02, 0.08), 1.03, 1.01),
            (Expected::Between(0.02, 0.08), 1.07, 1.09),
        ] {
            assert!(expected.holds(true_of) && !expected.holds(false_of), "{expected:?}");
        }
    }

    #[test]
    fn a_sentence_says_how_much_counts_and_needs_its_figures() {
        let ahead = &LOCKTORTURE[2];
        assert_eq!(ahead.to_string(), "CNA is ahead of stock from 8 threads up (by more than 2 %)");
        let table = Table::named("cna-locktorture").unwrap();
        assert_eq!(ahead.holds(table, |_, row| (row.threads() < Some(142)).then_some(1.0)), None);
        assert_eq!(ahead.holds(table, |_, _| Some(1.0)), Some(false));
    }
}
