//! The orderings as they stand in the sources of core, to be compared with those that the models exercise, and a
//! hash of all that the evidence depends on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use sha2::{Digest, Sha256};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprCall, ExprMethodCall, ExprPath, ImplItemFn, ItemFn, ItemMod, Token, TraitItemFn,
};

use crate::mutate::{Half, Site};

/// An operation of a lock that has an ordering.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file, from the root of the repository.
    pub file: String,
    /// Where the call begins that the models see: `(line, column)`, from 1.
    pub at: (u32, u32),
    /// The function that it stands in.
    pub function: String,
    /// The operation as it is written.
    pub code: String,
    /// The halves of its orderings, in order.
    pub halves: Vec<Half>,
}

impl Place {
    /// Whether the models mean this place by `site`.
    pub fn is_of(&self, site: &Site) -> bool {
        self.file == site.file && self.at == (site.line, site.column)
    }
}

/// Files of core without orderings that models exercise.
const OTHER: &[(&str, &str)] = &[
    ("native.rs", "the words of the machine: they do with an ordering what they are told"),
    ("controls.rs", "locks that are broken on purpose"),
    ("testing.rs", "unit tests"),
    ("tests.rs", "unit tests"),
    ("watch.rs", "assembly"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Rust files below `folder`, from the root of the repository, with their texts, in order.
fn files(folder: &str) -> Result<Vec<(String, String)>> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).with_context(|| folder.clone())? {
            let entry = entry?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.ends_with(".rs") {
                let text = fs::read_to_string(entry.path())?;
                files.push((path, text));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The operations with orderings in the sources of core, and all other orderings there, as `file:line`: these are
/// out of the models' sight. The files that have other business are left out.
///
/// # Errors
///
/// If a source cannot be read, or is not Rust.
pub fn places() -> Result<(Vec<Place>, Vec<String>)> {
    let (mut places, mut strays) = (Vec::new(), Vec::new());
    for (file, text) in files("crates/core/src")? {
        if OTHER.iter().any(|(name, _)| file.rsplit('/').next() == Some(name)) {
            continue;
        }
        let syntax = syn::parse_file(&text).with_context(|| file.clone())?;
        let mut collector = Collector { file, ..Collector::default() };
        collector.visit_file(&syntax);
        let Collector { file, places: found, seen, all, .. } = collector;
        strays.extend(all.iter().filter(|at| !seen.contains(at)).map(|at| format!("{file}:{}", at.0)));
        places.extend(found);
    }
    Ok((places, strays))
}

#[derive(Default)]
struct Collector {
    file: String,
    functions: Vec<String>,
    places: Vec<Place>,
    /// The orderings that are arguments of an operation.
    seen: Vec<(u32, u32)>,
    /// All orderings.
    all: Vec<(u32, u32)>,
}

fn begin(span: Span) -> (u32, u32) {
    let start = span.start();
    (start.line as u32, start.column as u32 + 1)
}

/// What an ordering asks for, of this operation.
fn halves(ordering: &str, operation: &str) -> Vec<Half> {
    use Half::{Acquire, Release, TotalOrder};
    match (ordering, operation) {
        ("Acquire", _) => vec![Acquire],
        ("Release", _) => vec![Release],
        ("AcqRel", _) => vec![Acquire, Release],
        ("SeqCst", "fence") => vec![TotalOrder],
        ("SeqCst", "load") => vec![Acquire, TotalOrder],
        ("SeqCst", "store") => vec![Release, TotalOrder],
        ("SeqCst", _) => vec![Acquire, Release, TotalOrder],
        _ => Vec::new(),
    }
}

fn ordering_of(path: &ExprPath) -> Option<String> {
    let name = path.path.segments.last()?.ident.to_string();
    ["Acquire", "Release", "AcqRel", "SeqCst"].contains(&name.as_str()).then_some(name)
}

impl Collector {
    fn operation(
        &mut self,
        name: &str,
        at: (u32, u32),
        arguments: &Punctuated<Expr, Token![,]>,
        whole: Span,
    ) {
        let mut found = Vec::new();
        for argument in arguments {
            if let Expr::Path(path) = argument
                && let Some(ordering) = ordering_of(path)
            {
                self.seen.push(begin(path.span()));
                found.extend(halves(&ordering, name));
            }
        }
        if arguments.is_empty() && ["light", "heavy"].contains(&name) {
            found.push(Half::Whole);
        }
        if found.is_empty() {
            return;
        }
        found.sort_unstable();
        self.places.push(Place {
            file: self.file.clone(),
            at,
            function: self.functions.last().cloned().unwrap_or_default(),
            code: shown(&whole.source_text().unwrap_or_default()),
            halves: found,
        });
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.functions.push(name);
        visit(self);
        self.functions.pop();
    }
}

/// On one line, and not too long: the operation itself is at the end of what it is called on.
fn shown(code: &str) -> String {
    const LENGTH: usize = 90;
    let code = code.split_whitespace().collect::<Vec<_>>().join(" ").replace(" .", ".").replace('|', "\\|");
    match code.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}...", &code[..end]),
        None => code,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|a| a.path().is_ident("cfg") && a.parse_args::<syn::Ident>().is_ok_and(|i| i == "test"))
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.within(item.sig.ident.to_string(), |this| visit::visit_item_fn(this, item));
    }
    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.within(item.sig.ident.to_string(), |this| visit::visit_impl_item_fn(this, item));
    }
    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.within(item.sig.ident.to_string(), |this| visit::visit_trait_item_fn(this, item));
    }
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.operation(&call.method.to_string(), begin(call.method.span()), &call.args, call.span());
        visit::visit_expr_method_call(self, call);
    }
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func
            && let Some(last) = path.path.segments.last()
        {
            self.operation(&last.ident.to_string(), begin(call.func.span()), &call.args, call.span());
        }
        visit::visit_expr_call(self, call);
    }
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if ordering_of(path).is_some() {
            self.all.push(begin(path.span()));
        }
        visit::visit_expr_path(self, path);
    }
}

/// A hash of what the evidence depends on: the code of core and of the models. Comments, layout and unit tests
/// are not part of it, nor is what runs under Shuttle, which says nothing about orderings.
///
/// # Errors
///
/// As [`places`].
pub fn hash() -> Result<String> {
    let mut hasher = Sha256::new();
    for (file, text) in files("crates/core/src")?.into_iter().chain(files("crates/model/src")?) {
        let beside = ["testing.rs", "tests.rs"].iter().any(|name| file.ends_with(name));
        if beside || file.starts_with("crates/model/src/shuttle") {
            continue;
        }
        hasher.update(&file);
        let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{file}: {error}"))?;
        absorb(tokens, &mut hasher);
    }
    Ok(hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// All tokens but documentation and unit tests.
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
