//! What the documents must name: each lock of the list, each setting, each constant that a tuning type may change.

use anyhow::{Context, Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, TraitItem};

use crate::Finding;
use crate::files::TextFile;

/// The locks in the list of core.
///
/// # Errors
///
/// If the file is not Rust.
pub fn locks(file: &TextFile) -> Result<Vec<String>> {
    let tokens: Vec<_> = arguments_of("subjects", file)?.into_iter().collect();
    let names = tokens.windows(2).filter(|pair| matches!(pair[1], TokenTree::Ident(_)));
    Ok(names.filter_map(|pair| text(&pair[0])).collect())
}

/// The settings of core.
///
/// # Errors
///
/// If the file is not Rust.
pub fn settings(file: &TextFile) -> Result<Vec<String>> {
    let tokens: Vec<_> = arguments_of("settings", file)?.into_iter().collect();
    let names = tokens.windows(2).filter(|pair| matches!(pair[0], TokenTree::Ident(_)));
    Ok(names.filter_map(|pair| text(&pair[1])).collect())
}

/// The constants of the traits `..Tuning` of core, each with its trait.
///
/// # Errors
///
/// If the file is not Rust.
pub fn tuning_constants(file: &TextFile) -> Result<Vec<String>> {
    if !file.path.starts_with("crates/core/src/") {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for item in syn::parse_file(&file.text).with_context(|| file.path.clone())?.items {
        let Item::Trait(tuning) = item else { continue };
        let constants = tuning.items.iter().filter_map(|item| match item {
            TraitItem::Const(constant) => Some(format!("{}::{}", tuning.ident, constant.ident)),
            _ => None,
        });
        if tuning.ident.to_string().ends_with("Tuning") {
            names.extend(constants);
        }
    }
    Ok(names)
}

/// The names that the document does not have, as code.
pub fn unnamed(document: &TextFile, names: &[String]) -> Vec<Finding> {
    let has = |name: &&String| !document.text.contains(&format!("`{name}`"));
    names.iter().filter(has).map(|name| document.finding(format!("does not name `{name}`"))).collect()
}

/// What stands in the file's one call of a macro.
fn arguments_of(name: &str, file: &TextFile) -> Result<TokenStream> {
    let tokens = file.text.parse::<TokenStream>().map_err(|error| anyhow!("{error}"));
    let tokens: Vec<_> = tokens.with_context(|| file.path.clone())?.into_iter().collect();
    let arguments = tokens.windows(3).find_map(|window| match window {
        [TokenTree::Ident(called), TokenTree::Punct(sign), TokenTree::Group(group)]
            if called == name && sign.as_char() == '!' =>
        {
            Some(group.stream())
        }
        _ => None,
    });
    arguments.with_context(|| format!("{} does not call {name}!", file.path))
}

/// What a string literal says.
fn text(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let literal = literal.to_string();
    Some(literal.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn reads_the_lists() {
        let list = r#"
            macro_rules! subjects { ($($name:literal)*) => { "not this" Either } }
            subjects! { "a" Classic a::A<P>, "an a", Fifo, &[]; "b-c" Linux b::C<P, T>, "a b", Fifo, SETTINGS; }
        "#;
        assert_eq!(locks(&file("a.rs", list)).unwrap(), ["a", "b-c"]);
        let list = r#"settings! { A "a.b-ns" "ns" default 1_000, 0 to 3, "Doc." B "b" "x|y" default 0, 0 to MAX, "Doc." }"#;
        assert_eq!(settings(&file("a.rs", list)).unwrap(), ["a.b-ns", "b"]);
        assert!(locks(&file("a.rs", list)).is_err());
    }

    #[test]
    fn reads_the_tuning_traits_of_core() {
        let text = "pub trait ATuning { const B: u32 = 1; const C: bool; fn d(); } trait E { const F: u32; }";
        assert_eq!(
            tuning_constants(&file("crates/core/src/a/b.rs", text)).unwrap(),
            ["ATuning::B", "ATuning::C"]
        );
        assert!(tuning_constants(&file("crates/os/src/a.rs", text)).unwrap().is_empty());
    }

    #[test]
    fn wants_names_as_code() {
        let document = file("docs/a.md", "`a` and b and `b.c`");
        let names = ["a", "b", "b.c"].map(str::to_owned);
        assert_eq!(unnamed(&document, &names), [Finding::new("docs/a.md", "does not name `b`")]);
    }
}
