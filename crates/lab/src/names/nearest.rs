//! The known names that are nearest to a mistyped name.

use strsim::osa_distance;

/// The maximum number of names that are shown.
const SHOWN: usize = 3;

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
    /// The description of the known name contains the other.
    Described,
}

/// A known name, and where a user may have it from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// The name.
    pub name: &'a str,
    /// The text that is compared with a mistyped name: the name, or another spelling of it.
    pub spelling: &'a str,
    /// A description, in which the mistyped name may occur. May be empty.
    pub description: &'a str,
}

impl<'a> Known<'a> {
    /// A name without another spelling and without a description.
    pub const fn name(name: &'a str) -> Self {
        Self::spelled(name, name)
    }

    /// Another spelling of a name.
    pub const fn spelled(name: &'a str, spelling: &'a str) -> Self {
        Self { name, spelling, description: "" }
    }
}

/// A name without case, hyphens and path separators. `CNA`, `Spin_Lock` and `linux::Mutex` become
/// `cna`, `spinlock` and `linuxmutex`.
pub fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The `SHOWN` nearest known names, each once, the nearest first. Empty if no name resembles it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = Known<'a>>) -> Vec<Known<'a>> {
    let mut near: Vec<_> = known
        .into_iter()
        .filter_map(|known| {
            let of_name = resemblance(name, known.spelling);
            // `some_crate::Mutex` may mean another `Mutex`.
            let of_type = name.rsplit_once("::").and_then(|(_, last)| resemblance(last, known.spelling));
            let nearest = of_name.into_iter().chain(of_type).min();
            Some((nearest.or_else(|| described(name, known.description))?, known))
        })
        .collect();
    // Names of the same group are nearer: `rw-section.lines` may mean another `rw-section.`. The
    // sort is stable: names with the same resemblance keep the order of the list.
    let group = |name: &'_ str| name.rsplit_once('.').map(|(group, _)| folded(group));
    let is_other = |known: &Known| group(name).is_none() || group(name) != group(known.spelling);
    near.sort_by_key(|(resemblance, known)| (*resemblance, is_other(known)));
    let mut names = Vec::new();
    for (_, known) in near {
        if names.len() < SHOWN && names.iter().all(|other: &Known| other.name != known.name) {
            names.push(known);
        }
    }
    names
}

/// Whether words of the description begin with the name.
fn described(name: &str, description: &str) -> Option<Resemblance> {
    let given = folded(name);
    let mut words = description.match_indices(char::is_alphanumeric).map(|(at, _)| at);
    let is_begin = |&at: &usize| !description[..at].ends_with(char::is_alphanumeric);
    let begins = |at: usize| folded(&description[at..]).starts_with(&given);
    let is_found = given.chars().count() >= 3 && words.any(|at| is_begin(&at) && begins(at));
    is_found.then_some(Resemblance::Described)
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
        // Three letters are too few: `foo` is not near to `for`.
        begins || short.chars().count() >= 4 && osa_distance(one, other) <= 1
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

    fn nearest_lock(name: &str) -> Vec<&str> {
        nearest(name, LOCKS.map(Known::name)).iter().map(|known| known.name).collect()
    }

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
            let near = nearest_lock(name);
            assert_eq!(near[..expected.len()], *expected, "{name}: {near:?}");
            assert!(near.len() <= SHOWN, "{name}: {near:?}");
        }
    }

    #[test]
    fn nonsense_is_near_to_nothing() {
        for nonsense in ["", "-", "zzz", "\u{1f512}", "x", "foo"] {
            assert!(nearest_lock(nonsense).is_empty(), "{nonsense}: {:?}", nearest_lock(nonsense));
        }
    }

    #[test]
    fn a_name_is_found_by_its_spellings_and_its_description_once() {
        let known = [
            Known::spelled("glibc-mutex", "pthread-mutex"),
            Known::name("glibc-mutex"),
            Known { description: "four Raspberry Pi, Arm", ..Known::name("quad") },
        ];
        for (name, expected) in [
            ("pthread", "glibc-mutex"),
            ("libc::pthread_mutex", "glibc-mutex"),
            ("raspberry-pi", "quad"),
            ("arm", "quad"),
        ] {
            let near: Vec<_> = nearest(name, known).iter().map(|known| known.name).collect();
            assert_eq!(near, [expected], "{name}");
        }
        for nonsense in ["aspberry", "ar", "pi arm 2"] {
            assert!(nearest(nonsense, known).is_empty(), "{nonsense}");
        }
    }
}
