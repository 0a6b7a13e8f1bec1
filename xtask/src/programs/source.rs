//! Sources of published crates, fetched by cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::MetadataCommand;
use toml::{Table, Value};

/// Lets cargo fetch a crate into its cache. Returns the directory with the source.
///
/// # Errors
///
/// If cargo cannot fetch it, with what cargo says.
pub fn fetch(name: &str, version: &str, directory: &Path) -> Result<PathBuf> {
    // Cargo fetches what a package depends on, so this is a package that depends on the crate.
    fs::create_dir_all(directory.join("src"))?;
    fs::write(directory.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"fetch\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
        {name} = {{ version = \"={version}\", default-features = false }}\n"
    );
    fs::write(directory.join("Cargo.toml"), manifest)?;
    let metadata = MetadataCommand::new()
        .manifest_path(directory.join("Cargo.toml"))
        .current_dir(directory)
        .other_options(["--filter-platform".to_owned(), host()?])
        .exec()?;
    let is_it = |package: &&cargo_metadata::Package| {
        package.name.as_str() == name && package.version.to_string() == version
    };
    let package = metadata.packages.iter().find(is_it).context("cargo has not fetched it")?;
    let source = package.manifest_path.parent().context("a manifest is in a directory")?;
    Ok(source.as_std_path().to_owned())
}

/// The platform for which rustc compiles.
///
/// # Errors
///
/// If rustc does not start, or does not say.
pub fn host() -> Result<String> {
    let rustc = Command::new("rustc").arg("-vV").output().context("rustc does not start")?;
    let said = String::from_utf8_lossy(&rustc.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its platform")?.to_owned())
}

/// Copies a crate to `to`, as a workspace of its own. A copy that exists is kept, since published
/// crates do not change.
///
/// If `versions` is `Other`, the locked version of parking_lot is forgotten, so that cargo takes
/// the one that is patched in. All other versions stay as they were published. But if the tests
/// depend on crates that depend on the crate itself, these get the copy, as in the repository of
/// the crate.
///
/// # Errors
///
/// If a file cannot be read or written.
pub fn copy(name: &str, from: &Path, to: &Path, versions: Versions) -> Result<()> {
    if to.exists() {
        return Ok(());
    }
    // A copy that was interrupted does not exist under its name.
    let part = to.with_extension("part");
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    copy_directory(from, &part)?;
    let manifest = part.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    let mut text = of_its_own(&text).with_context(|| manifest.display().to_string())?;
    let lock = part.join("Cargo.lock");
    if lock.exists() {
        let mut locked = fs::read_to_string(&lock)?;
        let all = locked.parse::<Table>().context("Cargo.lock")?;
        if fetched(&all).any(|package| package == name) {
            text += &format!("\n[patch.crates-io]\n{name} = {{ path = \".\" }}\n");
            locked = without_fetched(&locked, name)?;
        }
        if versions == Versions::Other {
            locked = without_fetched(&locked, "parking_lot")?;
        }
        fs::write(&lock, locked)?;
    }
    fs::write(&manifest, text)?;
    Ok(fs::rename(&part, to)?)
}

/// The names of the packages of a lock file that are fetched.
fn fetched(lock: &Table) -> impl Iterator<Item = &str> {
    let packages = lock.get("package").and_then(Value::as_array).into_iter().flatten();
    let fetched = packages.filter(|package| package.get("source").is_some());
    fetched.filter_map(|package| package.get("name")?.as_str())
}

/// Which version of parking_lot a copy uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// The one with which it was published.
    Published,
    /// The newest, which is the patched one.
    Other,
}

fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_directory(&entry.path(), &to)?;
        } else {
            ensure!(kind.is_file(), "{} is no file", entry.path().display());
            fs::write(&to, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// The manifest of a package that belongs to no workspace above it.
fn of_its_own(manifest: &str) -> Result<String> {
    let table: Table = manifest.parse()?;
    Ok(if table.contains_key("workspace") {
        manifest.to_owned()
    } else {
        format!("{manifest}\n[workspace]\n")
    })
}

/// The lock file without the fetched packages of this name.
///
/// # Errors
///
/// If it is not TOML.
pub fn without_fetched(lock: &str, name: &str) -> Result<String> {
    let mut table: Table = lock.parse().context("Cargo.lock")?;
    if let Some(Value::Array(packages)) = table.get_mut("package") {
        let is_it = |package: &Value| {
            package.get("name").and_then(Value::as_str) == Some(name) && package.get("source").is_some()
        };
        packages.retain(|package| !is_it(package));
    }
    Ok(table.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_becomes_a_workspace_once() {
        let once = of_its_own("[package]\nname = \"a\"\n").unwrap();
        assert_eq!(once, "[package]\nname = \"a\"\n\n[workspace]\n");
        assert_eq!(of_its_own(&once).unwrap(), once);
        assert!(of_its_own("no TOML").is_err());
    }

    const LOCK: &str = "version = 4\n\n\
        [[package]]\nname = \"a\"\nversion = \"1.0.1\"\ndependencies = [\"parking_lot\"]\n\n\
        [[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\n\
        [[package]]\nname = \"parking_lot\"\nversion = \"0.12.5\"\nsource = \"registry\"\n\n\
        [[package]]\nname = \"parking_lot_core\"\nversion = \"0.9.12\"\nsource = \"registry\"\n";

    fn names(lock: &str) -> Vec<String> {
        let lock: Table = lock.parse().expect("is TOML");
        let packages = lock["package"].as_array().expect("is a list").iter();
        packages.map(|package| format!("{} {}", package["name"], package["version"])).collect()
    }

    #[test]
    fn only_fetched_packages_of_the_name_are_forgotten() {
        let left = without_fetched(LOCK, "parking_lot").unwrap();
        let expected = [r#""a" "1.0.1""#, r#""a" "1.0.0""#, r#""parking_lot_core" "0.9.12""#];
        assert_eq!(names(&left), expected);
        let left = without_fetched(&left, "a").unwrap();
        assert_eq!(names(&left), [expected[0], expected[2]]);
        assert_eq!(left.parse::<Table>().unwrap()["version"].as_integer(), Some(4));
    }

    #[test]
    fn a_crate_on_which_its_tests_depend_through_others_is_the_copy() {
        let room = crate::files::build_directory("programs-copies").unwrap();
        let (from, to) = (room.join("from"), room.join("to"));
        for directory in [&from, &to] {
            if directory.exists() {
                fs::remove_dir_all(directory).unwrap();
            }
        }
        fs::create_dir_all(from.join("src")).unwrap();
        fs::write(from.join("src/lib.rs"), "").unwrap();
        fs::write(from.join("Cargo.toml"), "[package]\nname = \"a\"\n").unwrap();
        fs::write(from.join("Cargo.lock"), LOCK).unwrap();
        copy("a", &from, &to, Versions::Published).unwrap();
        let manifest: Table = fs::read_to_string(to.join("Cargo.toml")).unwrap().parse().unwrap();
        assert_eq!(manifest["patch"]["crates-io"]["a"]["path"].as_str(), Some("."));
        assert!(manifest.contains_key("workspace") && to.join("src/lib.rs").exists());
        assert_eq!(names(&fs::read_to_string(to.join("Cargo.lock")).unwrap()).len(), 3);
    }
}
