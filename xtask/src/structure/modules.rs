//! The modules of a crate, and the files that they are in.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use syn::{Attribute, Item, UseTree, Visibility};

use crate::files::TextFile;

/// A path, segment by segment.
pub(super) type Segments = Vec<String>;

/// A module: a file, or `mod name { ... }` in one.
pub(super) struct Module {
    /// The file of the tree that contains it.
    pub file: usize,
    /// The module that contains it; the root itself for the root.
    pub parent: usize,
    /// Modules in it, by name.
    pub children: BTreeMap<String, usize>,
    /// The names of the other items that are declared in it.
    pub items: BTreeSet<String>,
    /// Names that it imports, and their paths.
    pub imports: BTreeMap<String, Segments>,
    /// The modules all of whose names it imports.
    pub globs: Vec<Segments>,
    /// The items, without tests.
    pub syntax: Vec<Item>,
}

/// The root of a tree.
pub(super) const ROOT: usize = 0;

/// The modules of a crate, the root first.
pub(super) struct Tree<'a> {
    sources: &'a [TextFile],
    pub modules: Vec<Module>,
}

impl<'a> Tree<'a> {
    /// The trees of all crates whose roots are among the sources.
    ///
    /// # Errors
    ///
    /// If a file is not Rust, or a module's file is not where the module is declared.
    pub(super) fn all(sources: &'a [TextFile]) -> Result<Vec<Self>> {
        let roots = (0..sources.len()).filter(|&file| is_root(&sources[file].path));
        roots.map(|root| Self::of(sources, root)).collect()
    }

    fn of(sources: &'a [TextFile], root: usize) -> Result<Self> {
        let mut tree = Self { sources, modules: Vec::new() };
        let directory = parent(&sources[root].path).to_owned();
        tree.add_file(root, ROOT, &directory)?;
        Ok(tree)
    }

    /// Whether one module is the other, or is within it.
    pub(super) fn is_within(&self, inner: usize, outer: usize) -> bool {
        let mut at = inner;
        while at != outer && at != ROOT {
            at = self.modules[at].parent;
        }
        at == outer
    }

    /// Adds the module that is a file. The module's own modules are in the directory.
    fn add_file(&mut self, file: usize, parent: usize, directory: &str) -> Result<usize> {
        let source = &self.sources[file];
        let syntax = syn::parse_file(&source.text).with_context(|| source.path.clone())?;
        self.add(file, parent, directory, syntax.items)
    }

    fn add(&mut self, file: usize, parent: usize, directory: &str, syntax: Vec<Item>) -> Result<usize> {
        let index = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: BTreeMap::new(),
            globs: Vec::new(),
            syntax: Vec::new(),
        });
        for item in syntax {
            if attributes(&item).iter().any(is_cfg_test) {
                continue;
            }
            match item {
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let inside = format!("{directory}/{name}");
                    let child = match module.content {
                        Some((_, items)) => self.add(file, index, &inside, items)?,
                        None => self.add_file(self.declared(&inside, file)?, index, &inside)?,
                    };
                    self.modules[index].children.insert(name, child);
                }
                item => {
                    let module = &mut self.modules[index];
                    module.items.extend(name(&item));
                    if let Item::Use(import) = &item {
                        module.import(&import.tree, &mut Vec::new());
                    }
                    module.syntax.push(item);
                }
            }
        }
        Ok(index)
    }

    /// The file of the module with this path, which has no `.rs`.
    fn declared(&self, path: &str, by: usize) -> Result<usize> {
        let is_it = |file: &TextFile| {
            file.path
                .strip_suffix(".rs")
                .is_some_and(|stem| stem == path || stem.strip_suffix("/mod") == Some(path))
        };
        let found = self.sources.iter().position(is_it);
        found.with_context(|| format!("{}: there is no file of module {path}", self.sources[by].path))
    }
}

impl Module {
    fn import(&mut self, tree: &UseTree, prefix: &mut Segments) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.import(&path.tree, prefix);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, prefix)),
            UseTree::Glob(_) => self.globs.push(prefix.clone()),
            UseTree::Name(name) => self.add_import(&name.ident.to_string(), name.ident.to_string(), prefix),
            UseTree::Rename(rename) => {
                self.add_import(&rename.ident.to_string(), rename.rename.to_string(), prefix);
            }
        }
    }

    fn add_import(&mut self, last: &str, name: String, prefix: &Segments) {
        let (path, name) = match (last, prefix.last()) {
            // `use a::b::{self}`.
            ("self", Some(module)) => (prefix.clone(), if name == "self" { module.clone() } else { name }),
            _ => (prefix.iter().cloned().chain([last.to_owned()]).collect(), name),
        };
        self.imports.insert(name, path);
    }
}

/// Whether the import only passes names on.
pub(super) fn is_facade(import: &syn::ItemUse) -> bool {
    !matches!(import.vis, Visibility::Inherited)
}

fn is_root(path: &str) -> bool {
    let Some((_, inside)) = path.split_once("/src/") else { return false };
    matches!(inside, "lib.rs" | "main.rs")
        || inside.strip_prefix("bin/").is_some_and(|bin| !bin.contains('/') || bin.ends_with("/main.rs"))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn is_cfg_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item declares.
fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
