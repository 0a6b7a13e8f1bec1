use super::*;
use fields::FieldRow;
use nearlock_core::settings::{NumaLocality, NumaMode};

fn refused(text: &str) -> String {
    Configuration::new(Group::ALL).set(text).unwrap_err().to_string()
}

fn fields(configuration: &Configuration, workload: &str) -> Vec<FieldRow> {
    configuration.workload(workload).unwrap().fields()
}

fn value(fields: &[FieldRow], key: &str) -> Value {
    fields.iter().find(|field| field.key == key).unwrap().value
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
    assert_eq!(value(&set, "short-holds"), Value::Word("today"));
    assert_eq!(value(&set, "think-ns"), Value::Integer(7));
    assert_eq!(configuration.limits.window_ns, 5000);
    let mut machine = MachineSpec::builtin("haswell-ex-4s").unwrap();
    configuration.configure_machine(&mut machine).unwrap();
    assert_eq!(machine.sockets, 2);
    let texts: Vec<_> = configuration.assigned().iter().map(Assignment::to_string).collect();
    assert_eq!(texts.len(), 7);
    // The parsed form, which differs from the given one.
    assert_eq!(texts[0], "cna-v13.threshold-ns=1000000");
    assert_eq!(texts[4], "locktorture.think-ns=7");
}

#[test]
fn the_hops_of_pairs_are_set() {
    let mut configuration = Configuration::new(Group::ALL);
    for text in ["context1.locks=4", "context1.section-ns=1", "context1.lines=3", "context1.think-ns=2"] {
        configuration.set(text).unwrap();
    }
    configuration.set("context1.partners=anywhere").unwrap();
    let set = fields(&configuration, "context1");
    let numbers = ["locks", "section-ns", "lines", "think-ns"].map(|key| value(&set, key));
    assert_eq!(numbers, [4, 1, 3, 2].map(Value::Integer));
    assert_eq!(value(&set, "partners"), Value::Word("anywhere"));
    assert!(refused("context1.lines=0").contains("1 to 16 lines"));
    assert!(refused("context1.locks=0").contains("1 to 1024 locks"));
    assert!(refused("context1.partners=near").contains("socket or anywhere"));
}

#[test]
fn refusals_say_what_there_is() {
    assert!(refused("threshold").contains("NAME.KEY=VALUE"));
    assert!(refused("threshold=1").contains("NAME.KEY=VALUE"));
    assert!(refused("frob").ends_with("NAME.KEY=VALUE, as in cna-v13.threshold-ns=1000000"));
    let message = refused("cna-v13.treshold-ns=1");
    assert!(message.contains("did you mean `cna-v13.threshold-ns`"), "{message}");
    assert!(message.ends_with("`nearlock list settings` shows all"), "{message}");
    assert!(refused("cna-v13.threshold-ns=1").contains("1000 to 100000000000 ns, not `1`"));
    assert!(refused("cna-v13.threshold-ns=soon").contains("not `soon`"));
    assert!(refused("locktorture.short-holds=v6").contains("v5.10 or today"));
    assert!(refused("numa.mode=maybe").contains("numa.mode must be off, on or auto, not `maybe`"));
    assert!(refused("numa.mode=1").contains("off, on or auto, not `1`"));
    assert!(refused("cna-v13.priority-waiters=2").contains("0 or 1, not `2`"));
    assert!(refused("locktorture.priority-percent=101").contains("0 to 100 %"));
}

#[test]
fn a_key_alone_leads_to_its_settings() {
    for (text, expected) in [
        ("threshold-ns=1ms", "; did you mean `cna.threshold-ns` or `cna-v13.threshold-ns`?"),
        ("treshold-ns=1ms", "; did you mean `cna.threshold-ns`"),
        ("section-ns=200", "`mutex-section.section-ns`?"),
        ("rw-section.lines=2", "`rw-section.read-lines`?"),
        ("smt=1", "; did you mean `machine.smt`"),
        ("machine.cpus=8", "; did you mean `machine.cores-per-socket`, `machine.nodes` or `machine.smt`?"),
        ("machine.socket=2", "; did you mean `machine.nodes`"),
    ] {
        let message = refused(text);
        assert!(message.contains(expected), "{message}");
        assert!(message.contains("? `nearlock list settings"), "{message}");
    }
}

#[test]
fn what_is_no_time_is_told_the_forms() {
    const FORMS: &str = ": write a whole number of ns, or a time with its unit: ps, ns, us, ms or s";
    for text in ["cna.threshold-ns=1m", "simulation.window-ns=soon", "machine.wake-latency-ns=1m"] {
        assert!(refused(text).ends_with(FORMS), "{}", refused(text));
    }
    for text in ["cna.threshold-ns=1000s", "locktorture.priority-percent=x", "machine.smt=x"] {
        assert!(!refused(text).contains("write"), "{}", refused(text));
    }
}

#[test]
fn a_setting_is_repeated_without_its_control_characters() {
    let long = "\u{1b}".repeat(1000);
    for text in [
        long.clone(),
        format!("cna.{long}=1"),
        format!("cna.threshold-ns={long}"),
        format!("machine.{long}=1"),
        format!("machine.smt={long}"),
    ] {
        let message = refused(&text);
        assert!(!message.contains('\u{1b}') && message.len() < 300, "{message}");
    }
}

#[test]
fn times_may_have_units() {
    for (text, shown) in [
        ("cna.threshold-ns=1ms", "cna.threshold-ns=1000000"),
        ("simulation.window-ns=2.5ms", "simulation.window-ns=2500000"),
        ("machine.wake-latency-ns=50us", "machine.wake-latency-ns=50000"),
        ("sections.section-overhead-ps=3ns", "sections.section-overhead-ps=3000"),
    ] {
        let mut configuration = Configuration::new(Group::ALL);
        configuration.set(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(configuration.assigned()[0].to_string(), shown);
    }
}

#[test]
fn machine_settings_are_the_machines() {
    let message = refused("machine.colour=red");
    assert!(message.contains("colour") && message.contains("nearlock list settings"), "{message}");
    assert!(refused("machine.smt=two").contains("machine.smt=two: must be a whole number from 1 to 8"));
    let mut configuration = Configuration::new(Group::ALL);
    configuration.set("machine.sockets=8").unwrap();
    assert_eq!(configuration.assigned()[0].to_string(), "machine.nodes=8");
    let mut machine = MachineSpec::builtin("haswell-ex-4s").unwrap();
    let message = configuration.configure_machine(&mut machine).unwrap_err().to_string();
    assert!(message.contains("machine.nodes=8: must be a whole number from 1 to 4"), "{message}");
}

#[test]
fn what_is_assigned_must_be_of_a_setting_and_of_its_kind() {
    let refused = |setting, value| {
        let assigned = Configuration::new(Group::ALL).assign(Assignment { setting, value });
        assigned.unwrap_err().to_string()
    };
    assert!(
        refused("simulation.window", Value::Integer(5000)).contains("did you mean `simulation.window-ns`")
    );
    assert!(refused("simulation.window-ns", Value::Integer(1)).contains("100000000000 ns, not `1`"));
    assert!(refused("simulation.window-ns", Value::Float(5000.0)).contains("not `5000`"));
    assert!(refused("simulation.placement", Value::Word("far")).contains("random or near, not `far`"));
    assert!(refused("simulation.placement", Value::Integer(0)).contains("random or near, not `0`"));
    let mut configuration = Configuration::new(&[Group::Lock]);
    let of_machine = Assignment { setting: "machine.smt", value: Value::Integer(1) };
    assert!(
        configuration.assign(of_machine).unwrap_err().to_string().contains("no setting `machine.smt` here")
    );
}

#[test]
fn a_group_that_does_not_count_here_is_unknown_here() {
    let message = Configuration::new(&[Group::Lock]).set("machine.smt=1").unwrap_err().to_string();
    assert!(
        message.contains("no setting `machine.smt` here") && !message.contains("simulation"),
        "{message}"
    );
    assert!(
        message.ends_with(
            "only locks have settings here: `nearlock list settings cna hmcs.local-pass-limit \
             cohort.local-pass-limit spin.budget-ns freebsd near-rwlock numa` shows them"
        ),
        "{message}"
    );
    assert!(Configuration::new(&[Group::Machine]).set("machine.smt=1").is_ok());
    let message = Configuration::new(&[Group::Machine]).set("cna.threshold-ns=1").unwrap_err().to_string();
    assert!(message.ends_with("`nearlock list settings machine` shows all of the machine"), "{message}");
}

#[test]
fn the_list_is_complete_and_every_default_can_be_set() {
    let machine = MachineSpec::builtin("haswell-ex-4s").unwrap();
    let rows = all(&machine);
    let of_workloads: usize = workloads().map(|workload| workload.fields().len()).sum();
    assert!(rows.len() > Setting::COUNT + of_workloads + 1);
    let mut configuration = Configuration::new(Group::ALL);
    for row in rows {
        let default = Assignment { setting: row.name, value: row.default };
        configuration.assign(default).unwrap();
        assert_eq!(Assignment::parse(&default.to_string(), Group::ALL).unwrap(), default);
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
    let names: Vec<_> = rows.iter().map(|row| row.name).filter(|name| name.contains("-ns")).collect();
    let at = |name| names.iter().position(|other| *other == name).unwrap();
    assert_eq!(at("open1.call-ns") + 1, at("lock2.call-ns"));
    assert!(at("make-j.round-ns") < at("aim7-alltests.section-ns"));
}
