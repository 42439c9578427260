//! Which trace is simulated.

use crate::messages::Failure;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::Read as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_sim::hits::{
    OracleGeneral, ParquetTrace, Trace, TraceError, ZipfTrace, admission_from_word,
};
use weir_sim::keys::KeyRule;
use weir_workload::Law;

/// The flags that say which requests are simulated.
#[derive(Debug, Args)]
pub(super) struct TraceFlags {
    /// The trace: Parquet, as `weir trace` makes it, or libCacheSim's oracleGeneral
    ///
    /// Of a Parquet trace, the rows count whose response to GET has status 200 and content.
    #[arg(
        value_name = "TRACE",
        required_unless_present = "zipf",
        conflicts_with = "zipf"
    )]
    trace: Option<PathBuf>,

    /// Format of the file; without it, by its first bytes or its name
    #[arg(long, value_name = "FORMAT", requires = "trace")]
    format: Option<Format>,

    /// Instead of a trace: so many independent requests with Zipf-like popularity
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..))]
    zipf: Option<u64>,

    /// Responses that are drawn from
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    zipf_keys: u64,

    /// The exponent of the popularity
    #[arg(long, value_name = "X", default_value_t = 0.8)]
    zipf_exponent: f64,

    /// The law of their sizes
    #[arg(long, value_name = "LAW", default_value = "exp(10KB)")]
    zipf_size: Law,

    /// Of the draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    zipf_seed: u64,

    /// Whether a target with another size is the same response (first-size) or another one
    /// (size-in-key)
    #[arg(long, value_name = "RULE", default_value_t)]
    key: KeyRule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Parquet,
    OracleGeneral,
}

impl TraceFlags {
    /// The trace.
    ///
    /// # Errors The format of the file is not recognised.
    pub(super) fn open(&self) -> Result<Box<dyn Trace>, Failure> {
        if let Some(requests) = self.zipf {
            if !(0.0..=MOST_SKEWED).contains(&self.zipf_exponent) {
                let cause = format!("{} is not from 0 to {MOST_SKEWED}", self.zipf_exponent);
                return Err(Failure::usage("cannot use `--zipf-exponent`", cause));
            }
            return Ok(Box::new(ZipfTrace {
                requests,
                keys: self.zipf_keys,
                exponent: self.zipf_exponent,
                size: self.zipf_size.clone(),
                seed: self.zipf_seed,
            }));
        }
        // clap has seen to it that there is one
        let path = self.trace.as_deref().unwrap_or(Path::new(""));
        let format = match self.format {
            Some(format) => format,
            None => detected(path)?,
        };
        Ok(match format {
            Format::Parquet => Box::new(ParquetTrace::at(path)),
            Format::OracleGeneral => Box::new(OracleGeneral::at(path)),
        })
    }

    /// The file, if it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// What was said about requests beyond the file, in the words of the flags; nothing, if they
    /// are as they come.
    pub(super) fn said(&self) -> Option<&'static str> {
        if self.zipf.is_some() {
            return Some("--zipf");
        }
        let is_oracle_general = self.format == Some(Format::OracleGeneral);
        let by_size = self.key == KeyRule::SizeInKey;
        is_oracle_general
            .then_some("--format oracle-general")
            .or_else(|| by_size.then_some("--key size-in-key"))
    }

    pub(super) const fn rule(&self) -> KeyRule {
        self.key
    }
}

/// Steeper laws draw nothing but the first rank.
const MOST_SKEWED: f64 = 10.0;

/// What a Parquet file begins with.
const PARQUET: &[u8; 4] = b"PAR1";

fn detected(path: &Path) -> Result<Format, Failure> {
    let what = || format!("cannot read trace `{}`", path.display());
    let mut begin = [0; 4];
    let mut file = File::open(path).map_err(|error| Failure::outside(what(), &error))?;
    let is_read = file.read_exact(&mut begin).is_ok();
    if is_read && begin == *PARQUET {
        return Ok(Format::Parquet);
    }
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase());
    let name = name.unwrap_or_default();
    if name.contains("oraclegeneral") && !name.ends_with(".zst") && !name.ends_with(".gz") {
        return Ok(Format::OracleGeneral);
    }
    Err(Failure::usage(what(), "it is not Parquet, and its name does not say oracleGeneral").hint(            "`weir trace import` makes Parquet of logs, captures and compressed traces; or say `--format`"))
}

/// What several commands need to know of a cache.
#[derive(Debug, Args)]
pub(super) struct CacheFlags {
    /// Admission to the cache: always, second-request, or small:SIZE
    #[arg(long, value_name = "RULE", default_value = "always", value_parser = admission_from_word)]
    pub(super) admission: Rule,

    /// Threads beside the reading one; without it, one a core
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

impl CacheFlags {
    pub(super) fn threads(&self) -> NonZero<usize> {
        threads(self.threads)
    }
}

/// As many as requested, or one a core.
pub(super) fn threads(wanted: Option<NonZero<usize>>) -> NonZero<usize> {
    let here = || std::thread::available_parallelism().ok();
    wanted.or_else(here).unwrap_or(NonZero::<usize>::MIN)
}

/// A flag's help: its meaning, and the words of a choice.
pub(super) fn choices(meaning: &str, words: &[&str]) -> String {
    format!("{meaning}: {}", words.join(", "))
}

/// The help of a flag that takes several policies.
pub(super) fn policies(meaning: &str) -> String {
    format!(
        "{}; several with commas",
        choices(meaning, EvictionKind::WORDS)
    )
}

/// A trace that cannot be read.
pub(super) fn failure(error: TraceError) -> Failure {
    Failure::outside(error.what, error.cause).hint_if(error.hint)
}
