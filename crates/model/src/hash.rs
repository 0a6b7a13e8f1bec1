//! A hash of all that the evidence depends on, so that a page made from other sources is detected.

use std::fs;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use sha2::{Digest, Sha256};

use crate::source::{files, is_of_tests, root, sources};

/// How the names of files that say nothing about orderings begin.
const NO_EVIDENCE: [&str; 2] = ["crates/model/src/shuttle", "crates/collection/src/subjects/presets.rs"];

/// A hash of what the evidence depends on: the code of the locks and of the models, and the version
/// of loom. Comments, layout and unit tests are left out. So is all that runs under Shuttle, which
/// says nothing about orderings. The table of presets is left out too: it combines switches, whose
/// code is in the algorithms. `cargo test` runs the models of all presets.
///
/// # Errors
///
/// If a source cannot be read, or is not Rust.
pub fn of_sources() -> Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(version_of("loom")?);
    for (file, text) in sources()?.into_iter().chain(files("crates/model/src")?) {
        if is_of_tests(&file) || NO_EVIDENCE.iter().any(|start| file.starts_with(start)) {
            continue;
        }
        hasher.update(&file);
        let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{file}: {error}"))?;
        absorb(tokens, &mut hasher);
    }
    Ok(hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// The entry of this package in `Cargo.lock`.
fn version_of(package: &str) -> Result<String> {
    let text = fs::read_to_string(root().join("Cargo.lock")).context("Cargo.lock")?;
    let mut lines = text.lines();
    lines.find(|line| *line == format!("name = \"{package}\""));
    lines.next().map(str::to_owned).with_context(|| format!("Cargo.lock: no {package}"))
}

/// Hashes all tokens except documentation and unit tests.
fn absorb(tokens: TokenStream, hasher: &mut Sha256) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                if matches!(tokens.peek(), Some(TokenTree::Punct(sign)) if sign.as_char() == '!') {
                    tokens.next();
                }
                match tokens.peek() {
                    Some(TokenTree::Group(group)) if begins(group, &["doc"]) => drop(tokens.next()),
                    Some(TokenTree::Group(group)) if begins(group, &["cfg", "test"]) => {
                        tokens.find(ends_item);
                    }
                    _ => hasher.update("# "),
                }
            }
            TokenTree::Group(group) => {
                hasher.update(format!("{:?} ", group.delimiter()));
                absorb(group.stream(), hasher);
                hasher.update("end ");
            }
            token => hasher.update(format!("{token} ")),
        }
    }
}

/// Whether these are the first words of an attribute, or of the condition in it.
fn begins(group: &Group, words: &[&str]) -> bool {
    let text = group.stream().to_string();
    let found: Vec<_> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    found.starts_with(words) && (words.len() == 1 || found.len() == words.len())
}

fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(sign) => sign.as_char() == ';',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_of_code_alone() {
        let of = |text: &str| {
            let mut hasher = Sha256::new();
            absorb(text.parse().expect("tokens"), &mut hasher);
            hasher.finalize()
        };
        let code = of("fn f() { a.load(Acquire); }");
        for same in [
            "//! Of a file.\n/// Documented.\nfn f() {\n    a.load(Acquire); // why\n}",
            "fn f() { a.load(Acquire); } #[cfg(test)] mod tests { fn g() {} }",
            "#[cfg(test)] mod tests; fn f() { a.load(Acquire); }",
        ] {
            assert_eq!(of(same), code, "{same}");
        }
        for other in ["fn f() { a.load(Relaxed); }", "#[inline] fn f() { a.load(Acquire); }"] {
            assert_ne!(of(other), code, "{other}");
        }
    }
}
