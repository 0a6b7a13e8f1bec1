//! Rules for the source of the locks. The rule about orderings applies to all of it, and the rule
//! about conditions to all except the root of `crates/core/src`.
//!
//! These rules are about tokens and lines and not about syntax, so they apply inside macros too.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::Finding;
use crate::files::TextFile;

const CORE: &str = "crates/core/src/";
const COLLECTION: &str = "crates/collection/src/";

/// The path of a source of the locks within its crate's folder of sources.
pub(crate) fn within(path: &str) -> Option<&str> {
    path.strip_prefix(CORE).or_else(|| path.strip_prefix(COLLECTION))
}

/// The orderings that need an explanation.
pub(crate) const ORDERINGS: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];

/// How many lines above an ordering its explanation may be.
const LINES_ABOVE: usize = 8;

/// Lines with an ordering that is not explained by a comment `Ordering: ` above. Imports and test
/// code need no explanation.
///
/// # Errors
///
/// If the file is not Rust.
pub fn unexplained_orderings(file: &TextFile) -> Result<Vec<Finding>> {
    if within(&file.path).is_none() {
        return Ok(Vec::new());
    }
    let mut found = BTreeSet::new();
    orderings(tokens(file)?, &mut found);
    let lines: Vec<_> = file.text.lines().collect();
    let explained = |n: usize| lines[(n - 1).saturating_sub(LINES_ABOVE)..n - 1].iter().any(|l| explains(l));
    let what = format!("an ordering without a comment `Ordering:` in the {LINES_ABOVE} lines above");
    Ok(found.into_iter().filter(|&n| !explained(n)).map(|n| file.finding_at(n, &*what)).collect())
}

/// Conditional compilation in a lock, other than `#[cfg(test)]`: the code that is checked must be
/// the code that ships.
///
/// # Errors
///
/// If the file is not Rust.
pub fn conditional_code(file: &TextFile) -> Result<Vec<Finding>> {
    if !is_lock(&file.path) {
        return Ok(Vec::new());
    }
    let mut found = BTreeSet::new();
    conditions(tokens(file)?, &mut found);
    Ok(found.into_iter().map(|n| file.finding_at(n, "conditional compilation in a lock")).collect())
}

fn is_lock(path: &str) -> bool {
    // The test platforms of both crates are no locks either.
    let is_in_core = |path: &str| path.contains('/') && !path.starts_with("testing/");
    path.starts_with(COLLECTION) || path.strip_prefix(CORE).is_some_and(is_in_core)
}

pub(crate) fn tokens(file: &TextFile) -> Result<TokenStream> {
    let tokens = file.text.parse().map_err(|error| anyhow!("{error}"));
    tokens.with_context(|| file.path.clone())
}

/// Whether the line has a comment that explains an ordering. `Ordering::Release` in prose does not.
fn explains(line: &str) -> bool {
    const SIGN: &str = "Ordering:";
    let Some((_, comment)) = line.split_once("//") else { return false };
    comment.match_indices(SIGN).any(|(at, _)| !comment[at + SIGN.len()..].starts_with(':'))
}

/// The lines with orderings, except those in imports and test code.
fn orderings(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                if matches!(tokens.peek(), Some(TokenTree::Group(group)) if is_cfg_test(group)) {
                    tokens.find(ends_item);
                }
            }
            // Not the bound `use<..>`.
            TokenTree::Ident(word) if word == "use" && !tokens.peek().is_some_and(|t| is_sign(t, '<')) => {
                tokens.find(|token| is_sign(token, ';'));
            }
            TokenTree::Ident(word) if ORDERINGS.iter().any(|ordering| word == ordering) => {
                lines.insert(word.span().start().line);
            }
            TokenTree::Group(group) => orderings(group.stream(), lines),
            _ => {}
        }
    }
}

pub(crate) fn ends_item(token: &TokenTree) -> bool {
    let is_block = matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    is_block || is_sign(token, ';')
}

pub(crate) fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

pub(crate) fn is_cfg_test(attribute: &Group) -> bool {
    let mut tokens = attribute.stream().into_iter();
    let is_cfg = matches!(tokens.next(), Some(TokenTree::Ident(word)) if word == "cfg");
    is_cfg && matches!(tokens.next(), Some(TokenTree::Group(group)) if is_test(&group))
}

fn is_test(condition: &Group) -> bool {
    let mut tokens = condition.stream().into_iter();
    matches!((tokens.next(), tokens.next()), (Some(TokenTree::Ident(word)), None) if word == "test")
}

/// The lines of `cfg(..)`, `cfg_attr(..)` and `cfg!(..)`, except for `cfg(test)`.
fn conditions(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Ident(word) if word == "cfg" || word == "cfg_attr" => {
                let is_condition = match tokens.peek() {
                    Some(TokenTree::Punct(sign)) => sign.as_char() == '!',
                    Some(TokenTree::Group(group)) => word == "cfg_attr" || !is_test(group),
                    _ => false,
                };
                if is_condition {
                    lines.insert(word.span().start().line);
                }
            }
            TokenTree::Group(group) => conditions(group.stream(), lines),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "crates/collection/src/classic/a.rs";

    fn findings(check: fn(&TextFile) -> Result<Vec<Finding>>, path: &str, text: &str) -> Vec<String> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        check(&file).expect("is Rust").into_iter().map(|finding| finding.place).collect()
    }

    fn unexplained(text: &str) -> Vec<String> {
        findings(unexplained_orderings, LOCK, text)
    }

    #[test]
    fn finds_each_unexplained_ordering() {
        for ordering in ORDERINGS {
            let text = format!("fn f() {{\n    word.load({ordering});\n}}");
            assert_eq!(unexplained(&text), [format!("{LOCK}:2")]);
            let text = format!("macro_rules! f {{\n() => {{ word.load(Ordering::{ordering}) }} }}");
            assert_eq!(unexplained(&text), [format!("{LOCK}:2")]);
        }
        assert!(unexplained("fn f() { word.load(Relaxed); }").is_empty());
    }

    #[test]
    fn takes_an_explanation_from_eight_lines_above() {
        let text = |between: &str, n| format!("// Ordering: why.\n{}a(Acquire);", between.repeat(n));
        assert!(unexplained(&text("\n", 7)).is_empty());
        assert_eq!(unexplained(&text("\n", 8)), [format!("{LOCK}:10")]);
    }

    #[test]
    fn takes_a_comment_only() {
        assert_eq!(unexplained("// Ordering::Acquire\na(Acquire);"), [format!("{LOCK}:2")]);
        assert_eq!(unexplained("a(\"Ordering: \");\na(Acquire);"), [format!("{LOCK}:2")]);
    }

    #[test]
    fn passes_over_comments_imports_and_tests() {
        for text in [
            "// Acquire\n/// Release\nfn f() {}",
            "use core::sync::atomic::Ordering::{Acquire, Release};",
            "fn f() { use Ordering::Acquire; }",
            "#[cfg(test)]\nmod tests { fn f() { a(Acquire); } }",
            "#[cfg(test)]\n#[test]\nfn f() -> [u8; 3] { a(Acquire) }",
            "#[cfg(test)]\nconst A: Ordering = Acquire;",
        ] {
            assert!(unexplained(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn looks_at_code_after_imports_and_tests() {
        for before in ["use a::b;", "#[cfg(test)] mod tests {}", "#[cfg(test)] mod tests;", "#[inline]"] {
            assert_eq!(unexplained(&format!("{before}\nfn f() {{ a(Acquire); }}")), [format!("{LOCK}:2")]);
        }
        assert_eq!(unexplained("fn f() -> impl Sized + use<'_> { a(Acquire) }"), [format!("{LOCK}:1")]);
        assert_eq!(unexplained("#[cfg(not(test))]\nfn f() { a(Acquire) }"), [format!("{LOCK}:2")]);
    }

    #[test]
    fn finds_conditional_code() {
        for text in [
            "#[cfg(miri)] fn f() {}",
            "#[cfg(not(test))] fn f() {}",
            "#[cfg(all(test, miri))] fn f() {}",
            "#![cfg(unix)]",
            "#[cfg_attr(miri, inline)] fn f() {}",
            "fn f() -> bool { cfg!(miri) }",
            "fn f() { if cfg!(test) {} }",
            "fn f() { debug_assert!(cfg!(miri)) }",
            "#[cfg(test)] mod tests { #[cfg(miri)] fn f() {} }",
        ] {
            assert_eq!(findings(conditional_code, LOCK, text), [format!("{LOCK}:1")], "{text}");
        }
        assert!(findings(conditional_code, LOCK, "#[cfg(test)] mod tests {} // cfg(miri)").is_empty());
    }

    #[test]
    fn knows_the_locks_from_the_rest() {
        let ordering = "fn f() { a(Acquire) }";
        assert_eq!(findings(unexplained_orderings, "crates/collection/src/linux/a.rs", ordering).len(), 1);
        assert_eq!(findings(unexplained_orderings, "crates/core/src/native.rs", ordering).len(), 1);
        assert!(findings(unexplained_orderings, "crates/os/src/linux/a.rs", ordering).is_empty());
        for path in ["crates/core/src/native.rs", "crates/os/src/linux/a.rs"] {
            assert!(findings(conditional_code, path, "#[cfg(miri)] fn f() {}").is_empty(), "{path}");
        }
    }
}
