//! The latency table of a measured machine.

use nearlock_sim::spec::{LatencyNs, LoadOfModified, Provenance};

use super::{Book, Page};
use crate::bench::median;
use crate::measure::MeasureError;
use crate::measure::figure::{Nature, rounded};
use crate::measure::transfers::{Kind, Samples};

/// The rows of a latency table, with their meanings.
const ROWS: [(Kind, &str, &str); 7] = [
    (Kind::AtomicModified, "atomic_modified", "atomic on a line that another core has modified"),
    (Kind::AtomicShared, "atomic_shared", "atomic on a line that this core and another have"),
    (
        Kind::StoreModified,
        "store_modified",
        "store to a line that another core has modified, until it is visible",
    ),
    (
        Kind::StoreShared,
        "store_shared",
        "store to a line that this core and another have, until it is visible",
    ),
    (Kind::LoadModified, "load_modified", "load of a line that another core has modified"),
    (Kind::LoadShared, "load_shared", "load of a line that other caches have unmodified"),
    (Kind::LoadMemory, "load_memory", "load of a line that no cache has"),
];

impl Book<'_> {
    /// Whether a load of a modified line also obtains the right to write it. The nearest distance
    /// with samples decides. If so, an atomic after such a load takes far less time than an atomic
    /// on a shared line.
    pub(super) fn load_of_modified(&self) -> LoadOfModified {
        let medians = self.transfers.iter().find_map(|samples| {
            let of = |kind| median(of_kind(samples, kind).iter().copied());
            Some((of(Kind::AtomicLoaded)?, of(Kind::AtomicShared)?))
        });
        match medians {
            Some((loaded, shared)) if loaded < shared / 2.0 => LoadOfModified::TakeOver,
            _ => LoadOfModified::Share,
        }
    }

    /// The latency table. Notes record which entries are measured.
    pub(super) fn latency_ns(&self, page: &mut Page) -> Result<LatencyNs, MeasureError> {
        let names = self.layout.distances();
        let transfers = self.comparable();
        if self.layout.cores.len() == 1 {
            return Ok(of_one_core(page, &transfers[0]));
        }
        let mut table: Vec<Vec<Option<f64>>> = Vec::with_capacity(ROWS.len());
        for (kind, key, meaning) in ROWS {
            let figures = transfers.iter().zip(&names).map(|(samples, name)| {
                page.add(
                    &format!("latency_ns.{key}.{name}"),
                    of_kind(samples, kind),
                    Nature::Typical,
                    meaning,
                )
            });
            let mut row: Vec<_> = figures.collect();
            let atomic = table.first().unwrap_or(&row).clone();
            self.derive(page, (kind, key), &mut row, &atomic);
            table.push(row);
        }
        for (distance, (samples, name)) in self.transfers.iter().zip(&names).enumerate() {
            let meaning = "half a round trip of a word by compare-and-swap";
            let passes = of_kind(samples, Kind::PingPong);
            page.add(&format!("ping_pong_ns.{name}"), passes, Nature::Typical, meaning);
            let meaning = "atomic on a line that this core has just loaded, and another had modified";
            let loaded = of_kind(samples, Kind::AtomicLoaded);
            page.add(&format!("atomic_after_load_ns.{name}"), loaded, Nature::Typical, meaning);
            if self.has_readers.get(distance) == Some(&false) && samples.contains_key(&Kind::LoadShared) {
                page.note(format!(
                    "latency_ns.load_shared over {name} is that of the shared cache: no third core has the lines"
                ));
            }
            if samples.is_empty() {
                page.note(format!("no two cores are {name} apart: the values are those of another distance"));
            }
        }
        self.add_siblings(page);
        let mut rows = Vec::with_capacity(table.len());
        for (row, (_, key, _)) in table.into_iter().zip(ROWS) {
            rows.push(ascending(page, key, &names, row).ok_or(MeasureError::Disturbed { what: key })?);
        }
        let Ok(
            [
                atomic_modified,
                atomic_shared,
                store_modified,
                store_shared,
                load_modified,
                load_shared,
                load_memory,
            ],
        ) = <[Vec<f64>; ROWS.len()]>::try_from(rows)
        else {
            unreachable!("as many rows as names");
        };
        Ok(LatencyNs {
            load_modified,
            load_shared,
            load_memory,
            store_modified,
            store_shared,
            atomic_modified,
            atomic_shared,
            provenance: Provenance::Given,
        })
    }

    /// The samples by distance. The cost of the fence is subtracted from stores, and all distances
    /// inside a NUMA node have the same memory latency.
    fn comparable(&self) -> Vec<Samples> {
        let mut transfers = self.transfers.clone();
        for samples in &mut transfers {
            let fence_ns = median(of_kind(samples, Kind::StoreOwned).iter().copied()).unwrap_or(0.0);
            for kind in [Kind::StoreModified, Kind::StoreShared] {
                samples.entry(kind).or_default().iter_mut().for_each(|ns| *ns -= fence_ns);
            }
        }
        let local = self.layout.local_distances().min(transfers.len());
        let memory: Vec<f64> = transfers[..local]
            .iter()
            .flat_map(|samples| of_kind(samples, Kind::LoadMemory))
            .copied()
            .collect();
        for samples in &mut transfers[..local] {
            samples.insert(Kind::LoadMemory, memory.clone());
        }
        transfers
    }

    /// Fills in entries that could not be measured over a distance where an atomic could be
    /// measured. The rules are those for a machine file that gives only atomics.
    fn derive(
        &self,
        page: &mut Page,
        (kind, key): (Kind, &str),
        row: &mut [Option<f64>],
        atomic: &[Option<f64>],
    ) {
        let local = self.layout.local_distances();
        for (distance, name) in self.layout.distances().iter().enumerate() {
            let (None, Some(cas)) = (row[distance], atomic[distance]) else { continue };
            let derived = match kind {
                Kind::LoadModified => 0.92 * cas,
                Kind::LoadShared if distance == 0 => 0.40 * cas,
                Kind::LoadShared => 0.75 * cas,
                Kind::LoadMemory if distance < local => USUAL_MEMORY_NS,
                Kind::LoadMemory => USUAL_MEMORY_NS + (cas - atomic[local - 1].unwrap_or(cas)).max(0.0),
                _ => 0.97 * cas,
            };
            page.note(format!(
                "latency_ns.{key} over {name} is not measured here, but derived from atomic_modified"
            ));
            row[distance] = Some(rounded(derived));
        }
    }

    /// Figures that the model does not use: lines that hardware threads of a core share.
    fn add_siblings(&self, page: &mut Page) {
        let meaning = "half a round trip of a word between hardware threads of a core, by compare-and-swap";
        page.add("ping_pong_ns.core", of_kind(&self.siblings, Kind::PingPong), Nature::Typical, meaning);
        let meaning = "load of a line that the other hardware thread of the core has modified";
        page.add(
            "load_modified_ns.core",
            of_kind(&self.siblings, Kind::LoadModified),
            Nature::Typical,
            meaning,
        );
    }
}

/// Latency of the own NUMA node's memory where it cannot be measured. A machine file without it has
/// the same value.
const USUAL_MEMORY_NS: f64 = 90.0;

fn of_kind(samples: &Samples, kind: Kind) -> &[f64] {
    samples.get(&kind).map_or(&[], Vec::as_slice)
}

/// The table of a machine with memory latencies only.
fn of_one_core(page: &mut Page, samples: &Samples) -> LatencyNs {
    let (kind, key, meaning) = ROWS[ROWS.len() - 1];
    let memory =
        page.add(&format!("latency_ns.{key}.socket"), of_kind(samples, kind), Nature::Typical, meaning);
    page.note("one core is described: there are no latencies between cores");
    if memory.is_none() {
        page.note("latency_ns.load_memory is not measured here: it is a usual value");
    }
    let row = || vec![memory.unwrap_or(USUAL_MEMORY_NS)];
    LatencyNs {
        load_modified: row(),
        load_shared: row(),
        load_memory: row(),
        store_modified: row(),
        store_shared: row(),
        atomic_modified: row(),
        atomic_shared: row(),
        provenance: Provenance::MemoryOnly,
    }
}

/// The row without gaps, and never falling with distance, as a machine file requires; `None` if the
/// row is empty.
fn ascending(page: &mut Page, key: &str, names: &[String], row: Vec<Option<f64>>) -> Option<Vec<f64>> {
    let mut values: Vec<f64> = Vec::with_capacity(row.len());
    for distance in 0..row.len() {
        // A distance between no two cores gets the value of the next farther one, or of the last
        // nearer one.
        let farther = row[distance..].iter().flatten().next();
        let value = *farther.or_else(|| row[..distance].iter().flatten().last())?;
        let nearer = values.last().copied().unwrap_or(0.0);
        if row[distance].is_some_and(|measured| measured < nearer) {
            page.note(format!(
                "latency_ns.{key} over {} was {value} ns, less than over the nearer distance: raised to {nearer} ns",
                names[distance]
            ));
        }
        values.push(value.max(nearer));
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_no_gaps_and_never_fall() {
        let names = ["domain", "socket", "remote"].map(str::to_owned);
        let mut page = Page::default();
        let mut row = |row: [Option<f64>; 3]| ascending(&mut page, "load_shared", &names, row.to_vec());
        assert_eq!(row([None, Some(7.0), Some(9.0)]), Some(vec![7.0, 7.0, 9.0]));
        assert_eq!(row([Some(5.0), None, None]), Some(vec![5.0; 3]));
        assert_eq!(row([None; 3]), None);
        assert_eq!(row([Some(5.0), Some(4.0), Some(6.0)]), Some(vec![5.0, 5.0, 6.0]));
        assert_eq!(page.notes.len(), 1, "{:?}", page.notes);
        assert!(page.notes[0].contains("load_shared over socket was 4 ns"), "{:?}", page.notes);
    }
}
