use super::*;
use nearlock_core::settings::{NumaLocality, NumaMode};

fn refused(text: &str) -> String {
    Configuration::new(Group::ALL).set(text).unwrap_err().to_string()
}

fn fields(configuration: &Configuration, workload: &str) -> Vec<FieldRow> {
    configuration.workload(workload).unwrap().fields()
}

fn value<'a>(fields: &'a [FieldRow], key: &str) -> &'a str {
    &fields.iter().find(|field| field.key == key).unwrap().value
}

#[test]
fn each_group_is_set() {
    let mut configuration = Configuration::new(Group::ALL);
    for text in [
        "cna-v13.threshold-ns=1_000_000",
        "numa.mode=off",
        "numa.locality=llc",
        "locktorture.short-holds=today",
        " locktorture.think-ns = 7",
        "simulation.window-ns=5000",
        "machine.nodes=2",
    ] {
        configuration.set(text).unwrap();
    }
    assert_eq!(configuration.locks[Setting::CnaV13ThresholdNs as usize], 1_000_000);
    assert_eq!(configuration.locks[Setting::NumaMode as usize], NumaMode::Off as u64);
    assert_eq!(configuration.locks[Setting::NumaLocality as usize], NumaLocality::LastLevelCache as u64);
    let set = fields(&configuration, "locktorture");
    assert_eq!((value(&set, "short-holds"), value(&set, "think-ns")), ("today", "7"));
    assert_eq!(configuration.limits.window_ns, 5000);
    let mut machine = MachineSpec::builtin("haswell-ex-4s").unwrap();
    configuration.configure_machine(&mut machine).unwrap();
    assert_eq!(machine.sockets, 2);
    assert_eq!(configuration.texts().len(), 7);
    assert_eq!(configuration.texts()[4], "locktorture.think-ns=7");
}

#[test]
fn the_hops_of_pairs_are_set() {
    let mut configuration = Configuration::new(Group::ALL);
    for text in ["context1.locks=4", "context1.section-ns=1", "context1.lines=3", "context1.think-ns=2"] {
        configuration.set(text).unwrap();
    }
    configuration.set("context1.partners=anywhere").unwrap();
    let set = fields(&configuration, "context1");
    let values = ["locks", "section-ns", "lines", "think-ns", "partners"].map(|key| value(&set, key));
    assert_eq!(values, ["4", "1", "3", "2", "anywhere"]);
    assert!(refused("context1.lines=0").contains("1 to 16 lines"));
    assert!(refused("context1.locks=0").contains("1 to 1024 locks"));
    assert!(refused("context1.partners=near").contains("socket or anywhere"));
}

#[test]
fn refusals_say_what_there_is() {
    assert!(refused("threshold").contains("NAME.KEY=VALUE"));
    assert!(refused("threshold=1").contains("NAME.KEY=VALUE"));
    let message = refused("cna-v13.treshold-ns=1");
    assert!(message.contains("did you mean `cna-v13.threshold-ns`?"), "{message}");
    assert!(message.contains("simulation.window-ns"), "{message}");
    assert!(refused("cna-v13.threshold-ns=1").contains("1000 to 100000000000 ns, not `1`"));
    assert!(refused("cna-v13.threshold-ns=soon").contains("not `soon`"));
    assert!(refused("locktorture.short-holds=v6").contains("v5.10 or today"));
    assert!(refused("numa.mode=maybe").contains("numa.mode must be off, on or auto, not `maybe`"));
    assert!(refused("numa.mode=1").contains("off, on or auto, not `1`"));
    assert!(refused("cna-v13.priority-waiters=2").contains("0 or 1, not `2`"));
    assert!(refused("locktorture.priority-percent=101").contains("0 to 100 %"));
}

#[test]
fn machine_settings_are_the_machines() {
    let mut configuration = Configuration::new(Group::ALL);
    configuration.set("machine.colour=red").unwrap();
    let mut machine = MachineSpec::builtin("haswell-ex-4s").unwrap();
    let message = configuration.configure_machine(&mut machine).unwrap_err().to_string();
    assert!(message.contains("colour") && message.contains("smt"), "{message}");
}

#[test]
fn a_group_that_does_not_count_here_is_unknown_here() {
    let message = Configuration::new(&[Group::Lock]).set("machine.smt=1").unwrap_err().to_string();
    assert!(message.contains("cna-v13.tick-hz") && !message.contains("simulation"), "{message}");
}

#[test]
fn the_list_is_complete_and_every_default_can_be_set() {
    let machine = MachineSpec::builtin("haswell-ex-4s").unwrap();
    let rows = all(&machine);
    let of_workloads: usize = workloads().map(|workload| workload.fields().len()).sum();
    assert!(rows.len() > Setting::COUNT + of_workloads + 1);
    let mut configuration = Configuration::new(Group::ALL);
    for row in rows {
        configuration.set(&format!("{}={}", row.name, row.default)).unwrap();
    }
    let mut same = machine.clone();
    configuration.configure_machine(&mut same).unwrap();
    assert_eq!(same, machine);
}

#[test]
fn what_is_set_of_one_of_a_family_is_not_set_of_the_others() {
    let mut configuration = Configuration::new(Group::ALL);
    configuration.set("aim7-shared.rounds=3").unwrap();
    configuration.set("aim7-shared.root-lock=rwsem-xadd-base").unwrap();
    for workload in workloads() {
        let changed = format!("{:?}", configuration.workload(workload.name()).unwrap());
        assert_eq!(changed != format!("{workload:?}"), workload.name() == "aim7-shared", "{changed}");
    }
}

#[test]
fn keys_of_one_family_are_listed_one_after_the_other() {
    let rows = all(&MachineSpec::builtin("haswell-ex-4s").unwrap());
    let names: Vec<_> =
        rows.iter().map(|row| row.name.as_str()).filter(|name| name.contains("-ns")).collect();
    let at = |name| names.iter().position(|other| *other == name).unwrap();
    assert_eq!(at("open1.call-ns") + 1, at("lock2.call-ns"));
    assert!(at("make-j.round-ns") < at("aim7-alltests.section-ns"));
}
