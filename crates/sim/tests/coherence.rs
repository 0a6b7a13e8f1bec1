//! The effects of simulated memory that programs can see, and the costs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use nearlock_collection::classic::ttas::{NoPreRead, TtasLock, TtasTuning};
use nearlock_core::platform::{
    AsymFence, Atomic, AtomicInt, Clock, Platform, Priority, SplitWord, Topology, Work,
};
use nearlock_core::raw::{RawLock, RawTryLock};
use nearlock_core::tuning::Standard;
use nearlock_sim::spec::{Access, LoadOfModified, MachineSpec, NodeCount, OwnershipOverlap};
use nearlock_sim::{Counters, Machine, Pause, Placed, Sim};

type U32 = <Sim as Platform>::U32;

/// The latest end of every run.
const END_NS: u64 = 1_000_000;

fn haswell() -> MachineSpec {
    let mut spec = MachineSpec::builtin("haswell-ex-4s").unwrap();
    spec.set("jitter", "0").unwrap();
    spec
}

fn own_word(machine: &Machine) -> Rc<Placed<U32>> {
    Rc::new(machine.place(0, U32::new(0)))
}

fn finish(machine: &Machine) -> Counters {
    assert_eq!(machine.run_until(END_NS), Pause::Finished);
    machine.counters()
}

#[test]
fn operations_do_what_the_natives_do() {
    let machine = Machine::new(&haswell(), 1);
    let word = own_word(&machine);
    let pointer = Rc::new(machine.place(0, <Sim as Platform>::Ptr::<u8>::new(std::ptr::null_mut())));
    let wide = Rc::new(machine.place(0, <Sim as Platform>::U64::new(1 << 40)));
    machine.spawn(5, 0, move || {
        word.store(0xa1b2_c3d4, Release);
        assert_eq!(word.load(Acquire), 0xa1b2_c3d4, "forwarded from the store buffer");
        word.store_low_byte(0x11, Release);
        assert_eq!(word.load(Relaxed), 0xa1b2_c311, "a partial store is waited for");
        word.store_low_half(0x2233, Relaxed);
        assert_eq!(word.swap_high_half(0x4455, Acquire), 0xa1b2);
        assert_eq!(word.swap(7, Relaxed), 0x4455_2233);
        assert_eq!(word.compare_exchange(8, 9, Acquire, Relaxed), Err(7));
        assert_eq!(word.compare_exchange(7, 9, Acquire, Relaxed), Ok(7));
        assert_eq!((word.fetch_add(1, Relaxed), word.fetch_sub(11, Relaxed)), (9, 10));
        assert_eq!((word.fetch_and(0xff, Relaxed), word.fetch_or(0x100, Relaxed)), (u32::MAX, 0xff));
        let mut target = 3_u8;
        pointer.store(&raw mut target, Relaxed);
        assert_eq!(pointer.load(Relaxed), &raw mut target);
        assert_eq!((wide.fetch_add(1, Relaxed), wide.load(Relaxed)), (1 << 40, (1 << 40) + 1));
        assert_eq!(Sim::wait_until(&**word, Relaxed, |v| v == 0x1ff), 0x1ff);
    });
    finish(&machine);
}

/// Runs two tasks on two sockets. Returns the values that they saw.
fn litmus(delay_ns: u64, seed: u64, bodies: [fn(&U32, &U32) -> u32; 2]) -> [u32; 2] {
    let machine = Machine::new(&haswell(), seed);
    let words = [own_word(&machine), own_word(&machine)];
    let seen = Rc::new(RefCell::new([0; 2]));
    for (i, body) in bodies.into_iter().enumerate() {
        let (words, seen) = (words.clone(), Rc::clone(&seen));
        machine.spawn(i * 40, 0, move || {
            // Both lines are in both caches, and the two tasks begin together or `delay_ns` apart.
            let _ = (words[0].load(Relaxed), words[1].load(Relaxed));
            Sim::busy_ns(2_000 - Sim::now_ns() + i as u64 * delay_ns);
            let r = body(&words[0], &words[1]);
            seen.borrow_mut()[i] = r;
        });
    }
    finish(&machine);
    seen.take()
}

#[test]
fn stores_may_be_overtaken_by_later_loads_but_not_past_a_sequentially_consistent_store() {
    let plain: [fn(&U32, &U32) -> u32; 2] = [
        |x, y| {
            x.store(1, Release);
            y.load(Acquire)
        },
        |x, y| {
            y.store(1, Release);
            x.load(Acquire)
        },
    ];
    assert_eq!(litmus(0, 1, plain), [0, 0], "store buffering is the point of a store buffer");
    let ordered: [fn(&U32, &U32) -> u32; 2] = [
        |x, y| {
            x.store(1, SeqCst);
            y.load(SeqCst)
        },
        |x, y| {
            y.store(1, SeqCst);
            x.load(SeqCst)
        },
    ];
    for delay_ns in (0..600).step_by(7) {
        assert_ne!(litmus(delay_ns, 1, ordered), [0, 0], "{delay_ns} ns apart");
    }
}

/// Dekker's pattern between two sockets. The second task begins `delay_ns` after the first. `slow`
/// tasks have a store before their own store that takes long. Only the oldest buffered store
/// requests its line.
fn dekker(delay_ns: u64, slow: [bool; 2], fences: [fn(); 2]) -> [u32; 2] {
    let mut spec = haswell();
    spec.model.ownership_overlap = OwnershipOverlap::None;
    // A fence that takes time would hide the reorderings that it allows.
    spec.model.heavy_fence_ns = 0.0;
    let machine = Machine::new(&spec, 1);
    let words = [own_word(&machine), own_word(&machine)];
    let far = [own_word(&machine), own_word(&machine)];
    let seen = Rc::new(RefCell::new([0; 2]));
    for mine in 0..2 {
        let (words, far, seen, other) = (words.clone(), far.clone(), Rc::clone(&seen), 1 - mine);
        machine.spawn(mine * 40, 0, move || {
            far[other].store(1, SeqCst);
            let _ = (words[0].load(Relaxed), words[1].load(Relaxed));
            Sim::busy_ns(3_000 - Sim::now_ns() + mine as u64 * delay_ns);
            if slow[mine] {
                far[mine].store(2, Relaxed);
            }
            words[mine].store(1, Relaxed);
            fences[mine]();
            let r = words[other].load(Relaxed);
            seen.borrow_mut()[mine] = r;
        });
    }
    finish(&machine);
    seen.take()
}

#[test]
fn a_heavy_fence_orders_the_other_side_too() {
    const LIGHT: fn() = <Sim as AsymFence>::light;
    const HEAVY: fn() = <Sim as AsymFence>::heavy;
    assert_eq!(dekker(0, [false; 2], [LIGHT; 2]), [0, 0], "light fences order nothing between each other");
    for delay_ns in (0..800).step_by(7) {
        for slow in [[false, false], [false, true], [true, false], [true, true]] {
            for fences in [[LIGHT, HEAVY], [HEAVY, LIGHT], [HEAVY; 2]] {
                let seen = dekker(delay_ns, slow, fences);
                assert_ne!(seen, [0, 0], "{delay_ns} ns apart, slow: {slow:?}");
            }
        }
    }
}

#[test]
fn stores_become_visible_in_order_whichever_line_comes_first() {
    // The writer already owns the second store's line, but not the first store's, so it must wait.
    for delay_ns in (0..900).step_by(3) {
        let seen = litmus(
            delay_ns,
            1,
            [
                |data, flag| {
                    flag.store(0, Relaxed);
                    Sim::busy_ns(400);
                    data.store(1, Relaxed);
                    flag.store(1, Release);
                    0
                },
                |data, flag| {
                    let flag = flag.load(Acquire);
                    flag * 2 + data.load(Relaxed)
                },
            ],
        );
        assert_ne!(seen[1], 2, "the flag without the data, {delay_ns} ns apart");
    }
}

#[test]
fn words_that_share_a_line_move_together() {
    #[repr(C)]
    struct Words<T> {
        first: U32,
        second: T,
    }
    #[repr(align(64))]
    struct Aligned(U32);

    fn transfers<T: 'static>(second: T, word: fn(&T) -> &U32) -> u64 {
        let machine = Machine::new(&haswell(), 1);
        let words = Rc::new(machine.place(0, Words { first: U32::new(0), second }));
        for cpu in [0, 40] {
            let words = Rc::clone(&words);
            machine.spawn(cpu, 0, move || {
                let word = if cpu == 0 { &words.first } else { word(&words.second) };
                for _ in 0..100 {
                    word.fetch_add(1, Relaxed);
                }
            });
        }
        finish(&machine).line_transfers
    }
    assert_eq!(transfers(Aligned(U32::new(0)), |a| &a.0), 2, "one transfer from memory for each word");
    assert!(transfers(U32::new(0), |word| word) > 10, "false sharing");
}

#[test]
fn siblings_share_a_cache_and_neighbours_do_not() {
    let transfers = |cpu| {
        let machine = Machine::new(&haswell(), 1);
        let word = own_word(&machine);
        for (cpu, start_ns) in [(0, 0), (cpu, 1_000)] {
            let word = Rc::clone(&word);
            machine.spawn(cpu, start_ns, move || {
                word.fetch_add(1, Relaxed);
            });
        }
        let counters = finish(&machine);
        (counters.line_transfers, counters.remote_transfers)
    };
    assert_eq!(transfers(1), (1, 0), "the other thread of core 0");
    assert_eq!(transfers(2), (2, 0), "another core of the socket");
    assert_eq!(transfers(40), (2, 1), "another socket");
}

#[test]
fn latencies_are_those_of_the_machine() {
    let spec = haswell();
    let machine = Machine::new(&spec, 1);
    let word = own_word(&machine);
    let times = Rc::new(RefCell::new(Vec::new()));
    for (cpu, start_ns) in [(0, 0), (2, 10_000), (40, 20_000)] {
        let (word, times) = (Rc::clone(&word), Rc::clone(&times));
        machine.spawn(cpu, start_ns, move || {
            let before = Sim::now_ns();
            word.fetch_add(1, Relaxed);
            times.borrow_mut().push(Sim::now_ns() - before);
        });
    }
    finish(&machine);
    let expected = [(Access::LoadMemory, 0), (Access::AtomicModified, 0), (Access::AtomicModified, 1)]
        .map(|(access, distance)| spec.latency(access, distance) as u64);
    assert_eq!(*times.borrow(), expected, "from memory, from a neighbour, from another socket");
}

#[test]
fn a_waiter_costs_nothing_until_the_line_changes() {
    let machine = Machine::new(&haswell(), 1);
    let word = own_word(&machine);
    let waiter = Rc::clone(&word);
    machine.spawn(0, 0, move || {
        Sim::wait_until(&**waiter, Acquire, |v| v == 2);
    });
    machine.spawn(40, 0, move || {
        Sim::busy_ns(500_000);
        word.store(1, Release);
        Sim::busy_ns(1_000);
        word.store(2, Release);
    });
    let counters = finish(&machine);
    assert!(counters.events < 30, "{} events", counters.events);
}

#[test]
fn a_bounded_wait_ends_after_its_turns() {
    let spec = haswell();
    let machine = Machine::new(&spec, 1);
    let word = own_word(&machine);
    let pause_ns = spec.local_ns.pause;
    machine.spawn(0, 0, move || {
        word.load(Relaxed);
        let before = Sim::now_ns();
        assert_eq!(Sim::wait_until_bounded(&**word, Relaxed, 512, |v| v == 1), 0);
        let waited = (Sim::now_ns() - before) as f64;
        assert!((waited - 512.0 * pause_ns).abs() < 20.0, "{waited} ns");
    });
    finish(&machine);
}

#[test]
fn tasks_that_wait_for_nothing_are_a_deadlock_and_endless_ones_run_out_of_time() {
    let machine = Machine::new(&haswell(), 1);
    let word = own_word(&machine);
    machine.spawn(0, 0, move || {
        Sim::wait_until(&**word, Acquire, |v| v == 1);
    });
    assert_eq!(machine.run_until(END_NS), Pause::Deadlock(1));
    let machine = Machine::new(&haswell(), 1);
    machine.spawn(0, 0, || {
        loop {
            Sim::cpu_relax(0);
        }
    });
    assert_eq!(machine.run_until(END_NS), Pause::Time);
    assert_eq!(machine.run_until(2 * END_NS), Pause::Time);
}

#[test]
fn values_of_a_task_are_dropped_when_the_run_is_given_up() {
    let witness = Rc::new(Cell::new(()));
    let machine = Machine::new(&haswell(), 1);
    for cpu in [0, 7] {
        let held = Rc::clone(&witness);
        machine.spawn(cpu, 0, move || {
            let _held = held;
            loop {
                Sim::cpu_relax(0);
            }
        });
    }
    assert_eq!(machine.run_until(1_000), Pause::Time);
    drop(machine);
    assert_eq!(Rc::strong_count(&witness), 1);
}

#[test]
#[should_panic(expected = "out of the task")]
fn a_panic_in_a_task_comes_out_of_the_run() {
    let machine = Machine::new(&haswell(), 1);
    machine.spawn(0, 0, || panic!("out of the task"));
    machine.run_until(END_NS);
}

#[test]
#[should_panic(expected = "outside simulated memory")]
fn a_word_that_was_not_placed_is_refused() {
    let machine = Machine::new(&haswell(), 1);
    machine.spawn(0, 0, || {
        U32::new(0).load(Relaxed);
    });
    machine.run_until(END_NS);
}

#[test]
fn tasks_know_their_node_and_their_urgency() {
    let machine = Machine::new(&haswell(), 1);
    for (cpu, node) in [(0, 0), (35, 0), (36, 1), (143, 3)] {
        machine.spawn(cpu, 0, move || {
            assert_eq!(Sim::numa_node(), node);
            assert!(!Sim::is_priority());
            Sim::set_priority(node == 1);
            assert_eq!(Sim::is_priority(), node == 1);
        });
    }
    finish(&machine);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    fn run(seed: u64) -> (Counters, u64) {
        let machine = Machine::new(&MachineSpec::builtin("haswell-ex-4s").unwrap(), seed);
        let word = own_word(&machine);
        for cpu in 0..20 {
            let word = Rc::clone(&word);
            machine.spawn(cpu * 7, 0, move || {
                for _ in 0..200 {
                    while word.swap(1, Acquire) != 0 {
                        Sim::wait_until(&**word, Relaxed, |v| v == 0);
                    }
                    word.store(0, Release);
                }
            });
        }
        (finish(&machine), machine.now_ns())
    }
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_buffer_of_one_store_holds_nothing_back() {
    let mut spec = haswell();
    spec.set("store-buffer-entries", "1").unwrap();
    let machine = Machine::new(&spec, 1);
    let word = own_word(&machine);
    let from_memory_ns = spec.latency(Access::LoadMemory, 0) as u64;
    machine.spawn(0, 0, move || {
        let before = Sim::now_ns();
        word.store(1, Relaxed);
        assert!(Sim::now_ns() - before >= from_memory_ns);
    });
    finish(&machine);
}

/// Line transfers of failed attempts by three neighbouring cores.
fn transfers_of_failed_attempts<T: TtasTuning>() -> u64 {
    let machine = Machine::new(&haswell(), 1);
    let lock = Rc::new(machine.place(0, TtasLock::<Sim, T>::default()));
    for cpu in [0, 2, 4, 6] {
        let lock = Rc::clone(&lock);
        machine.spawn(cpu, cpu as u64, move || {
            if cpu == 0 {
                // SAFETY: the lock is never unlocked, as the test intends.
                unsafe { lock.lock(&()) };
                return;
            }
            Sim::busy_ns(1_000);
            for _ in 0..10 {
                // SAFETY: the attempts fail.
                assert!(!unsafe { lock.try_lock(&()) });
            }
        });
    }
    finish(&machine).line_transfers
}

#[test]
fn the_pre_read_saves_line_transfers() {
    let (with, without) =
        (transfers_of_failed_attempts::<Standard>(), transfers_of_failed_attempts::<NoPreRead>());
    assert!(with <= 4 && without > 10, "{with} with, {without} without");
}

#[test]
fn a_load_may_take_over_what_another_core_has_modified() {
    // One core writes, a second loads and then adds, a third only loads.
    let run = |load| {
        let mut spec = haswell();
        spec.model.load_of_modified = load;
        let machine = Machine::new(&spec, 1);
        let word = own_word(&machine);
        let took_ns = Rc::new(Cell::new([0; 2]));
        let writer = Rc::clone(&word);
        machine.spawn(0, 0, move || writer.store(7, Relaxed));
        let (adder, took) = (Rc::clone(&word), Rc::clone(&took_ns));
        machine.spawn(2, 2_000, move || {
            assert_eq!(adder.load(Relaxed), 7);
            let loaded_ns = Sim::now_ns();
            assert_eq!(adder.fetch_add(1, Relaxed), 7);
            let added_ns = Sim::now_ns();
            Sim::busy_ns(2_000);
            assert_eq!(adder.load(Relaxed), 8);
            took.set([added_ns - loaded_ns, Sim::now_ns() - added_ns - 2_000]);
        });
        machine.spawn(4, 3_000, move || assert_eq!(word.load(Relaxed), 8));
        finish(&machine);
        took_ns.get()
    };
    let spec = haswell();
    let upgrade_ns = spec.latency(Access::AtomicShared, 0) as u64;
    let [shared, again] = run(LoadOfModified::Share);
    assert!(shared >= upgrade_ns && again < 10, "{shared} {again}");
    let [taken, again] = run(LoadOfModified::TakeOver);
    assert!(taken < upgrade_ns / 2 && again >= 10, "the third took it over in turn: {taken} {again}");
}

#[test]
fn leaving_the_queue_takes_the_node_back_if_it_holds_the_count() {
    use nearlock_collection::linux::qspinlock::QSpinLock;
    // A holder and three waiters, so that two queue. Then the last of them queues again, behind
    // another holder.
    let transfers = |count| {
        let mut spec = haswell();
        spec.model.node_count = count;
        spec.model.tick_hz = 0.0;
        let machine = Machine::new(&spec, 1);
        let lock = Rc::new(machine.place(0, QSpinLock::<Sim>::default()));
        for cpu in [0, 2, 4, 6] {
            let lock = Rc::clone(&lock);
            machine.spawn(cpu, 100 * cpu as u64, move || {
                for _ in 0..20 {
                    // SAFETY: the lock needs no node of the caller's, and this thread holds it.
                    unsafe {
                        lock.lock(&());
                        Sim::busy_ns(1_000);
                        lock.unlock(&());
                    }
                }
            });
        }
        finish(&machine).line_transfers
    };
    assert_ne!(transfers(NodeCount::InNode), transfers(NodeCount::Free));
}

/// For example the guard of a chain's lock, if its task is suspended when the run ends.
#[test]
fn values_that_the_end_of_a_machine_drops_may_write_words() {
    struct Releases(Rc<Placed<U32>>);
    impl Drop for Releases {
        fn drop(&mut self) {
            self.0.swap(0, Release);
        }
    }
    let machine = Machine::new(&haswell(), 1);
    let word = own_word(&machine);
    let held = Rc::clone(&word);
    machine.spawn(0, 0, move || {
        held.store(1, Relaxed);
        let _guard = Releases(held);
        Sim::busy_ns(10 * END_NS);
    });
    assert_ne!(machine.run_until(END_NS), Pause::Finished);
    assert_eq!(word.load(Relaxed), 1, "its section goes on");
    drop(machine);
    assert_eq!(word.load(Relaxed), 0);
}
