//! Which of nearlock's crates may use which.

use std::collections::BTreeSet;

use anyhow::Result;
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::{Finding, files};

/// Each crate, and the crates that it uses. It may also use all that these use.
const RULES: &[(&str, &[&str])] = &[
    (CORE, &[]),
    ("nearlock-os", &[CORE]),
    (COLLECTION, &[CORE]),
    // The collection only by a feature.
    ("nearlock", &["nearlock-os", COLLECTION]),
    (MODEL, &[COLLECTION]),
    ("nearlock-sim", &[CORE]),
    ("nearlock-workload", &[COLLECTION]),
    (TOPOLOGY, &["nearlock-os"]),
    ("nearlock-erased", &["nearlock-workload", "nearlock-sim"]),
    // It simulates, and so needs nothing of this machine.
    ("nearlock-lab", &["nearlock-erased"]),
    ("nearlock-bench", &["nearlock-lab", "nearlock", TOPOLOGY]),
    ("nearlock-cli", &["nearlock-bench"]),
    ("nearlock-twins", &["nearlock"]),
    ("xtask", &[]),
];

/// The crates that a program with nearlock compiles, and all other crates that each of these may
/// use.
const PRODUCT: &[(&str, &[&str])] =
    &[(COLLECTION, &[]), ("nearlock", &["backtrace", "lock_api"]), ("nearlock-os", &[])];

/// Has no dependency of any kind, and no feature.
const CORE: &str = "nearlock-core";

const COLLECTION: &str = "nearlock-collection";

const TOPOLOGY: &str = "nearlock-topology";

/// No crate depends on it, not even a test, because loom's types must not get into measured code.
const MODEL: &str = "nearlock-model";

/// One of nearlock's crates.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its dependencies, nearlock's crates or others.
    pub dependencies: Vec<Dependency>,
    /// The names of its features.
    pub features: Vec<String>,
}

/// A dependency of a crate.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// The name of the package, whatever it is renamed to.
    pub name: String,
    /// For the crate, for its build script, or for its tests.
    pub kind: DependencyKind,
}

/// Nearlock's crates, from `cargo metadata`. Their dependencies include those for only one target.
///
/// # Errors
///
/// If cargo cannot tell.
pub fn read() -> Result<Vec<Package>> {
    let metadata = MetadataCommand::new().manifest_path(files::root().join("Cargo.toml")).no_deps().exec()?;
    let package = |package: cargo_metadata::Package| Package {
        name: package.name.to_string(),
        dependencies: package
            .dependencies
            .into_iter()
            .map(|d| Dependency { name: d.name, kind: d.kind })
            .collect(),
        features: package.features.into_keys().collect(),
    };
    Ok(metadata.packages.into_iter().map(package).collect())
}

/// The dependencies that no rule allows, and the crates without a rule.
pub fn check(packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(|package| check_one(package, packages)).collect()
}

fn check_one(package: &Package, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |what: String| findings.push(Finding::new(&package.name, what));
    let allowed = uses(&package.name);
    if allowed.is_none() {
        find("has no rule in xtask/src/dependencies.rs".to_owned());
    }
    for Dependency { name, kind } in &package.dependencies {
        let ours = packages.iter().any(|other| other.name == *name);
        let others = PRODUCT.iter().find(|(product, _)| *product == package.name).map(|(_, others)| *others);
        let forbidden = match kind {
            _ if package.name == CORE || name == MODEL => true,
            DependencyKind::Development => false,
            _ if !ours => others.is_some_and(|others| !others.contains(&name.as_str())),
            _ => allowed.as_ref().is_some_and(|allowed| !allowed.contains(name.as_str())),
        };
        if forbidden {
            find(format!("may not depend on {name} ({kind} dependency)"));
        }
    }
    if package.name == CORE {
        for feature in &package.features {
            find(format!("may not have features, but has `{feature}`"));
        }
    }
    findings
}

/// All that the crate may use, directly or through others.
fn uses(name: &str) -> Option<BTreeSet<&'static str>> {
    let (_, direct) = RULES.iter().find(|(ours, _)| *ours == name)?;
    let through = direct.iter().filter_map(|used| uses(used)).flatten();
    Some(direct.iter().copied().chain(through).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph in which each crate uses all that it may, with every kind of dependency.
    fn good() -> Vec<Package> {
        let package = |(name, _): &(&str, _)| Package {
            name: (*name).to_owned(),
            dependencies: uses(name)
                .into_iter()
                .flatten()
                .flat_map(|used| [(used, DependencyKind::Normal), (used, DependencyKind::Build)])
                .map(|(used, kind)| Dependency { name: used.to_owned(), kind })
                .collect(),
            features: Vec::new(),
        };
        RULES.iter().map(package).collect()
    }

    /// The good graph with one more dependency, and the findings about it.
    fn with(name: &str, used: &str, kind: DependencyKind) -> Vec<String> {
        let mut packages = good();
        let package = packages.iter_mut().find(|package| package.name == name).expect("there is a rule");
        package.dependencies.push(Dependency { name: used.to_owned(), kind });
        check(&packages).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_are_closed_under_use() {
        let expected = [
            "nearlock",
            "nearlock-bench",
            "nearlock-erased",
            "nearlock-lab",
            "nearlock-os",
            "nearlock-sim",
            "nearlock-workload",
            COLLECTION,
            CORE,
            TOPOLOGY,
        ];
        assert_eq!(uses("nearlock-cli"), Some(BTreeSet::from(expected)));
        assert_eq!(uses("nearlock"), Some(BTreeSet::from([COLLECTION, CORE, "nearlock-os"])));
    }

    #[test]
    fn allows_what_the_rules_allow() {
        assert_eq!(check(&good()), []);
        assert!(with("nearlock-sim", "serde", DependencyKind::Normal).is_empty());
    }

    #[test]
    fn forbids_other_arrows_except_in_tests() {
        let expected = ["nearlock-sim: may not depend on nearlock-os (normal dependency)"];
        assert_eq!(with("nearlock-sim", "nearlock-os", DependencyKind::Normal), expected);
        let expected = ["xtask: may not depend on nearlock-core (build dependency)"];
        assert_eq!(with("xtask", CORE, DependencyKind::Build), expected);
        let expected = ["nearlock-os: may not depend on nearlock (normal dependency)"];
        assert_eq!(with("nearlock-os", "nearlock", DependencyKind::Normal), expected);
        assert!(with("nearlock-sim", "nearlock-os", DependencyKind::Development).is_empty());
    }

    #[test]
    fn forbids_any_use_of_the_models() {
        for (kind, shown) in [
            (DependencyKind::Normal, "normal"),
            (DependencyKind::Build, "build"),
            (DependencyKind::Development, "dev"),
        ] {
            let expected = [format!("nearlock-cli: may not depend on nearlock-model ({shown} dependency)")];
            assert_eq!(with("nearlock-cli", MODEL, kind), expected);
        }
    }

    #[test]
    fn keeps_the_core_alone() {
        for kind in [DependencyKind::Normal, DependencyKind::Build, DependencyKind::Development] {
            assert_eq!(with(CORE, "libc", kind).len(), 1, "{kind}");
        }
        let mut packages = good();
        packages[0].features.push("std".to_owned());
        let expected = Finding::new(CORE, "may not have features, but has `std`");
        assert_eq!(check(&packages), [expected]);
    }

    #[test]
    fn keeps_the_product_small() {
        let expected = ["nearlock-os: may not depend on libc (normal dependency)"];
        assert_eq!(with("nearlock-os", "libc", DependencyKind::Normal), expected);
        assert!(with("nearlock-os", "libc", DependencyKind::Development).is_empty());
        assert!(with("nearlock", "lock_api", DependencyKind::Normal).is_empty());
        assert_eq!(with(COLLECTION, "lock_api", DependencyKind::Normal).len(), 1);
    }

    #[test]
    fn demands_a_rule_for_each_crate() {
        let mut packages = good();
        packages.push(Package { name: "nearlock-new".to_owned(), dependencies: vec![], features: vec![] });
        let expected = Finding::new("nearlock-new", "has no rule in xtask/src/dependencies.rs");
        assert_eq!(check(&packages), [expected]);
    }
}
