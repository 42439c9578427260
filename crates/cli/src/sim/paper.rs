//! `weir sim paper`: a paper's tables and figures, made again.

use super::progress_reporter::ProgressReporter;
use super::trace::threads;
use crate::messages::{Failure, give, give_json, tell};
use clap::{Args, Subcommand};
use std::num::NonZero;
use std::path::PathBuf;
use weir_bench::conduct::Interrupt;
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

/// Makes the paper again.
///
/// # Errors
/// It was interrupted (exit 1), or the page cannot be written (3).
pub(super) fn paper(command: &PaperCommand) -> Result<(), Failure> {
    match command {
        PaperCommand::Proxim(flags) => proxim(flags),
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
