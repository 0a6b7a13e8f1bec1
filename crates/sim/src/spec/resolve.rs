//! Resolves a machine file to a [`MachineSpec`]: defaults, derivation, checks.

use super::error::Problem;
use super::file::{LatencyTable, LocalTable, MachineFile, TopologyTable};
use super::{LatencyNs, LocalNs, MachineSpec, Provenance, SpecError, measured, settings};

/// The only version of the file format.
const SCHEMA: u32 = 1;
/// The maximum number of hardware threads per core. SPARC and POWER have 8.
pub(super) const SMT_MAX: usize = 8;
/// The maximum number of cache domains. The domains that hold a line are the bits of a 64-bit word.
pub const DOMAINS_MAX: usize = 64;
/// The maximum number of cores. The cores that hold a line are the bits of four 64-bit words.
pub const CORES_MAX: usize = 256;
/// The maximum number of distances. No machine has a tenth of them.
const DISTANCES_MAX: usize = 100;
/// The maximum latency, in ns. A larger value is a wrong unit: no line transfer takes 0.1 ms.
pub const LATENCY_MAX_NS: f64 = 100_000.0;
/// The range of clock rates, in GHz. A value outside is a wrong unit (MHz, Hz).
const GHZ_RANGE: std::ops::RangeInclusive<f64> = 0.01..=20.0;

/// The seven rows of a full latency table.
const ROWS: &str = "load_modified, load_shared, load_memory, store_modified, store_shared, atomic_modified, \
                    atomic_shared";

/// Turns a file into the machine that it describes.
pub(super) fn resolve(file: MachineFile, origin: &str) -> Result<MachineSpec, SpecError> {
    build(file).map_err(|Problem { key, problem }| SpecError::Invalid {
        origin: origin.to_owned(),
        key,
        problem,
    })
}

fn build(file: MachineFile) -> Result<MachineSpec, Problem> {
    if file.schema != SCHEMA {
        return Err(Problem::new(
            "schema",
            format!("is {}, this program reads schema {SCHEMA}", file.schema),
        ));
    }
    if file.name.trim().is_empty() {
        return Err(Problem::new("name", "is empty: give the machine a name"));
    }
    if file.name.chars().any(char::is_control) {
        return Err(Problem::new("name", "holds a control character: it is printed in reports"));
    }
    let topology = file.topology;
    let cores_per_domain = topology.cores_per_domain.unwrap_or(topology.cores_per_socket);
    check_counts(&Counts {
        sockets: topology.sockets,
        cores_per_socket: topology.cores_per_socket,
        cores_per_domain,
        smt: topology.smt,
    })?;
    if !GHZ_RANGE.contains(&topology.ghz) {
        let problem =
            format!("is {} GHz, must be {} to {}", topology.ghz, GHZ_RANGE.start(), GHZ_RANGE.end());
        return Err(Problem::new("topology.ghz", problem));
    }
    let local_distances = if cores_per_domain == topology.cores_per_socket { 1 } else { 2 };
    check_distances(&topology, local_distances)?;
    let hops = resolve_hops(&topology, local_distances)?;
    let has_one_core = topology.sockets * topology.cores_per_socket == 1;
    let latency_ns = match memory_only(&file.latency_ns) {
        Some(memory) if has_one_core => of_one_core(memory, &topology.distances)?,
        _ => resolve_latencies(file.latency_ns, &topology.distances, local_distances)?,
    };
    let local_ns = resolve_local(&file.local_ns, topology.ghz, &latency_ns)?;
    file.measured.as_ref().map_or(Ok(()), measured::check)?;
    let spec = MachineSpec {
        name: file.name,
        description: file.description,
        source: file.source,
        confidence: file.confidence,
        sockets: topology.sockets,
        cores_per_socket: topology.cores_per_socket,
        cores_per_domain,
        smt: topology.smt,
        ghz: topology.ghz,
        distances: topology.distances,
        local_distances,
        hops,
        latency_ns,
        local_ns,
        model: file.model,
        measured: file.measured,
    };
    settings::check_model(&spec)?;
    Ok(spec)
}

/// The sizes of a machine.
pub(super) struct Counts {
    pub(super) sockets: usize,
    pub(super) cores_per_socket: usize,
    pub(super) cores_per_domain: usize,
    pub(super) smt: usize,
}

/// Checks that the machine has CPUs, has whole domains, and fits the simulator's limits.
pub(super) fn check_counts(counts: &Counts) -> Result<(), Problem> {
    let Counts { sockets, cores_per_socket, cores_per_domain, smt } = *counts;
    let named = [
        ("sockets", sockets),
        ("cores_per_socket", cores_per_socket),
        ("cores_per_domain", cores_per_domain),
        ("smt", smt),
    ];
    for (key, value) in named {
        if value == 0 {
            return Err(Problem::new(format!("topology.{key}"), "is 0, must be at least 1"));
        }
    }
    if smt > SMT_MAX {
        return Err(Problem::new("topology.smt", format!("is {smt}, must be at most {SMT_MAX}")));
    }
    if !cores_per_socket.is_multiple_of(cores_per_domain) {
        let problem = format!("{cores_per_domain} does not divide cores_per_socket, {cores_per_socket}");
        return Err(Problem::new("topology.cores_per_domain", problem));
    }
    let cores = sockets.saturating_mul(cores_per_socket);
    let totals = [("cache domains", cores / cores_per_domain, DOMAINS_MAX), ("cores", cores, CORES_MAX)];
    for (what, count, most) in totals {
        if count > most {
            return Err(Problem::new("topology", format!("makes {count} {what}, must be at most {most}")));
        }
    }
    Ok(())
}

fn check_distances(topology: &TopologyTable, local_distances: usize) -> Result<(), Problem> {
    let distances = &topology.distances;
    let key = "topology.distances";
    for (index, name) in distances.iter().enumerate() {
        if name.trim().is_empty() || distances[..index].contains(name) {
            return Err(Problem::new(key, format!("`{name}` is empty or given twice: names must differ")));
        }
    }
    if distances.len() > DISTANCES_MAX {
        let problem = format!("has {}, must have at most {DISTANCES_MAX}", distances.len());
        return Err(Problem::new(key, problem));
    }
    let least = local_distances + usize::from(topology.sockets > 1);
    if distances.len() < least {
        let example = match (local_distances, topology.sockets) {
            (1, 1) => r#"["socket"]"#,
            (1, _) => r#"["socket", "remote"]"#,
            (_, 1) => r#"["domain", "socket"]"#,
            _ => r#"["domain", "socket", "remote"]"#,
        };
        let problem = format!("has {}, this topology needs at least {least}: {example}", list(distances));
        return Err(Problem::new(key, problem));
    }
    Ok(())
}

fn resolve_hops(topology: &TopologyTable, local_distances: usize) -> Result<Vec<Vec<usize>>, Problem> {
    let remote = &topology.distances[local_distances..];
    let sockets = topology.sockets;
    let key = "topology.hops";
    let Some(hops) = &topology.hops else {
        if sockets > 1 && remote.len() > 1 {
            let names = remote.join(", ");
            let problem = format!(
                "is missing: with {} distances between sockets ({names}), give a matrix of {sockets} rows of \
                 {sockets} hops, 0 for the same socket and 1 to {} for the others",
                remote.len(),
                remote.len()
            );
            return Err(Problem::new(key, problem));
        }
        return Ok((0..sockets).map(|a| (0..sockets).map(|b| usize::from(a != b)).collect()).collect());
    };
    if hops.len() != sockets {
        let problem = format!("has {} rows, must have one for each of {sockets} sockets", hops.len());
        return Err(Problem::new(key, problem));
    }
    for (a, row) in hops.iter().enumerate() {
        if row.len() != sockets {
            let problem = format!("row {a} has {} values, must have {sockets}, one per socket", row.len());
            return Err(Problem::new(key, problem));
        }
    }
    for (a, row) in hops.iter().enumerate() {
        for (b, &hop) in row.iter().enumerate() {
            check_hop(hops, remote, (a, b), hop).map_err(|problem| Problem::new(key, problem))?;
        }
    }
    Ok(hops.clone())
}

fn check_hop(
    hops: &[Vec<usize>],
    remote: &[String],
    (a, b): (usize, usize),
    hop: usize,
) -> Result<(), String> {
    if a == b && hop != 0 {
        return Err(format!("socket {a} is {hop} hops from itself, must be 0"));
    }
    if a != b && !(1..=remote.len()).contains(&hop) {
        return Err(format!("sockets {a} and {b} are {hop} hops apart, must be 1 to {}", remote.len()));
    }
    if hop != hops[b][a] {
        let back = hops[b][a];
        return Err(format!(
            "sockets {a} and {b} are {hop} hops apart one way and {back} the other: must agree"
        ));
    }
    Ok(())
}

fn resolve_latencies(
    table: LatencyTable,
    distances: &[String],
    local_distances: usize,
) -> Result<LatencyNs, Problem> {
    if let Some(cas) = &table.cas {
        if given_rows(&table) > 0 {
            let problem = format!("stands beside other rows: give latency_ns.cas alone, or all of {ROWS}");
            return Err(Problem::new("latency_ns.cas", problem));
        }
        check_row("cas", cas, distances)?;
        return Ok(derive(cas, local_distances));
    }
    let rows = given_rows(&table);
    let needed = |row: Option<Vec<f64>>, name: &str| {
        let row = row.ok_or_else(|| {
            let problem = format!("is missing: give latency_ns.cas, or all of {ROWS}");
            Problem::new(
                if rows == 0 { "latency_ns".to_owned() } else { format!("latency_ns.{name}") },
                problem,
            )
        })?;
        check_row(name, &row, distances)?;
        Ok(row)
    };
    Ok(LatencyNs {
        load_modified: needed(table.load_modified, "load_modified")?,
        load_shared: needed(table.load_shared, "load_shared")?,
        load_memory: needed(table.load_memory, "load_memory")?,
        store_modified: needed(table.store_modified, "store_modified")?,
        store_shared: needed(table.store_shared, "store_shared")?,
        atomic_modified: needed(table.atomic_modified, "atomic_modified")?,
        atomic_shared: needed(table.atomic_shared, "atomic_shared")?,
        provenance: Provenance::Given,
    })
}

/// `load_memory`, if the file has no other row.
fn memory_only(table: &LatencyTable) -> Option<&[f64]> {
    let memory = table.load_memory.as_deref()?;
    (table.cas.is_none() && given_rows(table) == 1).then_some(memory)
}

/// The table of a machine without a second core to take a line from.
fn of_one_core(memory: &[f64], distances: &[String]) -> Result<LatencyNs, Problem> {
    check_row("load_memory", memory, distances)?;
    let row = || memory.to_vec();
    Ok(LatencyNs {
        load_modified: row(),
        load_shared: row(),
        load_memory: row(),
        store_modified: row(),
        store_shared: row(),
        atomic_modified: row(),
        atomic_shared: row(),
        provenance: Provenance::MemoryOnly,
    })
}

/// How many rows besides `cas` the file has.
fn given_rows(table: &LatencyTable) -> usize {
    [
        &table.load_modified,
        &table.load_shared,
        &table.load_memory,
        &table.store_modified,
        &table.store_shared,
        &table.atomic_modified,
        &table.atomic_shared,
    ]
    .iter()
    .filter(|row| row.is_some())
    .count()
}

fn check_row(name: &str, row: &[f64], distances: &[String]) -> Result<(), Problem> {
    let key = format!("latency_ns.{name}");
    if row.len() != distances.len() {
        let problem = format!("has {} values, this machine has {}", row.len(), list(distances));
        return Err(Problem::new(key, problem));
    }
    for (&value, distance) in row.iter().zip(distances) {
        check_latency(&format!("{key} ({distance})"), value)?;
    }
    for (pair, names) in row.windows(2).zip(distances.windows(2)) {
        if pair[1] < pair[0] {
            let problem = format!(
                "{} ns over distance {}, but {} ns over the nearer {}: latencies must not fall with distance",
                pair[1], names[1], pair[0], names[0]
            );
            return Err(Problem::new(key, problem));
        }
    }
    Ok(())
}

/// Checks that an access to memory can take this time.
fn check_latency(key: &str, value: f64) -> Result<(), Problem> {
    if value.is_finite() && value > 0.0 && value <= LATENCY_MAX_NS {
        return Ok(());
    }
    Err(Problem::new(key, format!("is {value} ns, must be above 0 and at most {LATENCY_MAX_NS} ns")))
}

/// Derives the full table from one compare-and-swap latency per distance. [`super`] documents the
/// rule.
fn derive(cas: &[f64], local_distances: usize) -> LatencyNs {
    /// DRAM of the own socket, if no figure is given.
    const LOCAL_MEMORY_NS: f64 = 90.0;
    let scaled = |factor: f64| cas.iter().map(|latency| factor * latency).collect::<Vec<_>>();
    let socket = cas[local_distances - 1];
    let by_distance = cas.iter().enumerate();
    LatencyNs {
        load_modified: scaled(0.92),
        load_shared: by_distance
            .clone()
            .map(|(d, latency)| if d == 0 { 0.40 } else { 0.75 } * latency)
            .collect(),
        load_memory: by_distance
            .map(|(d, latency)| LOCAL_MEMORY_NS + if d < local_distances { 0.0 } else { latency - socket })
            .collect(),
        store_modified: scaled(0.97),
        store_shared: scaled(0.97),
        atomic_modified: cas.to_vec(),
        atomic_shared: scaled(0.97),
        provenance: Provenance::Derived,
    }
}

fn resolve_local(table: &LocalTable, ghz: f64, latency_ns: &LatencyNs) -> Result<LocalNs, Problem> {
    // Rounded to picoseconds, so that the value can be listed.
    let cycles = |count: f64| (count / ghz * 1000.0).round() / 1000.0;
    let local = LocalNs {
        l1: table.l1.unwrap_or(cycles(5.0)),
        atomic_owned: table.atomic_owned.unwrap_or(cycles(20.0)),
        pause: table.pause,
    };
    check_local(&local, latency_ns)?;
    Ok(local)
}

/// Checks the latencies inside the core, and compares them with those of accesses that leave it.
pub(super) fn check_local(local: &LocalNs, latency_ns: &LatencyNs) -> Result<(), Problem> {
    check_latency("local_ns.l1", local.l1)?;
    check_latency("local_ns.atomic_owned", local.atomic_owned)?;
    check_latency("local_ns.pause", local.pause)?;
    let nearest = latency_ns.load_modified[0];
    if local.l1 > nearest {
        let problem = format!(
            "is {} ns, must be at most latency_ns.load_modified over the nearest distance, {nearest} ns",
            local.l1
        );
        return Err(Problem::new("local_ns.l1", problem));
    }
    Ok(())
}

/// For example "2 distances (socket, remote)".
fn list(distances: &[String]) -> String {
    let noun = if distances.len() == 1 { "distance" } else { "distances" };
    format!("{} {noun} ({})", distances.len(), distances.join(", "))
}
