use super::*;

#[test]
fn builtins_parse() {
    for name in MachineSpec::builtin_names() {
        let spec = MachineSpec::builtin(name).unwrap();
        assert_eq!(spec.name, name);
    }
}
