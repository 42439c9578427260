//! `weir trace`: requests to caches, as files. What it does is in `weir-trace`; here are
//! flags and messages.

mod compare;
mod import;
mod make;
mod stats;
mod top;

use crate::messages::{Exit, Failure};
use clap::Subcommand;
use weir_trace::{Fault, TraceError};

/// The commands of `weir trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Describe a trace: uncachable causes, aborts, persistence, sizes, popularity, infinite-cache
    /// hit ratios, round trips
    ///
    /// Values that the source of the trace did not have are shown as "not in this trace", never as
    /// 0. docs/trace.md says what counts.
    Stats(stats::StatsFlags),
    /// List what takes most of a trace, exactly and as `/top` of a running proxy would find it
    ///
    /// Targets, servers or clients, by content bytes or requests. Beside the true counts are those
    /// of the sketches that a proxy has, one for each worker, and whether their bounds hold.
    Top(top::TopFlags),
    /// Compare two traces of the same requests: where verdicts, bytes and response times differ
    ///
    /// A recording with the rows of its simulation (`weir sim run --rows`), two recordings, or two
    /// simulations. Rows at the same place are a pair if their arrival and target agree; of the
    /// others, the n-th request of a target in A and in B. Exit code 0: equal; 1: a difference was
    /// found.
    Compare(compare::CompareFlags),
    /// Make a trace of logs, HARs, packet captures or other traces; reads gzip and zstd files
    ///
    /// Clients, servers and URLs become keyed hashes before anything is written. Prints how much
    /// was imported, and how much was left out and why.
    Import(import::ImportFlags),
    /// Make a synthetic trace like a published one, and compare it with the published numbers
    ///
    /// The same profile, length and seed make the same trace on every machine. Each published
    /// number is printed beside that of the trace.
    Make(make::MakeFlags),
}

/// Runs the command.
///
/// # Errors
///
/// A check said no (exit 1), bad usage (2), or the outside failed (3).
pub(crate) fn run(command: &TraceCommand) -> Result<(), Failure> {
    match command {
        TraceCommand::Stats(flags) => stats::stats(flags),
        TraceCommand::Top(flags) => top::top(flags),
        TraceCommand::Compare(flags) => compare::compare(flags),
        TraceCommand::Import(flags) => import::import(flags),
        TraceCommand::Make(flags) => make::make(flags),
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self {
            exit: match error.fault {
                Fault::Usage => Exit::BadUsage,
                Fault::Outside => Exit::OutsideFailed,
            },
            what: error.what,
            cause: error.cause,
            hint: error.hint,
        }
    }
}
