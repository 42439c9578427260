//! `weir sim`: what would happen. What it does is in `weir-sim`; here are flags and messages.

mod cluster;
mod hits;
mod mrc;
mod paper;
mod progress_reporter;
mod rules;
mod run;
mod sweep;
mod trace;

use crate::messages::Failure;
use clap::Subcommand;

/// The commands of `weir sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Count how many requests of a trace would be hits, by size and policy of the cache
    Hits(hits::HitsFlags),
    /// Draw miss-ratio curves: how many requests would miss, at which size
    ///
    /// Exact for lru, by simulation for other policies; or from a sample of the keys, with its
    /// error.
    Mrc(mrc::MrcFlags),
    /// Simulate every point of a grid, on all cores; a run that is in the file already is not
    /// repeated
    Sweep(sweep::SweepFlags),
    /// Simulate a proxy on a trace: cache, connections, links and aborts together; also without a
    /// proxy, and with one that stores nothing
    ///
    /// The code of `weir serve` takes every decision about caching. docs/sim.md describes the
    /// network.
    Run(Box<run::RunFlags>),
    /// Simulate a cluster: back ends with content on their disks, behind a front end that chooses
    /// one for each connection or request; or up to 1024 caches that share what they store
    ///
    /// The policies are those of `weir serve`. Of back ends, costs of CPU and disk are those of
    /// LARD's papers, or set by flags: docs/lard.md describes the model. Of caches (`--model
    /// caches`) hits, requests of the origin and between nodes are counted, from a sample of the
    /// targets: docs/scale.md.
    Cluster(Box<cluster::ClusterFlags>),
    /// Repeat the tables and figures of a paper, beside the published numbers
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
        SimCommand::Cluster(flags) => cluster::cluster(flags),
        SimCommand::Paper(command) => paper::paper(command),
    }
}
