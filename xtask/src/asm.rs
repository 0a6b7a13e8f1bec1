//! The machine code of the locks' fast paths, compared with that of hand-written twins.
//!
//! `crates/twins` has both, function by function. It is compiled for each of [`TARGETS`], its
//! listing is read ([`listing`]), and the fast paths are compared. A lock of nearlock must not be
//! longer by an instruction, and must not order less.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::{Finding, files};

pub mod listing;

use listing::{FastPath, Listing, Processor};

/// A target for which the unit is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target here.
    pub name: &'static str,
    triple: &'static str,
    processor: Processor,
    flags: &'static str,
}

/// The processors whose code is compared.
pub const TARGETS: &[Target] = &[
    Target { name: "x86-64", triple: "x86_64-unknown-linux-gnu", processor: Processor::X86, flags: "" },
    // Here atomics are calls of small functions, which choose between two forms at run time.
    Target { name: "aarch64", triple: "aarch64-unknown-linux-gnu", processor: Processor::Arm, flags: "" },
    Target {
        name: "aarch64+lse",
        triple: "aarch64-unknown-linux-gnu",
        processor: Processor::Arm,
        flags: "-Ctarget-feature=+lse",
    },
];

/// The prefix of functions that are longer than their twins on purpose.
const CONTROL: &str = "control_";

/// Locks that take as much memory as the kernel's spinlock, or must not take more.
const LINUX_SIZED: &[&str] = &[
    "qspinlock",
    "qspinlock_whole_word",
    "qspinlock_preemptible",
    "cna",
    "cna_v13",
    "fifo_spin_lock",
    "spin_lock",
    "cna_lock",
    "near_mutex",
];
const LINUX_BYTES: u64 = 4;

/// An operation of a lock of nearlock, and the same operation written by hand.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The name of both.
    pub name: String,
    /// The fast path of nearlock's function; `None` if there is none without a call.
    pub ours: Option<FastPath>,
    /// The fast path of the twin.
    pub hand: Option<FastPath>,
    /// Whether the compiler found that both are the same, and kept one.
    pub is_one: bool,
}

impl Pair {
    /// Whether nearlock's path is longer than the twin's, or needs a call.
    pub fn is_longer(&self) -> bool {
        match (&self.ours, &self.hand) {
            (Some(ours), Some(hand)) => ours.longest > hand.longest || ours.shortest > hand.shortest,
            _ => true,
        }
    }

    /// Whether a load or store of nearlock is an ordinary one where the twin's is a load-acquire or
    /// a store-release. On x86-64 both are the same instruction, on aarch64 they are different
    /// instructions.
    pub fn is_weaker(&self) -> bool {
        let count = |path: &FastPath| path.instructions.iter().filter(|text| is_ordered(text)).count();
        matches!((&self.ours, &self.hand), (Some(ours), Some(hand)) if count(ours) < count(hand))
    }

    /// The number of instructions: once if the code is the same, with a `~` if only the number is
    /// the same.
    fn verdict(&self) -> String {
        let count = |path: &Option<FastPath>| path.as_ref().map_or("a call".to_owned(), FastPath::to_string);
        let (ours, hand) = (count(&self.ours), count(&self.hand));
        if self.is_longer() {
            format!("{ours} > {hand}")
        } else if self.is_one || self.ours == self.hand {
            ours
        } else if ours == hand {
            format!("{ours} ~")
        } else {
            format!("{ours} < {hand}")
        }
    }

    fn listing(&self) -> String {
        let mut text = String::new();
        for (whose, path) in [("ours", &self.ours), ("twin", &self.hand)] {
            let path = path.as_ref().map(|path| path.instructions.join("\n    "));
            let path = path.unwrap_or("(none without a call)".to_owned());
            let _ = write!(text, "\n  {whose}\n    {path}");
        }
        text
    }
}

/// The contents of one listing.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// All pairs, by name.
    pub pairs: Vec<Pair>,
    /// Sizes in bytes.
    pub sizes: BTreeMap<String, u64>,
}

impl Comparison {
    /// Compares the pairs in a listing of `crates/twins`.
    pub fn of(listing: &Listing) -> Self {
        let symbols: BTreeMap<(String, String), &str> =
            listing.symbols().filter_map(|symbol| Some((path(symbol)?, symbol))).collect();
        let mut pairs = Vec::new();
        let mut sizes = BTreeMap::new();
        for ((module, name), &ours) in &symbols {
            if module == "sizes" {
                sizes.extend(listing.constant(ours).map(|bytes| (name.clone(), bytes)));
            } else if let Some(kind) = module.strip_prefix("ours") {
                let hand = symbols.get(&(format!("hand{kind}"), name.clone())).copied();
                pairs.push(Pair {
                    name: name.clone(),
                    ours: listing.fast_path(ours),
                    hand: hand.and_then(|hand| listing.fast_path(hand)),
                    is_one: hand.is_some_and(|hand| listing.resolve(hand) == listing.resolve(ours)),
                });
            }
        }
        Self { pairs, sizes }
    }

    /// The findings.
    pub fn findings(&self, target: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut find =
            |name: &str, what: String| findings.push(Finding::new(format!("{target}: {name}"), what));
        for pair in &self.pairs {
            if pair.is_weaker() {
                find(&pair.name, format!("orders less than its twin{}", pair.listing()));
            }
            match (pair.name.strip_prefix(CONTROL), pair.is_longer()) {
                (None, true) => find(&pair.name, format!("longer than its twin{}", pair.listing())),
                // `try_lock` of the control is as long as its twin.
                (Some("lock" | "unlock"), false) => {
                    find(&pair.name, format!("a negative control that was not detected{}", pair.listing()));
                }
                _ => {}
            }
        }
        let controls = self.pairs.iter().filter(|pair| pair.name.starts_with(CONTROL)).count();
        if controls == 0 || controls == self.pairs.len() {
            find("crates/twins", "has no pairs, or no negative control".to_owned());
        }
        for name in LINUX_SIZED {
            match self.sizes.get(*name) {
                Some(&LINUX_BYTES) => {}
                size => find(name, format!("has {size:?} bytes, and not {LINUX_BYTES}")),
            }
        }
        findings
    }
}

/// Whether this is a load-acquire or a store-release of aarch64.
fn is_ordered(instruction: &str) -> bool {
    ["ldar", "ldapr", "ldaxr", "stlr", "stlxr"].iter().any(|name| instruction.starts_with(name))
}

/// Module and name of a function or static of `crates/twins`, from its mangled name.
fn path(symbol: &str) -> Option<(String, String)> {
    let (_, rest) = symbol.split_once("14nearlock_twins")?;
    let (module, rest) = part(rest)?;
    let (name, _) = part(rest)?;
    Some((module.to_owned(), name.to_owned()))
}

/// The part of a mangled name at its beginning, and what follows: a length, and as many characters.
fn part(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length = text[..digits].parse().ok()?;
    text[digits..].split_at_checked(length)
}

/// Compiles for each target and compares. Returns the report and the findings. A target that rustup
/// cannot provide is left out, and the report says so.
///
/// # Errors
///
/// If the unit cannot be compiled.
pub fn run() -> Result<(String, Vec<Finding>)> {
    let mut compared = Vec::new();
    let mut report = String::new();
    for target in TARGETS {
        if !provide(target)? {
            let _ = writeln!(report, "skipped {}: rustup has no {} here", target.name, target.triple);
            continue;
        }
        let file = compile(target)?;
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        compared.push((target.name, Comparison::of(&Listing::parse(&text, target.processor))));
    }
    ensure!(!compared.is_empty(), "no target can be compiled for");
    report += &table(&compared);
    let findings = compared.iter().flat_map(|(target, comparison)| comparison.findings(target)).collect();
    Ok((report, findings))
}

/// A row for each pair, a column for each target.
fn table(compared: &[(&str, Comparison)]) -> String {
    let header = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells: String = cells.map(|cell| format!("{cell:>14}")).collect();
        format!("{name:<32}{cells}\n")
    };
    let mut text =
        header("instructions of the fast path", &mut compared.iter().map(|(t, _)| (*t).to_owned()));
    let (_, first) = &compared[0];
    for (index, pair) in first.pairs.iter().enumerate() {
        let verdicts = compared.iter().map(|(_, c)| c.pairs.get(index).map_or(String::new(), Pair::verdict));
        text += &header(&pair.name, &mut verdicts.into_iter());
    }
    text += &header("\nbytes", &mut compared.iter().map(|_| String::new()));
    for name in first.sizes.keys() {
        let sizes = compared.iter().map(|(_, c)| c.sizes.get(name).map_or(String::new(), u64::to_string));
        text += &header(name, &mut sizes.into_iter());
    }
    text + "\ninstructions of the shortest and the longest way: once if the code is that of the twin, with ~ if\n\
            only the number is the same; a > b: ours has a, the twin b\n\
            control_*: longer on purpose, and must be detected\n"
}

/// Installs the target's standard library if it is missing. Returns false if that is impossible.
fn provide(target: &Target) -> Result<bool> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let libdir = Command::new(rustc).args(["--print", "target-libdir", "--target", target.triple]).output();
    let libdir = libdir.context("rustc does not start")?;
    ensure!(libdir.status.success(), "rustc: {}", String::from_utf8_lossy(&libdir.stderr));
    if Path::new(String::from_utf8_lossy(&libdir.stdout).trim()).is_dir() {
        return Ok(true);
    }
    let rustup = Command::new("rustup").args(["target", "add", target.triple]).output();
    Ok(rustup.is_ok_and(|output| output.status.success()))
}

/// Compiles the unit, and returns the path of its listing.
fn compile(target: &Target) -> Result<PathBuf> {
    let root = files::root();
    let build = files::build_directory("asm")?;
    let file = build.join(format!("{}.s", target.name));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(&root)
        // Flags of the user would change the code that is compared.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", target.flags)
        .args(["rustc", "--quiet", "--package", "nearlock-twins", "--lib", "--profile", "asm"])
        .args(["--target", target.triple])
        .arg("--target-dir")
        .arg(&build)
        .args(["--", "--emit"])
        .arg(format!("asm={}", file.display()))
        .status()
        .context("cargo does not start")?;
    if !status.success() {
        bail!("crates/twins cannot be compiled for {}", target.name);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listing with these functions, each with this many instructions before its return.
    fn comparison(functions: &[(&str, usize)]) -> Comparison {
        let mut text = String::new();
        for (symbol, length) in functions {
            let _ = writeln!(text, "{symbol}:\n{}\tretq", "\tnop\n".repeat(*length));
        }
        for name in LINUX_SIZED {
            let _ = writeln!(
                text,
                "_ZN14nearlock_twins5sizes{}{name}17h0E:\n\tmovl\t$4, %eax\n\tretq",
                name.len()
            );
        }
        Comparison::of(&Listing::parse(&text, Processor::X86))
    }

    const OURS: &str = "_ZN14nearlock_twins4ours8mcs_lock17h0123456789abcdefE";
    const HAND: &str = "_RNvNtCs1234_14nearlock_twins4hand8mcs_lock";
    const CONTROL_OURS: &str = "_ZN14nearlock_twins4ours12control_lock17h0123456789abcdefE";
    const CONTROL_HAND: &str = "_ZN14nearlock_twins4hand12control_lock17h0123456789abcdefE";

    fn places(functions: &[(&str, usize)]) -> Vec<String> {
        comparison(functions).findings("x").into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn a_function_that_is_no_longer_than_its_twin_passes() {
        let controls = [(CONTROL_OURS, 2), (CONTROL_HAND, 1)];
        for ours in [2, 3] {
            let all = [&[(OURS, ours), (HAND, 3)][..], &controls].concat();
            assert_eq!(places(&all), [""; 0]);
        }
    }

    #[test]
    fn a_longer_function_is_found() {
        let all = [(OURS, 4), (HAND, 3), (CONTROL_OURS, 2), (CONTROL_HAND, 1)];
        assert_eq!(places(&all), ["x: mcs_lock"]);
        let finding = &comparison(&all).findings("x")[0];
        assert!(finding.what.contains("\n  ours\n    nop\n"), "{}", finding.what);
        assert_eq!(comparison(&all).pairs[1].verdict(), "5 > 4");
    }

    #[test]
    fn a_function_that_orders_less_is_found() {
        let path = |store: &str| {
            let instructions = vec!["mov w8, #1".to_owned(), format!("{store} wzr, [x0]")];
            Some(FastPath { instructions, shortest: 2, longest: 2 })
        };
        for (ours, hand, weaker) in [
            ("strb", "stlrb", true),
            ("stlrb", "stlrb", false),
            ("stlrh", "strh", false),
            ("str", "stlr", true),
        ] {
            let pair = Pair { name: "x".to_owned(), ours: path(ours), hand: path(hand), is_one: false };
            assert_eq!(pair.is_weaker(), weaker, "{ours} {hand}");
        }
    }

    #[test]
    fn a_function_without_a_twin_is_found() {
        let all = [(OURS, 4), (CONTROL_OURS, 2), (CONTROL_HAND, 1)];
        assert_eq!(places(&all), ["x: mcs_lock"]);
    }

    #[test]
    fn a_control_that_is_not_detected_is_found() {
        let all = [(OURS, 3), (HAND, 3), (CONTROL_OURS, 1), (CONTROL_HAND, 1)];
        assert_eq!(places(&all), ["x: control_lock"]);
        assert_eq!(places(&[(OURS, 3), (HAND, 3)]), ["x: crates/twins"]);
    }

    #[test]
    fn a_lock_that_has_grown_is_found() {
        let mut comparison = comparison(&[(OURS, 3), (HAND, 3), (CONTROL_OURS, 2), (CONTROL_HAND, 1)]);
        comparison.sizes.insert("cna_v13".to_owned(), 8);
        let findings = comparison.findings("x");
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().contains("cna_v13: has Some(8) bytes"), "{}", findings[0]);
    }

    #[test]
    fn verdicts_tell_the_same_code_from_as_much_code() {
        let path = |text: &str, shortest, longest| {
            Some(FastPath { instructions: vec![text.to_owned()], shortest, longest })
        };
        let pair = |ours, hand| Pair { name: "x".to_owned(), ours, hand, is_one: false }.verdict();
        assert_eq!(pair(path("a", 1, 1), path("a", 1, 1)), "1");
        assert_eq!(pair(path("a", 1, 2), path("b", 1, 2)), "1-2 ~");
        assert_eq!(pair(path("a", 1, 2), path("b", 1, 3)), "1-2 < 1-3");
        assert_eq!(pair(path("a", 2, 3), path("b", 1, 3)), "2-3 > 1-3");
        assert_eq!(pair(path("a", 1, 4), path("b", 1, 3)), "1-4 > 1-3");
        assert_eq!(pair(None, path("a", 1, 1)), "a call > 1");
    }
}
