//! `weir sim paper`: a paper's tables and figures, made again.

use super::cluster;
use super::progress_reporter::ProgressReporter;
use super::trace::threads;
use crate::messages::{Failure, give, give_json, tell};
use clap::{Args, Subcommand};
use std::num::NonZero;
use std::path::PathBuf;
use weir_bench::conduct::Interrupt;
use weir_sim::cluster::{Http, MechanismCosts};
use weir_sim::paper::lard::{self, LardError};
use weir_sim::paper::proxim::{Exhibit, Order, PaperError, Progress, html, reproduce};
use weir_trace::generator::Recipe;
use weir_workload::output;

/// The papers that can be made again.
#[derive(Debug, Subcommand)]
pub(crate) enum PaperCommand {
    /// PROXIM (INFOCOM 1999): connections, data, cookies and aborts at a proxy for modems, and at
    /// one of a research network
    ///
    /// Prints every number of the paper's tables beside the simulated one, and draws its figures 4
    /// to 9 on a page. The traces are synthetic (`weir trace make`); docs/proxim.md explains the
    /// differences.
    Proxim(ProximFlags),
    /// LARD for persistent connections (USENIX 1999): policies and mechanisms of a cluster of web
    /// servers, by size of the cluster
    ///
    /// Prints figures 3 and 5 to 8 and the numbers of the paper's text beside the simulated ones,
    /// and draws them on a page, with bounded-hash, two-choices and the default of a cluster on the
    /// same axes. docs/lard.md says which numbers are calibrated and explains the differences.
    Lard(LardFlags),
}

/// The flags of `weir sim paper proxim`.
#[derive(Debug, Args)]
pub(crate) struct ProximFlags {
    /// Requests of each trace; the paper's were 10.7 million (modems) and 1.04 million (research)
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=Recipe::REQUESTS_MAX))]
    requests: u64,

    /// Of traces and simulators: the same seed prints the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Only this table or figure, such as bandwidth or figure-7; several with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Exhibit>,

    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "proxim.html")]
    out: PathBuf,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,

    /// Passes over a trace at the same time; without it, one a core
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

/// The flags of `weir sim paper lard`.
#[derive(Debug, Args)]
pub(crate) struct LardFlags {
    /// The trace, instead of the synthetic one: Parquet, as `weir trace` makes it
    #[arg(long, value_name = "TRACE", default_value = "rice-1999")]
    trace: String,

    /// Requests of a synthetic trace, instead of its own length; of a file, the first rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=Recipe::REQUESTS_MAX))]
    requests: Option<u64>,

    /// Of the trace and of choices at random: the same seed prints the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// What forwarding 512 bytes costs, as a part of sending them
    #[arg(long, value_name = "X", default_value_t = MechanismCosts::SCALE)]
    scale: f64,

    /// Only this figure, such as figure-7, or claims; several with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<lard::Exhibit>,

    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "lard.html")]
    out: PathBuf,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,

    /// Runs at the same time; without it, one a core
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

/// Makes the paper again.
///
/// # Errors
/// It was interrupted (exit 1), or the page cannot be written (3).
pub(super) fn paper(command: &PaperCommand) -> Result<(), Failure> {
    match command {
        PaperCommand::Proxim(flags) => proxim(flags),
        PaperCommand::Lard(flags) => lard(flags),
    }
}

fn proxim(flags: &ProximFlags) -> Result<(), Failure> {
    // rather than after the work of minutes
    let unwritten = |error| Failure::output(&flags.out, &error);
    output::try_path(&flags.out).map_err(unwritten)?;
    let interrupt = Interrupt::on_signals()?;
    let order = Order {
        requests: flags.requests,
        seed: flags.seed,
        only: flags.only.clone(),
        threads: threads(flags.threads),
    };
    let mut progress_reporter = ProgressReporter::new();
    let made = reproduce(&order, &|| interrupt.is_set(), |progress| {
        progress_reporter.report(progress.done == progress.all, || line(progress));
    });
    progress_reporter.end();
    let paper = made.map_err(not_made)?;
    let page = flags.out.display();
    output::write(&flags.out, html(&paper).as_bytes()).map_err(unwritten)?;
    tell(&format!("page: {page}"));
    if !flags.json {
        return give(&paper.to_string());
    }
    give_json(&paper)
}

fn lard(flags: &LardFlags) -> Result<(), Failure> {
    // rather than after the work of minutes
    let unwritten = |error| Failure::output(&flags.out, &error);
    output::try_path(&flags.out).map_err(unwritten)?;
    let scale = thousandths(flags.scale)?;
    let interrupt = Interrupt::on_signals()?;
    let trace = cluster::read(&flags.trace, flags.requests, flags.seed, Http::Persistent)?;
    let order = lard::Order {
        trace: flags.trace.clone(),
        seed: flags.seed,
        scale,
        only: flags.only.clone(),
        threads: threads(flags.threads),
    };
    let mut progress_reporter = ProgressReporter::new();
    let is_stopped = || interrupt.is_set();
    let made = lard::reproduce(&order, &trace, &is_stopped, |progress| {
        let lard::Progress { done, all, left } = progress;
        progress_reporter.report(done == all, || line(Progress { done, all, left }));
    });
    progress_reporter.end();
    let paper = made.map_err(|error| match error {
        LardError::Interrupted => Failure::check_said_no("the paper is not made", error)
            .hint("`--requests 200000` takes a tenth of the time"),
        error => Failure::usage("the paper cannot be made", error),
    })?;
    output::write(&flags.out, lard::html(&paper).as_bytes()).map_err(unwritten)?;
    tell(&format!("page: {}", flags.out.display()));
    if !flags.json {
        return give(&paper.to_string());
    }
    give_json(&paper)
}

/// A part of a send in thousandths.
fn thousandths(scale: f64) -> Result<NonZero<u32>, Failure> {
    let rounded = (scale * 1000.0).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    let thousandths = match (1.0..=SCALE_MAX * 1000.0).contains(&rounded) {
        true => NonZero::new(rounded as u32),
        false => None,
    };
    thousandths.ok_or_else(|| {
        let cause = format!("{scale} is not from 0.001 to {SCALE_MAX}");
        Failure::usage("cannot use `--scale`", cause)
    })
}

/// Forwarding that costs more than so many sends is no mechanism.
const SCALE_MAX: f64 = 100.0;

fn not_made(error: PaperError) -> Failure {
    match error {
        PaperError::Settings(error) => error.into(),
        PaperError::Interrupted => Failure::check_said_no("the paper is not made", error)
            .hint("`--requests 100000` takes a tenth of the time"),
    }
}

fn line(progress: Progress) -> String {
    let Progress { done, all, left } = progress;
    let percent = (done * 100).checked_div(all).unwrap_or(100);
    match left {
        Some(left) if done < all => {
            let s = left.as_secs();
            format!("{percent} %, {}:{:02} left", s / 60, s % 60)
        }
        _ => format!("{percent} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn progress_shows_time_left_only_while_known_and_unfinished() {
        let told = |done, left: Option<u64>| {
            line(Progress {
                done,
                all: 400,
                left: left.map(Duration::from_secs),
            })
        };
        assert_eq!(told(100, Some(125)), "25 %, 2:05 left");
        assert_eq!(told(0, None), "0 %");
        assert_eq!(told(400, Some(0)), "100 %");
    }
}
