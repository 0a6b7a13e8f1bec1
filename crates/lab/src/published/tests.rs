use super::*;
use crate::settings::{Assignment, Configuration, Group, Value};
use crate::{locks, names};

#[test]
fn every_table_parses_and_names_what_exists() {
    for table in TABLES {
        let rows = table.parse(table.file.text).unwrap();
        assert!(!rows.is_empty() && rows == table.rows());
        let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
        for row in &rows {
            for column in table.columns() {
                let setup = table.setup(&row.key, column);
                let machine = names::machine(setup.machine).unwrap();
                locks::lock(setup.lock).unwrap();
                assert!(!setup.threads.is_empty());
                let mut configuration = Configuration::new(Group::ALL);
                for &setting in &setup.settings {
                    configuration.assign(setting).unwrap();
                }
                let mut set = machine.clone();
                configuration.configure_machine(&mut set).unwrap();
                let workload = configuration.workload(setup.workload).unwrap();
                let most = workload.facts(&set).threads_max;
                assert!(setup.threads.iter().all(|threads| (1..=most).contains(threads)));
            }
        }
        let exists = |variant: &str, rows: Rows| {
            table.variants.iter().any(|v| v.name == variant) && rows.all_name_one_of(&keys)
        };
        assert!(table.fitted.iter().all(|cells| exists(cells.variant, cells.rows)), "{}", table.name);
        for cells in table.seen {
            assert!(!cells.variants.is_empty() && !cells.choice.is_empty(), "{}", table.name);
            assert!(cells.variants.iter().all(|name| exists(name, cells.rows)), "{}", table.name);
        }
    }
}

#[test]
fn rows_of_threads_are_sorted_and_no_row_comes_twice() {
    for table in TABLES {
        let rows = table.rows();
        assert!(rows.is_sorted_by_key(|row| row.key.threads()));
        for (index, row) in rows.iter().enumerate() {
            assert!(!rows[..index].iter().any(|other| other.key == row.key), "{}", row.key);
        }
    }
}

fn published(row: &Row, variant: usize) -> Published {
    row.values[variant].unwrap()
}

#[test]
fn cells_are_what_the_cover_letter_says() {
    let table = Table::named("cna-locktorture").unwrap();
    let rows = table.rows();
    assert_eq!(rows.len(), 10);
    assert_eq!(published(&rows[0], 0), Published { mean: 2.707, sd: Some(0.127) });
    assert_eq!(rows[9].key, RowKey::of_threads(142));
    assert_eq!(published(&rows[9], 2), Published { mean: 10.424, sd: Some(0.222) });
}

#[test]
fn the_loss_of_context1_is_what_the_robot_said() {
    let table = Table::named("cna-context1").unwrap();
    let rows = table.rows();
    let means: Vec<f64> = (0..3).map(|variant| published(&rows[0], variant).mean).collect();
    assert_eq!((rows.len(), rows[0].key.threads(), means), (1, Some(56), vec![1.0, 0.826, 0.99]));
    assert!((published(&rows[0], 1).mean - 3070.0 / 3715.0).abs() < 0.001);
    assert!(table.is_by_definition("stock") && !table.is_by_definition("cna"));
    let others = TABLES
        .iter()
        .filter(|table| !matches!(table.scale, Scale::RelativeToFirst | Scale::SecondsOfFirst(_)));
    assert!(others.into_iter().all(|table| !table.is_by_definition(table.variants[0].name)));
}

#[test]
fn only_what_was_named_beforehand_is_fitted() {
    let fitted = |table: &Table| -> Vec<(&str, String)> {
        let cells =
            table.rows().iter().flat_map(|row| table.variants.iter().map(move |v| (v.name, row.key.clone())));
        cells
            .filter(|(variant, row)| table.class(variant, row) == Class::Fitted)
            .map(|(variant, row)| (variant, row.label()))
            .collect()
    };
    assert_eq!(fitted(Table::named("cna-locktorture").unwrap()), [("stock", "1".to_owned())]);
    for name in ["cna-open1", "cna-lock2", "cna-readrandom"] {
        let chosen = ["1", "8", "142"].map(|threads| ("stock", threads.to_owned()));
        assert_eq!(fitted(Table::named(name).unwrap()), chosen, "{name}");
    }
    let mutex = fitted(Table::named("mutex-high-systime").unwrap());
    assert_eq!(mutex, ["8", "2", "1"].map(|nodes| ("without", format!("1100-2000/{nodes}/off"))));
    assert_eq!(fitted(Table::named("rwsem-series").unwrap()), [("preread+spin", "exim".to_owned())]);
    for (name, chosen) in [("freebsd-find", &[("hard", "mtx".to_owned())][..]), ("freebsd-make", &[])] {
        let mut fitted = fitted(Table::named(name).unwrap());
        fitted.retain(|(variant, _)| *variant != "without");
        assert_eq!(fitted, chosen, "{name}");
    }
}

#[test]
fn nothing_of_make_is_predicted() {
    let table = Table::named("freebsd-make").unwrap();
    for row in table.rows() {
        for variant in table.variants {
            assert_ne!(
                table.class(variant.name, &row.key),
                Class::Predicted,
                "{}: {}",
                row.key.label(),
                variant.name
            );
        }
    }
}

static CHANGES: File = File::new("case,sockets,one,two,two_sd\na,2,-8,16.3,0.5\nb,4,,-50,\n");

/// A table whose rows have two keys, and whose figures are compared with a lock that has no column.
pub(crate) static OF_CHANGES: Table = Table {
    name: "changes",
    source: "",
    machine: "haswell-ex-4s",
    workload: "locktorture",
    metric: "throughput",
    unit: "%",
    scale: Scale::PercentOver(|row| if row.is("case", "a") { "ttas" } else { "ticket" }),
    variants: &[
        Variant { name: "one", lock: "mcs", column: "one" },
        Variant { name: "two", lock: "clh", column: "two" },
    ],
    statements: &[],
    mean_error_max: 0.1,
    keys: &["case", "sockets"],
    adjust: |row, setup| {
        let nodes = Value::Integer(row.number("sockets") as u64);
        setup.settings.push(Assignment { setting: "machine.nodes", value: nodes });
        setup.threads = vec![2, 4];
    },
    fitted: &[Cells { variant: "one", rows: Rows::With(&[&[("case", "a"), ("sockets", "2")]]) }],
    seen: &[],
    file: &CHANGES,
};

#[test]
fn what_is_not_in_the_document_stays_empty() {
    let rows = OF_CHANGES.rows();
    assert_eq!(rows[0].values[1], Some(Published { mean: 16.3, sd: Some(0.5) }));
    assert_eq!(rows[1].values, [None, Some(Published { mean: -50.0, sd: None })]);
    let refused = |text| OF_CHANGES.parse(text).unwrap_err();
    assert!(refused("case,sockets,one,two\na,2,many,1\n").starts_with("one: "));
    assert_eq!(refused("case,one,two\na,1,1\n"), "no column `sockets`");
}

#[test]
fn a_row_says_what_is_simulated_for_it() {
    let table = &OF_CHANGES;
    let rows = table.rows();
    assert_eq!(table.columns(), [Column::Variant(0), Column::Variant(1), Column::Base]);
    let setups: Vec<_> =
        table.columns().into_iter().map(|column| table.setup(&rows[1].key, column)).collect();
    assert_eq!(setups.iter().map(|setup| setup.lock).collect::<Vec<_>>(), ["mcs", "clh", "ticket"]);
    let four = [Assignment { setting: "machine.nodes", value: Value::Integer(4) }];
    assert!(setups.iter().all(|setup| setup.settings == four && setup.threads == [2, 4]));
    assert_eq!(table.class("one", &rows[0].key), Class::Fitted);
    assert_eq!(table.class("one", &rows[1].key), Class::Predicted);
    assert!((table.ratio(8.0, -10.0) - 1.2).abs() < 1e-12);
}

#[test]
fn an_unknown_table_is_an_error_that_lists_them() {
    assert!(Table::named("cna").unwrap_err().to_string().contains("cna-locktorture"));
}
