//! The locks that are measured, and their situations.

use std::collections::BTreeSet;

use nearlock_bench::bench::{Candidate, Cell, MissingPeer, Mode, PEERS, Peer, Point, Unfit, Waiters};
use nearlock_lab::locks::{self, entries};
use nearlock_lab::{Family, SUBJECTS, Subject};

use super::readers;
use crate::args::BenchArgs;
use crate::report;

/// The default lock and its baseline.
const LOCK: &str = "near-mutex";
const BASELINE: &str = "parking-lot-0.13";
/// By default these are measured in all situations, and the other peers only where it takes little
/// time.
const MAIN_PEERS: [&str; 3] = ["std", BASELINE, "pthread-mutex"];
/// In the modes that have situations of their own, this is measured by default too.
const OLDER_PEER: &str = "parking-lot-0.12";

#[derive(Debug, thiserror::Error)]
pub enum UnfitLock {
    #[error("{flag}: {lock} has no readers; these have: {}", with_readers().join(", "))]
    NoReaders { flag: &'static str, lock: &'static str },
    #[error(
        "--mode {}: no baseline can be measured in it; {lock}: {reason}; name another one with --baseline, for \
         example {}", .mode.name(), baseline(*.mode)
    )]
    NoBaseline { mode: Mode, lock: &'static str, reason: Unfit },
}

/// The names of all algorithms and peers that have readers.
fn with_readers() -> Vec<&'static str> {
    let is_algorithm = |lock: &&Subject| lock.algorithm.name == lock.name && lock.family() != Family::Control;
    let locks = SUBJECTS.iter().filter(is_algorithm).map(Candidate::Lock);
    let all = locks.chain(PEERS.iter().map(Candidate::Peer));
    all.filter(|lock| lock.has_readers()).map(Candidate::name).collect()
}

/// The usual baseline of a mode.
fn baseline(mode: Mode) -> &'static str {
    if mode == Mode::Writer { readers::BASELINE } else { BASELINE }
}

/// Whether all locks must have readers: some sections read, or there is no other mode than that of
/// a writer among readers.
fn must_read(args: &BenchArgs, situations: &[(Mode, Point)]) -> bool {
    !args.read_percent.is_empty() || situations.iter().all(|&(mode, _)| mode == Mode::Writer)
}

/// Why a lock is measured. This determines its situations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// It was named: measured in all situations.
    Named,
    /// It is one of `all`: not measured oversubscribed if its waiters only spin.
    OneOfAll,
    /// No lock was named: measured where it takes little time.
    Unasked,
    /// The same, beside the gates of reader-writer locks.
    BesideReaders,
}

struct Selected {
    lock: Candidate,
    reason: Reason,
}

impl Selected {
    fn named(lock: Candidate) -> Self {
        Self { lock, reason: Reason::Named }
    }

    fn is_measured(&self, mode: Mode, point: Point) -> bool {
        if self.reason == Reason::BesideReaders {
            return readers::is_shown(self.lock, mode, point);
        }
        let Candidate::Peer(peer) = self.lock else { return true };
        match self.reason {
            Reason::Named | Reason::BesideReaders => true,
            Reason::OneOfAll if self.lock.unfit_for(mode) == Some(Unfit::Control) => false,
            Reason::OneOfAll => !mode.is_crowded() || peer.waiters == Waiters::Leave,
            Reason::Unasked if self.lock.unfit_for(mode).is_some() => false,
            Reason::Unasked => {
                MAIN_PEERS.contains(&peer.name)
                    || matches!(mode, Mode::Uncontended | Mode::Stores(_) | Mode::Parallel)
                    || peer.name == OLDER_PEER && (mode.point().is_some() || mode == Mode::Beside)
            }
        }
    }
}

/// The locks and peers, and those of them that are baselines.
pub struct Choice {
    chosen: Vec<Selected>,
    pub baselines: Vec<Candidate>,
}

impl Choice {
    /// Adds baselines that are in neither list. If sections read, `all` means all with readers.
    pub fn of(args: &BenchArgs, situations: &[(Mode, Point)]) -> anyhow::Result<Self> {
        let must_read = must_read(args, situations);
        let is_open = args.lock.is_empty() && args.peers.is_empty() && args.baseline.is_empty();
        let mut chosen = locks(args, must_read)?;
        for name in &args.peers {
            match name.as_str() {
                "all" => chosen.extend(all_peers(|peer| peer.has_readers() == must_read, Reason::OneOfAll)),
                name => chosen.push(Selected::named(Candidate::Peer(Peer::named(name)?))),
            }
        }
        let mut baselines: Vec<Candidate> = Vec::new();
        for name in entries(&args.baseline) {
            let baseline = Candidate::named(name)?;
            if !baselines.iter().any(|other| other.name() == baseline.name()) {
                baselines.push(baseline);
            }
        }
        if is_open && !must_read {
            chosen.extend(all_peers(|peer| !peer.has_readers(), Reason::Unasked));
            baselines.push(Candidate::named(BASELINE)?);
        }
        if is_open && args.is_full_with_readers() {
            for name in [readers::OTHER, readers::CONTROL] {
                chosen.push(Selected { lock: Candidate::named(name)?, reason: Reason::BesideReaders });
            }
            chosen.extend(all_peers(Peer::has_readers, Reason::BesideReaders));
            baselines.push(Candidate::named(readers::BASELINE)?);
        }
        let is_chosen = |lock: &Candidate| chosen.iter().any(|other| other.lock.name() == lock.name());
        let missing: Vec<_> =
            baselines.iter().copied().filter(|lock| !is_chosen(lock)).map(Selected::named).collect();
        let mut chosen: Vec<_> = missing.into_iter().chain(chosen).collect();
        let is_baseline = |lock: Candidate| baselines.iter().any(|other| other.name() == lock.name());
        chosen
            .iter_mut()
            .filter(|chosen| is_baseline(chosen.lock))
            .for_each(|chosen| chosen.reason = Reason::Named);
        if baselines.is_empty() {
            let suits_all = |chosen: &&Selected| situations.iter().all(|&(mode, _)| chosen.lock.suits(mode));
            baselines.push(chosen.iter().find(suits_all).unwrap_or(&chosen[0]).lock);
        }
        for Selected { lock, .. } in &chosen {
            if must_read && !lock.has_readers() {
                let flag = if args.read_percent.is_empty() { "--mode writer" } else { "--read-percent" };
                return Err(UnfitLock::NoReaders { flag, lock: lock.name() }.into());
            }
            if let Candidate::Peer(peer) = lock {
                peer.obtain()?;
            }
        }
        Ok(Self { chosen, baselines })
    }

    /// The situations, with the locks that are measured in each. Reports locks that are left out
    /// since they lack what a mode needs. Without a given window, a mode may have a longer one.
    pub fn cells(
        &self,
        situations: Vec<(Mode, Point)>,
        given_ms: Option<u64>,
    ) -> Result<Vec<Cell>, UnfitLock> {
        let mut left_out = BTreeSet::new();
        let mut cells = Vec::new();
        for (mode, point) in situations {
            let mut locks = Vec::new();
            for Selected { lock, .. } in self.chosen.iter().filter(|chosen| chosen.is_measured(mode, point)) {
                match lock.unfit_for(mode) {
                    None => locks.push(*lock),
                    Some(reason) => _ = left_out.insert((mode.name(), reason, lock.name())),
                }
            }
            let is_baseline =
                |lock: &Candidate| self.baselines.iter().any(|other| other.name() == lock.name());
            if !locks.iter().any(is_baseline) {
                let unfit = |lock: &Candidate| Some((lock.name(), lock.unfit_for(mode)?));
                if let Some((lock, reason)) = self.baselines.iter().find_map(unfit) {
                    return Err(UnfitLock::NoBaseline { mode, lock, reason });
                }
            }
            cells.push(Cell { mode, point, locks, own: mode.least().filter(|_| given_ms.is_none()) });
        }
        for (mode, reason, lock) in left_out {
            report::say(format_args!("left out of {mode}: {lock}: {reason}"));
        }
        Ok(cells)
    }
}

/// The locks and peers of `--lock`.
fn locks(args: &BenchArgs, must_read: bool) -> anyhow::Result<Vec<Selected>> {
    let working = || {
        let fits = |lock: &Candidate| !must_read || lock.has_readers();
        Subject::working().map(Candidate::Lock).filter(fits).map(Selected::named)
    };
    let mut chosen = Vec::new();
    if args.lock.is_empty() {
        if args.is_full_with_readers() {
            chosen.push(Selected::named(Candidate::Lock(locks::lock(readers::LOCK)?)));
        } else if must_read {
            chosen.extend(working());
        } else {
            chosen.push(Selected::named(Candidate::Lock(locks::lock(LOCK)?)));
        }
    }
    for name in entries(&args.lock) {
        match name {
            "all" => chosen.extend(working()),
            name => chosen.push(Selected::named(Candidate::named(name)?)),
        }
    }
    Ok(chosen)
}

/// All available peers of a kind. Reports those that are not available.
fn all_peers(is_of_kind: impl Fn(&Peer) -> bool, reason: Reason) -> impl Iterator<Item = Selected> {
    let here = |peer: &&'static Peer| match peer.obtain() {
        Ok(()) => true,
        Err(missing @ MissingPeer { .. }) => {
            report::say(format_args!("left out: {missing}"));
            false
        }
    };
    let of_kind = PEERS.iter().filter(move |peer| is_of_kind(peer)).filter(here);
    of_kind.map(move |peer| Selected { lock: Candidate::Peer(peer), reason })
}
