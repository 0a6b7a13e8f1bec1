//! The directory's entry of one line: its holders, its requests, and the tasks that wait for it to
//! change.

use std::collections::VecDeque;

use crate::access::Access;
use crate::spec::CORES_MAX;

/// A set of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreSet([u64; CORES_MAX / 64]);

impl CoreSet {
    pub fn contains(&self, core: u16) -> bool {
        self.0[usize::from(core) / 64] >> (core % 64) & 1 != 0
    }
    pub fn insert(&mut self, core: u16) {
        self.0[usize::from(core) / 64] |= 1 << (core % 64);
    }
}

/// The source of a request for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A thread, which waits for the answer.
    Thread,
    /// A thread's store buffer.
    StoreBuffer,
    /// A prefetch for a write. No thread waits for it.
    Prefetch,
    /// A prefetch for a load. A load waits for it in the thread's fill buffers.
    PrefetchRead,
}

/// A request for a line.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub access: Access,
    pub task: u32,
    pub core: u16,
    pub origin: Origin,
}

impl Request {
    /// A placeholder for a missing request.
    const NONE: Self = Self { access: Access::NONE, task: 0, core: 0, origin: Origin::Prefetch };
}

/// The state of a line's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Idle: the next request begins at once.
    Idle,
    /// A request has begun; the holder still has the line.
    Begun,
    /// The line is on its way to its new owner, and no core has it.
    Moving,
    /// A reader has been answered, but the line is not yet free for the next request. If there is a
    /// next request, an event marks the moment when the line becomes free.
    Reading,
}

/// The state of a store's earlier request for ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetched {
    /// There is no such request.
    No,
    /// The request performs the store when it is served.
    Taken,
    /// The line is on its way. The store can be done when it arrives.
    Moving,
}

/// A cache line.
#[derive(Debug)]
pub struct Line {
    /// The core that may write the line, if any.
    pub owner: Option<u16>,
    /// Whether the owner has written the line since it got it.
    pub is_modified: bool,
    /// The cores that hold the line. If there is an owner, only the owner.
    pub sharers: CoreSet,
    /// The cache domains of the sharers, one bit each.
    pub sharer_domains: u64,
    /// The socket whose memory it belongs to.
    pub home: u8,
    /// Counts writes and changes of owner, so that a waiter can detect that it missed one.
    pub version: u64,
    pub phase: Phase,
    /// The request that is being served, while the phase is `Begun` or `Moving`.
    pub served: Request,
    /// When the line arrives at the core that is served.
    pub done_ps: u64,
    /// When the next request may begin.
    pub free_ps: u64,
    pub queue: VecDeque<Request>,
    /// How many requests in a row have overtaken older ones.
    pub bypasses: usize,
    /// Tasks that wait for the line to change.
    pub waiters: Vec<u32>,
}

impl Line {
    pub fn new(home: u8) -> Self {
        Self {
            owner: None,
            is_modified: false,
            sharers: CoreSet::default(),
            sharer_domains: 0,
            home,
            version: 0,
            phase: Phase::Idle,
            served: Request::NONE,
            done_ps: 0,
            free_ps: 0,
            queue: VecDeque::new(),
            bypasses: 0,
            waiters: Vec::new(),
        }
    }

    /// Whether `core` can perform the access without a request.
    pub fn hits(&self, core: u16, access: Access) -> bool {
        if self.phase == Phase::Moving {
            return false;
        }
        self.owner == Some(core) || access.is_load() && self.sharers.contains(core)
    }

    /// Whether `core` has already requested ownership.
    pub fn is_asked_for_by(&self, core: u16) -> bool {
        let asks = |request: &Request| request.core == core && !request.access.is_load();
        self.serves() && asks(&self.served) || self.queue.iter().any(asks)
    }

    fn serves(&self) -> bool {
        matches!(self.phase, Phase::Begun | Phase::Moving)
    }

    /// Replaces the same task's prefetch by the store, if a prefetch is in progress.
    pub fn take_over_prefetch(&mut self, store: Request) -> Prefetched {
        let same = |request: &Request| request.task == store.task && request.origin == Origin::Prefetch;
        if self.serves() && same(&self.served) {
            if self.phase == Phase::Moving {
                return Prefetched::Moving;
            }
            self.served = store;
            return Prefetched::Taken;
        }
        match self.queue.iter_mut().find(|request| same(request)) {
            Some(request) => {
                *request = store;
                Prefetched::Taken
            }
            None => Prefetched::No,
        }
    }

    /// Gives the line to `core` exclusively.
    pub fn give(&mut self, core: u16, domain: u8) {
        self.owner = Some(core);
        self.is_modified = false;
        self.sharers = CoreSet::default();
        self.sharers.insert(core);
        self.sharer_domains = 1 << domain;
    }

    /// Adds a reader. A previous owner keeps its copy but may no longer write.
    pub fn share(&mut self, core: u16, domain: u8) {
        if self.owner != Some(core) {
            self.owner = None;
            self.sharers.insert(core);
            self.sharer_domains |= 1 << domain;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Operation;

    fn access(operation: Operation) -> Access {
        Access { offset: 0, width: 4, operation, operand: 0, expected: 0 }
    }

    #[test]
    fn an_owner_writes_sharers_read_and_no_core_hits_a_moving_line() {
        let (load, store) = (access(Operation::Load), access(Operation::Store));
        let mut line = Line::new(0);
        assert!(!line.hits(1, load));
        line.give(1, 0);
        assert!(line.hits(1, store) && !line.hits(2, load));
        line.share(200, 3);
        assert!(line.hits(1, load) && line.hits(200, load));
        assert!(!line.hits(1, store) && !line.hits(200, store));
        assert_eq!(line.sharer_domains, 0b1001);
        line.give(200, 3);
        line.share(200, 3);
        assert!(line.hits(200, store), "an owner that reads stays owner");
        line.phase = Phase::Moving;
        assert!(!line.hits(200, load));
    }
}
