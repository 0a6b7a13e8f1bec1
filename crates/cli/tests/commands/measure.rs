//! Measurement of the machine that runs the tests. The figures must exist, but are not judged.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;

use crate::support::{assert_fits, assert_refused, nearlock};
use nearlock_lab::MachineSpec;
use nearlock_lab::names;

/// A directory that only this test uses.
fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("nearlock-measure-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("it can be made");
    directory
}

/// Asserts that all figures of a machine of this size exist and are plausible.
fn assert_plausible(machine: &MachineSpec) {
    let measured = machine.measured.as_ref().expect("it was measured");
    for (key, figure) in &measured.figures {
        assert!(
            0.0 <= figure.low && figure.low <= figure.median && figure.median <= figure.high,
            "{key}: {figure:?}"
        );
        assert!(figure.median > 0.0 && figure.samples > 0, "{key}: {figure:?}");
    }
    let has = |key: &str| measured.figures.contains_key(key);
    for key in
        ["topology.ghz", "local_ns.l1", "local_ns.atomic_owned", "local_ns.pause", "model.futex_call_ns"]
    {
        assert!(has(key), "{key}");
    }
    let has_other_sockets = measured.figures.keys().any(|key| key.contains(".remote"));
    assert_eq!(has_other_sockets, machine.sockets > 1, "{:?}", measured.figures.keys());
    let has_other_cores = measured.figures.keys().any(|key| key.starts_with("latency_ns.atomic_modified."));
    assert_eq!(has_other_cores, machine.cores() > 1, "{:?}", measured.figures.keys());
    assert_eq!(has("ping_pong_ns.core"), machine.smt > 1);
}

#[test]
fn the_file_is_a_machine_that_can_be_simulated() {
    let directory = directory("file");
    let file = directory.join("mine.toml");
    let path = file.to_str().expect("a path of ours is text");
    fs::write(&file, "an older one").expect("it can be written");
    let run = nearlock(&format!("measure --quick --out {path}"));
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
    assert!(
        run.err.contains("measuring; priority: ") && run.err.contains(&format!("wrote {path}")),
        "{}",
        run.err
    );
    assert!(run.err.contains("local_ns.pause") && run.err.contains("quartiles"), "{}", run.err);
    assert_fits(&run.err);
    let machine = names::machine(path).expect("it is a machine");
    assert_eq!(machine.name, "mine");
    assert_plausible(&machine);
    let threads = machine.cpus().min(2);
    let simulated =
        nearlock(&format!("simulate --machine {path} --lock mcs --threads {threads} --format csv"));
    assert_eq!(simulated.code, 0, "{}", simulated.err);
    assert!(simulated.out.contains("\nmine,"), "{}", simulated.out);
    let left: Vec<_> = fs::read_dir(&directory).expect("it is there").collect();
    assert_eq!(left.len(), 1, "nothing unfinished: {left:?}");
    fs::remove_dir_all(directory).expect("it can be removed");
}

#[test]
fn without_a_file_the_machine_goes_to_standard_output() {
    let run = nearlock("measure --quick");
    assert_eq!(run.code, 0, "{}", run.err);
    let machine = MachineSpec::parse(&run.out, "standard output").expect("it is a machine");
    assert_eq!(machine.name, "this-machine");
    assert_eq!(machine.to_toml(), run.out, "written once more");
    assert_plausible(&machine);
}

#[test]
fn a_device_is_written_to_and_not_replaced() {
    let run = nearlock("measure --quick --out /dev/null");
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
    assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_is_measured() {
    let directory = directory("refused");
    let path = directory.to_str().expect("a path of ours is text");
    assert_refused(&format!("measure --out {path}"), &["--out", path, "must be a file that can be written"]);
    assert_refused(
        &format!("measure --out {path}/none/such.toml"),
        &["none/such.toml", "an existing directory"],
    );
    assert_refused("measure --out", &["--out <FILE>"]);
    assert_refused("measure mine.toml", &["unexpected argument 'mine.toml'"]);
    fs::remove_dir_all(directory).expect("it can be removed");
}
