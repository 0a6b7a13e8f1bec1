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

const BY_THINK: [Group; 2] = [
    Group { name: "no think time", has: |think_ns| think_ns == 0 },
    Group { name: "think time", has: |ns| ns > 0 },
];
/// For plans that have both groups.
const ALL: Group = Group { name: "all", has: |_| true };

/// Means over rows of situations with two threads or more. There is one for each mode, and for all
/// modes together, of each baseline, group and lock with more than one situation.
pub(super) fn of(rows: &[Row], plan: &Plan) -> Vec<Row> {
    let mut summary = Vec::new();
    let has_some =
        |group: &Group| rows.iter().any(|row| row.threads >= Some(2) && row.think_ns.is_some_and(group.has));
    let all = BY_THINK.iter().all(has_some).then_some(&ALL);
    for mode in MODES.map(Mode::name).into_iter().chain([CONTENDED]) {
        for baseline in &plan.baselines {
            for group in BY_THINK.iter().chain(all) {
                let is_of = |row: &&Row| {
                    let of_mode =
                        row.mode == mode || mode == CONTENDED && MODES.iter().any(|m| m.name() == row.mode);
                    of_mode
                        && row.baseline == baseline.name()
                        && row.threads >= Some(2)
                        && row.think_ns.is_some_and(group.has)
                };
                let rows: Vec<&Row> = rows.iter().filter(is_of).collect();
                let mut locks: Vec<&str> = Vec::new();
                rows.iter().for_each(|row| {
                    if !locks.contains(&row.lock) {
                        locks.push(row.lock)
                    }
                });
                for lock in locks {
                    let of_lock: Vec<&Row> = rows.iter().copied().filter(|row| row.lock == lock).collect();
                    summary.extend(mean(mode, group, &of_lock));
                }
            }
        }
    }
    summary
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
