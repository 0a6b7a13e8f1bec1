//! Asymmetric fences: what the models of locks rely on, and that they do not promise more.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nearlock_core::platform::{AsymFence, Atomic};
use nearlock_core::strong_fences;
use nearlock_model::engine::{Engine, Thread};
use nearlock_model::loom::{Loom, LoomU32};
use nearlock_model::model::Model;
use nearlock_model::mutate::{Half, failure_of, mutants};

fn no_fence() {}

/// Dekker's pattern between the first thread and each of the others: write one's own word, fence, read the
/// other's. Of each pair one must see the other.
fn dekker(name: &str, first: fn(), others: &'static [fn()]) -> Model {
    let threads = others.len() as u32 + 1;
    Model::<Loom>::new(name, threads, Some(3), move || {
        Loom::begin_fences(threads);
        let words: Arc<[LoomU32]> = (0..threads).map(|_| Atomic::new(0)).collect();
        let spawned: Vec<_> = (1..threads)
            .zip(others)
            .map(|(slot, fence)| {
                let words = words.clone();
                let seen = Arc::new(std::sync::atomic::AtomicU32::new(0));
                let note = seen.clone();
                let thread = Thread { slot: Some(slot), ..Thread::default() };
                let handle = Loom::spawn(thread, move || {
                    words[slot as usize].store(1, Relaxed);
                    fence();
                    note.store(words[0].load(Relaxed), Relaxed);
                });
                (handle, seen)
            })
            .collect();
        words[0].store(1, Relaxed);
        first();
        let seen: Vec<_> = words[1..].iter().map(|word| word.load(Relaxed)).collect();
        for ((handle, other), own) in spawned.into_iter().zip(seen) {
            handle.join().unwrap();
            assert!(own == 1 || other.load(Relaxed) == 1, "neither sees the other");
        }
    })
}

const LIGHT: fn() = <Loom as AsymFence>::light;
const HEAVY: fn() = <Loom as AsymFence>::heavy;

#[test]
fn a_heavy_fence_is_ordered_against_every_other() {
    dekker("heavy and light", HEAVY, &[LIGHT]).check_and_report();
    dekker("light and heavy", LIGHT, &[HEAVY]).check_and_report();
    dekker("two heavy", HEAVY, &[HEAVY]).check_and_report();
    dekker("heavy and two light", HEAVY, &[LIGHT, LIGHT]).check_and_report();
}

/// The same where both are ordinary fences. (loom takes SeqCst operations for AcqRel, but fences for what they are.)
#[test]
fn strong_fences_are_ordered_and_each_is_needed() {
    let (light, heavy): (fn(), fn()) = (strong_fences::light::<Loom>, strong_fences::heavy::<Loom>);
    let models = [
        dekker("strong: light and heavy", light, Box::leak(Box::new([heavy]))),
        dekker("strong: two light", light, Box::leak(Box::new([light]))),
    ];
    let mutants = mutants(&models);
    let dropped: Vec<_> = mutants.iter().map(|mutant| (mutant.site.operation, mutant.site.half)).collect();
    assert_eq!(dropped, [("fence", Half::TotalOrder); 2]);
    assert!(mutants.iter().all(|mutant| mutant.caught.is_some()), "{mutants:#?}");
}

#[test]
fn each_asymmetric_fence_is_a_place_of_its_own() {
    fn light() {
        Loom::light();
    }
    fn heavy() {
        Loom::heavy();
    }
    let mutants = mutants(&[dekker("heavy and light, each missing once", heavy, &[light])]);
    assert_eq!(mutants.len(), 2);
    assert!(mutants.iter().all(|mutant| mutant.site.half == Half::Whole && mutant.caught.is_some()));
}

#[test]
fn without_the_heavy_fence_both_may_miss_the_other() {
    let how = failure_of(&dekker("light alone", LIGHT, &[no_fence as fn()]), None);
    assert!(how.is_some_and(|how| how.contains("neither sees")));
}

#[test]
fn two_light_fences_order_nothing() {
    let how = failure_of(&dekker("two light", LIGHT, &[LIGHT]), None);
    assert!(how.is_some_and(|how| how.contains("neither sees")));
}
