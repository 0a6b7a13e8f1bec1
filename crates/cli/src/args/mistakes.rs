//! Errors of the command line, in addition to what clap explains.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, Error, builder::UnknownArgumentValueParser};
use nearlock_lab::names::{self, Known};

use super::Cli;

/// A flag that another command has, or that one would expect. Its error suggests the right one.
pub(super) fn expected(flag: &'static str, right: &'static str) -> Arg {
    Arg::new(flag)
        .long(flag)
        .value_name("N")
        .hide(true)
        .value_parser(UnknownArgumentValueParser::suggest_arg(right))
}

/// The error with similar commands, and without control characters and long names of the user's.
pub(super) fn explained(mut error: Error) -> Error {
    suggest_command(&mut error);
    let is_users = |error: &Error, kind| match kind {
        ContextKind::InvalidValue | ContextKind::InvalidSubcommand => true,
        // Otherwise it is the name of a known argument.
        ContextKind::InvalidArg => error.kind() == ErrorKind::UnknownArgument,
        _ => false,
    };
    let changed: Vec<_> = error
        .context()
        .filter(|(kind, _)| is_users(&error, *kind))
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, names::echoed(text), text)),
            _ => None,
        })
        .filter(|(_, echoed, text)| echoed != *text)
        .map(|(kind, echoed, _)| (kind, echoed))
        .collect();
    for (kind, echoed) in changed {
        error.insert(kind, ContextValue::String(echoed));
        // It repeats the argument, too.
        error.remove(ContextKind::Suggested);
    }
    error
}

/// `help benchh` has no suggestions of clap's, unlike `benchh`.
fn suggest_command(error: &mut Error) {
    let is_suggested = error.get(ContextKind::SuggestedSubcommand).is_some();
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let command = Cli::command();
    let known = command.get_subcommands().map(Command::get_name).map(Known::name);
    let near: Vec<_> = names::nearest(given, known).iter().map(|near| near.name.to_owned()).collect();
    if !is_suggested && !near.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
}
