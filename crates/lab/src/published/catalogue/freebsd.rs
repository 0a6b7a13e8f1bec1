//! Tables of FreeBSD's locks of 2015: find over tmpfs, and the build of a kernel, with and without
//! the pre-reads.

use nearlock_collection::subjects::Subject;

use super::super::{Cells, RowKey, Rows, Scale, SeenCells, Setup, Table, Variant, statements};

/// The number of find processes, or of compilers: one for each hardware thread of the machine.
const TASKS: usize = 40;

/// The prefix of the variants' names. A row replaces it by that of its own lock.
const MTX: &str = "freebsd-mtx-";

/// A lockmgr of that time has no fast paths, so pre-reads in fast paths make no difference to it.
const OF_LOCKMGR: &[(&str, &str)] = &[("hard-preread", "preread"), ("fast-preread", "no-preread")];

/// The same form of the lock that the row names.
fn of_lock(row: &RowKey, setup: &mut Setup) {
    let lock = row.word("lock");
    let mut form = setup.lock.strip_prefix(MTX).expect("a form of the mutex");
    if lock == "lockmgr"
        && let Some((_, same)) = OF_LOCKMGR.iter().find(|(name, _)| *name == form)
    {
        form = same;
    }
    setup.lock = Subject::named(&format!("freebsd-{lock}-{form}")).expect("a form that each lock has").name;
    setup.threads = vec![TASKS];
}

const FIND_CHOICES: &str =
    "machine.same-socket-bypasses, find-tmpfs.section-ns, and find-tmpfs.round-ns among the values that fit";

const MAKE_CHOICES: &str = "machine.same-socket-bypasses, how many pages a build touches, that they are given back \
     when a process ends, and how long a section is";

const SOURCE: &str =
    "Guzik, \"microoptimize by trying to avoid locking a locked mutex\", freebsd-current, November 2015";

pub(super) static FIND: Table = Table {
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
    fitted: &[Cells { variant: "hard", rows: statements::OF_MTX }],
    seen: &[SeenCells { variants: &["hard+fast"], rows: statements::OF_MTX, choice: FIND_CHOICES }],
    file: published!("freebsd_find.csv"),
};

pub(super) static MAKE: Table = Table {
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
    // With this bound a gain of 7.4 % may be wrong by a factor of 1.5.
    mean_error_max: 0.035,
    fitted: &[],
    seen: &[SeenCells { variants: &["hard", "hard+fast", "fcmpset"], rows: Rows::ALL, choice: MAKE_CHOICES }],
    file: published!("freebsd_make.csv"),
    ..FIND
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Column;

    #[test]
    fn a_row_puts_its_lock_in_the_place_of_the_mutex() {
        let rows = FIND.rows();
        let locks = |row: usize| -> Vec<_> {
            let columns = (0..FIND.variants.len()).map(Column::Variant);
            columns.map(|column| FIND.setup(&rows[row].key, column).lock).collect()
        };
        let forms = ["no-preread", "hard-preread", "preread", "fast-preread", "fcmpset"];
        assert_eq!(locks(2), forms.map(|form| format!("freebsd-rw-{form}")));
        let forms = ["no-preread", "preread", "preread", "no-preread", "fcmpset"];
        assert_eq!(locks(4), forms.map(|form| format!("freebsd-lockmgr-{form}")));
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
        // A shorter time means more work in the same time.
        assert!((MAKE.ratio(125.0, 135.0) - 1.08).abs() < 1e-12);
    }
}
