//! Flags of `nearlock completions`.

use clap::Args;
use clap_complete::Shell;

const INSTALL: &str = "\
Examples:
  nearlock completions bash > ~/.local/share/bash-completion/completions/nearlock
  nearlock completions zsh > ~/.zfunc/_nearlock
  nearlock completions fish > ~/.config/fish/completions/nearlock.fish
  nearlock completions elvish > ~/.config/elvish/lib/nearlock.elv
  nearlock completions powershell | Out-String | Invoke-Expression          (a line of $PROFILE)

Create the directory if it does not exist, and start a new shell. Zsh also needs
`fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit` in ~/.zshrc, and elvish `use nearlock` in
its rc.elv. In a list with commas, only the first name is completed.";

/// Writes the completion script of a shell to standard output.
#[derive(Debug, Args)]
#[command(after_help = INSTALL)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum, ignore_case = true, value_name = "SHELL")]
    pub shell: Shell,
}
