//! The machine files that come with the simulator.

macro_rules! machines {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each built-in machine.
        pub(super) const MACHINES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*];
    };
}

machines!(
    "westmere-ex-8s",
    "westmere-ex-4s",
    "haswell-ex-4s",
    "haswell-ex-8s",
    "haswell-ex-4830-4s",
    "ivybridge-ep-2s",
    "skylake-sp-8s",
    "cascadelake-2s",
    "epyc-rome-2s",
    "epyc-genoa-2s",
    "graviton3",
    "cortex-a7-quad",
);
