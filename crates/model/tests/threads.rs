//! Either engine gives locks the properties of threads that a model has set.

#![cfg(target_pointer_width = "64")]

use std::collections::BTreeSet;

use nearlock_core::platform::{Clock, Random};
use nearlock_core::settings::Setting;
use nearlock_model::engine::{Engine, Handle, Thread};
use nearlock_model::loom::Loom;
use nearlock_model::model::Model;
use nearlock_model::shuttle::Shuttle;
use shuttle::scheduler::RandomScheduler;

fn told<E: Engine>() -> Model<E> {
    fn nodes<E: Engine>() -> BTreeSet<u32> {
        (0..50).map(|_| E::numa_node()).collect()
    }
    let settled = Thread { slot: Some(1), numa_node: 1, ..Thread::default() };
    let urgent_migrant = Thread { migrates: true, urgent: true, ..settled };
    Model::new("threads", 2, None, move || {
        E::set(Setting::HmcsLocalPassLimit, 3);
        let thread = E::spawn(settled, || {
            assert_eq!(nodes::<E>(), BTreeSet::from([1]));
            assert!(!E::is_priority());
            E::set_priority(true);
            assert!(E::is_priority());
        });
        thread.join().unwrap();
        let thread = E::spawn(urgent_migrant, || {
            assert!(nodes::<E>().len() > 1);
            assert!(E::is_priority());
        });
        thread.join().unwrap();
        assert!(!E::is_priority());
        assert_eq!(nodes::<E>(), BTreeSet::from([0]));
        assert_eq!(E::setting(Setting::HmcsLocalPassLimit), 3);
    })
}

#[test]
fn loom_reports_what_the_model_has_set() {
    told::<Loom>().check();
    Model::<Loom>::new("clock and random bits", 1, None, || {
        assert_eq!((Loom::now_ns(), Loom::random_u32()), (0, 0));
        Loom::set_now_ns(7);
        Loom::set_random(5);
        assert_eq!((Loom::now_ns(), Loom::random_u32()), (7, 5));
    })
    .check();
}

#[test]
fn shuttle_reports_what_the_model_has_set() {
    let random = || RandomScheduler::new_from_seed(1, 20);
    told::<Shuttle>().check_with(random());
    Model::<Shuttle>::new("clock and random bits", 1, None, || {
        let times: Vec<_> = (0..200).map(|_| Shuttle::now_ns()).collect();
        assert!(times.is_sorted() && times[0] + 1_000_000 < times[199]);
        let bits = (0..50).map(|_| Shuttle::random_u32()).collect::<BTreeSet<_>>();
        assert!(bits.len() > 40);
    })
    .check_with(random());
}
