//! The names that documents must contain: each algorithm of the list, each setting, each switch.

use anyhow::{Context, Result, anyhow, bail};
use proc_macro2::{TokenStream, TokenTree};
use syn::Item;

use crate::Finding;
use crate::files::TextFile;

/// The algorithms in the list of the collection.
///
/// # Errors
///
/// If the file is not Rust.
pub fn algorithms(file: &TextFile) -> Result<Vec<String>> {
    let tokens: Vec<_> = arguments_of("algorithms", file)?.into_iter().collect();
    let names = tokens.windows(2).filter(|pair| matches!(pair[1], TokenTree::Ident(_)));
    Ok(names.filter_map(|pair| text(&pair[0])).collect())
}

/// The presets in the list of the collection.
///
/// # Errors
///
/// If the file is not Rust.
pub fn presets(file: &TextFile) -> Result<Vec<String>> {
    let tokens: Vec<_> = arguments_of("presets", file)?.into_iter().collect();
    let names = tokens.windows(3).filter(|three| {
        matches!(&three[1], TokenTree::Punct(sign) if sign.as_char() == '=') && text(&three[2]).is_some()
    });
    Ok(names.filter_map(|three| text(&three[0])).collect())
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

/// The functions of the tuning traits of the locks, each with its trait.
///
/// # Errors
///
/// If the file is not Rust.
pub fn switches(file: &TextFile) -> Result<Vec<String>> {
    if crate::sources::locks::within(&file.path).is_none() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for item in syn::parse_file(&file.text).with_context(|| file.path.clone())?.items {
        let Item::Macro(call) = item else { continue };
        if call.ident.is_some() || !call.mac.path.is_ident("switches") {
            continue;
        }
        let tokens: Vec<_> = call.mac.tokens.into_iter().collect();
        let named = |keyword: &str| {
            let pairs = tokens.windows(2).filter(move |pair| pair[0].to_string() == keyword);
            pairs.map(|pair| pair[1].to_string()).collect::<Vec<_>>()
        };
        let [tuning] = &*named("trait") else { bail!("{}: switches! of one trait", file.path) };
        names.extend(named("fn").iter().map(|switch| format!("{tuning}::{switch}")));
    }
    Ok(names)
}

/// The names that the document does not contain as code.
pub fn unnamed(document: &TextFile, names: &[String]) -> Vec<Finding> {
    let has = |name: &&String| !document.text.contains(&format!("`{name}`"));
    names.iter().filter(has).map(|name| document.finding(format!("does not name `{name}`"))).collect()
}

/// The arguments of the file's one call of a macro.
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

/// The contents of a string literal.
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
            macro_rules! algorithms { ($($name:literal)*) => { "not this" Either } }
            algorithms! { "a" Classic a::A<P>, "an a", &[], fifo, none; "b-c" Linux [rw] b::C<P, T>, "a b", SOME, fifo, none; }
        "#;
        assert_eq!(algorithms(&file("a.rs", list)).unwrap(), ["a", "b-c"]);
        let table = r#"presets! { "a-b" = "a" ["c" = "off", "d" = "1"], "a, off", "e"; "f" = "b-c" as LIST, "a", "g"; }"#;
        assert_eq!(presets(&file("a.rs", table)).unwrap(), ["a-b", "f"]);
        let list = r#"settings! { A "a.b-ns" "ns" default 1_000, 0 to 3, "Doc." B "b" "x|y" default 0, 0 to MAX, "Doc." }"#;
        assert_eq!(settings(&file("a.rs", list)).unwrap(), ["a.b-ns", "b"]);
        assert!(algorithms(&file("a.rs", list)).is_err());
    }

    #[test]
    fn reads_the_tuning_traits_of_the_locks() {
        let text = r#"
            macro_rules! switches { () => { fn no() {} }; }
            switches! { /// Doc of a fn here.
                pub trait ATuning; SWITCHES from 0; fn b("b") -> u32 as number(0, 1) = 1; fn c("c") -> bool as flag = true; }
            trait E { fn f(); }
        "#;
        let of = |path| switches(&file(path, text)).unwrap();
        assert_eq!(of("crates/core/src/a/b.rs"), ["ATuning::b", "ATuning::c"]);
        assert!(of("crates/os/src/a.rs").is_empty());
    }

    #[test]
    fn wants_names_as_code() {
        let document = file("docs/a.md", "`a` and b and `b.c`");
        let names = ["a", "b", "b.c"].map(str::to_owned);
        assert_eq!(unnamed(&document, &names), [Finding::new("docs/a.md", "does not name `b`")]);
    }
}
