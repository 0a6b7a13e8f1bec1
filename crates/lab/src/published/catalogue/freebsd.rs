//! Tables of FreeBSD's locks, of 2015: find over tmpfs, and a kernel's build, with and without the pre-reads.

use nearlock_core::subjects::Subject;

use super::super::{Cells, RowKey, Rows, Scale, Setup, Table, Variant, statements};

/// Traversers, and compilers: as many as the machine has hardware threads.
const TASKS: usize = 40;

/// What the variants' names begin with: a row puts its own lock in its place.
const MTX: &str = "freebsd-mtx-";

/// The same form of the lock that the row names.
fn of_lock(row: &RowKey, setup: &mut Setup) {
    let lock = row.get("lock").map(ToString::to_string).unwrap_or_default();
    let form = setup.lock.strip_prefix(MTX).expect("a form of the mutex");
    setup.lock = Subject::named(&format!("freebsd-{lock}-{form}")).expect("a form that each lock has").name;
    setup.threads = vec![TASKS];
}

const SOURCE: &str =
    "Guzik, \"microoptimize by trying to avoid locking a locked mutex\", freebsd-current, November 2015";

pub(super) const FIND: Table = Table {
    name: "freebsd-find",
    source: SOURCE,
    machine: "ivybridge-ep-2s",
    workload: "find-tmpfs",
    metric: "throughput",
    unit: "relative to FreeBSD 10.1",
    scale: Scale::RelativeToFirst,
    keys: &["lock"],
    adjust: of_lock,
    variants: &[
        Variant { name: "without", lock: "freebsd-mtx-no-preread", column: "without" },
        Variant { name: "hard", lock: "freebsd-mtx-hard-preread", column: "hard_path" },
        Variant { name: "hard+fast", lock: "freebsd-mtx-preread", column: "both" },
        Variant { name: "fast", lock: "freebsd-mtx-fast-preread", column: "fast_path" },
        Variant { name: "fcmpset", lock: "freebsd-mtx-fcmpset", column: "fcmpset" },
    ],
    statements: statements::FREEBSD_FIND,
    mean_error_max: 0.1,
    fitted: &[Cells { variant: "hard", rows: Rows::With(&[&[("lock", "mtx")]]) }],
    seen: &[],
    text: include_str!("../../../published/freebsd_find.csv"),
};

pub(super) const MAKE: Table = Table {
    name: "freebsd-make",
    source: SOURCE,
    workload: "make-j",
    metric: "wall time",
    unit: "s; without: as published",
    scale: Scale::SecondsOfFirst(135.0),
    keys: &["lock"],
    adjust: of_lock,
    variants: &[
        Variant { name: "without", lock: "freebsd-mtx-no-preread", column: "without" },
        Variant { name: "hard", lock: "freebsd-mtx-hard-preread", column: "hard_path" },
        Variant { name: "hard+fast", lock: "freebsd-mtx-preread", column: "both" },
        Variant { name: "fcmpset", lock: "freebsd-mtx-fcmpset", column: "fcmpset" },
    ],
    statements: statements::FREEBSD_MAKE,
    // A gain of 7.4 % may be a factor of 1.5 off.
    mean_error_max: 0.035,
    fitted: &[],
    seen: &[],
    text: include_str!("../../../published/freebsd_make.csv"),
    ..FIND
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Column;

    #[test]
    fn a_row_puts_its_lock_in_the_place_of_the_mutex() {
        let rows = FIND.rows();
        let locks: Vec<_> = (0..FIND.variants.len())
            .map(|variant| FIND.setup(&rows[2].key, Column::Variant(variant)).lock)
            .collect();
        let forms = ["no-preread", "hard-preread", "preread", "fast-preread", "fcmpset"];
        assert_eq!(locks, forms.map(|form| format!("freebsd-rw-{form}")));
    }

    #[test]
    fn what_is_published_is_what_the_message_says() {
        let of = |table: &Table, variant: &str| {
            let index = table.variants.iter().position(|v| v.name == variant).expect("a variant");
            table.rows()[0].values[index].map(|value| value.mean)
        };
        assert_eq!((of(&FIND, "hard"), of(&FIND, "hard+fast")), (Some(1.4), None));
        assert_eq!((of(&MAKE, "without"), of(&MAKE, "hard+fast")), (Some(135.0), Some(125.0)));
        assert!(MAKE.is_by_definition("without"));
        // A shorter time is more work in the same.
        assert!((MAKE.ratio(125.0, 135.0) - 1.08).abs() < 1e-12);
    }
}
