//! The machine files that come with the simulator.

macro_rules! machines {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each built-in machine.
        pub(super) const MACHINES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*];
    };
}

machines!("haswell-ex-4s",);
