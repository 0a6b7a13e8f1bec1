//! A digest of the constants of all tables. A page that was made with other constants is out of
//! date.

use std::fmt::Write as _;

use super::{Effort, ReproduceError, Reproduction, Vary};
use crate::cache;
use crate::published::{Column, TABLES, Table};

/// A digest of the simulations for the published tables, with their constants and with the classes
/// of the cells. It does not include the sources of locks and simulator, which change far more
/// often than a figure does.
///
/// # Errors
///
/// If a table cannot be simulated.
pub fn constants() -> Result<String, ReproduceError> {
    let texts: Result<Vec<_>, _> = TABLES.iter().copied().map(of_table).collect();
    Ok(cache::digest(&texts?.concat()))
}

fn of_table(table: &'static Table) -> Result<String, ReproduceError> {
    let reproduction =
        Reproduction { table, effort: Effort::Full, seeds: Some(1), set: &[], vary: Vary::Nothing };
    let rows = table.rows();
    let mut text = format!("{}\n", table.name);
    let planned = reproduction.plan(rows)?;
    for (simulation, place) in planned.simulations.iter().zip(&planned.places) {
        let row = &rows[place.row];
        let (class, published) = match place.column {
            Column::Variant(variant) => {
                let name = table.variants[variant].name;
                (Some(table.class(name, &row.key)), row.values[variant])
            }
            Column::Base => (None, None),
        };
        _ = writeln!(text, "{} {class:?} {published:?} {}", row.key.label(), cache::described(simulation));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evidence_is_that_of_the_present_constants() {
        let constants = constants().expect("all tables can be simulated");
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/laboratory/evidence.md");
        let text = std::fs::read_to_string(page).expect("docs/laboratory/evidence.md");
        assert!(
            text.contains(&constants),
            "docs/laboratory/evidence.md was made with other constants than {constants}: \
             nearlock reproduce --band --out DIR && cp DIR/evidence.md DIR/evidence.svg docs/laboratory/"
        );
    }

    #[test]
    fn constants_are_those_of_all_cells() {
        let text =
            of_table(Table::named("mutex-high-systime").expect("a table")).expect("it can be simulated");
        assert!(text.contains("Some(Fitted)") && text.contains("Some(Seen)"));
        assert!(text.contains("linux-counter-mutex-no-preread"));
        assert_ne!(cache::digest(&text), cache::digest(&text.replacen("Seen", "Predicted", 1)));
    }
}
