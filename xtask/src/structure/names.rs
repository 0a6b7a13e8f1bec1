//! The files that declare the names that a file uses.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemUse, Macro, Path, UseTree, VisRestricted};

use super::modules::{Module, ROOT, Segments, Tree, is_facade};

/// Which files use which, with the names, and the first line of each name.
pub(super) type Uses = BTreeMap<(usize, usize), BTreeMap<String, usize>>;

/// The largest number of names and modules that a path may lead through: a path that leads to
/// itself has no end.
const STEPS_MAX: usize = 32;

/// All uses within a crate.
pub(super) fn uses(tree: &Tree<'_>) -> Uses {
    let mut uses = Uses::new();
    for (module, Module { file, syntax, .. }) in tree.modules.iter().enumerate() {
        let mut named = Named::default();
        syntax.iter().for_each(|item| named.visit_item(item));
        for (path, line) in named.paths {
            let Some(Place::In(declaring)) = resolve(tree, module, &path, STEPS_MAX) else { continue };
            let other = tree.modules[declaring].file;
            let are_one = tree.is_within(module, declaring) || tree.is_within(declaring, module);
            if let Some(name) = path.last().filter(|_| other != *file && !are_one) {
                uses.entry((*file, other)).or_default().entry(name.clone()).or_insert(line);
            }
        }
    }
    uses
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// This module.
    Module(usize),
    /// Something that this module declares.
    In(usize),
}

/// The target of the path, seen from this module. `None` if it is outside of the crate.
fn resolve(tree: &Tree<'_>, module: usize, path: &[String], steps: usize) -> Option<Place> {
    let steps = steps.checked_sub(1)?;
    let (first, rest) = path.split_first()?;
    let place = match first.as_str() {
        "crate" => Place::Module(ROOT),
        "self" => Place::Module(module),
        "super" => Place::Module(tree.modules[module].parent),
        _ => member(tree, module, first, Wanted::before(rest), steps)?,
    };
    follow(tree, place, rest, steps)
}

/// The target of the rest of a path.
fn follow(tree: &Tree<'_>, place: Place, rest: &[String], steps: usize) -> Option<Place> {
    let (Place::Module(module), Some((first, rest))) = (place, rest.split_first()) else {
        return Some(place);
    };
    let place = match first.as_str() {
        "super" => Place::Module(tree.modules[module].parent),
        "self" => place,
        // A name that no item declares is declared by a macro.
        _ => member(tree, module, first, Wanted::before(rest), steps).unwrap_or(Place::In(module)),
    };
    follow(tree, place, rest, steps)
}

/// The likely meaning of a name that both a module and another item have.
#[derive(Clone, Copy)]
enum Wanted {
    Module,
    Item,
}

impl Wanted {
    fn before(rest: &[String]) -> Self {
        if rest.is_empty() { Self::Item } else { Self::Module }
    }
}

/// The meaning of a name in a module.
fn member(tree: &Tree<'_>, module: usize, name: &str, wanted: Wanted, steps: usize) -> Option<Place> {
    let Module { children, items, imports, globs, .. } = &tree.modules[module];
    let child = || children.get(name).map(|child| Place::Module(*child));
    let item = || items.contains(name).then_some(Place::In(module));
    let import = || imports.get(name).and_then(|path| resolve(tree, module, path, steps));
    let own = match wanted {
        Wanted::Item => item().or_else(import).or_else(child),
        Wanted::Module => child().or_else(import).or_else(item),
    };
    // By `use path::*`.
    own.or_else(|| {
        let steps = steps.checked_sub(1)?;
        globs.iter().find_map(|glob| match resolve(tree, module, glob, steps)? {
            Place::Module(from) => member(tree, from, name, wanted, steps),
            Place::In(_) => None,
        })
    })
}

/// All paths of a module.
#[derive(Default)]
struct Named {
    paths: Vec<(Segments, usize)>,
}

impl Named {
    fn import(&mut self, tree: &UseTree, prefix: &mut Segments) {
        let mut add = |last: &syn::Ident, prefix: &Segments| {
            let path = prefix.iter().cloned().chain([last.to_string()]).collect();
            self.paths.push((path, last.span().start().line));
        };
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.import(&path.tree, prefix);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, prefix)),
            UseTree::Glob(_) => {}
            UseTree::Name(name) => add(&name.ident, prefix),
            UseTree::Rename(rename) => add(&rename.ident, prefix),
        }
    }

    /// Paths in the arguments of a macro, or in the code that it makes.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Segments::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path, line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path, line);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.end(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.end(&mut path, line);
    }

    fn end(&mut self, path: &mut Segments, line: usize) {
        let path = std::mem::take(path);
        if !path.is_empty() {
            self.paths.push((path, line));
        }
    }
}

impl<'ast> Visit<'ast> for Named {
    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.paths.push((segments, path.span().start().line));
        }
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        if !is_facade(import) {
            self.import(&import.tree, &mut Vec::new());
        }
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.visit_path(&invoked.path);
        self.tokens(invoked.tokens.clone());
    }

    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}
