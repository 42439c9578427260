//! `weir sim sweep`: a run for every point of a grid.

use super::progress_reporter::ProgressReporter;
use super::trace::{TraceFlags, failure, threads};
use crate::messages::{Exit, Failure, give};
use clap::{Args, ValueEnum};
use std::num::NonZero;
use std::path::PathBuf;
use weir_bench::conduct::Interrupt;
use weir_sim::sweep::{Grid, GridError, HitsJob, Job, Progress, RunJob, SweepError, sweep as make};

/// The flags of `weir sim sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepFlags {
    #[command(flatten)]
    trace: TraceFlags,

    /// What is simulated
    #[arg(long, value_name = "WHAT", default_value = "hits")]
    of: Of,

    /// An axis of the grid with its values, such as size=1%,10% or policy=lru,s3-fifo; may be
    /// repeated
    ///
    /// Axes of `hits`: size (10%), policy (s3-fifo) and admission (always); an axis that is not
    /// given has the value in brackets.
    ///
    /// Axes of `run`: network (modem), profile (rfc9111), caching (on), size (unlimited), policy
    /// (s3-fifo), admission (always), client-connections (always), server-connections (always),
    /// abort (value), read-ahead (64KiB), background-rate (1MiB), hit-overhead (0s), miss-overhead
    /// (0s), seed (1), path (proxy; or direct), and the numbers of the network: client-rate,
    /// client-rtt, internet-rate, server-rtt, client-idle, server-idle, tcp, initial-window.
    #[arg(long, value_name = "NAME=VALUES", required = true)]
    axis: Vec<String>,

    /// File for the rows (Parquet); runs that are in it already are not repeated
    #[arg(long, value_name = "FILE", default_value = "sweep.parquet")]
    out: PathBuf,

    /// Runs at the same time; without it, one a core
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,

    /// Each response counts as one byte: sizes of the cache are numbers of responses
    #[arg(long)]
    unit_size: bool,
}

/// The runs to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Of {
    /// How many requests would be hits, as `weir sim hits`
    Hits,
    /// Cache, connections, links and aborts together, as `weir sim run`
    Run,
}

/// Makes the runs that are missing.
///
/// # Errors
/// Bad usage (2), the outside failed (3), or it was interrupted (1): what was made is kept.
pub(super) fn sweep(flags: &SweepFlags) -> Result<(), Failure> {
    match flags.of {
        Of::Hits => {
            let trace = flags.trace.open()?;
            let job = HitsJob::new(trace.as_ref(), flags.trace.rule(), flags.unit_size);
            let job = job.map_err(failure)?;
            let grid = Grid::new(&job.parameters(), &flags.axis).map_err(bad_grid)?;
            make_all(&job, &grid, flags)
        }
        Of::Run => {
            let (job, grid) = runs(flags)?;
            make_all(&job, &grid, flags)
        }
    }
}

/// Runs of the whole simulation, all of which can be made.
fn runs(flags: &SweepFlags) -> Result<(RunJob, Grid), Failure> {
    let unfit = flags
        .trace
        .said()
        .or_else(|| flags.unit_size.then_some("--unit-size"));
    let (None, Some(path)) = (unfit, flags.trace.path()) else {
        let flag = unfit.unwrap_or("--zipf");
        return Err(Failure::usage(
            format!("cannot use `{flag}` with `--of run`"),
            "a run needs a trace with times, clients and servers, and takes it as it is",
        )
        .hint("`weir trace make` makes one up"));
    };
    let grid = Grid::new(&RunJob::axes(), &flags.axis).map_err(bad_grid)?;
    let has_shares = grid.values("size").iter().any(|size| size.contains('%'));
    let job = RunJob::new(path, has_shares).map_err(failure)?;
    for point in grid.points() {
        job.check(&point)
            .map_err(|cause| Failure::usage("cannot use this grid", cause))?;
    }
    Ok((job, grid))
}

fn make_all(job: &dyn Job, grid: &Grid, flags: &SweepFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut progress_reporter = ProgressReporter::new();
    let is_stopped = || interrupt.is_set();
    let made = make(
        job,
        grid,
        &flags.out,
        threads(flags.threads),
        &is_stopped,
        |progress| {
            progress_reporter.report(progress.done == progress.points, || line(progress));
        },
    );
    progress_reporter.end();
    let done = made.map_err(not_whole)?;
    give(&format!(
        "{}: {} of {} runs, {} of them made now\n",
        flags.out.display(),
        done.runs,
        done.points,
        done.runs - done.before
    ))?;
    if done.runs < done.points {
        let cause = format!("interrupted after {} of {} runs", done.runs, done.points);
        return Err(Failure::check_said_no("the sweep is not whole", cause)
            .hint("the same command goes on"));
    }
    Ok(())
}

fn bad_grid(error: GridError) -> Failure {
    Failure::usage("cannot use this grid", error.what).hint(error.hint)
}

fn not_whole(error: SweepError) -> Failure {
    match error {
        SweepError::File(error) => Failure {
            exit: if error.is_outside {
                Exit::OutsideFailed
            } else {
                Exit::BadUsage
            },
            what: error.what,
            cause: error.cause,
            hint: error.hint,
        },
        SweepError::Run { .. } => Failure::outside("the sweep is not whole", error)
            .hint("the runs until then are kept; the same command goes on"),
    }
}

fn line(progress: Progress) -> String {
    let Progress { done, points, left } = progress;
    match left {
        Some(left) if done < points => {
            let s = left.as_secs();
            let (hours, minutes, s) = (s / 3600, s / 60 % 60, s % 60);
            format!("{done} of {points} runs, {hours}:{minutes:02}:{s:02} left")
        }
        _ => format!("{done} of {points} runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sweep_progress_shows_time_left_only_while_known_and_unfinished() {
        let told = |done, left: Option<u64>| {
            line(Progress {
                done,
                points: 9,
                left: left.map(Duration::from_secs),
            })
        };
        assert_eq!(told(2, Some(3725)), "2 of 9 runs, 1:02:05 left");
        assert_eq!(told(0, None), "0 of 9 runs");
        assert_eq!(told(9, Some(0)), "9 of 9 runs");
    }
}
