//! The known names that are nearest to a mistyped name.

use strsim::osa_distance;

/// The maximum number of names that are shown.
pub const SHOWN: usize = 3;

/// How a name resembles another one, from the closest to the weakest resemblance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Resemblance {
    /// The names have the same letters and digits.
    Same,
    /// The number of letters that were inserted, left out, replaced or exchanged with their
    /// neighbour.
    Slips(usize),
    /// One name begins with the other.
    Begins,
    /// A part between hyphens of one name begins with a part of the other, or differs from it by a
    /// slip.
    Part,
    /// One name contains the other.
    Contains,
}

/// A name without case, hyphens and path separators. `CNA`, `Spin_Lock` and `linux::Mutex` become
/// `cna`, `spinlock` and `linuxmutex`.
pub fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The [`SHOWN`] nearest known names, the nearest first. Empty if no name resembles it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut near: Vec<_> =
        known.into_iter().filter_map(|known| Some((resemblance(name, known)?, known))).collect();
    // The sort is stable: names with the same resemblance keep the order of the list.
    near.sort_by_key(|(resemblance, _)| *resemblance);
    near.truncate(SHOWN);
    near.into_iter().map(|(_, known)| known).collect()
}

fn resemblance(name: &str, known: &str) -> Option<Resemblance> {
    let (given, whole) = (folded(name), folded(known));
    if given.is_empty() {
        return None;
    }
    if given == whole {
        return Some(Resemblance::Same);
    }
    let slips = osa_distance(&given, &whole);
    if slips <= slips_max(&given) {
        return Some(Resemblance::Slips(slips));
    }
    // Too many names begin with the same one or two letters.
    if given.chars().count() >= 2 && (whole.starts_with(&given) || given.starts_with(&whole)) {
        return Some(Resemblance::Begins);
    }
    let parts = |text: &str| text.split(['-', '.', '_', ':']).map(folded).collect::<Vec<_>>();
    let is_near = |one: &String, other: &String| {
        let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
        let begins = short.chars().count() >= 2 && long.starts_with(short.as_str());
        begins || short.chars().count() >= 3 && osa_distance(one, other) <= 1
    };
    let (own, others) = (parts(name), parts(known));
    if own.iter().any(|part| others.iter().any(|other| is_near(part, other))) {
        return Some(Resemblance::Part);
    }
    let contains = given.chars().count() >= 3 && (whole.contains(&given) || given.contains(&whole));
    contains.then_some(Resemblance::Contains)
}

/// The maximum number of slips in a name of this length: none in one or two letters, otherwise one
/// plus one for every five letters.
fn slips_max(name: &str) -> usize {
    match name.chars().count() {
        ..=2 => 0,
        letters => 1 + letters / 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: [&str; 8] =
        ["tas", "ticket", "mcs", "qspinlock", "qspinlock-park", "cna", "cna-v13", "linux-mutex"];

    #[test]
    fn the_nearest_names_come_first_and_are_few() {
        for (name, expected) in [
            ("qspinlok", &["qspinlock", "qspinlock-park"][..]),
            ("QSpinLock", &["qspinlock", "qspinlock-park"]),
            ("cnn", &["cna"]),
            ("msc", &["mcs"]),
            ("cna_v14", &["cna-v13", "cna"]),
            ("mutex", &["linux-mutex"]),
            ("linux::Mutx", &["linux-mutex"]),
            ("spinlock", &["qspinlock"]),
            ("tickt", &["ticket"]),
        ] {
            let near = nearest(name, LOCKS);
            assert_eq!(near[..expected.len()], *expected, "{name}: {near:?}");
            assert!(near.len() <= SHOWN, "{name}: {near:?}");
        }
    }

    #[test]
    fn nonsense_is_near_to_nothing() {
        for nonsense in ["", "-", "zzz", "\u{1f512}", "x"] {
            assert!(nearest(nonsense, LOCKS).is_empty(), "{nonsense}: {:?}", nearest(nonsense, LOCKS));
        }
    }
}
