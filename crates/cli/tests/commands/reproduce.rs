//! Results of `reproduce`, with one seed and a short window. The tests cover the report, not the
//! simulator.

use std::fs;
use std::path::Path;

use crate::support::{assert_fits, assert_refused, json_file, keys, nearlock, sorted};
use nearlock_lab::band::PARAMETERS;
use nearlock_lab::mechanisms::MECHANISMS;
use nearlock_lab::published::{RowKey, Table};

const REPRODUCE: &str = "reproduce cna-locktorture --quick --seeds 1 --set simulation.warm-up-ns=20000 \
                         --set simulation.window-ns=100000";

/// The class of a cell in the table.
fn class(cell: &serde_json::Value) -> &'static str {
    let table = Table::named("cna-locktorture").expect("a table");
    let threads = cell["row"]["threads"].as_u64().expect("a number");
    let row = RowKey::of_threads(threads as usize);
    table.class(cell["variant"].as_str().expect("a name"), &row).name()
}

#[test]
fn json_has_the_documented_keys_and_every_cell() {
    let run = nearlock(&format!("{REPRODUCE} --format json"));
    assert_eq!(run.code, 0, "{}", run.err);
    let documented = "table row variant metric unit published published_sd simulated low high error class";
    assert_eq!(keys(&run.out), sorted(documented));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(rows.len(), 30);
    let last = &rows[29];
    assert_eq!(last["row"], serde_json::json!({"threads": 142}));
    assert_eq!((last["variant"].as_str(), last["published"].as_f64()), (Some("cna"), Some(10.424)));
    for row in rows {
        // A band is computed only on request.
        assert!(row["low"].is_null() && row["high"].is_null(), "{row}");
        let (simulated, published) = (row["simulated"].as_f64(), row["published"].as_f64());
        let (Some(simulated), Some(published), Some(error)) = (simulated, published, row["error"].as_f64())
        else {
            panic!("not all are numbers: {row}");
        };
        assert!((simulated / published - 1.0 - error).abs() < 1e-9, "{row}");
        assert_eq!(row["class"], class(&row), "{row}");
    }
}

#[test]
fn help_says_what_a_band_is_made_of_and_what_a_mechanism_is() {
    let help = nearlock("reproduce --help").out;
    assert_fits(&help);
    for parameter in PARAMETERS.iter().chain(MECHANISMS) {
        assert!(help.contains(&format!("  {}: ", parameter.setting)), "{}: {help}", parameter.setting);
    }
}

#[test]
fn a_setting_applies_to_every_cell_and_is_shown() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reproduced");
    let slow = format!("{REPRODUCE} --set locktorture.section-ns=5000 --out {}", directory.display());
    let run = nearlock(&slow);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_fits(&run.out);
    let set = "Set: simulation.warm-up-ns=20000, simulation.window-ns=100000, locktorture.section-ns=5000.";
    assert!(run.out.contains(set), "{}", run.out);
    let read = |file: &str| fs::read_to_string(directory.join(file)).expect("was written");
    assert!(read("reproduce-cna-locktorture.svg").contains("locktorture.section-ns=5000."));
    let json = read("reproduce-cna-locktorture.json");
    let (_, cells) = json_file(&json);
    assert_eq!(cells.len(), 30);
    for cell in cells {
        // Sections of 5 us permit at most 0.6 of 1e7 operations in 30 s.
        assert!(cell["simulated"].as_f64() < Some(0.6), "{cell}");
        assert_eq!(cell["class"], class(&cell), "classes are those of the model as it is: {cell}");
    }
}

#[test]
fn a_wrong_setting_is_refused_before_anything_is_simulated() {
    let reproduce = "reproduce cna-locktorture";
    for (setting, expected) in [
        ("machine.nodes=2", "a row of 108 threads, and haswell-ex-4s as set has 72 CPUs"),
        ("machine.colour=red", "colour"),
        ("cna-v13.treshold-ns=1", "did you mean `cna-v13.threshold-ns`"),
        ("threshold", "NAME.KEY=VALUE"),
    ] {
        assert_refused(&format!("{reproduce} --set {setting}"), &[expected]);
    }
}

#[test]
fn a_failure_comes_with_the_command_that_repeats_it() {
    // Every waiter of a first-come-first-served lock waits for more than a nanosecond.
    let run = nearlock(&format!("{REPRODUCE} --set simulation.starvation-ns=1"));
    assert_eq!(run.code, 1, "{}", run.err);
    let mut lines = run.err.lines();
    let failure = lines.next().expect("a failure");
    assert!(failure.starts_with("FAILURE: ") && failure.contains("starvation"), "{}", run.err);
    let command = lines.next().and_then(|line| line.strip_prefix("repeat it with: nearlock "));
    let again = nearlock(command.expect("a command"));
    assert_eq!((again.code, again.err.lines().next()), (1, Some(failure)), "{}", again.err);
}

#[test]
fn published_statements_are_compared_with_the_figures() {
    let run = nearlock(REPRODUCE);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_fits(&run.out);
    let (_, words) = run.out.split_once("\npublished statements").expect("the sentences");
    for statement in Table::named("cna-locktorture").expect("a table").statements {
        assert!(words.contains(statement.text), "{}: {words}", statement.text);
    }
    // A lock that ignores NUMA nodes has no advantage.
    let run = nearlock(&format!("{REPRODUCE} --set numa.mode=off"));
    let line = "CNA is ahead of stock from 8 threads up (by more than 2 %): DOES NOT HOLD\n";
    assert!(run.out.contains(line), "{}", run.out);
}

#[test]
fn with_a_band_a_sentence_says_where_it_does_not_hold() {
    let run = nearlock(&format!("{REPRODUCE} --set numa.mode=off --band"));
    assert_eq!(run.code, 0, "{}", run.err);
    assert_fits(&run.out);
    let (_, words) = run.out.split_once("\npublished statements").expect("the sentences");
    let one_line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "CNA is ahead of stock from 8 threads up (by more than 2 %): DOES NOT HOLD, ";
    let (_, where_it_does) = one_line.split_once(said).expect("the sentence");
    assert!(
        ["nor with any parameter moved alone", "but does with "]
            .iter()
            .any(|end| where_it_does.starts_with(end)),
        "{words}"
    );
}

#[test]
fn mechanisms_have_rows_of_their_own() {
    let csv = nearlock(&format!("{REPRODUCE} --mechanisms --format csv"));
    assert_eq!(csv.code, 0, "{}", csv.err);
    let mut lines = csv.out.lines();
    assert_eq!(lines.next(), Some("table,variation,variant,threads,simulated,published,error,row"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let (as_it_is, changed) = rows.split_at(30);
    assert!(as_it_is.iter().all(|row| row[1].is_empty()), "{as_it_is:?}");
    assert!(changed.len() >= 15 * 30 && changed.len().is_multiple_of(30), "{}", changed.len());
    for cells in changed.chunks(30) {
        let variation = cells[0][1];
        let mechanism = MECHANISMS.iter().find(|mechanism| variation.starts_with(mechanism.setting));
        assert!(mechanism.is_some() && cells.iter().all(|row| row[1] == variation), "{cells:?}");
        assert!(cells.iter().zip(as_it_is).all(|(row, cell)| (row[2], row[3]) == (cell[2], cell[3])));
    }
    let json = nearlock(&format!("{REPRODUCE} --mechanisms --format json")).out;
    let documented =
        "table row variant metric unit published published_sd simulated low high error class variation";
    assert_eq!(keys(&json), sorted(documented));
    let cells: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
    assert_eq!(cells.len(), rows.len());
    assert!(cells[0]["variation"].is_null());
    assert_eq!(cells[30]["variation"].as_str(), Some(changed[0][1]));
    let text = nearlock(&format!("{REPRODUCE} --mechanisms")).out;
    assert_fits(&text);
    assert_eq!(text.matches("\nas it is ").count(), 3, "{text}");
    assert_eq!(text.matches(&format!("\n{} ", changed[0][1])).count(), 3, "{text}");
}

#[test]
fn tables_of_freebsd_have_a_row_for_each_lock_and_no_figure_that_is_not_published() {
    let command = "reproduce freebsd-find freebsd-make --quick --seeds 1 --set simulation.warm-up-ns=20000 \
                   --set simulation.window-ns=3000000";
    let json = nearlock(&format!("{command} --format json"));
    assert_eq!(json.code, 0, "{}", json.err);
    let cells: Vec<serde_json::Value> = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(cells.len(), 5 * 5 + 4 * 4);
    let of = |table: &str, lock: &str, variant: &str| {
        let is = |cell: &&serde_json::Value| {
            cell["table"] == table && cell["row"]["lock"] == lock && cell["variant"] == variant
        };
        cells.iter().find(is).expect("a cell")
    };
    let published = cells.iter().filter(|cell| !cell["published"].is_null()).count();
    assert_eq!(published, 2 + 2);
    assert_eq!(of("freebsd-find", "mtx", "hard")["class"], "fitted");
    assert_eq!(of("freebsd-find", "mtx", "hard+fast")["class"], "seen");
    assert_eq!(of("freebsd-find", "spin-mtx", "hard")["class"], "predicted");
    let of_lockmgr = ["without", "fast", "hard", "hard+fast"]
        .map(|variant| of("freebsd-find", "lockmgr", variant)["simulated"].as_f64());
    assert_eq!((of_lockmgr[0], of_lockmgr[2]), (of_lockmgr[1], of_lockmgr[3]), "a lockmgr has no fast paths");
    assert_eq!(of("freebsd-make", "mtx", "hard+fast")["published"], 125.0);
    assert_eq!(of("freebsd-make", "sx", "without")["simulated"], 135.0);
    assert!(cells.iter().all(|cell| cell["simulated"].as_f64() > Some(0.0)), "{}", json.out);
    let text = nearlock(command);
    assert_fits(&text.out);
    assert!(text.out.contains("hard+fast") && text.out.contains("n.i.d."), "{}", text.out);
}

#[test]
fn a_band_and_mechanisms_exclude_each_other() {
    assert_refused("reproduce --band --mechanisms", &["'--band' cannot be used with '--mechanisms'"]);
}
