//! Common parts of the commands that print figures.

use std::fs;

/// Whether `cargo bench` runs this, which passes `--bench`. If not, prints the command that
/// measures.
pub fn is_asked_for(command: &str) -> bool {
    let is_asked = std::env::args().any(|argument| argument == "--bench");
    if !is_asked {
        println!("nothing is measured: `cargo bench -p nearlock --bench {command}` does it");
    }
    is_asked
}

/// The name of the processor, in its own words.
pub fn processor() -> String {
    let told = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = told.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| format!("unknown ({})", std::env::consts::ARCH), |(_, name)| name.to_owned())
}
