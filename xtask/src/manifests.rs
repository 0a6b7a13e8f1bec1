//! The values that every crate inherits from the workspace, and the workspace's values. The crates
//! of `shims` cannot inherit them, and repeat them.

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::Finding;
use crate::files::TextFile;

/// The keys that `[package]` inherits.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

/// The values of `[workspace.package]`.
const WORKSPACE: &[(&str, &str)] =
    &[("edition", "2024"), ("rust-version", "1.95"), ("license", "MIT OR Apache-2.0")];

/// The directory of crates that are no members of the workspace, because two members cannot have
/// the same name.
const SEPARATE: &str = "shims/";

/// The values that differ in the manifest of the workspace, and in those of separate crates. Other
/// files are ignored.
///
/// # Errors
///
/// If the manifest is not TOML.
pub fn other_values(file: &TextFile) -> Result<Vec<Finding>> {
    let is_separate = file.path.starts_with(SEPARATE) && file.path.ends_with("/Cargo.toml");
    if file.path != "Cargo.toml" && !is_separate {
        return Ok(Vec::new());
    }
    let manifest: Table = file.text.parse().with_context(|| file.path.clone())?;
    let package = match manifest.get("workspace") {
        Some(workspace) if !is_separate => workspace.get("package"),
        _ => manifest.get("package"),
    };
    let value = |key: &str| package.and_then(|package| package.get(key)).and_then(Value::as_str);
    let other = WORKSPACE.iter().filter(|(key, expected)| value(key) != Some(expected));
    Ok(other.map(|(key, expected)| file.finding(format!("`{key}` is not \"{expected}\""))).collect())
}

/// The keys that the manifest of a crate does not inherit. Other files are ignored.
///
/// # Errors
///
/// If the manifest is not TOML.
pub fn not_inherited(file: &TextFile) -> Result<Vec<Finding>> {
    if !file.path.ends_with("/Cargo.toml") || file.path.starts_with(SEPARATE) {
        return Ok(Vec::new());
    }
    let manifest: Table = file.text.parse().with_context(|| file.path.clone())?;
    let package = manifest.get("package");
    let mut findings: Vec<_> = INHERITED
        .iter()
        .filter(|key| !is_inherited(package.and_then(|package| package.get(key))))
        .map(|key| file.finding(format!("`{key}` is not `{key}.workspace = true`")))
        .collect();
    if !is_inherited(manifest.get("lints")) {
        findings.push(file.finding("`[lints]` is not `workspace = true`"));
    }
    Ok(findings)
}

fn is_inherited(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\n[lints]\nworkspace = true\n";

    fn findings(text: &str) -> Vec<String> {
        let file = TextFile { path: "crates/a/Cargo.toml".to_owned(), text: text.to_owned() };
        not_inherited(&file).expect("is TOML").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn misses_each_line() {
        assert!(findings(GOOD).is_empty());
        for (line, what) in [
            ("version.workspace = true", "`version` is not `version.workspace = true`"),
            ("edition.workspace = true", "`edition` is not `edition.workspace = true`"),
            ("rust-version.workspace = true", "`rust-version` is not `rust-version.workspace = true`"),
            ("license.workspace = true", "`license` is not `license.workspace = true`"),
            ("[lints]\nworkspace = true", "`[lints]` is not `workspace = true`"),
        ] {
            assert_eq!(findings(&GOOD.replacen(line, "", 1)), [format!("crates/a/Cargo.toml: {what}")]);
        }
    }

    #[test]
    fn sees_a_value_of_the_crates_own() {
        let own = GOOD.replace("license.workspace = true", "license = \"MIT\"");
        assert_eq!(findings(&own), ["crates/a/Cargo.toml: `license` is not `license.workspace = true`"]);
    }

    #[test]
    fn sees_other_values_of_the_workspace() {
        let values = |text: &str| {
            let file = TextFile { path: "Cargo.toml".to_owned(), text: text.to_owned() };
            other_values(&file).expect("is TOML").iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let good = "[workspace.package]\nedition = \"2024\"\nrust-version = \"1.95\"\n\
            license = \"MIT OR Apache-2.0\"\n";
        assert!(values(good).is_empty());
        assert_eq!(values(&good.replace("1.95", "1.96")), ["Cargo.toml: `rust-version` is not \"1.95\""]);
        assert_eq!(values(&good.replace("2024", "2021")), ["Cargo.toml: `edition` is not \"2024\""]);
        assert_eq!(values("[workspace]").len(), WORKSPACE.len());
    }

    #[test]
    fn separate_crates_repeat_the_values() {
        let file = |text: &str| TextFile { path: "shims/a-1.0/Cargo.toml".to_owned(), text: text.to_owned() };
        let values = |text: &str| other_values(&file(text)).expect("is TOML");
        let good = "[package]\nedition = \"2024\"\nrust-version = \"1.95\"\nlicense = \"MIT OR Apache-2.0\"\n[workspace]\n";
        assert_eq!(values(good), []);
        let findings = values(&good.replace("1.95", "1.96"));
        assert_eq!(findings[0].to_string(), "shims/a-1.0/Cargo.toml: `rust-version` is not \"1.95\"");
        assert_eq!(not_inherited(&file(good)).expect("is TOML"), []);
    }
}
