//! Each rule, applied to this repository.

use anyhow::{Context, Result, ensure};
use xtask::files::{self, TextFile};
use xtask::sources::{self, locks};
use xtask::{Finding, dependencies, documents, manifests, structure, texts};

/// Fails with all findings, one per line.
fn none(findings: Vec<Finding>) {
    let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "\n{}", lines.join("\n"));
}

/// Fails with all findings of the check in the files.
fn none_in(files: Vec<TextFile>, check: impl Fn(&TextFile) -> Result<Vec<Finding>>) -> Result<()> {
    let findings: Vec<_> = files.iter().map(check).collect::<Result<_>>()?;
    none(findings.concat());
    Ok(())
}

#[test]
fn crates_use_only_what_the_rules_allow() -> Result<()> {
    none(dependencies::check(&dependencies::read()?));
    Ok(())
}

#[test]
fn crates_inherit_from_the_workspace() -> Result<()> {
    none_in(files::tracked()?, manifests::not_inherited)
}

#[test]
fn the_workspace_has_the_values_that_crates_inherit() -> Result<()> {
    none_in(files::tracked()?, manifests::other_values)
}

#[test]
fn files_are_short() -> Result<()> {
    none_in(files::sources()?, |file| Ok(Vec::from_iter(sources::long_file(file))))
}

#[test]
fn no_crate_is_too_large() -> Result<()> {
    none(structure::large_crates(&files::tracked()?));
    Ok(())
}

#[test]
fn files_use_each_other_in_no_large_circles() -> Result<()> {
    none(structure::large_circles(&files::sources()?)?);
    Ok(())
}

#[test]
fn public_functions_take_no_bool() -> Result<()> {
    none_in(files::sources()?, sources::bool_parameters)
}

#[test]
fn locks_explain_their_orderings() -> Result<()> {
    none_in(files::sources()?, locks::unexplained_orderings)
}

#[test]
fn locks_have_no_conditional_code() -> Result<()> {
    none_in(files::sources()?, locks::conditional_code)
}

#[test]
fn nothing_is_marked_as_unfinished() -> Result<()> {
    none_in(files::tracked()?, |file| Ok(texts::marks(file)))
}

#[test]
fn paths_stay_inside_the_repository() -> Result<()> {
    none_in(files::tracked()?, |file| Ok(texts::paths_outside(file)))
}

/// The file of this path.
fn only(path: &str) -> Result<TextFile> {
    files::tracked()?.into_iter().find(|file| file.path == path).context(path.to_owned())
}

/// All pages whose path begins like this, as one document.
fn pages(start: &str) -> Result<TextFile> {
    let is_meant = |file: &TextFile| file.path.starts_with(start) && file.path.ends_with(".md");
    let pages: Vec<_> = files::tracked()?.into_iter().filter(is_meant).collect();
    ensure!(!pages.is_empty(), "no page {start}*.md");
    let text = pages.iter().map(|page| page.text.as_str()).collect();
    Ok(TextFile { path: format!("{start}*.md"), text })
}

#[test]
fn every_setting_has_its_reasons() -> Result<()> {
    let settings = documents::settings(&only("crates/core/src/settings.rs")?)?;
    none(documents::unnamed(&pages("docs/internals/tuning")?, &settings));
    Ok(())
}

#[test]
fn every_switch_has_its_reasons() -> Result<()> {
    let names: Vec<_> = files::sources()?.iter().map(documents::switches).collect::<Result<_>>()?;
    none(documents::unnamed(&pages("docs/internals/tuning")?, &names.concat()));
    Ok(())
}
