//! Models of the lock that moves from mutex to mutex.

use std::sync::{Arc, OnceLock};

use nearlock_collection::freebsd::spin_mtx::SpinMtx;
use nearlock_collection::freebsd::thread_lock::ThreadLock;
use nearlock_core::raw::RawLock;

use crate::engine::{Counter, Engine};
use crate::exclusion::{Guarded, in_slot};
use crate::loom::Loom;
use crate::model::Model;

/// A lock, the data that it protects, and a mutex that no thread knows before the lock is moved
/// there.
#[derive(Default)]
struct ThreadLockState {
    guarded: Guarded<Loom, ThreadLock<Loom>>,
    other: OnceLock<SpinMtx<Loom>>,
}

impl ThreadLockState {
    fn other(&self) -> &SpinMtx<Loom> {
        self.other.get_or_init(SpinMtx::default)
    }
}

/// The first thread holds the lock when another comes, which tries first or not. In some order the
/// first thread has a section, moves the lock and unlocks it.
fn moved(name: &str, how: &str, tries: bool, act: fn(&ThreadLockState)) -> Model {
    let way = if tries { "tries" } else { "waits" };
    Model::new(format!("{name}: {how} while another {way}"), 2, Some(4), move || {
        let shared = Arc::new(ThreadLockState::default());
        // SAFETY: `act` unlocks it.
        unsafe { shared.guarded.lock.lock(&()) };
        let other = {
            let shared = shared.clone();
            Loom::spawn(in_slot(1), move || {
                if !tries || !shared.guarded.try_section() {
                    shared.guarded.section();
                }
            })
        };
        act(&shared);
        other.join().unwrap();
        assert_eq!(shared.guarded.count.get(), 2);
        assert!(shared.guarded.try_section(), "the lock is free at last");
    })
}

/// The models of its moves.
pub fn moves(name: &str) -> Vec<Model> {
    let to_another: fn(&ThreadLockState) = |shared| {
        // SAFETY: the caller holds the lock, and locks the mutex, which lives as long.
        unsafe {
            shared.other().lock(&());
            shared.guarded.lock.move_to(shared.other());
            shared.guarded.count.add_one();
            shared.guarded.lock.unlock(&());
        }
    };
    let in_two_steps: fn(&ThreadLockState) = |shared| {
        // SAFETY: as above, and the mutex that is returned is unlocked.
        unsafe {
            shared.guarded.lock.begin_move().unlock(&());
            shared.guarded.count.add_one();
            shared.guarded.lock.finish_move(Some(shared.other()));
        }
    };
    let and_back: fn(&ThreadLockState) = |shared| {
        // SAFETY: as above.
        unsafe {
            shared.guarded.lock.begin_move().unlock(&());
            shared.guarded.count.add_one();
            shared.guarded.lock.finish_move(None);
        }
    };
    vec![
        moved(name, "moved to another mutex", false, to_another),
        moved(name, "moved in two steps", false, in_two_steps),
        moved(name, "moved and back", false, and_back),
        moved(name, "moved to another mutex", true, to_another),
        moved(name, "moved and back", true, and_back),
    ]
}
