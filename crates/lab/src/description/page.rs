//! The page of all locks.

use std::fmt::Write;

use nearlock_collection::subjects::{ALGORITHMS, Family, SUBJECTS};

use super::{Description, Variation, of_algorithm, presets};

/// `docs/guide/locks.md`. `cargo xtask locks` writes it.
pub fn page() -> String {
    let working = ALGORITHMS.iter().filter(|algorithm| algorithm.family != Family::Control);
    let of_algorithms = working.filter_map(|algorithm| {
        let Description { lock, word, waiters, fairness, source } = of_algorithm(algorithm.name)?;
        Some([
            code(lock),
            (*word).to_owned(),
            (*waiters).to_owned(),
            (*fairness).to_owned(),
            (*source).to_owned(),
        ])
    });
    let of_presets = presets().map(|Variation { locks, waiters, fairness }| {
        let locks: Vec<_> = locks.iter().map(|lock| code(lock)).collect();
        [locks.join(", "), (*waiters).to_owned(), (*fairness).to_owned()]
    });
    let controls = SUBJECTS.iter().filter(|subject| subject.family() == Family::Control);
    let of_controls = controls.map(|control| [code(control.name), control.summary.to_owned()]);
    include_str!("page.md")
        .replace(
            "{algorithms}",
            &table(["lock", "word", "state of a waiter", "fairness", "source"], of_algorithms),
        )
        .replace("{presets}", &table(["preset", "state of a waiter", "fairness"], of_presets))
        .replace("{controls}", &table(["control", "fault"], of_controls))
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(COLUMNS));
    for row in rows {
        let _ = writeln!(table, "| {} |", row.join(" | "));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_is_made_of_the_descriptions() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/locks.md");
        let there = fs::read_to_string(path).expect("the page is there");
        let made = page();
        let differs = there.lines().zip(made.lines()).find(|(there, made)| there != made);
        assert_eq!(differs, None, "`cargo xtask locks` writes the page");
        assert_eq!(there.len(), made.len(), "`cargo xtask locks` writes the page");
    }
}
