//! The parking token: never lost, and each of its orderings needed.

use std::sync::Arc;

use nearlock_core::parker::Parker;
use nearlock_model::engine::{Counter, Engine, Thread};
use nearlock_model::loom::Loom;
use nearlock_model::model::Model;
use nearlock_model::mutate::mutants;

/// Two places, and data that only tokens hand over.
#[derive(Default)]
struct Shared {
    data: <Loom as Engine>::Counter,
    first: Parker<Loom>,
    second: Parker<Loom>,
}

fn model(name: &str, first: fn(&Shared), second: fn(&Shared)) -> Model {
    Model::<Loom>::new(name, 2, None, move || {
        let shared = Arc::new(Shared::default());
        let other = {
            let shared = shared.clone();
            Loom::spawn(Thread::default(), move || second(&shared))
        };
        first(&shared);
        other.join().unwrap();
    })
}

/// Gives up after one look.
fn park_shortly(place: &Parker<Loom>) -> bool {
    place.park_while(|_, _| false)
}

fn models() -> Vec<Model> {
    let write_and_unpark = |shared: &Shared| {
        shared.data.add_one();
        shared.first.unpark();
    };
    let park_and_write = |shared: &Shared| {
        shared.first.park();
        shared.data.add_one();
    };
    let to = |shared: &Shared| {
        shared.data.add_one();
        shared.second.unpark();
        shared.first.park();
        shared.data.add_one();
    };
    let fro = |shared: &Shared| {
        shared.second.park();
        shared.data.add_one();
        shared.first.unpark();
    };
    let perhaps = |shared: &Shared| {
        if park_shortly(&shared.first) {
            shared.data.add_one();
        }
    };
    let at_last = |shared: &Shared| {
        if !park_shortly(&shared.first) {
            shared.first.park();
        }
        shared.data.add_one();
    };
    vec![
        model("parker: one token", park_and_write, write_and_unpark),
        model("parker: to and fro", to, fro),
        model("parker: the owner gives up", perhaps, write_and_unpark),
        model("parker: the owner gives up, and parks again", at_last, write_and_unpark),
    ]
}

#[test]
fn no_token_is_lost_and_every_ordering_is_needed() {
    let mutants = mutants(&models());
    let survivors: Vec<_> = mutants.iter().filter(|mutant| mutant.caught.is_none()).collect();
    assert!(survivors.is_empty(), "{survivors:#?}");
    // Three acquires, and the release.
    assert_eq!(mutants.len(), 4, "{mutants:#?}");
}
