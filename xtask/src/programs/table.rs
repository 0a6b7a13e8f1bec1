//! The programs: crates of crates.io that use parking_lot.

/// A published crate, and what is run of it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The name of the crate.
    pub name: &'static str,
    /// The version. The crates that it depends on have the versions with which it was published.
    pub version: &'static str,
    /// The arguments of cargo: a command and its options.
    pub arguments: &'static [&'static str],
    /// Tests that may fail with nearlock where they pass with parking_lot, each with its reason.
    pub differ: &'static [(&'static str, &'static str)],
}

impl Program {
    /// Whether tests run. Otherwise the crate is only compiled.
    pub fn is_tested(&self) -> bool {
        self.arguments[0] == "test"
    }
}

const fn program(name: &'static str, version: &'static str, arguments: &'static [&'static str]) -> Program {
    Program { name, version, arguments, differ: &[] }
}

/// All of them.
pub const PROGRAMS: &[Program] = &[
    program("tokio", "1.54.1", &["test", "--features", "full,test-util", "--lib", "--tests"]),
    program("moka", "0.12.16", &["test", "--features", "sync,future", "--lib", "--tests"]),
    program("prometheus", "0.14.0", &["test", "--lib", "--tests"]),
    Program {
        // It fails with parking_lot too, but not in every run.
        differ: &[("test::events", "events of two threads, whose order it requires, come in either order")],
        ..program("r2d2", "0.8.10", &["test"])
    },
    program("scheduled-thread-pool", "0.2.8", &["test"]),
    program("governor", "0.10.4", &["test", "--lib", "--tests"]),
    program("quick_cache", "0.7.0", &["test", "--lib", "--tests"]),
    program("stretto", "0.9.0", &["test", "--lib", "--tests"]),
    program("serial_test", "4.0.1", &["test", "--all-features", "--lib", "--tests"]),
    program(
        "tracing-subscriber",
        "0.3.23",
        &["test", "--features", "parking_lot,env-filter,json,registry", "--lib"],
    ),
    program("salsa", "0.28.5", &["test", "--lib", "--tests"]),
    program("wgpu-core", "30.0.2", &["test", "--features", "vulkan", "--lib"]),
];
