//! The orderings in the sources of the locks, to be compared with those that the models exercise.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprCall, ExprMethodCall, ExprPath, ImplItemFn, ItemFn, ItemMod, Macro, Token,
    TraitItemFn, UseRename,
};

use crate::mutate::{Half, Site};

/// An operation of a lock that has an ordering.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file, from the root of the repository.
    pub file: String,
    /// Where the call that the models see begins: `(line, column)`, from 1.
    pub at: (u32, u32),
    /// The function that contains it.
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

/// Where the sources of the locks are.
pub(crate) const LOCKS: [&str; 2] = ["crates/collection/src", "crates/core/src"];

/// Files and folders of these whose orderings models do not exercise, by their paths within the
/// folder.
const OTHER: &[(&str, &str)] = &[
    ("native", "the words of the machine, which pass on the ordering that they are given; assembly"),
    ("platform", "what a platform can do; its default functions only call others"),
    ("controls", "locks that are broken on purpose"),
];

/// Whether a file contains unit tests.
pub(crate) fn is_of_tests(file: &str) -> bool {
    file.trim_end_matches(".rs").split('/').any(|part| ["testing", "tests"].contains(&part))
}

/// Whether [`OTHER`] names a file.
fn is_other(file: &str) -> bool {
    let path = LOCKS.iter().find_map(|locks| file.strip_prefix(locks)?.strip_prefix('/'));
    let first = path.and_then(|path| path.split('/').next()).unwrap_or_default();
    OTHER.iter().any(|(name, _)| first.trim_end_matches(".rs") == *name)
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Rust files below `folder`, from the root of the repository, with their texts, in order.
pub(crate) fn files(folder: &str) -> Result<Vec<(String, String)>> {
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

/// The files of the locks, with their texts, in order.
pub(crate) fn sources() -> Result<Vec<(String, String)>> {
    let all: Result<Vec<_>> = LOCKS.iter().map(|folder| files(folder)).collect();
    Ok(all?.into_iter().flatten().collect())
}

/// The operations with orderings in the sources of the locks. In addition all other orderings
/// there, as `file:line`, which the models cannot see. Files whose orderings models do not exercise
/// are left out.
///
/// # Errors
///
/// If a source cannot be read, or is not Rust.
pub fn places() -> Result<(Vec<Place>, Vec<String>)> {
    let (mut places, mut strays) = (Vec::new(), Vec::new());
    for (file, text) in sources()? {
        if is_of_tests(&file) || is_other(&file) {
            continue;
        }
        let (found, others) = places_in(file, &text)?;
        places.extend(found);
        strays.extend(others);
    }
    Ok((places, strays))
}

fn places_in(file: String, text: &str) -> Result<(Vec<Place>, Vec<String>)> {
    let syntax = syn::parse_file(text).with_context(|| file.clone())?;
    let mut collector = Collector { file, ..Collector::default() };
    collector.visit_file(&syntax);
    let Collector { file, places, seen, all, .. } = collector;
    let strays = all.iter().filter(|at| !seen.contains(at)).map(|at| format!("{file}:{}", at.0)).collect();
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

/// The halves of this ordering for this operation.
fn halves(ordering: &str, operation: &str) -> Vec<Half> {
    use Half::{Acquire, Release, TotalOrder};
    match (ordering, operation) {
        ("Acquire", _) => vec![Acquire],
        ("Release", _) => vec![Release],
        ("AcqRel", _) => vec![Acquire, Release],
        ("SeqCst", "fence" | "fence_after_rmw") => vec![TotalOrder],
        ("SeqCst", "load") => vec![Acquire, TotalOrder],
        ("SeqCst", "store") => vec![Release, TotalOrder],
        ("SeqCst", _) => vec![Acquire, Release, TotalOrder],
        _ => Vec::new(),
    }
}

fn is_ordering(name: &Ident) -> bool {
    ["Acquire", "Release", "AcqRel", "SeqCst"].iter().any(|ordering| name == ordering)
}

fn ordering_of(path: &ExprPath) -> Option<String> {
    let name = &path.path.segments.last()?.ident;
    is_ordering(name).then(|| name.to_string())
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
        if arguments.is_empty() && ["light", "free_light", "heavy"].contains(&name) {
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

    /// Orderings of unknown use, in the text of a macro.
    fn in_macro(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.in_macro(group.stream()),
                TokenTree::Ident(name) if is_ordering(&name) => self.all.push(begin(name.span())),
                _ => {}
            }
        }
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.functions.push(name);
        visit(self);
        self.functions.pop();
    }
}

/// The code on one line, and not too long. The operation itself is at the end of the expression.
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
    fn visit_macro(&mut self, of: &'ast Macro) {
        self.in_macro(of.tokens.clone());
    }
    fn visit_use_rename(&mut self, rename: &'ast UseRename) {
        if is_ordering(&rename.ident) {
            self.all.push(begin(rename.ident.span()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_body(body: &str) -> (Vec<Place>, Vec<String>) {
        places_in("a.rs".to_owned(), &format!("fn f() {{\n{body}\n}}")).expect("is Rust")
    }

    #[test]
    fn operations_are_found_however_they_are_called() {
        use Half::{Acquire, Release, TotalOrder, Whole};
        for (body, at, halves) in [
            ("a.load(Acquire);", 3, &[Acquire][..]),
            ("a.load(Ordering::Acquire);", 3, &[Acquire]),
            ("Atomic::store(&a, 1, core::sync::atomic::Ordering::Release);", 1, &[Release]),
            ("let g = || { a.swap(1, AcqRel) };", 16, &[Acquire, Release]),
            ("a.compare_exchange(0, 1, AcqRel, Acquire);", 3, &[Acquire, Acquire, Release]),
            ("P::fence(SeqCst);", 1, &[TotalOrder]),
            ("P::fence_after_rmw(SeqCst);", 1, &[TotalOrder]),
            ("P::heavy();", 1, &[Whole]),
        ] {
            let (places, strays) = in_body(body);
            assert_eq!((places.len(), strays.len()), (1, 0), "{body}");
            assert_eq!((places[0].at, &*places[0].halves), ((2, at), halves), "{body}");
            assert_eq!(places[0].function, "f");
        }
    }

    #[test]
    fn orderings_that_no_operation_takes_are_strays() {
        for body in [
            "const ORDER: Ordering = Release;",
            "let order = match b { true => Ordering::Acquire, false => Relaxed };",
            "a.load(if b { SeqCst } else { Relaxed });",
            "debug_assert!(a.load(Acquire) == 0);",
            "macro_rules! m { () => { a.load(Acquire) } }",
            "use core::sync::atomic::Ordering::{Relaxed, Release as R};",
        ] {
            let (places, strays) = in_body(body);
            assert_eq!((places.len(), &*strays), (0, &["a.rs:2".to_owned()][..]), "{body}");
        }
        assert!(in_body("a.load(Relaxed); use core::sync::atomic::Ordering::Release;").1.is_empty());
    }

    #[test]
    fn files_of_tests_and_other_files_are_told_by_their_paths() {
        for file in ["linux/cna/tests.rs", "linux/cna/testing/sequences.rs", "testing.rs", "a/tests/b.rs"] {
            assert!(is_of_tests(&format!("crates/core/src/{file}")), "{file}");
        }
        assert!(!is_of_tests("crates/collection/src/linux/contests.rs"));
        let files = [
            ("native.rs", true),
            ("native/watch.rs", true),
            ("platform.rs", true),
            ("classic/native.rs", false),
        ];
        for (file, other) in files {
            for locks in LOCKS {
                assert_eq!(is_other(&format!("{locks}/{file}")), other, "{file}");
            }
        }
    }
}
