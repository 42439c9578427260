//! What describes `weir`, made from its declarations: settings as a page, man pages, completions of
//! shells.

mod completions;
mod man;
mod settings;

use crate::messages::Failure;
use clap::Subcommand;
use clap_complete::Shell;
use std::path::PathBuf;

pub(crate) use settings::print as settings;

/// The commands of `weir generate`.
#[derive(Debug, Subcommand)]
pub(crate) enum GenerateCommand {
    /// Write a man page for each command, and one for the config file, below a directory
    ///
    /// They are `man1/weir.1`, `man1/weir-serve.1` and so on, and `man5/weir.toml.5`: in
    /// /usr/local/share/man, `man` finds them. `man -l FILE` shows one that is elsewhere.
    Man {
        /// Directory, which is made if it is not there
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the completions of commands and flags for a shell
    ///
    /// For bash now: `source <(weir generate completions bash)`. For good:
    /// /usr/share/bash-completion/completions/weir, a file `_weir` in a directory of zsh's $fpath,
    /// or /usr/share/fish/vendor_completions.d/weir.fish.
    Completions {
        /// Which shell
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
}

/// Runs the command.
///
/// # Errors
///
/// The directory or stdout cannot be written.
pub(crate) fn generate(command: &GenerateCommand) -> Result<(), Failure> {
    match command {
        GenerateCommand::Man { directory } => man::write(directory),
        GenerateCommand::Completions { shell } => completions::print(*shell),
    }
}
