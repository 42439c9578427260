//! `weir generate completions`: what shells complete.

use crate::flags::Cli;
use crate::messages::{Failure, give_bytes};
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Prints the script for this shell on stdout.
///
/// # Errors
///
/// When stdout cannot be written.
pub(super) fn print(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "weir", &mut script);
    give_bytes(&script)
}
