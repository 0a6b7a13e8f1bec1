//! The places in the text where a memory ordering of `core` or `collection` can be weakened.

use std::ops::Range;

use anyhow::Result;
use proc_macro2::{Delimiter, Ident, Literal, TokenStream, TokenTree};

use crate::files::TextFile;
use crate::sources::locks::{ORDERINGS, ends_item, is_cfg_test, is_sign, tokens, within};

/// Files and folders of these that are not algorithms: locks that are broken on purpose, and unit
/// tests.
const LEFT_OUT: &[&str] = &["controls", "testing", "tests"];

/// Macros whose orderings order nothing.
const CHECKS: &[&str] = &["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "matches"];

/// An ordering, or a fence, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file, from the root of the repository.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The bytes of the file that are replaced.
    pub bytes: Range<usize>,
    /// The replacement.
    pub replacement: &'static str,
    /// A short form of the present text.
    pub original: String,
    /// The present line.
    pub code: String,
}

impl Site {
    /// The text of the file with this one site weakened.
    pub fn weaken(&self, text: &str) -> String {
        [&text[..self.bytes.start], self.replacement, &text[self.bytes.end..]].concat()
    }

    /// A description of the change.
    pub fn change(&self) -> String {
        match self.replacement {
            "" => format!("without {}", self.original),
            weaker => format!("{} -> {weaker}", self.original),
        }
    }

    /// File and line, from the folder of the sources.
    pub fn place(&self) -> String {
        format!("{}:{}", within(&self.file).unwrap_or(&self.file), self.line)
    }
}

/// All sites of these files, in order. An AcqRel counts as two.
///
/// # Errors
///
/// If a file is not Rust.
pub fn all(files: &[TextFile]) -> Result<Vec<Site>> {
    let mut sites = Vec::new();
    for file in files.iter().filter(|file| is_algorithm(&file.path)) {
        let mut finder = Finder { file, sites: &mut sites };
        finder.walk(tokens(file)?, "");
    }
    Ok(sites)
}

fn is_algorithm(path: &str) -> bool {
    let Some(path) = within(path).and_then(|path| path.strip_suffix(".rs")) else { return false };
    !path.split('/').any(|part| LEFT_OUT.contains(&part))
}

struct Finder<'a> {
    file: &'a TextFile,
    sites: &'a mut Vec<Site>,
}

impl Finder<'_> {
    /// Adds the sites of these tokens, which are arguments of `call` if that is not empty.
    fn walk(&mut self, tokens: TokenStream, call: &str) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let (mut at, mut statement) = (0, 0);
        while at < tokens.len() {
            let rest = &tokens[at..];
            let passed = match rest {
                [TokenTree::Punct(sign), TokenTree::Group(attribute), after @ ..]
                    if sign.as_char() == '#' =>
                {
                    2 + if is_cfg_test(attribute) { up_to(after, ends_item) } else { 0 }
                }
                [TokenTree::Ident(word), after @ ..]
                    if word == "use" && !after.first().is_some_and(|t| is_sign(t, '<')) =>
                {
                    up_to(rest, |token| is_sign(token, ';'))
                }
                [TokenTree::Ident(word), sign, TokenTree::Group(_), ..]
                    if is_sign(sign, '!') && CHECKS.iter().any(|check| word == check) =>
                {
                    3
                }
                // A declaration.
                [TokenTree::Ident(word), TokenTree::Ident(_), ..] if word == "fn" => 2,
                [TokenTree::Ident(word), TokenTree::Group(arguments), end, ..]
                    if is_fence(word)
                        && arguments.delimiter() == Delimiter::Parenthesis
                        && is_sign(end, ';') =>
                {
                    let from = tokens[statement].span().byte_range().start;
                    let bytes = from..end.span().byte_range().end;
                    self.add(word.span().start().line, bytes, "", format!("{word}{arguments}"));
                    3
                }
                [TokenTree::Ident(word), ..] => {
                    self.ordering(word, call);
                    1
                }
                [TokenTree::Literal(literal), ..] => {
                    self.assembly(literal);
                    1
                }
                [TokenTree::Group(group), ..] => {
                    let call = match at.checked_sub(1).map(|before| &tokens[before]) {
                        Some(TokenTree::Ident(word)) => word.to_string(),
                        _ => String::new(),
                    };
                    self.walk(group.stream(), &call);
                    1
                }
                _ => 1,
            };
            at += passed;
            if ends_item(&tokens[at - 1]) {
                statement = at;
            }
        }
    }

    fn ordering(&mut self, word: &Ident, call: &str) {
        let Some(ordering) = ORDERINGS.iter().find(|ordering| word == *ordering) else { return };
        let weaker: &[_] = match (*ordering, call) {
            ("AcqRel", _) => &["Release", "Acquire"],
            ("SeqCst", "load") => &["Acquire"],
            ("SeqCst", "store") => &["Release"],
            ("SeqCst", _) => &["AcqRel"],
            _ => &["Relaxed"],
        };
        for replacement in weaker {
            let span = word.span();
            self.add(span.start().line, span.byte_range(), replacement, word.to_string());
        }
    }

    /// The store instructions of aarch64 that are releases.
    fn assembly(&mut self, literal: &Literal) {
        let text = literal.to_string();
        for (strong, weak) in [("stlrb", "strb"), ("stlrh", "strh")] {
            if let Some(at) = text.find(strong) {
                let from = literal.span().byte_range().start + at;
                let line = literal.span().start().line;
                self.add(line, from..from + strong.len(), weak, strong.to_owned());
            }
        }
    }

    fn add(&mut self, line: usize, bytes: Range<usize>, replacement: &'static str, original: String) {
        let code = self.file.text.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
        self.sites.push(Site { file: self.file.path.clone(), line, bytes, replacement, original, code });
    }
}

fn is_fence(word: &Ident) -> bool {
    word == "fence" || word == "compiler_fence"
}

/// How many tokens there are up to and including the one with this property.
fn up_to(tokens: &[TokenTree], is_last: impl Fn(&TokenTree) -> bool) -> usize {
    tokens.iter().position(is_last).map_or(tokens.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(path: &str, text: &str) -> Vec<(String, String)> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        let sites = all(&[file]).expect("is Rust");
        sites.iter().map(|site| (format!("{} {}", site.line, site.change()), site.weaken(text))).collect()
    }

    fn only(text: &str) -> (String, String) {
        let sites = sites("crates/collection/src/classic/a.rs", text);
        let [site] = <[_; 1]>::try_from(sites).expect("one site");
        site
    }

    #[test]
    fn unit_tests_and_controls_are_left_out_with_their_folders() {
        for (path, is) in [
            ("linux/cna.rs", true),
            ("classic/contests.rs", true),
            ("controls.rs", false),
            ("linux/cna/tests.rs", false),
            ("linux/cna/testing/sequences.rs", false),
            ("linux/qspinlock/tests/waiting.rs", false),
            ("README.md", false),
        ] {
            assert_eq!(is_algorithm(&format!("crates/collection/src/{path}")), is, "{path}");
        }
        assert!(!is_algorithm("crates/os/src/fences.rs"));
    }

    #[test]
    fn weakens_orderings_one_at_a_time() {
        for (from, to) in [
            ("a.load(Acquire)", "a.load(Relaxed)"),
            ("a.load(Ordering::Acquire)", "a.load(Ordering::Relaxed)"),
            ("a.store(b.c(1), SeqCst)", "a.store(b.c(1), Release)"),
            ("a.load(SeqCst)", "a.load(Acquire)"),
            ("a.swap(1, SeqCst)", "a.swap(1, AcqRel)"),
        ] {
            let text = |call: &str| format!("/* é */ fn f() {{\n    {call};\n}}");
            assert_eq!(only(&text(from)).1, text(to));
        }
        let text = "fn f() { a.compare_exchange(1, 2, AcqRel, Acquire); }";
        let sites: Vec<_> =
            sites("crates/core/src/parking/parker.rs", text).into_iter().map(|(change, _)| change).collect();
        assert_eq!(sites, ["1 AcqRel -> Release", "1 AcqRel -> Acquire", "1 Acquire -> Relaxed"]);
    }

    #[test]
    fn removes_fences_with_their_statement() {
        for call in ["fence(SeqCst);", "P::fence(SeqCst);", "core::sync::atomic::fence(Ordering::Acquire);"] {
            let text = |call: &str| format!("fn f() {{ if a {{ b(); }} {call} c(); }}");
            assert_eq!(only(&text(call)).1, text(""), "{call}");
        }
        assert!(sites("crates/core/src/platform.rs", "trait P { fn fence(order: Ordering); }").is_empty());
    }

    #[test]
    fn weakens_release_stores_in_assembly() {
        let text = |word: &str| format!("fn f() {{ asm!(\"{word} wzr, [{{p}}]\"); }}");
        assert_eq!(only(&text("stlrb")).1, text("strb"));
        assert_eq!(only(&text("stlrh")).0, "1 stlrh -> strh");
    }

    #[test]
    fn passes_over_tokens_that_order_nothing() {
        for text in [
            "// Acquire\n/// Release\nfn f() { /* fence(SeqCst); */ }",
            "use core::sync::atomic::Ordering::{Acquire, Release};",
            "#[cfg(test)]\nmod tests { fn f() { a.load(Acquire); fence(SeqCst); } }",
            "fn f() { debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release)); a.load(Relaxed) }",
        ] {
            assert_eq!(sites("crates/core/src/native.rs", text), [], "{text}");
        }
        for path in [
            "crates/collection/src/controls.rs",
            "crates/collection/src/linux/cna/tests.rs",
            "crates/os/src/a.rs",
        ] {
            assert_eq!(sites(path, "fn f() { a.load(Acquire); }"), []);
        }
        assert_eq!(
            only("#[cfg(test)]\nmod tests;\n#[inline]\nfn f() { a.load(Acquire); }").0,
            "4 Acquire -> Relaxed"
        );
    }
}
