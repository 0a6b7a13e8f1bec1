//! What publications say of their tables: sentences, each with what it asks of the figures.
//!
//! A difference counts as an effect where it exceeds two standard errors: where deviations over 25 runs are
//! published that is up to 2 %, and elsewhere 5 %. What is said to be alike, or not to fall, may differ by a
//! little more than that.

use std::fmt;

/// What a publication says of its figures.
#[derive(Debug)]
pub struct Statement {
    /// The sentence.
    pub text: &'static str,
    compared: Compared,
    expected: Expected,
}

/// Which cells are compared with which.
#[derive(Debug)]
enum Compared {
    /// Each of these variants with this one, at each of these numbers of threads.
    Variants { of: &'static [&'static str], to: &'static str, threads: &'static [usize] },
    /// Each of these variants, at one number of threads with itself at another.
    Threads { variants: &'static [&'static str], of: usize, to: usize },
}

/// What is expected of the one cell divided by the other. 0.02 is 2 %.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Greater than 1 by more than this.
    Above(f64),
    /// Less than 1 by more than this.
    Below(f64),
    /// Not less than 1 by more than this.
    NotBelow(f64),
    /// Within so much of 1.
    Alike(f64),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, share) = match self {
            Expected::Above(share) | Expected::Below(share) => ("by more than", share),
            Expected::NotBelow(share) => ("by no more than", share),
            Expected::Alike(share) => ("within", share),
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
        }
    }
}

/// The sentence, and how much counts.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.expected)
    }
}

/// A cell: variant and number of threads.
type Place = (&'static str, usize);

impl Statement {
    /// Whether it is true of these figures, given by variant and number of threads; `None` if one that it is
    /// about is missing.
    pub fn holds(&self, figure: impl Fn(&str, usize) -> Option<f64>) -> Option<bool> {
        let figure = |(variant, threads)| figure(variant, threads);
        self.pairs().into_iter().try_fold(true, |holds, (of, to)| {
            let ratio = figure(of)? / figure(to)?;
            Some(holds && self.expected.holds(ratio))
        })
    }

    /// The cells that it compares.
    fn pairs(&self) -> Vec<(Place, Place)> {
        match self.compared {
            Compared::Variants { of, to, threads } => of
                .iter()
                .flat_map(|&of| threads.iter().map(move |&threads| ((of, threads), (to, threads))))
                .collect(),
            Compared::Threads { variants, of, to } => {
                variants.iter().map(|&variant| ((variant, of), (variant, to))).collect()
            }
        }
    }
}

const BOTH: &[&str] = &["cna-wo-sro", "cna"];
const FROM_8: &[usize] = &[8, 16, 32, 36, 72, 108, 142];

/// Of the locktorture table.
pub(super) const LOCKTORTURE: &[Statement] = &[
    Statement {
        text: "CNA and stock are alike at 1 and 2 threads",
        compared: Compared::Variants { of: BOTH, to: "stock", threads: &[1, 2] },
        expected: Expected::Alike(0.05),
    },
    Statement {
        text: "CNA is ahead of stock at 4 threads",
        compared: Compared::Variants { of: BOTH, to: "stock", threads: &[4] },
        expected: Expected::Above(0.02),
    },
    Statement {
        text: "CNA is ahead of stock from 8 threads up",
        compared: Compared::Variants { of: BOTH, to: "stock", threads: FROM_8 },
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
        compared: Compared::Variants { of: &["cna"], to: "cna-wo-sro", threads: FROM_8 },
        expected: Expected::Alike(0.05),
    },
];

/// Of context1.
pub(super) const CONTEXT1: &[Statement] = &[
    Statement {
        text: "without shuffle reduction CNA loses against stock",
        compared: Compared::Variants { of: &["cna-wo-sro"], to: "stock", threads: &[56] },
        expected: Expected::Below(0.05),
    },
    Statement {
        text: "with shuffle reduction CNA is ahead of CNA without",
        compared: Compared::Variants { of: &["cna"], to: "cna-wo-sro", threads: &[56] },
        expected: Expected::Above(0.05),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{TABLES, Table, Value};

    fn value(table: &Table, (variant, threads): Place) -> Value {
        let column = table.variants.iter().position(|v| v.name == variant).expect("a variant");
        table.rows().into_iter().find(|row| row.threads == threads).expect("a row").values[column]
    }

    #[test]
    fn what_is_published_is_true_of_the_published_figures() {
        for table in TABLES {
            assert!(!table.statements.is_empty(), "{}", table.name);
            for statement in table.statements {
                // This also finds cells that the table does not have.
                let holds = statement
                    .pairs()
                    .into_iter()
                    .all(|(of, to)| statement.expected.holds(value(table, of).mean / value(table, to).mean));
                assert!(holds, "{}: {statement}", table.name);
            }
        }
    }

    #[test]
    fn what_counts_exceeds_two_standard_errors() {
        let runs = 25.0_f64;
        for table in TABLES {
            for statement in table.statements {
                let (Expected::Above(margin)
                | Expected::Below(margin)
                | Expected::NotBelow(margin)
                | Expected::Alike(margin)) = statement.expected;
                for (of, to) in statement.pairs() {
                    // Relative, of the ratio of two means.
                    let [of, to] = [of, to].map(|place| {
                        let Value { mean, sd } = value(table, place);
                        sd.map(|sd| sd / runs.sqrt() / mean)
                    });
                    let two_errors = of.zip(to).map_or(0.05, |(of, to)| 2.0 * of.hypot(to));
                    assert!(margin >= two_errors, "{statement}: {two_errors}");
                }
            }
        }
    }

    /// Whether the statement holds if figures are changed.
    fn with(table: &Table, statement: &Statement, change: impl Fn(Place) -> f64) -> bool {
        let places: Vec<Place> = table
            .variants
            .iter()
            .flat_map(|variant| table.rows().into_iter().map(|row| (variant.name, row.threads)))
            .collect();
        let figure = |variant: &str, threads: usize| {
            places.iter().find(|&&place| place == (variant, threads)).map(|&place| change(place))
        };
        statement.holds(figure).expect("every cell has a figure")
    }

    #[test]
    fn each_can_fail() {
        for table in TABLES {
            let mean = |place| value(table, place).mean;
            for statement in table.statements {
                assert!(with(table, statement, mean), "{statement}");
                let pairs = statement.pairs();
                let swapped = with(table, statement, |place| {
                    let other = pairs.iter().find_map(|&(of, to)| match place {
                        place if place == of => Some(to),
                        place if place == to => Some(of),
                        _ => None,
                    });
                    mean(other.unwrap_or(place))
                });
                let higher = with(table, statement, |place| {
                    mean(place) * if pairs.iter().any(|&(of, _)| of == place) { 1.08 } else { 1.0 }
                });
                let fails = match statement.expected {
                    Expected::Alike(_) => !higher,
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
        ] {
            assert!(expected.holds(true_of) && !expected.holds(false_of), "{expected:?}");
        }
    }

    #[test]
    fn a_sentence_says_how_much_counts_and_needs_its_figures() {
        let ahead = &LOCKTORTURE[2];
        assert_eq!(ahead.to_string(), "CNA is ahead of stock from 8 threads up (by more than 2 %)");
        assert_eq!(ahead.holds(|_, threads| (threads < 142).then_some(1.0)), None);
    }
}
