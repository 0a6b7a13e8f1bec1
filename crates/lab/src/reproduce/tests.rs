use std::fs;

use super::plan::{CELL, FIRST_CHANGE, Place, Planned, REFERENCE};
use super::progress::Progress;
use super::run::run_rows;
use super::*;
use crate::cache::{Cache, Figures};
use crate::published::tests::OF_CHANGES;
use crate::published::{Class, Column, DOCUMENTS, Effect, Row, TABLES};

fn assignment(setting: &'static str, value: u64) -> Assignment {
    Assignment { setting, value: Value::Integer(value) }
}

fn figures(ops_per_us: f64) -> Figures {
    Figures { ops_per_us, jobs_per_minute: None, slow_path_share: 0.0 }
}

/// Shorter windows than those of the effort.
fn window(warm_up_ns: u64, window_ns: u64) -> [Assignment; 2] {
    [assignment("simulation.warm-up-ns", warm_up_ns), assignment("simulation.window-ns", window_ns)]
}

/// The calls of a watcher.
#[derive(Default)]
struct Told {
    /// The tables that have begun, and those that have ended.
    begun: Vec<usize>,
    ended: Vec<usize>,
    /// The table and the number of threads of each row.
    rows: Vec<(usize, usize)>,
    /// The numbers of completed and of all simulations.
    simulated: Vec<(usize, usize)>,
    /// The number of rows after which the watcher breaks.
    enough: Option<usize>,
}

impl Watcher for Told {
    fn simulated(&mut self, done: usize, total: usize) -> ControlFlow<()> {
        self.simulated.push((done, total));
        ControlFlow::Continue(())
    }
    fn begin(&mut self, index: usize) -> ControlFlow<()> {
        self.begun.push(index);
        ControlFlow::Continue(())
    }
    fn row(&mut self, index: usize, cells: &[Cell]) -> ControlFlow<()> {
        self.rows.push((index, cells[0].row.threads().unwrap_or(0)));
        if self.enough == Some(self.rows.len()) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    fn end(&mut self, index: usize, _result: &TableResult) -> ControlFlow<()> {
        self.ended.push(index);
        ControlFlow::Continue(())
    }
}

/// Simulates these rows.
fn rows(reproduction: &Reproduction, rows: &'static [Row]) -> (Reproduced, Vec<usize>) {
    let mut told = Told::default();
    let mut results = run_rows(vec![(reproduction, rows)], None, &mut told).unwrap();
    (results.remove(0).unwrap(), told.rows.iter().map(|&(_, threads)| threads).collect())
}

#[test]
fn a_mean_counts_every_seed() {
    assert_eq!(mean(&[3.0, 1.0, 3.5]), 2.5);
    assert_eq!(mean(&[4.0]), 4.0);
    // Simulations arrive in the order of their completion.
    assert_eq!(mean(&[0.1, 0.2, 0.3, 1e9]), mean(&[1e9, 0.3, 0.2, 0.1]));
}

#[test]
fn rows_come_in_order_and_complete() {
    let table = TABLES[0];
    let rows = &table.rows()[..2];
    let places = [(0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)].map(|(row, variant)| Place {
        row,
        column: Column::Variant(variant),
        variation: 0,
    });
    let mut progress = Progress::new(table, rows, Vary::Nothing, &places);
    for index in [4, 5, 6, 0, 2, 3] {
        progress.take(places[index], figures(1.0));
        assert!(progress.next_row().is_none());
    }
    progress.take(places[1], figures(2.0));
    for threads in [1, 2] {
        assert_eq!(progress.next_row().unwrap()[0].row.threads(), Some(threads));
    }
    assert!(progress.next_row().is_none());
    assert_eq!(progress.cells.len(), 6);
    let cell = &progress.cells[0];
    assert_eq!((cell.variant, cell.simulated, cell.class), ("stock", 4.5, Class::Fitted));
    assert!((cell.error.unwrap() - (4.5 - 2.707) / 2.707).abs() < 1e-12);
    let fitted = mean_error(&progress.cells, |cell| cell.class == Class::Fitted).unwrap();
    assert_eq!((fitted.cells, fitted.mean), (1, cell.error.unwrap()));
    assert!((fitted.geometric - (4.5 / 2.707 - 1.0)).abs() < 1e-12);
    assert_eq!(mean_error(&progress.cells, |_| false), None);
    assert_eq!((cell.low, cell.high, within_band(&progress.cells)), (None, None, (0, 0)));
    let largest = largest_error(&progress.cells).unwrap();
    assert_eq!((largest.variant, largest.row.threads()), ("stock", Some(1)));
}

#[test]
fn a_simulation_of_the_table_takes_each_seed_once() {
    let reproduction = Reproduction {
        table: TABLES[0],
        effort: Effort::Quick,
        seeds: Some(2),
        set: &[],
        vary: Vary::Nothing,
    };
    let rows = TABLES[0].rows();
    let Planned { simulations, places, commands, .. } = reproduction.plan(rows).unwrap();
    assert_eq!(simulations.len(), 10 * 3 * 2);
    assert!(places.is_sorted());
    assert_eq!((places.len(), commands.len()), (simulations.len(), simulations.len()));
    assert_eq!(simulations[1].seed, 2);
    assert_eq!(simulations[2].lock.name, "cna-v13-no-sro");
}

#[test]
fn variations_move_one_parameter_each_and_take_fewer_seeds() {
    let reproduction =
        Reproduction { table: TABLES[0], effort: Effort::Quick, seeds: None, set: &[], vary: Vary::Band };
    let rows = &TABLES[0].rows()[..1];
    let planned = reproduction.plan(rows).unwrap();
    assert_eq!(planned.varied.len(), 8);
    // The reference of the changes has as many seeds as each change.
    assert_eq!(planned.simulations.len(), 3 * (8 + 9 * 2));
    assert_eq!(planned.varied[2].to_string(), "machine.grab-fraction=0.3");
    let varied = planned.places.iter().position(|place| place.variation == FIRST_CHANGE + 2).unwrap();
    let models = [0, varied].map(|index| &planned.simulations[index].machine.model);
    assert_eq!(models.map(|model| model.grab_fraction), [0.5, 0.3]);
    assert_eq!(models[0].cross_socket_scale, models[1].cross_socket_scale);
}

#[test]
fn a_band_holds_its_cell_and_is_wider() {
    let reproduction = Reproduction {
        table: TABLES[0],
        effort: Effort::Quick,
        seeds: Some(1),
        set: &window(50_000, 200_000),
        vary: Vary::Band,
    };
    let (Reproduced { cells, varied, .. }, shown) = rows(&reproduction, &TABLES[0].rows()[..4]);
    assert_eq!((cells.len(), shown), (12, vec![1, 2, 4, 8]));
    for cell in &cells {
        let (low, high) = (cell.low.unwrap(), cell.high.unwrap());
        assert!(low <= cell.simulated && cell.simulated <= high, "{cell:?}");
    }
    // The ends of a band are cells of variations, or the cell itself.
    for (index, cell) in cells.iter().enumerate() {
        let figures = || varied.iter().map(|varied| varied.cells[index].simulated).chain([cell.simulated]);
        assert!(figures().all(|figure| cell.low <= Some(figure) && Some(figure) <= cell.high));
        assert!(figures().any(|figure| cell.low == Some(figure)), "{cell:?}");
        assert!(figures().any(|figure| cell.high == Some(figure)), "{cell:?}");
    }
    let last = &cells[11];
    assert!(last.low < Some(last.simulated) || last.high > Some(last.simulated), "{last:?}");
    assert_eq!(within_band(&cells).1, 12);
}

/// Inserts simulated figures of the first row: the cell's own figure, the reference with half the
/// effort, and the figures of the changes.
fn insert(progress: &mut Progress, variant: usize, figures: &[f64]) {
    let place = |variation| Place { row: 0, column: Column::Variant(variant), variation };
    progress.values.insert(place(CELL), (0, vec![figures[0] * 0.9, figures[0] * 1.1]));
    progress.values.insert(place(REFERENCE), (0, vec![figures[0] * 0.9]));
    for (change, figure) in figures[1..].iter().enumerate() {
        progress.values.insert(place(FIRST_CHANGE + change), (0, vec![figure * 0.9]));
    }
}

#[test]
fn a_published_figure_is_within_the_band_or_not() {
    let table = TABLES[0];
    let rows = &table.rows()[..1];
    let mut progress = Progress::new(table, rows, Vary::Band, &[]);
    // The published figures are 2.707, 2.693 and 2.718.
    for (variant, figures) in [[0.91, 0.8, 0.9], [0.8, 0.7, 0.85], [0.9, 0.95, 0.91]].iter().enumerate() {
        insert(&mut progress, variant, &figures.map(|figure| figure * 3.0));
    }
    let cells: Vec<_> = (0..3).map(|variant| progress.cell(0, variant)).collect();
    let close = |figure: Option<f64>, expected: f64| (figure.unwrap() - expected).abs() < 1e-9;
    assert!(close(cells[0].low, 2.4) && close(cells[0].high, 2.73), "{:?}", cells[0]);
    assert!(close(cells[1].low, 2.1) && close(cells[1].high, 2.55), "{:?}", cells[1]);
    assert!(close(cells[2].low, 2.7) && close(cells[2].high, 2.85), "{:?}", cells[2]);
    assert_eq!(within_band(&cells), (2, 3));
}

#[test]
fn a_relative_table_divides_by_its_first_variant() {
    let table = Table::named("cna-context1").unwrap();
    let rows = table.rows();
    let mut progress = Progress::new(table, rows, Vary::Band, &[]);
    for (variant, figures) in [[2.0, 4.0], [1.7, 3.2], [1.9, 3.9]].iter().enumerate() {
        insert(&mut progress, variant, figures);
    }
    let cells: Vec<_> = (0..3).map(|variant| progress.cell(0, variant)).collect();
    for (cell, expected) in cells.iter().zip([(1.0, 1.0, 1.0), (0.85, 0.8, 0.85), (0.95, 0.95, 0.975)]) {
        let found = [cell.simulated, cell.low.unwrap(), cell.high.unwrap()];
        let expected = [expected.0, expected.1, expected.2];
        assert!(
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9),
            "{cell:?}"
        );
    }
    // The base of the other figures does not count as a success.
    assert_eq!(mean_error(&cells, |_| true).unwrap().cells, 2);
    assert_eq!(mean_error(&cells, |cell| cell.variant == "stock"), None);
    assert_eq!(within_band(&cells), (1, 2));
}

#[test]
fn mechanisms_change_the_cells_one_by_one_and_make_no_band() {
    let reproduction = Reproduction {
        table: TABLES[0],
        effort: Effort::Quick,
        seeds: Some(1),
        set: &window(20_000, 100_000),
        vary: Vary::Mechanisms,
    };
    let (Reproduced { cells, varied, .. }, _) = rows(&reproduction, &TABLES[0].rows()[3..4]);
    assert!(varied.len() >= 15);
    for cell in cells.iter().chain(varied.iter().flat_map(|varied| &varied.cells)) {
        assert_eq!((cell.low, cell.high, cell.row.threads()), (None, None, Some(8)));
        assert!((cell.simulated / cell.published.unwrap() - 1.0 - cell.error.unwrap()).abs() < 1e-9);
    }
    let one = assignment("machine.store-buffer-entries", 1);
    let buffer = varied.iter().find(|varied| varied.change == one).unwrap();
    assert!(buffer.cells[0].simulated < 0.9 * cells[0].simulated, "{buffer:?}");
}

/// All published figures, with those of `stock` multiplied by `factor`.
fn of_published(table: &'static Table, factor: f64) -> Vec<Cell> {
    let rows = table.rows();
    let progress = Progress::new(table, rows, Vary::Nothing, &[]);
    let places = (0..rows.len()).flat_map(|row| (0..3).map(move |variant| (row, variant)));
    let figure = |row: usize, variant: usize| {
        rows[row].values[variant].unwrap().mean * if variant == 0 { factor } else { 1.0 }
    };
    places.map(|(row, variant)| progress.cell_of(row, variant, figure(row, variant))).collect()
}

#[test]
fn verdicts_say_with_which_variations_a_statement_does_not_hold() {
    let table = Table::named("cna-locktorture").unwrap();
    let [one, two] = [1, 2].map(|value| assignment("a.b", value));
    let varied = |(change, factor)| Varied { change, cells: of_published(table, factor) };
    let verdicts = |factor, variations: [(Assignment, f64); 2]| -> Vec<(bool, Vec<Assignment>)> {
        let reproduced =
            Reproduced { table, cells: of_published(table, factor), varied: variations.map(varied).into() };
        let verdicts = reproduced.verdicts().into_iter();
        verdicts.map(|verdict| (verdict.holds, verdict.otherwise)).collect()
    };
    let of = |text: &str| table.statements.iter().position(|statement| statement.text == text).unwrap();
    let ahead = of("CNA is ahead of stock from 8 threads up");
    // At 8 threads, stock times 1.4 is faster than CNA.
    let found = verdicts(1.0, [(one, 1.4), (two, 1.01)]);
    assert_eq!(found.len(), table.statements.len());
    assert_eq!(found[ahead], (true, vec![one]));
    assert_eq!(found[of("stock falls from 36 to 142 threads")], (true, vec![]));
    assert_eq!(verdicts(1.4, [(one, 1.4), (two, 1.0)])[ahead], (false, vec![two]));
    // Cells that were not simulated are not judged.
    let mut some = Reproduced { table, cells: of_published(table, 1.0), varied: vec![] };
    some.cells.retain(|cell| cell.row.threads() <= Some(2));
    assert_eq!(some.verdicts().len(), 1);
}

#[test]
fn an_effect_counts_where_it_exceeds_its_error() {
    let table = Table::named("cna-locktorture").unwrap();
    let effects = |factor: f64| -> Vec<(Option<usize>, &str, Effect, Effect)> {
        let reproduced = Reproduced { table, cells: of_published(table, factor), varied: vec![] };
        let effects = reproduced.effects();
        effects.iter().map(|e| (e.row.threads(), e.variant, e.published, e.simulated)).collect()
    };
    let as_published = effects(1.0);
    assert_eq!(as_published.len(), 20);
    assert!(as_published.iter().all(|(_, _, published, simulated)| published == simulated));
    assert_eq!(as_published[0], (Some(1), "cna-wo-sro", Effect::None, Effect::None));
    assert_eq!(as_published[19], (Some(142), "cna", Effect::Gain, Effect::Gain));
    // Stock times 1.2 is faster where it was alike.
    assert_eq!(effects(1.2)[0], (Some(1), "cna-wo-sro", Effect::None, Effect::Loss));
}

#[test]
fn a_row_of_several_numbers_of_threads_is_their_mean() {
    let table = &OF_CHANGES;
    let reproduction =
        Reproduction { table, effort: Effort::Full, seeds: None, set: &[], vary: Vary::Nothing };
    let rows = table.rows();
    let planned = reproduction.plan(&rows[1..]).unwrap();
    // 32 seeds for two numbers of threads, for two variants and for their base.
    assert_eq!(planned.simulations.len(), 3 * 2 * 16);
    let threads = |index: usize| planned.simulations[index].threads;
    assert_eq!((threads(0), threads(15), threads(16), threads(31)), (2, 2, 4, 4));
    assert_eq!(planned.simulations[95].lock.name, "ticket");
    assert_eq!(planned.simulations[0].machine.sockets, 4);
    assert_eq!(planned.places[95].column, Column::Base);
}

#[test]
fn half_as_much_is_as_far_off_as_twice_as_much() {
    let table = Table::named("cna-locktorture").unwrap();
    let row = &table.rows()[0];
    let published = row.values[0].unwrap().mean;
    let cells = [2.0, 0.5].map(|factor| Cell::new(table, row, 0, published * factor));
    let of = |cells: &[Cell]| mean_error(cells, |_| true).unwrap();
    assert!((of(&cells).mean - 0.75).abs() < 1e-12);
    for cells in [&cells[..1], &cells[1..], &cells] {
        assert!((of(cells).geometric - 1.0).abs() < 1e-12, "{cells:?}");
    }
    assert_eq!(of(&[Cell::new(table, row, 0, 0.0)]).geometric, f64::INFINITY);
}

#[test]
fn figures_can_be_per_cent_more_than_another_lock() {
    let table = &OF_CHANGES;
    let rows = table.rows();
    let mut progress = Progress::new(table, rows, Vary::Nothing, &[]);
    let columns = [Column::Variant(0), Column::Variant(1), Column::Base];
    for (column, figure) in columns.into_iter().zip([1.0, 2.2, 2.0]) {
        for row in [0, 1] {
            progress.values.insert(Place { row, column, variation: 0 }, (0, vec![figure]));
        }
    }
    let cells: Vec<_> =
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(row, variant)| progress.cell(row, variant)).into();
    let close = |figure: Option<f64>, expected: f64| (figure.unwrap() - expected).abs() < 1e-9;
    assert!(close(Some(cells[0].simulated), -50.0) && close(cells[0].error, -42.0 / 92.0), "{cells:?}");
    assert!(close(Some(cells[1].simulated), 10.0) && close(cells[1].error, -6.3 / 116.3), "{cells:?}");
    // A figure that is not in the document is still simulated, but not compared.
    assert_eq!((cells[2].published, cells[2].error), (None, None));
    assert!(close(Some(cells[2].simulated), -50.0));
    assert_eq!(mean_error(&cells, |_| true).unwrap().cells, 3);
    assert_eq!(largest_error(&cells).unwrap().row, rows[1].key);
    let reproduced = Reproduced { table, cells, varied: vec![] };
    let effects: Vec<_> =
        reproduced.effects().iter().map(|e| (e.variant, e.published, e.simulated)).collect();
    assert_eq!(
        effects,
        [
            ("one", Effect::Loss, Effect::Loss),
            ("two", Effect::Gain, Effect::Gain),
            ("two", Effect::Loss, Effect::Gain)
        ]
    );
}

/// Two small tables.
fn two(set: &[Assignment]) -> [Reproduction<'_>; 2] {
    let of = |name| Reproduction {
        table: Table::named(name).unwrap(),
        effort: Effort::Quick,
        seeds: Some(1),
        set,
        vary: Vary::Nothing,
    };
    [of("cna-lock2"), of("cna-context1")]
}

#[test]
fn tables_come_one_after_the_other_whatever_is_simulated_first() {
    let set = window(20_000, 100_000);
    let mut told = Told::default();
    let results = run(&two(&set), None, &mut told).unwrap();
    let threads = [1, 2, 4, 8, 16, 32, 36, 72, 108, 142];
    let expected: Vec<_> = threads.map(|threads| (0, threads)).into_iter().chain([(1, 56)]).collect();
    assert_eq!((told.begun, told.ended, told.rows), (vec![0, 1], vec![0, 1], expected));
    assert_eq!(told.simulated, (0..=33).map(|done| (done, 33)).collect::<Vec<_>>());
    let names = results.iter().map(|result| result.as_ref().unwrap().table.name);
    assert_eq!(names.collect::<Vec<_>>(), ["cna-lock2", "cna-context1"]);
}

#[test]
fn a_run_that_was_ended_goes_on_where_it_was_and_comes_to_the_same() {
    let path = std::env::temp_dir().join(format!("nearlock-run-{}", std::process::id()));
    let set = window(20_000, 100_000);
    let all = |cache: Option<&Cache>, enough| {
        let mut told = Told { enough, ..Told::default() };
        let results = run(&two(&set), cache, &mut told).unwrap();
        (told, results)
    };
    let cells = |results: &[TableResult]| -> Vec<f64> {
        let all = results.iter().flat_map(|result| &result.as_ref().unwrap().cells);
        all.map(|cell| cell.simulated).collect()
    };
    let (told, results) = all(Some(&Cache::open(&path).unwrap()), Some(3));
    assert!(told.rows.len() == 3 && told.ended.is_empty() && results.is_empty());
    let (told, gone_on) = all(Some(&Cache::open(&path).unwrap()), None);
    let (done, total) = told.simulated[0];
    assert!((9..33).contains(&done) && total == 33, "{done}");
    assert_eq!(cells(&gone_on), cells(&all(None, None).1));
    let (told, read) = all(Some(&Cache::open(&path).unwrap()), None);
    assert_eq!(told.simulated, [(33, 33)], "nothing is left");
    assert_eq!(cells(&read), cells(&gone_on));
    // The run ends during the second table.
    let (told, ended) = all(Some(&Cache::open(&path).unwrap()), Some(11));
    assert_eq!((told.ended, cells(&ended)), (vec![0], cells(&read[..1])));
    fs::remove_file(path).unwrap();
}

#[test]
fn what_two_tables_share_is_simulated_once() {
    let set = window(20_000, 100_000);
    let [one, _] = two(&set);
    let mut told = Told::default();
    let results = run(&[one, one], None, &mut told).unwrap();
    let halves: Vec<_> = (0..=30).map(|done| (2 * done, 60)).collect();
    assert_eq!(told.simulated, halves);
    let [one, other] = [0, 1].map(|index| &results[index].as_ref().unwrap().cells);
    assert!(one.iter().zip(other).all(|(one, other)| one.simulated == other.simulated));
}

#[test]
fn figures_keep_to_their_columns() {
    for (number, expected) in
        [(2.707, "2.707"), (-8.0, "-8.000"), (148_590.0, "148590"), (301.8, "301.8"), (0.0, "0.000")]
    {
        assert_eq!(figure(number), expected);
    }
}

#[test]
fn a_headline_is_a_ratio_with_its_band() {
    let table = Table::named("cna-locktorture").unwrap();
    let of = |factor| of_published(table, factor);
    let varied = [0.5, 2.0].map(|factor| Varied { change: assignment("a.b", 1), cells: of(factor) });
    let reproduced = Reproduced { table, cells: of(1.0), varied: varied.into() };
    let headline =
        &DOCUMENTS.iter().flat_map(|document| document.tables).find(|claim| claim.table == table.name);
    let row = reproduced.headline(&headline.unwrap().headlines[0]).unwrap();
    assert!((row.published - 10.424 / 5.895).abs() < 1e-9 && row.simulated == row.published);
    assert!((row.low - row.published / 2.0).abs() < 1e-9 && (row.high - row.published * 2.0).abs() < 1e-9);
}

#[test]
fn a_run_to_the_end_is_shorter_where_effort_is_saved_and_where_nothing_was_set() {
    let table = Table::named("rwsem-series").unwrap();
    let jobs = |effort, vary, set: &[Assignment]| -> Vec<u64> {
        let reproduction = Reproduction { table, effort, seeds: Some(1), set, vary };
        let planned = reproduction.plan(&table.rows()[5..6]).unwrap();
        let jobs =
            planned.simulations.iter().map(|simulation| simulation.facts().jobs.expect("they have jobs"));
        let mut jobs: Vec<_> = jobs.collect();
        jobs.dedup();
        jobs
    };
    let all = jobs(Effort::Full, Vary::Nothing, &[])[0];
    assert_eq!(jobs(Effort::Quick, Vary::Nothing, &[]), [all.div_ceil(2)]);
    assert_eq!(jobs(Effort::Full, Vary::Band, &[])[..2], [all, all.div_ceil(4)]);
    assert_eq!(jobs(Effort::Quick, Vary::Band, &[assignment("aim7-shared.jobs", 9)]), [9]);
}

#[test]
fn a_share_is_moved_by_a_difference_and_a_time_by_a_ratio() {
    let figure = |table: &str, figures: [&[f64]; 2], variant| {
        let table = Table::named(table).unwrap();
        let mut progress = Progress::new(table, table.rows(), Vary::Band, &[]);
        for (column, figures) in figures.iter().enumerate() {
            insert(&mut progress, column, figures);
        }
        let cell = progress.cell(0, variant);
        [cell.simulated, cell.low.unwrap(), cell.high.unwrap()]
    };
    // A change is simulated with nine tenths of the cell. This adds 0.9 * (6 - 1) to a share, and
    // multiplies a time by six.
    let share = figure("mutex-slowpath-share", [&[60.0, 50.0], &[1.0, 6.0]], 1);
    assert!(share.iter().zip([1.0, 1.0, 5.5]).all(|(a, b)| (a - b).abs() < 1e-9), "{share:?}");
    let time = figure("freebsd-make", [&[1.0, 1.0], &[1.08, 1.35]], 1);
    assert!(time.iter().zip([125.0, 100.0, 125.0]).all(|(a, b)| (a - b).abs() < 1e-9), "{time:?}");
}

#[test]
fn an_effect_is_no_better_tested_than_what_it_is_compared_with() {
    let table = Table::named("cna-open1").unwrap();
    let reproduced = Reproduced { table, cells: of_published(table, 1.0), varied: vec![] };
    let class = |threads| {
        let effects = reproduced.effects();
        effects.iter().find(|e| e.variant == "cna" && e.row.threads() == Some(threads)).unwrap().class
    };
    // Stock is fitted at 142 threads and seen at 36. CNA is predicted at both.
    assert_eq!((class(142), class(36)), (Class::Fitted, Class::Seen));
    let table = Table::named("cna-context1").unwrap();
    let reproduced = Reproduced { table, cells: of_published(table, 1.0), varied: vec![] };
    assert_eq!(reproduced.effects()[0].class, Class::Seen, "what is 1 by definition fits nothing");
}
