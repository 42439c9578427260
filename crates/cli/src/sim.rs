//! `weir sim`: what would happen. What it does is in `weir-sim`; here are flags and messages.

mod hits;
mod mrc;
mod paper;
mod progress_reporter;
mod run;
mod sweep;
mod trace;

use crate::messages::Failure;
use clap::Subcommand;

/// The commands of `weir sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Say how many requests of a trace would be hits, of a cache of some sizes and policies
    Hits(hits::HitsFlags),
    /// Draw miss-ratio curves: how many requests would miss, at which size
    ///
    /// Exact for lru, by simulation for other policies; or from a sample of the keys, with its
    /// error.
    Mrc(mrc::MrcFlags),
    /// Simulate every point of a grid, on all cores; a run that is in the file already is not made
    /// again
    Sweep(sweep::SweepFlags),
    /// Simulate a proxy on a trace: cache, connections, links and aborts together, beside no proxy
    /// and a proxy without caches
    ///
    /// Every decision about caching is taken by the code that `weir serve` runs. docs/sim.md says
    /// what the network is like.
    Run(Box<run::RunFlags>),
    /// Make the tables and figures of a paper again, beside its own numbers
    #[command(subcommand)]
    Paper(paper::PaperCommand),
}

/// Runs the command.
///
/// # Errors
/// Bad usage (exit 2), or the outside failed (3).
pub(crate) fn run(command: &SimCommand) -> Result<(), Failure> {
    match command {
        SimCommand::Hits(flags) => hits::hits(flags),
        SimCommand::Mrc(flags) => mrc::mrc(flags),
        SimCommand::Sweep(flags) => sweep::sweep(flags),
        SimCommand::Run(flags) => run::run(flags),
        SimCommand::Paper(command) => paper::paper(command),
    }
}
