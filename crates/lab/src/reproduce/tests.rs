use super::*;
use crate::band::PARAMETERS;
use crate::published::TABLES;
use crate::simulate::Simulated;

fn simulated(ops_per_us: f64) -> Outcome {
    Ok(Simulated {
        machine: String::new(),
        workload: String::new(),
        lock: String::new(),
        threads: 1,
        seed: 1,
        ops_per_us,
        jain: 1.0,
        wait_ns_p50: 0,
        wait_ns_p99: 0,
        wait_ns_max: 0,
        line_transfers_per_op: 0.0,
        remote_transfers_per_op: 0.0,
        local_handover_share: 0.0,
    })
}

#[derive(Default)]
struct Rows(Vec<usize>);
impl Watcher for Rows {
    fn simulated(&mut self, _done: usize, _total: usize) {}
    fn row(&mut self, cells: &[Cell]) -> ControlFlow<()> {
        self.0.push(cells[0].row.threads);
        ControlFlow::Continue(())
    }
}

#[test]
fn a_mean_counts_every_seed() {
    assert_eq!(mean(&[3.0, 1.0, 3.5]), 2.5);
    assert_eq!(mean(&[4.0]), 4.0);
}

#[test]
fn rows_come_in_order_and_complete() {
    let table = &TABLES[0];
    let rows = &table.rows()[..2];
    let places = [(0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)].map(|(row, variant)| Place {
        row,
        variant,
        variation: 0,
    });
    let mut progress = Progress { table, rows, values: BTreeMap::new(), row: 0, cells: Vec::new() };
    for place in places {
        progress.values.entry(place).or_insert((0, Vec::new())).0 += 1;
    }
    let mut shown = Rows::default();
    for index in [4, 5, 6, 0, 2, 3] {
        assert!(progress.take(places[index], &simulated(1.0), &mut shown).is_continue());
        assert!(shown.0.is_empty());
    }
    assert!(progress.take(places[1], &simulated(2.0), &mut shown).is_continue());
    assert_eq!(shown.0, [1, 2]);
    assert_eq!(progress.cells.len(), 6);
    let cell = &progress.cells[0];
    assert_eq!((cell.variant, cell.simulated, cell.class), ("stock", 4.5, Class::Fitted));
    assert!((cell.error - (4.5 - 2.707) / 2.707).abs() < 1e-12);
    let fitted = mean_error(&progress.cells, |cell| cell.class == Class::Fitted).unwrap();
    assert_eq!(fitted, MeanError { cells: 1, mean: cell.error });
    assert_eq!(mean_error(&progress.cells, |_| false), None);
    assert_eq!((cell.low, cell.high, within_band(&progress.cells)), (None, None, (0, 0)));
    let largest = largest_error(&progress.cells).unwrap();
    assert_eq!((largest.variant, largest.row.threads), ("stock", 1));
}

#[test]
fn a_simulation_of_the_table_takes_each_seed_once() {
    let reproduction =
        Reproduction { table: &TABLES[0], effort: Effort::Quick, seeds: Some(2), set: &[], band: &[] };
    let rows = TABLES[0].rows();
    let Planned { simulations, places, .. } =
        reproduction.plan(&rows, Configuration::new(Group::ALL)).unwrap();
    assert_eq!(simulations.len(), 10 * 3 * 2);
    assert!(places.is_sorted());
    assert_eq!(simulations[1].seed, 2);
    assert_eq!(simulations[2].lock.name, "cna-v13-no-sro");
}

#[test]
fn variations_move_one_parameter_each_and_take_fewer_seeds() {
    let reproduction =
        Reproduction { table: &TABLES[0], effort: Effort::Quick, seeds: None, set: &[], band: PARAMETERS };
    let rows = &TABLES[0].rows()[..1];
    let planned = reproduction.plan(rows, Configuration::new(Group::ALL)).unwrap();
    assert_eq!(planned.configurations.len(), 9);
    assert_eq!(planned.simulations.len(), 3 * (16 + 8 * 8));
    assert!(planned.configurations[0].texts().is_empty());
    assert_eq!(planned.configurations[3].texts(), ["machine.grab-fraction=0.3"]);
    let varied = planned.places.iter().position(|place| place.variation == 3).unwrap();
    let models = [0, varied].map(|index| &planned.simulations[index].machine.model);
    assert_eq!(models.map(|model| model.grab_fraction), [0.5, 0.3]);
    assert_eq!(models[0].cross_socket_scale, models[1].cross_socket_scale);
}

#[test]
fn a_band_holds_its_cell_and_is_wider() {
    let reproduction =
        Reproduction { table: &TABLES[0], effort: Effort::Quick, seeds: Some(1), set: &[], band: PARAMETERS };
    let mut central = Configuration::new(Group::ALL);
    central.set("simulation.warm-up-ns=50000").unwrap();
    central.set("simulation.window-ns=200000").unwrap();
    let mut shown = Rows::default();
    let cells = reproduction.rows(&TABLES[0].rows()[..4], central, &mut shown).unwrap();
    assert_eq!((cells.len(), shown.0), (12, vec![1, 2, 4, 8]));
    for cell in &cells {
        let (low, high) = (cell.low.unwrap(), cell.high.unwrap());
        assert!(low <= cell.simulated && cell.simulated <= high, "{cell:?}");
    }
    let last = &cells[11];
    assert!(last.low < Some(last.simulated) || last.high > Some(last.simulated), "{last:?}");
    assert_eq!(within_band(&cells).1, 12);
}

#[test]
fn a_published_figure_is_within_the_band_or_not() {
    let table = &TABLES[0];
    let rows = &table.rows()[..1];
    let mut progress = Progress { table, rows, values: BTreeMap::new(), row: 0, cells: Vec::new() };
    // Published are 2.707, 2.693 and 2.718.
    for (variant, figures) in [[0.91, 0.8, 0.9], [0.8, 0.7, 0.85], [0.9, 0.95, 0.91]].iter().enumerate() {
        for (variation, &figure) in figures.iter().enumerate() {
            progress.values.insert(Place { row: 0, variant, variation }, (0, vec![figure * 3.0]));
        }
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
    let rows = &table.rows();
    let mut progress = Progress { table, rows, values: BTreeMap::new(), row: 0, cells: Vec::new() };
    for (variant, figures) in [[2.0, 4.0], [1.7, 3.2], [1.9, 3.9]].iter().enumerate() {
        for (variation, &figure) in figures.iter().enumerate() {
            progress.values.insert(Place { row: 0, variant, variation }, (0, vec![figure]));
        }
    }
    let cells: Vec<_> = (0..3).map(|variant| progress.cell(0, variant)).collect();
    assert_eq!((cells[0].simulated, cells[0].low, cells[0].high), (1.0, Some(1.0), Some(1.0)));
    assert_eq!((cells[1].simulated, cells[1].low, cells[1].high), (0.85, Some(0.8), Some(0.85)));
    assert_eq!((cells[2].simulated, cells[2].low, cells[2].high), (0.95, Some(0.95), Some(0.975)));
    // What the others are measured by is no success.
    assert_eq!(mean_error(&cells, |_| true).unwrap().cells, 2);
    assert_eq!(mean_error(&cells, |cell| cell.variant == "stock"), None);
    assert_eq!(within_band(&cells), (1, 2));
}
