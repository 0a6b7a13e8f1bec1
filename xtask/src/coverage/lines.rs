//! Lines of code, reached or not, without those of unit tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item};

use super::reasons;
use crate::files::TextFile;

/// How often each line of a file was reached, by its number from 1; only lines with code.
pub type Counts = BTreeMap<usize, u64>;

/// A line that nothing reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// Its text, without the spaces around it.
    pub text: &'a str,
    /// Why nothing reaches it, if that is known.
    pub reason: Option<&'static str>,
}

/// The lines of a file.
#[derive(Clone, Debug)]
pub struct FileLines<'a> {
    /// The file.
    pub source: &'a TextFile,
    /// The number of lines with code.
    pub total: usize,
    /// The lines that nothing reaches.
    pub missed: Vec<Missed<'a>>,
}

/// Counts by path from `root`, from a file that lcov calls a tracefile.
///
/// # Errors
///
/// If it is not a tracefile.
pub fn read(tracefile: &str, root: &Path) -> Result<BTreeMap<String, Counts>> {
    let mut files = BTreeMap::new();
    let mut path = String::new();
    for record in tracefile.lines() {
        if let Some(file) = record.strip_prefix("SF:") {
            let file = Path::new(file).strip_prefix(root).unwrap_or(Path::new(file));
            path = file.to_string_lossy().replace('\\', "/");
        } else if let Some(line) = record.strip_prefix("DA:") {
            let mut fields = line.split(',').map(str::parse::<u64>);
            let (Some(Ok(number)), Some(Ok(count))) = (fields.next(), fields.next()) else {
                anyhow::bail!("not a line of a tracefile: {record}")
            };
            *files.entry(path.clone()).or_insert_with(Counts::new).entry(number as usize).or_default() +=
                count;
        }
    }
    Ok(files)
}

/// The lines of these files, without items and files that exist only for tests.
///
/// # Errors
///
/// If a file is not Rust.
pub fn without_tests<'a>(
    sources: &'a [TextFile],
    counts: &BTreeMap<String, Counts>,
) -> Result<Vec<FileLines<'a>>> {
    let mut tests = Vec::new();
    for source in sources {
        let mut collector = TestItems { source, lines: BTreeSet::new(), modules: Vec::new() };
        collector.visit_file(&syn::parse_file(&source.text).with_context(|| source.path.clone())?);
        tests.push(collector);
    }
    let is_test = |path: &str| {
        let modules = tests.iter().flat_map(|items| &items.modules);
        modules.into_iter().any(|module| {
            path.strip_prefix(&**module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    };
    let mut files = Vec::new();
    for items in &tests {
        let Some(counts) = counts.get(&items.source.path).filter(|_| !is_test(&items.source.path)) else {
            continue;
        };
        let counts = counts.iter().filter(|(number, _)| !items.lines.contains(number));
        let missed = missed(items.source, counts.clone().map(|(&number, &count)| (number, count)));
        files.push(FileLines { source: items.source, total: counts.count(), missed });
    }
    Ok(files)
}

/// The lines whose count is 0. The reason for a line also applies to the missed lines right after
/// it.
fn missed(source: &TextFile, counts: impl Iterator<Item = (usize, u64)>) -> Vec<Missed<'_>> {
    let texts: Vec<_> = source.text.lines().map(str::trim).collect();
    let mut missed = Vec::new();
    let mut reason = None;
    for (number, count) in counts {
        if count > 0 {
            reason = None;
            continue;
        }
        let text = texts.get(number - 1).copied().unwrap_or_default();
        reason = reasons::of(&source.path, text).or(reason);
        missed.push(Missed { number, text, reason });
    }
    missed
}

/// The share of the lines that are reached, in percent.
pub fn percent(files: &[FileLines<'_>]) -> f64 {
    let total: usize = files.iter().map(|file| file.total).sum();
    let missed: usize = files.iter().map(|file| file.missed.len()).sum();
    100.0 * (total - missed) as f64 / total.max(1) as f64
}

/// A row for each file, the lines that nothing reaches, and why.
pub fn report(files: &[FileLines<'_>]) -> String {
    let mut text = format!("{:<44}{:>8}{:>8}{:>9}\n", "file", "lines", "missed", "reached");
    let mut row = |name: &str, files: &[FileLines<'_>]| {
        let total: usize = files.iter().map(|file| file.total).sum();
        let missed: usize = files.iter().map(|file| file.missed.len()).sum();
        let _ = writeln!(text, "{name:<44}{total:>8}{missed:>8}{:>7.1} %", percent(files));
    };
    for file in files {
        row(&file.source.path, std::slice::from_ref(file));
    }
    row("all", files);
    for file in files {
        let mut last = None;
        for line in &file.missed {
            let reason = line.reason.unwrap_or("no reason is known");
            if last != Some(reason) {
                let _ = writeln!(text, "\n{}: {reason}", file.source.path);
                last = Some(reason);
            }
            let _ = writeln!(text, "{:>6}  {}", line.number, line.text);
        }
    }
    text + "\nLines for other processors than this one are not compiled, and not counted.\n"
}

/// Collects the items that have `#[cfg(test)]`.
struct TestItems<'a> {
    source: &'a TextFile,
    /// The lines of such items.
    lines: BTreeSet<usize>,
    /// The paths of such modules that are separate files, without `.rs`.
    modules: Vec<String>,
}

impl TestItems<'_> {
    /// The path of a module that this file declares, without `.rs`.
    fn module(&self, name: &str) -> String {
        let path = self.source.path.trim_end_matches(".rs");
        let parent = ["/lib", "/mod"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
        format!("{parent}/{name}")
    }
}

impl<'ast> Visit<'ast> for TestItems<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let span = item.span();
        if !attributes(item).iter().any(is_cfg_test) {
            return visit::visit_item(self, item);
        }
        self.lines.extend(span.start().line..=span.end().line);
        if let Item::Mod(module) = item
            && module.content.is_none()
        {
            self.modules.push(self.module(&module.ident.to_string()));
        }
    }
}

/// The attributes of a module, function, constant or `impl`; other items have no code.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

fn is_cfg_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "\
mod a;
#[cfg(test)]
mod testing;
fn reached() {}
fn missed() {}
#[cfg(test)]
mod tests {
    fn of_a_test() {}
}
#[cfg(not(test))]
fn ships() {}
";

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn lines_of<'a>(sources: &'a [TextFile], tracefile: &str) -> Vec<FileLines<'a>> {
        let counts = read(tracefile, Path::new("/r")).expect("is a tracefile");
        without_tests(sources, &counts).expect("is Rust")
    }

    #[test]
    fn lines_of_tests_are_left_out() {
        let sources = [
            file("c/src/lib.rs", LIB),
            file("c/src/a.rs", "#[cfg(test)] mod tests; fn f() {}"),
            file("c/src/a/tests.rs", "fn f() {}"),
            file("c/src/testing.rs", "fn f() {}"),
            file("c/src/testing/more.rs", "fn f() {}"),
            file("c/src/testing_grounds.rs", "fn f() {}"),
        ];
        let mut tracefile =
            String::from("SF:/r/c/src/lib.rs\nDA:4,3\nDA:5,0\nDA:8,0\nDA:11,0,sum\nend_of_record\n");
        for source in &sources[1..] {
            let _ = write!(tracefile, "SF:/r/{}\nDA:1,1\n", source.path);
        }
        let files = lines_of(&sources, &tracefile);
        let paths: Vec<_> = files.iter().map(|file| &*file.source.path).collect();
        assert_eq!(paths, ["c/src/lib.rs", "c/src/a.rs", "c/src/testing_grounds.rs"]);
        // A line that it shares with the test module is left out too, which is why modules have
        // separate lines.
        assert_eq!(files[1].total, 0);
        let missed: Vec<_> = files[0].missed.iter().map(|line| line.text).collect();
        assert_eq!((files[0].total, missed), (3, vec!["fn missed() {}", "fn ships() {}"]));
    }

    #[test]
    fn a_line_is_reached_if_one_program_reaches_it() {
        let sources = [file("c/src/lib.rs", LIB)];
        let files = lines_of(&sources, "SF:/r/c/src/lib.rs\nDA:4,0\nDA:5,0\nSF:/r/c/src/lib.rs\nDA:4,1\n");
        assert_eq!((files[0].total, files[0].missed.len(), percent(&files)), (2, 1, 50.0));
        let report = report(&files);
        assert!(report.contains("\nc/src/lib.rs: no reason is known\n     5  fn missed() {}\n"), "{report}");
    }

    #[test]
    fn a_file_that_is_no_tracefile_is_refused() {
        assert!(read("DA:1", Path::new("/r")).is_err());
        assert!(read("DA:one,1", Path::new("/r")).is_err());
    }
}
