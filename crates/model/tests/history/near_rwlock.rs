//! Faults in the protocol of `near-rwlock`.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::near::rwlock::NearRwLock;
use nearlock_core::platform::Atomic;
use nearlock_core::raw::{RawLock, RawRwLock};
use nearlock_core::settings::Setting;
use nearlock_model::engine::{Engine, Thread};
use nearlock_model::loom::{Loom, LoomU32, LoomU64};
use nearlock_model::model::Model;
use nearlock_model::readers::Act::{self, Read, TryWrite, Write};
use nearlock_model::readers::{acting, read_at_first};

use crate::lines::{Biased, Fault, Form, Fresh, Lines, Start};
use crate::{NO_END, SECTIONS, caught};

/// A form of the lock, by its fault.
macro_rules! form {
    ($name:ident) => {
        struct $name;
        impl Form for $name {
            const FAULT: Fault = Fault::$name;
        }
    };
}

form!(None);

type Acts = &'static [&'static [Act]];

fn model<F: Form, S: Start>(name: &str, acts: Acts, preemptions: usize) -> Model {
    acting::<Loom, Lines<F, S>>(name, acts, Some(preemptions))
}

#[test]
fn near_rwlock_no_fence_after_the_announcement() {
    form!(NoFence);
    fn of<F: Form>() -> Model {
        model::<F, Fresh>("lines", &[&[Write], &[Read]], 2)
    }
    caught("near_rwlock_no_fence_after_the_announcement", &of::<None>(), &of::<NoFence>(), SECTIONS);
}

#[test]
fn near_rwlock_readers_forgotten_before_the_look() {
    form!(ClearsBeforeLook);
    fn of<F: Form>() -> Model {
        model::<F, Fresh>("lines", &[&[Read], &[TryWrite, Write]], 2)
    }
    let test = "near_rwlock_readers_forgotten_before_the_look";
    caught(test, &of::<None>(), &of::<ClearsBeforeLook>(), SECTIONS);
}

#[test]
fn near_rwlock_no_second_look_at_the_bias() {
    form!(NoSecondLook);
    fn of<F: Form>() -> Model {
        model::<F, Biased>("lines, biased at first", &[&[Write, Write], &[Read]], 2)
    }
    let test = "near_rwlock_no_second_look_at_the_bias";
    caught(test, &of::<None>(), &of::<NoSecondLook>(), SECTIONS);
}

#[test]
fn near_rwlock_wake_up_asked_for_after_the_look() {
    form!(MarksAfterLook);
    fn of<F: Form>() -> Model {
        read_at_first::<Loom, Lines<F, Fresh>>("lines", &[&[Write]], Some(2))
    }
    let test = "near_rwlock_wake_up_asked_for_after_the_look";
    caught(test, &of::<None>(), &of::<MarksAfterLook>(), NO_END);
}

#[test]
fn near_rwlock_sleep_on_a_reader_that_turns_back() {
    form!(SleepsOnAny);
    fn of<F: Form>() -> Model {
        read_at_first::<Loom, Lines<F, Fresh>>("lines", &[&[Write], &[Read]], Some(2))
    }
    let test = "near_rwlock_sleep_on_a_reader_that_turns_back";
    caught(test, &of::<None>(), &of::<SleepsOnAny>(), NO_END);
}

/// The first fields of a `NearRwLock` (`repr(C)`).
#[repr(C)]
struct Words {
    mutex: LoomU32,
    mode: LoomU32,
    readers: LoomU32,
    reads: LoomU32,
    id: LoomU64,
}

type NearLock = NearRwLock<Loom>;

/// Reads the lock, which then is in the fenced mode.
fn read_once(lock: &NearLock) {
    Loom::set(Setting::NearRwFencedReads, 1);
    // SAFETY: unlocked at once.
    unsafe {
        lock.lock_shared(&());
        lock.unlock_shared(&());
    }
}

/// The lock itself, with the id of another one, as it could have its address.
#[test]
fn near_rwlock_address_in_place_of_an_id() {
    /// The first id of an execution.
    const FIRST: u64 = 1;
    /// A guard is forgotten, and the lock is gone. Another thread makes a new lock, reads it, and
    /// writes.
    fn model(name: fn(&NearLock)) -> Model {
        let title = "near-rwlock: a guard was forgotten; a new lock, Read, Write";
        Model::new(title, 2, Some(2), move || {
            let lock = NearLock::default();
            read_once(&lock);
            // SAFETY: it is never unlocked.
            unsafe { lock.lock_shared(&()) };
            let other = Loom::spawn(Thread { slot: Some(1), ..Thread::default() }, move || {
                let lock = NearLock::default();
                name(&lock);
                read_once(&lock);
                // SAFETY: unlocked at once.
                unsafe {
                    lock.lock(&());
                    lock.unlock(&());
                }
            });
            other.join().unwrap();
        })
    }
    let name_again = |lock: &NearLock| {
        // SAFETY: the lock begins with these fields.
        let words = unsafe { &*ptr::from_ref(lock).cast::<Words>() };
        words.id.store(FIRST, Relaxed);
    };
    let test = "near_rwlock_address_in_place_of_an_id";
    caught(test, &model(|_| ()), &model(name_again), NO_END);
}
