//! The structure of the repository: how its lines are distributed over the crates, and which files
//! of a crate use each other.
//!
//! A file uses another if it names an item that is declared there. A name is followed through
//! modules that only pass it on (`pub use`); this does not count as a use of these modules. A
//! module and the modules within it may use each other. Tests may name anything. Methods are not
//! seen, and neither is the code that a macro makes of its arguments.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::Finding;
use crate::files::TextFile;

mod circles;
mod modules;
mod names;

use modules::Tree;
use names::Uses;

/// The largest share of all lines of Rust that one crate may have, in percent.
const LARGEST_PERCENT: usize = 22;

/// How many files of a crate may use each other in a circle.
const CIRCLE_FILES: usize = 2;

/// A crate with more than its share of the lines, including those of its tests.
pub fn large_crates(files: &[TextFile]) -> Vec<Finding> {
    let mut lines = BTreeMap::<_, usize>::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        *lines.entry(crate_of(&file.path)).or_default() += file.text.lines().count();
    }
    let all: usize = lines.values().sum();
    let large = lines.iter().filter(|(_, lines)| **lines * 100 > all * LARGEST_PERCENT);
    let what = |lines: usize| {
        let percent = lines as f64 * 100.0 / all as f64;
        format!("has {lines} of {all} lines: {percent:.1} %, more than {LARGEST_PERCENT} %")
    };
    large.map(|(name, lines)| Finding::new(*name, what(*lines))).collect()
}

/// The directory of the crate that the file belongs to.
fn crate_of(path: &str) -> &str {
    let depth = if path.starts_with("crates/") { 1 } else { 0 };
    path.match_indices('/').nth(depth).map_or(path, |(end, _)| &path[..end])
}

/// Files that use each other in larger circles.
///
/// # Errors
///
/// If a file is not Rust, or is not where it is declared.
pub fn large_circles(sources: &[TextFile]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for tree in Tree::all(sources)? {
        let uses = names::uses(&tree);
        for circle in circles::larger_than(CIRCLE_FILES, &uses.keys().copied().collect()) {
            findings.push(finding(sources, &uses, &circle));
        }
    }
    Ok(findings)
}

/// A finding that names the uses from each file to the next.
fn finding(sources: &[TextFile], uses: &Uses, circle: &[(usize, usize)]) -> Finding {
    let files: BTreeSet<_> = circle.iter().map(|(from, _)| *from).collect();
    let mut what =
        format!("is one of {} files that use each other in circles, more than {CIRCLE_FILES}:", files.len());
    for edge in circle {
        let names: Vec<_> = uses[edge].iter().map(|(name, line)| format!("{name} (line {line})")).collect();
        let (from, to) = (&sources[edge.0].path, &sources[edge.1].path);
        what += &format!("\n    {from} uses {to}: {}", names.join(", "));
    }
    sources[circle[0].0].finding(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_crate_with_more_than_its_share_is_found() {
        let lines = |count: usize| "//\n".repeat(count);
        let mut files = vec![
            file("crates/a/src/lib.rs", &lines(12)),
            file("crates/a/tests/b.rs", &lines(10)),
            file("crates/a/README.md", &lines(10)),
            file("xtask/src/main.rs", &lines(21)),
        ];
        files.extend(["b", "c", "d"].map(|name| file(&format!("crates/{name}/src/lib.rs"), &lines(19))));
        assert_eq!(large_crates(&files), []);
        files[1].text += &lines(1);
        let expected = Finding::new("crates/a", "has 23 of 101 lines: 22.8 %, more than 22 %");
        assert_eq!(large_crates(&files), [expected]);
    }

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files.iter().map(|(path, text)| file(path, text)).collect();
        let findings = large_circles(&sources).expect("is Rust");
        findings.iter().map(ToString::to_string).collect()
    }

    const ROOT: (&str, &str) = ("c/src/lib.rs", "mod a;\nmod b;\nmod c;");

    #[test]
    fn a_circle_of_three_files_is_found() {
        let a = ("c/src/a.rs", "use crate::b::B;\npub struct A(B, crate::b::B);");
        let b = ("c/src/b/mod.rs", "pub struct B;\nfn f() { super::c::g() }");
        let found = findings(&[ROOT, a, b, ("c/src/c.rs", "pub fn g() { let _: crate::a::A; }")]);
        let expected = "c/src/a.rs: is one of 3 files that use each other in circles, more than 2:\n    \
            c/src/a.rs uses c/src/b/mod.rs: B (line 1)\n    \
            c/src/b/mod.rs uses c/src/c.rs: g (line 2)\n    \
            c/src/c.rs uses c/src/a.rs: A (line 1)";
        assert_eq!(found, [expected]);
        let of_two = [ROOT, a, ("c/src/b.rs", "pub struct B(super::a::A);"), ("c/src/c.rs", "")];
        assert_eq!(findings(&of_two), [""; 0]);
    }

    #[test]
    fn names_are_followed_to_where_they_are_declared() {
        let root = ("c/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use c::g;\npub use a::*;");
        let a = ("c/src/a.rs", "use crate::{b as other};\npub struct A(other::inner::B);");
        let b = ("c/src/b.rs", "pub mod inner { pub struct B; fn f() { println!(\"{}\", crate::g()); } }");
        let c = ("c/src/c.rs", "use crate::A as Other;\npub fn g() -> Other {}");
        assert!(findings(&[root, a, b, c])[0].starts_with("c/src/a.rs: is one of 3 files"));
    }

    #[test]
    fn names_that_are_no_uses_are_passed_over() {
        for (a, b, c) in [
            // Tests, and names that are passed on.
            (
                "struct A(crate::b::B);",
                "struct B(crate::c::C);",
                "#[cfg(test)]\nmod tests { use crate::a::A; }",
            ),
            ("struct A(crate::b::B);", "struct B(crate::c::C);", "pub use crate::a::A;"),
            // A module that is only named, and other crates.
            ("use crate::b;\nstruct A;", "struct B(crate::c::C);", "struct C(crate::a::A);"),
            ("use b::B;\nstruct A(std::b::B);", "struct B(crate::c::C);", "struct C(crate::a::A);"),
        ] {
            assert_eq!(
                findings(&[ROOT, ("c/src/a.rs", a), ("c/src/b.rs", b), ("c/src/c.rs", c)]),
                [""; 0],
                "{a} {b} {c}"
            );
        }
    }

    #[test]
    fn a_module_and_those_within_it_may_use_each_other() {
        let root = ("c/src/lib.rs", "mod a;");
        let a = ("c/src/a.rs", "mod b;\nmod c;\npub struct A(b::B, c::C);");
        let (b, c) = (
            ("c/src/a/b.rs", "pub struct B(super::A);"),
            ("c/src/a/c.rs", "pub struct C(super::b::B, super::A);"),
        );
        assert_eq!(findings(&[root, a, b, c]), [""; 0]);
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        let error =
            large_circles(&[file("c/src/lib.rs", "mod a;")]).expect_err("there is no a.rs").to_string();
        assert_eq!(error, "c/src/lib.rs: there is no file of module c/src/a");
    }
}
