//! Costs of accesses, resolved from the machine's description to picoseconds and table look-ups.

use crate::access::Operation;
use crate::jitter::Factor;
use crate::line::Line;
use crate::spec::{Access as Row, MachineSpec};

/// Picoseconds in a nanosecond.
pub const NS: f64 = 1000.0;

/// A request's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Time from begin to done.
    pub latency_ps: u64,
    /// Time for which the line serves no other request.
    pub occupancy_ps: u64,
    pub transfer: Transfer,
}

/// Whether a line moved, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The line did not move.
    None,
    /// The line moved within a socket.
    Local,
    /// The line moved between sockets.
    Remote,
}

/// The state of the line when the request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The request found the line idle.
    AtOnce,
    /// The request waited at the line, so that only the path from there to the holder is left.
    Queued,
}

/// The latencies of a machine.
pub struct Costs {
    pub l1_ps: u64,
    pub atomic_owned_ps: u64,
    pub pause_ps: u64,
    pub spin_exit_ps: u64,
    grab_fraction: Factor,
    queued_grab_fraction: Factor,
    read_occupancy_modified: Factor,
    read_occupancy_shared_ps: u64,
    home_extra_ps: u64,
    sharer_extra_ps: u64,
    /// By kind of access, then by distance.
    latency_ps: Table<u64>,
    /// By pair of domains.
    distance: Table<u8>,
    /// By domain and socket.
    memory_distance: Table<u8>,
    local_distances: u8,
    pub domain_of_core: Vec<u8>,
    socket_of_domain: Vec<u8>,
}

/// A table of values with two indices, stored row by row.
struct Table<T> {
    columns: usize,
    cells: Vec<T>,
}

impl<T: Copy> Table<T> {
    fn new(rows: usize, columns: usize, cell: impl Fn(usize, usize) -> T) -> Self {
        let cells = (0..rows * columns).map(|i| cell(i / columns, i % columns)).collect();
        Self { columns, cells }
    }

    fn at(&self, row: impl Into<usize>, column: impl Into<usize>) -> T {
        self.cells[row.into() * self.columns + column.into()]
    }
}

const ROWS: [Row; 7] = [
    Row::LoadModified,
    Row::LoadShared,
    Row::LoadMemory,
    Row::StoreModified,
    Row::StoreShared,
    Row::AtomicModified,
    Row::AtomicShared,
];

fn ps(ns: f64) -> u64 {
    (ns * NS) as u64
}

impl Costs {
    pub fn new(spec: &MachineSpec) -> Self {
        let domains = spec.domains();
        Self {
            l1_ps: ps(spec.local_ns.l1),
            atomic_owned_ps: ps(spec.local_ns.atomic_owned),
            pause_ps: ps(spec.local_ns.pause),
            spin_exit_ps: ps(spec.model.spin_exit_ns),
            grab_fraction: Factor::new(spec.model.grab_fraction),
            queued_grab_fraction: Factor::new(spec.model.queued_grab_fraction),
            read_occupancy_modified: Factor::new(spec.model.read_occupancy_modified),
            read_occupancy_shared_ps: ps(spec.model.read_occupancy_shared_ns),
            home_extra_ps: ps(spec.model.home_extra_ns),
            sharer_extra_ps: ps(spec.model.sharer_extra_ns),
            latency_ps: Table::new(ROWS.len(), spec.distances.len(), |row, distance| {
                ps(spec.latency(ROWS[row], distance))
            }),
            distance: Table::new(domains, domains, |a, b| spec.distance(a, b) as u8),
            memory_distance: Table::new(domains, spec.sockets, |d, s| spec.memory_distance(d, s) as u8),
            local_distances: spec.local_distances as u8,
            domain_of_core: (0..spec.cores()).map(|core| spec.domain_of_core(core) as u8).collect(),
            socket_of_domain: (0..domains).map(|d| spec.socket_of_domain(d) as u8).collect(),
        }
    }

    /// The time from begin to grab.
    pub fn grab_ps(&self, cost: Cost, arrival: Arrival) -> u64 {
        let fraction = match arrival {
            Arrival::AtOnce => self.grab_fraction,
            Arrival::Queued => self.queued_grab_fraction,
        };
        fraction.of(cost.latency_ps).min(cost.occupancy_ps)
    }

    pub fn socket_of_core(&self, core: u16) -> u8 {
        self.socket_of_domain[usize::from(self.domain_of_core[usize::from(core)])]
    }

    /// The cost of `operation` by `core` on a line in its present state.
    pub fn of(&self, core: u16, line: &Line, operation: Operation) -> Cost {
        let is_load = operation == Operation::Load;
        if line.owner == Some(core) || is_load && line.sharers.contains(core) {
            let latency_ps = if is_load { self.l1_ps } else { self.atomic_owned_ps };
            return Cost { latency_ps, occupancy_ps: latency_ps, transfer: Transfer::None };
        }
        let domain = self.domain_of_core[usize::from(core)];
        let (latency_ps, occupancy_ps, distance) = match line.owner {
            Some(owner) => self.by_owner(domain, owner, line.home, operation),
            None if line.sharer_domains != 0 => self.by_sharers(domain, line, operation),
            None => {
                let distance = self.memory_distance.at(domain, line.home);
                let latency = self.row(Row::LoadMemory, distance);
                (latency, latency, distance)
            }
        };
        let transfer = if distance < self.local_distances { Transfer::Local } else { Transfer::Remote };
        Cost { latency_ps, occupancy_ps, transfer }
    }

    fn row(&self, row: Row, distance: u8) -> u64 {
        self.latency_ps.at(row as usize, distance)
    }

    fn by_owner(&self, domain: u8, owner: u16, home: u8, operation: Operation) -> (u64, u64, u8) {
        let from = self.domain_of_core[usize::from(owner)];
        let distance = self.distance.at(domain, from);
        let row = match operation {
            Operation::Load => Row::LoadModified,
            Operation::Store | Operation::Prefetch => Row::StoreModified,
            _ => Row::AtomicModified,
        };
        let is_home = |domain: u8| self.socket_of_domain[usize::from(domain)] == home;
        let has_third_hop = self.home_extra_ps > 0 && distance > 0 && !is_home(domain) && !is_home(from);
        let third_hop = if has_third_hop { self.home_extra_ps } else { 0 };
        let latency = self.row(row, distance) + third_hop;
        let occupancy = match operation {
            Operation::Load => self.read_occupancy_modified.of(latency),
            _ => latency,
        };
        (latency, occupancy, distance)
    }

    /// Loads come from the nearest copy. Writes wait until the farthest copy is invalidated.
    fn by_sharers(&self, domain: u8, line: &Line, operation: Operation) -> (u64, u64, u8) {
        let row = match operation {
            Operation::Load => Row::LoadShared,
            Operation::Store | Operation::Prefetch => Row::StoreShared,
            _ => Row::AtomicShared,
        };
        let (mut nearest, mut farthest) = (u8::MAX, 0);
        let mut remote_sockets = 0_u64;
        let mut left = line.sharer_domains;
        while left != 0 {
            let sharer = left.trailing_zeros() as usize;
            left &= left - 1;
            let distance = self.distance.at(domain, sharer);
            nearest = nearest.min(distance);
            farthest = farthest.max(distance);
            if distance >= self.local_distances {
                remote_sockets |= 1 << self.socket_of_domain[sharer];
            }
        }
        if operation == Operation::Load {
            let latency = self.row(row, nearest);
            return (latency, self.read_occupancy_shared_ps.min(latency), nearest);
        }
        let mut latency = self.row(row, farthest);
        if !remote_sockets.is_power_of_two() {
            let further = u64::from(remote_sockets.count_ones()).saturating_sub(1);
            latency += further * self.sharer_extra_ps;
        }
        (latency, latency, farthest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn haswell() -> (MachineSpec, Costs) {
        let spec = MachineSpec::builtin("haswell-ex-4s").unwrap();
        let costs = Costs::new(&spec);
        (spec, costs)
    }

    #[test]
    fn rows_are_in_the_order_of_their_discriminants() {
        for (i, row) in ROWS.into_iter().enumerate() {
            assert_eq!(row as usize, i);
        }
    }

    #[test]
    fn the_state_of_the_line_and_the_distance_decide() {
        let (spec, costs) = haswell();
        let far = spec.cores_per_socket as u16;
        let at = |row, distance| ps(spec.latency(row, distance));
        let mut line = Line::new(0);
        assert_eq!(costs.of(0, &line, Operation::Load).latency_ps, at(Row::LoadMemory, 0));
        assert_eq!(costs.of(far, &line, Operation::Swap).latency_ps, at(Row::LoadMemory, 1));
        line.give(0, 0);
        let near_load = costs.of(1, &line, Operation::Load);
        assert_eq!(near_load.latency_ps, at(Row::LoadModified, 0));
        assert_eq!((near_load.occupancy_ps, near_load.transfer), (near_load.latency_ps / 2, Transfer::Local));
        let far_swap = costs.of(far, &line, Operation::Swap);
        assert_eq!(far_swap.latency_ps, at(Row::AtomicModified, 1));
        assert_eq!((far_swap.occupancy_ps, far_swap.transfer), (far_swap.latency_ps, Transfer::Remote));
        assert_eq!(costs.of(0, &line, Operation::Swap).transfer, Transfer::None);
        line.share(far, 1);
        assert_eq!(costs.of(1, &line, Operation::Load).latency_ps, at(Row::LoadShared, 0), "nearest copy");
        assert_eq!(costs.of(1, &line, Operation::Store).latency_ps, at(Row::StoreShared, 1), "farthest copy");
        assert_eq!(costs.of(0, &line, Operation::Load).transfer, Transfer::None);
    }
}
