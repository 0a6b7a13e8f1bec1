//! Rules of style for Rust sources: the length of files and `bool` parameters. The rules for locks
//! are in [`locks`].
//!
//! Functions that a macro makes are not seen.

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{FnArg, Item, ItemFn, ItemImpl, ItemTrait, Signature, Type, Visibility};

use crate::Finding;
use crate::files::TextFile;

pub mod locks;

/// The largest number of lines of a file.
const FILE_LINES: usize = 500;

/// Public functions that may take a `bool`, and why.
const MAY_TAKE_BOOL: &[(&str, &str, &str)] = &[
    ("crates/core/src/platform.rs", "Priority::set_priority", "sets a state that is asked for as a `bool`"),
    ("crates/os/src/thread.rs", "set_priority", "is how `Os` does `Priority::set_priority`"),
];

/// A file that is too long.
pub fn long_file(file: &TextFile) -> Option<Finding> {
    let lines = file.text.lines().count();
    (lines > FILE_LINES).then(|| file.finding(format!("has {lines} lines, more than {FILE_LINES}")))
}

/// Public functions and methods that take a `bool`, whose meaning is not visible in a call.
///
/// # Errors
///
/// If the file is not Rust.
pub fn bool_parameters(file: &TextFile) -> Result<Vec<Finding>> {
    let may = |name: &str| MAY_TAKE_BOOL.iter().any(|entry| (entry.0, entry.1) == (&*file.path, name));
    let bad = |function: &&Function| function.is_public && function.takes_bool && !may(&function.name);
    let what = |name| format!("public `{name}` takes a `bool`; give it an enum or two functions");
    let functions = functions(file)?;
    Ok(functions.iter().filter(bad).map(|f| file.finding_at(f.line, what(&f.name))).collect())
}

struct Function {
    /// Includes the type or trait that it belongs to.
    name: String,
    line: usize,
    /// Is `pub`, or belongs to a trait that is.
    is_public: bool,
    takes_bool: bool,
}

fn functions(file: &TextFile) -> Result<Vec<Function>> {
    let syntax = syn::parse_file(&file.text).with_context(|| file.path.clone())?;
    let mut collector = Collector::default();
    collector.visit_file(&syntax);
    Ok(collector.functions)
}

#[derive(Default)]
struct Collector {
    /// The type or trait whose items are visited.
    owner: Option<String>,
    /// Whether the trait whose items are visited is public.
    in_public_trait: bool,
    functions: Vec<Function>,
}

impl Collector {
    fn add(&mut self, is_public: bool, signature: &Signature) {
        let owner = self.owner.iter().map(|owner| format!("{owner}::"));
        self.functions.push(Function {
            name: owner.chain([signature.ident.to_string()]).collect(),
            line: signature.fn_token.span.start().line,
            is_public,
            takes_bool: signature.inputs.iter().any(is_bool),
        });
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        let outer = (self.owner.take(), self.in_public_trait);
        match item {
            Item::Trait(ItemTrait { ident, vis, .. }) => {
                self.owner = Some(ident.to_string());
                self.in_public_trait = is_public(vis);
            }
            Item::Impl(ItemImpl { self_ty, .. }) => self.owner = type_name(self_ty),
            _ => {}
        }
        visit::visit_item(self, item);
        (self.owner, self.in_public_trait) = outer;
    }

    fn visit_item_fn(&mut self, f: &'ast ItemFn) {
        self.add(is_public(&f.vis), &f.sig);
        visit::visit_item_fn(self, f);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.add(is_public(&f.vis), &f.sig);
        visit::visit_impl_item_fn(self, f);
    }

    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        self.add(self.in_public_trait, &f.sig);
        visit::visit_trait_item_fn(self, f);
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_bool(parameter: &FnArg) -> bool {
    let FnArg::Typed(parameter) = parameter else { return false };
    matches!(&*parameter.ty, Type::Path(ty) if ty.path.is_ident("bool"))
}

fn type_name(ty: &Type) -> Option<String> {
    let Type::Path(ty) = ty else { return None };
    ty.path.segments.last().map(|segment| segment.ident.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: String) -> TextFile {
        TextFile { path: path.to_owned(), text }
    }

    fn takes_bool(path: &str, text: &str) -> Vec<String> {
        let findings = bool_parameters(&file(path, text.to_owned())).expect("is Rust");
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn counts_the_lines_of_a_file() {
        assert_eq!(long_file(&file("a.rs", "//\n".repeat(500))), None);
        let expected = Finding::new("a.rs", "has 501 lines, more than 500");
        assert_eq!(long_file(&file("a.rs", "//\n".repeat(501))), Some(expected));
    }

    #[test]
    fn finds_bool_parameters_of_public_functions() {
        for (text, name) in [
            ("pub fn f(a: u8, b: bool) {}", "f"),
            ("impl<T> A<T> { pub fn f(&self, b: bool) {} }", "A::f"),
            ("pub trait T { fn f(b: bool); }", "T::f"),
            ("pub trait T { fn f(&self, b: bool) {} }", "T::f"),
        ] {
            let what = format!("a.rs:1: public `{name}` takes a `bool`; give it an enum or two functions");
            assert_eq!(takes_bool("a.rs", text), [what]);
        }
    }

    #[test]
    fn passes_over_bool_elsewhere() {
        for text in [
            "fn f(b: bool) {}",
            "pub(crate) fn f(b: bool) {}",
            "trait T { fn f(b: bool); }",
            "impl T for A { fn f(b: bool) {} }",
            "pub fn f() -> bool { true }",
        ] {
            assert!(takes_bool("a.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn exceptions_are_for_one_function_of_one_file() {
        let [(path, ..), ..] = MAY_TAKE_BOOL else { panic!("no exception to try") };
        assert!(takes_bool(path, "pub trait Priority { fn set_priority(urgent: bool); }").is_empty());
        assert_eq!(takes_bool(path, "pub trait Priority { fn set_other(urgent: bool); }").len(), 1);
        assert_eq!(takes_bool("a.rs", "pub trait Priority { fn set_priority(urgent: bool); }").len(), 1);
    }
}
