//! `weir sim hits`: how many requests would be hits.

use super::trace::{CacheFlags, TraceFlags, failure, policies};
use crate::messages::{Failure, give, give_json, tell};
use clap::Args;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use weir_policy::eviction::EvictionKind;
use weir_sim::hits::{
    HitsRecord, OracleGeneral, Setting, Simulation, Summary, Trace, UnitSizes, simulate, survey,
};
use weir_sim::mrc::Sizes;
use weir_workload::output::OutputFile;

/// The flags of `weir sim hits`.
#[derive(Debug, Args)]
pub(crate) struct HitsFlags {
    #[command(flatten)]
    trace: TraceFlags,

    /// Sizes of the cache, content alone: 64MiB, 10% (of all responses together), 1%..100%:20
    #[arg(long, value_name = "SIZES", default_value = "1%,10%")]
    size: Sizes,

    #[arg(
        long,
        value_name = "POLICIES",
        value_delimiter = ',',
        default_value = EvictionKind::LIST,
        help = policies("Which entries are evicted")
    )]
    policy: Vec<EvictionKind>,

    #[command(flatten)]
    cache: CacheFlags,

    /// Each response counts as one byte: sizes of the cache are numbers of responses
    #[arg(long)]
    unit_size: bool,

    /// Write the requests too, as libCacheSim reads them (oracleGeneral), to compare
    #[arg(long, value_name = "FILE")]
    write_oracle_general: Option<PathBuf>,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Prints a line for each size and policy.
///
/// # Errors
/// The trace cannot be read.
pub(super) fn hits(flags: &HitsFlags) -> Result<(), Failure> {
    let trace = flags.trace.open()?;
    let by_count = UnitSizes(trace.as_ref());
    let trace: &dyn Trace = if flags.unit_size {
        &by_count
    } else {
        trace.as_ref()
    };
    if let Some(path) = &flags.write_oracle_general {
        keep(trace, path)?;
    }
    let rule = flags.trace.rule();
    let before = if flags.size.needs_footprint() {
        survey(trace, rule).map_err(failure)?
    } else {
        Summary::default()
    };
    let settings: Vec<Setting> = flags
        .size
        .of(before.footprint_bytes)
        .into_iter()
        .flat_map(|capacity_bytes| {
            flags.policy.iter().map(move |eviction| Setting {
                capacity_bytes,
                eviction: *eviction,
                admission: flags.cache.admission,
            })
        })
        .collect();
    let mut caches: Vec<Simulation> = settings.iter().copied().map(Simulation::new).collect();
    let summary = simulate(trace, rule, &mut caches, flags.cache.threads()).map_err(failure)?;
    let totals = caches.iter().map(Simulation::totals);
    let record = HitsRecord::new(
        trace.name(),
        rule,
        &summary,
        settings.into_iter().zip(totals),
    );
    if flags.json {
        return give_json(&record);
    }
    give(&text(&record))
}

fn keep(trace: &dyn Trace, path: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::output(path, &error);
    let output = OutputFile::create(path).map_err(failed)?;
    let mut file = BufWriter::new(output.file().map_err(failed)?);
    let mut reading = trace.open().map_err(failure)?;
    let mut batch = Vec::new();
    loop {
        batch.clear();
        reading.read(&mut batch).map_err(failure)?;
        if batch.is_empty() {
            file.flush().map_err(failed)?;
            output.commit().map_err(failed)?;
            tell(&format!("written: {}", path.display()));
            return Ok(());
        }
        OracleGeneral::write(&batch, &mut file).map_err(failed)?;
    }
}

fn text(record: &HitsRecord) -> String {
    let mut text = format!("{}\n", record.trace);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<14} {value}\n"));
    line(
        "requests",
        format!("{}, {} bytes", record.requests, record.bytes),
    );
    line(
        "responses",
        format!(
            "{}, {} bytes (keys by {})",
            record.keys, record.footprint_bytes, record.keys_by
        ),
    );
    line(
        "never evicts",
        format!(
            "hit ratio {:.4} %, byte hit ratio {:.4} %",
            record.infinite_hit_ratio * 100.0,
            record.infinite_byte_hit_ratio * 100.0
        ),
    );
    text.push_str(&format!(
        "\n{:>16}  {:<8} {:<15} {:>12} {:>9} {:>20} {:>9} {:>12} {:>12}\n",
        "cache, bytes",
        "policy",
        "admission",
        "hits",
        "ratio",
        "hit bytes",
        "ratio",
        "evictions",
        "not let in"
    ));
    for cache in &record.caches {
        text.push_str(&format!(
            "{:>16}  {:<8} {:<15} {:>12} {:>7.4} % {:>19} {:>7.4} % {:>12} {:>12}\n",
            cache.capacity_bytes,
            cache.policy,
            cache.admission,
            cache.hits,
            cache.hit_ratio * 100.0,
            cache.hit_bytes,
            cache.byte_hit_ratio * 100.0,
            cache.evictions,
            cache.refused + cache.too_large + cache.too_large_for_small_queue
        ));
    }
    text
}
