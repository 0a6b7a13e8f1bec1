use super::*;
use crate::locks;

#[test]
fn a_wait_is_divided_into_sleep_and_the_rest() {
    let mut record = Record::default();
    record.acquired(5, Waited::default());
    record.acquired(1000, Waited { turns: 3, sleeps: 0, slept_ns: 0 });
    record.acquired(9000, Waited { turns: 1, sleeps: 2, slept_ns: 7000 });
    record.acquired(4000, Waited { turns: 0, sleeps: 1, slept_ns: 3500 });
    for hold_ns in [10, 20, 300] {
        record.released(hold_ns);
    }
    let statistics = record.statistics("mutex".to_owned(), Class::Adaptive, Mode::Writer).unwrap();
    assert_eq!((statistics.count, statistics.cnt_lock), (4, 3));
    assert_eq!((statistics.wait_max_ns, statistics.wait_total_ns), (9000, 14_005));
    assert_eq!((statistics.max_ns, statistics.total_ns), (300, 330));
    let [spin, block, hold] = &statistics.events[..] else { panic!("three events") };
    assert_eq!((&*spin.event, spin.count, spin.total_ns, spin.max_ns), ("adaptive-spin", 2, 3000, 2000));
    assert_eq!((&*block.event, block.count, block.total_ns), ("adaptive-block", 2, 10_500));
    assert_eq!((&*hold.event, hold.count), ("adaptive-hold", 3));
    let bucket = |from_ns, count| Bucket { from_ns, count };
    assert_eq!(hold.distribution, [bucket(8, 1), bucket(16, 1), bucket(256, 1)]);
}

#[test]
fn records_of_threads_add_up() {
    let mut sum = Record::default();
    assert!(sum.statistics(String::new(), Class::Rw, Mode::Reader).is_none(), "no acquisition, no row");
    let mut one = Record::default();
    one.acquired(7, Waited { turns: 1, ..Waited::default() });
    one.released(70_000_000_000);
    sum.add(&one);
    sum.add(&one);
    let statistics = sum.statistics("rw".to_owned(), Class::Rw, Mode::Reader).unwrap();
    assert_eq!((statistics.count, statistics.cnt_lock, statistics.total_ns), (2, 2, 140_000_000_000));
    assert_eq!(statistics.events[0].event, "rw-spin");
    assert_eq!(statistics.events[2].distribution.iter().map(|bucket| bucket.count).sum::<u64>(), 2);
}

#[test]
fn locks_are_of_the_class_that_comes_nearest() {
    let class = |name: &str| Class::of(locks::lock(name).unwrap()).name();
    let names =
        ["freebsd-mtx", "linux-mutex", "freebsd-spin-mtx", "cna", "freebsd-rw", "freebsd-sx", "rwsem"];
    assert_eq!(names.map(class), ["adaptive", "adaptive", "spin", "spin", "rw", "sx", "sx"]);
}
