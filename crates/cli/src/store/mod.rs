//! `weir store`: a store on disk, read from its files, or by the proxy that uses it.

mod export;
mod flags;
mod ls;
mod online;
mod source;
mod stats;
mod verify;

pub(crate) use flags::StoreCommand;

use crate::messages::Failure;

/// Runs the command.
///
/// # Errors
///
/// The store says no (exit 1), or cannot be read (exit 3).
pub(crate) fn run(command: &StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Ls(flags) => ls::ls(flags),
        StoreCommand::Verify(flags) => verify::verify(flags),
        StoreCommand::Stats(flags) => stats::stats(flags),
        StoreCommand::Export(flags) => export::export(flags),
    }
}
