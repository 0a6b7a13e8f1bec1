//! The description of each lock: its word, its waiters, its fairness and its source.
//!
//! `nearlock list locks` shows it, and `docs/guide/locks.md` is made of it ([`page`]).

mod freebsd;
mod linux;
mod near;
mod page;

use nearlock_collection::subjects::Subject;

pub use page::page;

/// An algorithm of the list.
#[derive(Debug)]
struct Description {
    /// Its name.
    lock: &'static str,
    /// Its size, and what it stores.
    word: &'static str,
    /// What a waiter needs, and how it waits.
    waiters: &'static str,
    /// Which threads may overtake a waiter, and for how long.
    fairness: &'static str,
    /// The publication or the program that it comes from.
    source: &'static str,
}

/// Presets whose waiters or fairness are not those of their algorithm.
#[derive(Debug)]
struct Variation {
    /// Their names.
    locks: &'static [&'static str],
    waiters: &'static str,
    fairness: &'static str,
}

/// The description of one lock.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Its size, and what it stores.
    pub word: &'static str,
    /// What a waiter needs, and how it waits.
    pub waiters: &'static str,
    /// Which threads may overtake a waiter, and for how long.
    pub fairness: &'static str,
    /// The publication or the program that it comes from.
    pub source: &'static str,
}

impl Described {
    /// The description of this lock. Controls have none.
    pub fn of(lock: &Subject) -> Option<Self> {
        let Description { word, waiters, fairness, source, .. } = of_algorithm(lock.algorithm.name)?;
        let described = Self { word, waiters, fairness, source };
        Some(match presets().find(|variation| variation.locks.contains(&lock.name)) {
            Some(Variation { waiters, fairness, .. }) => Self { waiters, fairness, ..described },
            None => described,
        })
    }
}

fn algorithms() -> impl Iterator<Item = &'static Description> {
    [near::ALGORITHMS, linux::ALGORITHMS, freebsd::ALGORITHMS].into_iter().flatten()
}

fn of_algorithm(name: &str) -> Option<&'static Description> {
    algorithms().find(|description| description.lock == name)
}

fn presets() -> impl Iterator<Item = &'static Variation> {
    [near::PRESETS, linux::PRESETS, freebsd::PRESETS].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_working_lock_is_described() {
        for lock in Subject::working() {
            let Some(Described { word, waiters, fairness, source }) = Described::of(lock) else {
                panic!("{} has no description in crates/lab/src/description", lock.name);
            };
            for text in [word, waiters, fairness, source] {
                assert!(
                    !text.is_empty() && !text.contains("  ") && !text.contains('|'),
                    "{}: {text}",
                    lock.name
                );
            }
        }
    }

    #[test]
    fn every_description_is_of_a_lock() {
        for Description { lock, .. } in algorithms() {
            let found = Subject::named(lock).unwrap_or_else(|| panic!("no lock `{lock}`"));
            assert_eq!(found.algorithm.name, *lock, "a preset has a `Variation`");
        }
        for lock in presets().flat_map(|variation| variation.locks) {
            let found = Subject::named(lock).unwrap_or_else(|| panic!("no lock `{lock}`"));
            assert_ne!(found.algorithm.name, *lock, "an algorithm has a `Description`");
        }
    }

    #[test]
    fn a_preset_has_the_word_and_the_source_of_its_algorithm() {
        let described = |name| Described::of(Subject::named(name).expect("on the list")).expect("described");
        let (algorithm, preset) = (described("qspinlock"), described("qspinlock-park"));
        assert_eq!((algorithm.word, algorithm.source), (preset.word, preset.source));
        assert_ne!(algorithm.waiters, preset.waiters);
        assert!(Described::of(Subject::named("lock-busted").expect("on the list")).is_none());
    }
}
