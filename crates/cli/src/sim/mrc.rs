//! `weir sim mrc`: miss-ratio curves.

use super::trace::{CacheFlags, TraceFlags, failure, policies};
use crate::messages::{Failure, give, json, tell};
use clap::Args;
use std::path::{Path, PathBuf};
use weir_policy::eviction::EvictionKind;
use weir_sim::mrc::{self, Curves, CurvesError, Ordinate, Plan, Sample, Sizes};
use weir_workload::output;

/// The flags of `weir sim mrc`.
#[derive(Debug, Args)]
pub(crate) struct MrcFlags {
    #[command(flatten)]
    trace: TraceFlags,

    /// Sizes of the cache: 64MiB, 10% (of all responses together), ranges by a constant factor
    #[arg(long, value_name = "SIZES", default_value = "0.1%..100%:25")]
    sizes: Sizes,

    #[arg(
        long,
        value_name = "POLICIES",
        value_delimiter = ',',
        default_value = "lru,s3-fifo",
        help = policies("A curve for each")
    )]
    policy: Vec<EvictionKind>,

    #[command(flatten)]
    cache: CacheFlags,

    /// Sample this share of the keys, such as 0.01, and print the error of that
    #[arg(long, value_name = "SHARE", conflicts_with = "sample_keys")]
    sample: Option<f64>,

    /// Sample so many keys of any trace; lru only, and sizes in bytes
    #[arg(long, value_name = "N")]
    sample_keys: Option<u32>,

    /// Picks the sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Leave out the line that no cache can be under
    ///
    /// If all responses have one size, it is Belady's optimum, and needs 8 bytes a request;
    /// otherwise the bound PFOO-L.
    #[arg(long)]
    no_bound: bool,

    /// Each response counts as one byte: sizes of the cache are numbers of responses
    #[arg(long)]
    unit_size: bool,

    /// Write the curves as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Draw the miss ratio
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Draw miss ratio and byte miss ratio on a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Prints a line for each size of each curve, and writes the files that were requested.
///
/// # Errors
/// The trace cannot be read, the flags do not go together, or a file cannot be written.
pub(super) fn mrc(flags: &MrcFlags) -> Result<(), Failure> {
    let trace = flags.trace.open()?;
    let by_share = flags.sample.map(|share| Sample::Rate {
        share,
        seed: flags.seed,
    });
    let by_count = flags.sample_keys.map(|max| Sample::Keys {
        max,
        seed: flags.seed,
    });
    let plan = Plan {
        rule: flags.trace.rule(),
        sizes: flags.sizes.clone(),
        policies: flags.policy.clone(),
        admission: flags.cache.admission,
        sample: by_share.or(by_count),
        with_bound: !flags.no_bound && flags.sample.is_none() && flags.sample_keys.is_none(),
        is_by_count: flags.unit_size,
        threads: flags.cache.threads(),
    };
    let curves = mrc::curves(trace.as_ref(), &plan).map_err(|error| match error {
        CurvesError::Trace(error) => failure(error),
        CurvesError::Plan(cause) => Failure::usage("cannot draw these curves", cause),
    })?;
    if let Some(path) = &flags.json {
        keep(path, &json(&curves)?)?;
    }
    if let Some(path) = &flags.svg {
        keep(path, &mrc::svg(&curves, Ordinate::Requests))?;
    }
    if let Some(path) = &flags.html {
        keep(path, &mrc::html(&curves))?;
    }
    give(&text(&curves))
}

fn keep(path: &Path, text: &str) -> Result<(), Failure> {
    output::write(path, text.as_bytes()).map_err(|error| Failure::output(path, &error))?;
    tell(&format!("written: {}", path.display()));
    Ok(())
}

fn text(curves: &Curves) -> String {
    let mut text = format!("{}\n", curves.trace);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<14} {value}\n"));
    line(
        "requests",
        format!("{}, {} bytes", curves.requests, curves.bytes),
    );
    let of = if curves.sampled_share < 1.0 {
        format!(
            "{} in the sample ({:.4} % of all), all about {} bytes",
            curves.keys,
            curves.sampled_share * 100.0,
            curves.footprint_bytes
        )
    } else {
        format!("{}, {} bytes", curves.keys, curves.footprint_bytes)
    };
    line("responses", of);
    line(
        "never evicts",
        format!(
            "miss ratio {:.4} %, byte miss ratio {:.4} %",
            curves.least_miss_ratio * 100.0,
            curves.least_byte_miss_ratio * 100.0
        ),
    );
    if let Some((misses, bytes)) = curves.largest_errors() {
        line(
            "largest error",
            format!(
                "{:.2} points of requests, {:.2} of bytes",
                misses * 100.0,
                bytes * 100.0
            ),
        );
    }
    for note in &curves.notes {
        line("note", note.clone());
    }
    text.push_str(&format!(
        "\n{:>16}  {:<16} {:<10} {:>19} {:>19}\n",
        "cache, bytes", "policy", "how", "miss ratio, %", "bytes, %"
    ));
    for curve in &curves.curves {
        for point in &curve.points {
            text.push_str(&format!(
                "{:>16}  {:<16} {:<10} {:>19} {:>19}\n",
                point.capacity_bytes,
                curve.name,
                curve.method.as_str(),
                cell(point.miss_ratio, point.miss_ratio_error),
                cell(point.byte_miss_ratio, point.byte_miss_ratio_error)
            ));
        }
    }
    text
}

fn cell(value: f64, error: Option<f64>) -> String {
    match error {
        None => format!("{:.4}", value * 100.0),
        Some(error) => format!("{:.2} ± {:.2}", value * 100.0, error * 100.0),
    }
}
