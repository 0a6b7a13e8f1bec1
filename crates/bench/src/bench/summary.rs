//! Geometric means over situations. Ratios combine by multiplication.

use super::{Mode, Plan, Row};

/// Modes in which threads can contend. Together they are the mode `contended`.
const MODES: [Mode; 3] = [Mode::Parallel, Mode::Free, Mode::Oversubscribed];
const CONTENDED: &str = "contended";

/// A group of situations of a mode.
struct Group {
    name: &'static str,
    has: fn(u64) -> bool,
}

impl Group {
    fn is_of(&self, row: &Row) -> bool {
        row.think_ns.is_some_and(self.has)
    }
}

const BY_THINK: [Group; 2] = [
    Group { name: "no think time", has: |think_ns| think_ns == 0 },
    Group { name: "think time", has: |ns| ns > 0 },
];
/// For modes that have situations of both groups.
const ALL: Group = Group { name: "all", has: |_| true };

/// Means over rows of situations with two threads or more. There is one for each mode, and for all
/// modes together, of each baseline, group and lock with more than one situation. If there are
/// several percentages of reads, all modes together have one for each of them too.
pub(super) fn of(rows: &[Row], plan: &Plan) -> Vec<Row> {
    let mut summary = Vec::new();
    for mode in MODES.map(Mode::name).into_iter().chain([CONTENDED]) {
        for baseline in &plan.baselines {
            let is_of = |row: &&Row| {
                let of_mode =
                    row.mode == mode || mode == CONTENDED && MODES.iter().any(|m| m.name() == row.mode);
                of_mode && row.baseline == baseline.name() && row.threads >= Some(2)
            };
            let rows: Vec<&Row> = rows.iter().filter(is_of).collect();
            let has_all = |group: &Group| rows.iter().all(|row| group.is_of(row));
            let all = (!BY_THINK.iter().any(has_all)).then_some(&ALL);
            for group in BY_THINK.iter().chain(all) {
                let of_group: Vec<&Row> = rows.iter().copied().filter(|row| group.is_of(row)).collect();
                summary.extend(of_locks(mode, group, &of_group));
                let percents = distinct(&of_group, |row| row.read_percent);
                if mode == CONTENDED && of_group.len() == rows.len() && percents.len() > 1 {
                    for percent in percents {
                        let of_percent = rows.iter().copied().filter(|row| row.read_percent == percent);
                        summary.extend(of_locks(mode, group, &of_percent.collect::<Vec<_>>()));
                    }
                }
            }
        }
    }
    summary
}

/// The means of the locks, in their order.
fn of_locks(mode: &'static str, group: &Group, rows: &[&Row]) -> Vec<Row> {
    let of = |lock| {
        let of_lock: Vec<&Row> = rows.iter().copied().filter(|row| row.lock == lock).collect();
        mean(mode, group, &of_lock)
    };
    distinct(rows, |row| row.lock).into_iter().filter_map(of).collect()
}

/// The values of the rows, each once, in the order in which they come first.
fn distinct<T: PartialEq>(rows: &[&Row], of: impl Fn(&Row) -> T) -> Vec<T> {
    let mut values = Vec::new();
    for value in rows.iter().map(|row| of(row)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The mean; `None` for fewer than two rows.
fn mean(mode: &'static str, group: &Group, rows: &[&Row]) -> Option<Row> {
    let [first, _, ..] = *rows else { return None };
    Some(Row {
        summary: Some(group.name),
        situations: rows.len(),
        mode,
        threads: None,
        section_ns: None,
        think_ns: None,
        read_percent: first.read_percent.filter(|_| distinct(rows, |row| row.read_percent).len() == 1),
        ns_per_op: None,
        ops_per_us: None,
        ratio: geometric(rows.iter().filter_map(|row| row.ratio)),
        ratio_low_quartile: None,
        ratio_high_quartile: None,
        jain: None,
        wait_ns_p99_9: None,
        wait_ns_max: rows.iter().filter_map(|row| row.wait_ns_max).max(),
        cpu_ns_per_op: None,
        cpu_ratio: geometric(rows.iter().filter_map(|row| row.cpu_ratio)),
        instructions_per_op: None,
        rmw_per_op: None,
        membarriers_per_s: rows.iter().filter_map(|row| row.membarriers_per_s).max_by(f64::total_cmp),
        ..(*first).clone()
    })
}

/// The geometric mean; 0 if one of the figures is 0.
fn geometric(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = figures.map(f64::ln).collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    (!logarithms.is_empty()).then(|| mean.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric([].into_iter()), None);
        assert!((geometric([0.5, 2.0, 8.0].into_iter()).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(geometric([0.0, 2.0].into_iter()), Some(0.0));
    }
}
