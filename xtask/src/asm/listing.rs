//! A compiler's listing: the functions in it, and their fast paths.
//!
//! The *fast path* of a function consists of all instructions on a way from its beginning to a
//! return that neither waits nor calls. A way through an out-of-line slow path does not count, and
//! neither does one through a loop that pauses. Both outcomes of an attempt count.
//!
//! Three calls count as instructions. The first is the call of an atomic operation for processors
//! that may not have the instruction. The second asks who the caller is (`WHO`), for locks that
//! name their owner. The third asks where the caller's own data is (`OWN`), for locks whose holder
//! is in a section.

use std::collections::{BTreeMap, BTreeSet};
use std::{fmt, mem};

/// The processors, whose listings differ in form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// x86-64, in the syntax of AT&T.
    X86,
    /// 64-bit Arm.
    Arm,
}

/// How the program continues after an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Flow {
    /// To the next one.
    Next,
    /// To this label.
    Jump(String),
    /// To this label or to the next one.
    Branch(String),
    /// To the next one, or elsewhere without coming back.
    BranchAway,
    /// To the caller.
    Return,
    /// Not within the fast path: a call, a wait, or the end of the program.
    Away,
}

/// An instruction.
#[derive(Clone, Debug)]
struct Instruction {
    text: String,
    flow: Flow,
}

/// A function's code.
#[derive(Clone, Debug, Default)]
struct Function {
    instructions: Vec<Instruction>,
    /// Labels, and the instruction that follows each.
    labels: BTreeMap<String, usize>,
}

/// The fast path of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastPath {
    /// Its instructions, in which labels and out-of-line places have the same names in all
    /// functions.
    pub instructions: Vec<String>,
    /// The number of instructions on the shortest way.
    pub shortest: usize,
    /// The number of instructions on the longest way that visits no instruction twice.
    pub longest: usize,
}

impl fmt::Display for FastPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shortest, longest, .. } = self;
        if shortest == longest { write!(f, "{longest}") } else { write!(f, "{shortest}-{longest}") }
    }
}

/// All functions of a listing.
#[derive(Clone, Debug)]
pub struct Listing {
    functions: BTreeMap<String, Function>,
    /// Second names of functions.
    aliases: BTreeMap<String, String>,
}

impl Listing {
    /// Reads a listing.
    pub fn parse(text: &str, processor: Processor) -> Self {
        let mut listing = Self { functions: BTreeMap::new(), aliases: BTreeMap::new() };
        let mut symbol = String::new();
        let mut asks_for_own = false;
        for line in text.lines() {
            let line = processor.without_comment(line);
            if let Some((alias, of)) = alias(line) {
                listing.aliases.insert(alias.to_owned(), of.to_owned());
            } else if let Some(label) = line.strip_suffix(':').filter(|l| !l.starts_with(char::is_whitespace))
            {
                if label.starts_with(".L") {
                    let function = listing.functions.entry(symbol.clone()).or_default();
                    function.labels.insert(label.to_owned(), function.instructions.len());
                } else {
                    symbol = label.to_owned();
                }
            } else if line.trim_start().starts_with(OWN_CALL_NEXT) {
                asks_for_own = true;
            } else if let Some(mut instruction) = processor.instruction(line) {
                if mem::take(&mut asks_for_own) {
                    instruction.flow = Flow::Next;
                }
                listing.functions.entry(symbol.clone()).or_default().instructions.push(instruction);
            }
        }
        listing
    }

    /// The names that begin a function or are a second name of one.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().chain(self.aliases.keys()).map(String::as_str)
    }

    /// The symbol that has the code. This may be a second name of a function, or a function that
    /// only jumps to another one.
    pub fn resolve<'a>(&'a self, symbol: &'a str) -> &'a str {
        let mut symbol = symbol;
        loop {
            if let Some(of) = self.aliases.get(symbol) {
                symbol = of;
                continue;
            }
            let only = self.functions.get(symbol).map(|function| &function.instructions[..]);
            let target = match only {
                Some([Instruction { text, flow: Flow::Away }]) => text.rsplit(' ').next(),
                _ => None,
            };
            match target.and_then(|target| self.functions.get_key_value(target)) {
                Some((target, _)) if target != symbol => symbol = target,
                _ => return symbol,
            }
        }
    }

    /// The number that this function returns, if it does nothing else.
    pub fn constant(&self, symbol: &str) -> Option<u64> {
        let path = self.fast_path(symbol)?;
        let [load, _return] = &path.instructions[..] else { return None };
        load.split([' ', ',']).find_map(|operand| operand.strip_prefix(['$', '#'])?.parse().ok())
    }

    /// The fast path of this function. `None` if there is none, or if there is no such function.
    pub fn fast_path(&self, symbol: &str) -> Option<FastPath> {
        let function = self.functions.get(self.resolve(symbol))?;
        let path = function.fast_path();
        let mut lengths = Vec::new();
        function.walk(0, &path, &mut BTreeSet::new(), &mut lengths);
        Some(FastPath {
            instructions: function.texts(&path),
            shortest: lengths.iter().copied().min()?,
            longest: lengths.iter().copied().max()?,
        })
    }
}

impl Function {
    /// The instructions that are on the fast path.
    fn fast_path(&self) -> BTreeSet<usize> {
        let count = self.instructions.len();
        let next: Vec<Vec<usize>> = (0..count).map(|index| self.next(index)).collect();
        let mut before = vec![Vec::new(); count];
        for (from, to) in next.iter().enumerate() {
            to.iter().for_each(|&to| before[to].push(from));
        }
        let returns = (0..count).filter(|&index| self.instructions[index].flow == Flow::Return);
        let forward = reached([0].into_iter().filter(|&first| first < count), &next);
        let backward = reached(returns, &before);
        let stays = |index: &usize| self.instructions[*index].flow != Flow::Away;
        forward.intersection(&backward).copied().filter(stays).collect()
    }

    /// Adds the lengths of all ways from this instruction to a return, after the instructions in
    /// `done`.
    fn walk(&self, at: usize, path: &BTreeSet<usize>, done: &mut BTreeSet<usize>, lengths: &mut Vec<usize>) {
        if !path.contains(&at) || !done.insert(at) {
            return;
        }
        if self.instructions[at].flow == Flow::Return {
            lengths.push(done.len());
        }
        for next in self.next(at) {
            self.walk(next, path, done, lengths);
        }
        done.remove(&at);
    }

    /// The instructions that may follow within the fast path.
    fn next(&self, index: usize) -> Vec<usize> {
        let label = |label: &String| self.labels.get(label).copied();
        let mut next = match &self.instructions[index].flow {
            Flow::Next | Flow::BranchAway => vec![index + 1],
            Flow::Jump(to) => label(to).into_iter().collect(),
            Flow::Branch(to) => label(to).into_iter().chain([index + 1]).collect(),
            Flow::Return | Flow::Away => Vec::new(),
        };
        next.retain(|&next| next < self.instructions.len());
        next
    }

    fn texts(&self, path: &BTreeSet<usize>) -> Vec<String> {
        // The name of a label is its position on the path. A label that is not on the path is out
        // of line.
        let target = |label: &String| match self.labels.get(label) {
            Some(at) if path.contains(at) => format!("+{}", path.range(..at).count()),
            _ => "away".to_owned(),
        };
        let text = |index: &usize| {
            let Instruction { text, flow } = &self.instructions[*index];
            match flow {
                Flow::Jump(label) | Flow::Branch(label) => text.replace(label.as_str(), &target(label)),
                Flow::BranchAway => {
                    text.rsplit_once(' ').map_or(text.clone(), |(op, _)| format!("{op} away"))
                }
                _ => text.clone(),
            }
        };
        path.iter().map(text).collect()
    }
}

/// All instructions that can be reached from these.
fn reached(from: impl Iterator<Item = usize>, next: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<usize> = from.collect();
    while let Some(index) = left.pop() {
        if reached.insert(index) {
            left.extend(&next[index]);
        }
    }
    reached
}

/// `.set alias, of` or `alias = of`.
fn alias(line: &str) -> Option<(&str, &str)> {
    let (alias, of) = match line.trim().strip_prefix(".set") {
        Some(pair) => pair.split_once(',')?,
        None => line.split_once(" = ")?,
    };
    Some((alias.trim(), of.trim()))
}

impl Processor {
    fn without_comment(self, line: &str) -> &str {
        let sign = match self {
            Processor::X86 => "#",
            Processor::Arm => "//",
        };
        line.split(sign).next().unwrap_or_default().trim_end()
    }

    /// The instruction of this line, if it is one and not a directive.
    fn instruction(self, line: &str) -> Option<Instruction> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (&mnemonic, operands) = words.split_first()?;
        if mnemonic.starts_with('.') {
            return None;
        }
        let target = operands.last().copied().unwrap_or_default();
        let flow = match self {
            Processor::X86 => x86_flow(mnemonic, target),
            Processor::Arm => arm_flow(mnemonic, target),
        };
        Some(Instruction { text: words.join(" "), flow })
    }
}

/// The mangled name of the function that returns the caller's thread id.
const WHO: &str = "11nearlock_os6thread2id";

/// The function that returns the address of the calling thread's data.
const OWN: &str = "__tls_get_addr";
/// What the target of such a call has if the linker replaces it by an empty instruction.
const OWN_DESCRIPTOR: &str = "@TLSCALL";
/// The line before such a call on Arm, where the function is in a register.
const OWN_CALL_NEXT: &str = ".tlsdesccall";

fn is_local(target: &str) -> bool {
    target.starts_with(".L")
}

fn is_for_own_data(target: &str) -> bool {
    target.contains(WHO) || target.starts_with(OWN) || target.to_ascii_uppercase().contains(OWN_DESCRIPTOR)
}

fn x86_flow(mnemonic: &str, target: &str) -> Flow {
    match mnemonic {
        "ret" | "retq" => Flow::Return,
        "jmp" if is_local(target) => Flow::Jump(target.to_owned()),
        "pause" | "ud2" => Flow::Away,
        _ if mnemonic.starts_with("call") && is_for_own_data(target) => Flow::Next,
        _ if mnemonic.starts_with("jmp") || mnemonic.starts_with("call") => Flow::Away,
        _ if mnemonic.starts_with('j') && is_local(target) => Flow::Branch(target.to_owned()),
        _ if mnemonic.starts_with('j') => Flow::BranchAway,
        _ => Flow::Next,
    }
}

fn arm_flow(mnemonic: &str, target: &str) -> Flow {
    match mnemonic {
        "ret" => Flow::Return,
        "b" if is_local(target) => Flow::Jump(target.to_owned()),
        // An atomic instruction of processors that may not have it is a function of the compiler.
        "bl" if target.starts_with("__aarch64_") || target.contains(WHO) => Flow::Next,
        "b" | "bl" | "br" | "blr" | "isb" | "yield" | "wfe" | "brk" => Flow::Away,
        "cbz" | "cbnz" | "tbz" | "tbnz" if is_local(target) => Flow::Branch(target.to_owned()),
        _ if mnemonic.starts_with("b.") && is_local(target) => Flow::Branch(target.to_owned()),
        "cbz" | "cbnz" | "tbz" | "tbnz" => Flow::BranchAway,
        _ if mnemonic.starts_with("b.") => Flow::BranchAway,
        _ => Flow::Next,
    }
}

#[cfg(test)]
mod tests;
