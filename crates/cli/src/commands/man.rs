//! `nearlock man`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::Ending;
use crate::args::{Cli, ManArgs};

/// The pages cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("--out {}: {source}: it must be a directory that can be written to, or created", path.display())]
struct OutError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the page, or the pages.
pub fn run(args: &ManArgs) -> anyhow::Result<Ending> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    match &args.out {
        None => io::stdout().lock().write_all(page(&command, &command)?.as_bytes())?,
        Some(out) => {
            write_all(&command, out).map_err(|source| OutError { path: out.clone(), source })?;
        }
    }
    Ok(Ending::Success)
}

/// Writes a page for the command and for each of its commands.
fn write_all(root: &Command, out: &Path) -> io::Result<()> {
    fs::create_dir_all(out)?;
    for command in [root].into_iter().chain(root.get_subcommands()) {
        fs::write(out.join(format!("{}.1", page_name(command))), page(command, root)?)?;
    }
    Ok(())
}

/// As in `nearlock-simulate`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// The page of the command, which is the root or one of its commands.
fn page(command: &Command, root: &Command) -> io::Result<String> {
    let version = root.get_version().unwrap_or_default();
    // The generator would join the lines of examples.
    let opening = command.clone().after_help(Resettable::Reset);
    let opening = opening.subcommand_help_heading("COMMANDS").subcommand_value_name("COMMAND");
    let man = Man::new(opening).source(format!("{} {version}", root.get_name()));
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    let closing = closing(command, root).render();
    // Both begin with the same definitions, which are needed once. A page begins with its title.
    let definitions = Roff::new().render();
    let [text, closing] = [&text, &closing].map(|part| part.strip_prefix(&definitions).unwrap_or(part));
    let (title, sections) = text.split_once('\n').unwrap_or((text, ""));
    Ok(format!("{title}\n{definitions}{sections}{closing}"))
}

/// The end of `--help` in sections. Each page also has the exit status, which is at the end of the
/// root's help.
fn closing(command: &Command, root: &Command) -> Roff {
    let help = |command: &Command| command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (own, general) = (help(command), help(root));
    let mut roff = Roff::new();
    let mut notes = Vec::new();
    for block in own.split("\n\n").filter(|block| !block.is_empty()) {
        match listing(block) {
            Some((heading, lines)) => section(&mut roff, heading, lines),
            None => notes.push(block.replace('\n', " ")),
        }
    }
    if own != general {
        for (heading, lines) in general.split("\n\n").filter_map(listing) {
            section(&mut roff, heading, lines);
        }
    }
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
    }
    for note in notes {
        roff.control("PP", []);
        roff.text([roman(note)]);
    }
    if own != general {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold(page_name(root)), roman("(1)")]);
    }
    roff
}

/// Heading and lines of a block with indented lines below a heading.
fn listing(block: &str) -> Option<(&str, &str)> {
    block.split_once(":\n").filter(|(_, lines)| lines.lines().all(|line| line.starts_with("  ")))
}

/// A section of unchanged lines.
fn section(roff: &mut Roff, heading: &str, lines: &str) {
    roff.control("SH", [heading.to_uppercase().as_str()]);
    roff.control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    roff.control("fi", []);
}
