//! Hits alone: our simulator, the real binary, beside libCacheSim, through its Python package where
//! that is installed.

use super::Options;
use crate::process::child::run_json;
use crate::record::markdown::ratio;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use xtask::command::output;
use xtask::failure::Failure;

/// Policies of both, by our names.
pub(super) const POLICIES: [&str; 4] = ["fifo", "lru", "sieve", "s3-fifo"];

/// The other's program: the processor time is that of the simulation alone, without the start of
/// Python.
const PROGRAM: &str = include_str!("libcachesim.py");

/// Hits alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Hits {
    pub(super) trace: TraceSize,
    pub(super) capacity_bytes: u64,
    /// The version of libCacheSim's Python package; `None` where it was not installed.
    pub(super) libcachesim: Option<String>,
    /// By policy.
    pub(super) weir: BTreeMap<String, Vec<HitsRun>>,
    /// By policy; empty where it was not installed.
    pub(super) others: BTreeMap<String, Vec<HitsRun>>,
}

/// The trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TraceSize {
    pub(super) requests: u64,
    pub(super) bytes: u64,
    pub(super) keys: u64,
    pub(super) footprint_bytes: u64,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HitsRun {
    pub(super) requests: u64,
    pub(super) hits: u64,
    pub(super) hit_bytes: u64,
    /// User and system time.
    pub(super) cpu_us: u64,
}

impl HitsRun {
    pub(super) fn millions_a_second(&self) -> f64 {
        ratio(self.requests, self.cpu_us)
    }
}

pub(super) fn measure(options: &Options, weir: &str, place: &Path) -> Result<Hits, Failure> {
    let trace = place.join("zipf.oracleGeneral.bin");
    eprintln!("drawing {} requests", options.requests);
    let whole = make_trace(weir, options.requests, options.keys, options.seed, &trace)?;
    let capacity_bytes = whole.footprint_bytes / 100 * options.percent;
    let mut hits = Hits {
        trace: whole,
        capacity_bytes,
        libcachesim: version(&options.python),
        ..Hits::default()
    };
    for round in 1..=options.rounds {
        for policy in POLICIES {
            let run = ours(weir, &trace, policy, capacity_bytes)?;
            let speed = run.millions_a_second();
            eprintln!("round {round}, {policy}: weir {speed:.2} M/s");
            hits.weir.entry(policy.to_owned()).or_default().push(run);
            if hits.libcachesim.is_some() {
                let run = theirs(&options.python, &trace, policy, capacity_bytes)?;
                eprintln!("  libCacheSim {:.2} M/s", run.millions_a_second());
                hits.others.entry(policy.to_owned()).or_default().push(run);
            }
        }
    }
    Ok(hits)
}

/// Draws so many requests of so many keys into a file, and says what is in it.
pub(super) fn make_trace(
    weir: &str,
    requests: u64,
    keys: u64,
    seed: u64,
    to: &Path,
) -> Result<TraceSize, Failure> {
    let (requests, keys, seed) = (requests.to_string(), keys.to_string(), seed.to_string());
    let mut command = Command::new(weir);
    command.args(["sim", "hits", "--json", "--policy", "fifo"]);
    command.args(["--size", "1MiB", "--zipf", &requests]);
    command.args(["--zipf-keys", &keys, "--zipf-seed", &seed]);
    command.arg("--write-oracle-general").arg(to);
    Ok(run_json(&mut command)?.0)
}

/// Simulates one cache over a trace in a file.
pub(super) fn simulation(weir: &str, policy: &str, capacity_bytes: u64, trace: &Path) -> Command {
    let mut command = Command::new(weir);
    command
        .args(["sim", "hits", "--json", "--format", "oracle-general"])
        .args(["--policy", policy, "--size", &capacity_bytes.to_string()])
        .arg(trace);
    command
}

/// What `weir sim hits --json` says of one cache.
#[derive(Deserialize)]
struct SimulationReport {
    requests: u64,
    caches: [CacheReport; 1],
}

#[derive(Deserialize)]
struct CacheReport {
    hits: u64,
    hit_bytes: u64,
}

/// Its processor time is that of the whole process, its start and the reading of the file included.
fn ours(weir: &str, trace: &Path, policy: &str, capacity_bytes: u64) -> Result<HitsRun, Failure> {
    let (simulated, took) = run_json(&mut simulation(weir, policy, capacity_bytes, trace))?;
    let SimulationReport {
        requests,
        caches: [cache],
    } = simulated;
    Ok(HitsRun {
        requests,
        hits: cache.hits,
        hit_bytes: cache.hit_bytes,
        cpu_us: took.cpu_us,
    })
}

/// The version of the package; `None` where it is not installed.
pub(super) fn version(python: &str) -> Option<String> {
    let ask = "import importlib.metadata as m, libcachesim; print(m.version('libcachesim'))";
    let version = output(Command::new(python).args(["-c", ask])).ok()?;
    Some(version.trim().to_owned())
}

/// The same by libCacheSim.
pub(super) fn theirs(
    python: &str,
    trace: &Path,
    policy: &str,
    capacity_bytes: u64,
) -> Result<HitsRun, Failure> {
    let mut command = Command::new(python);
    command
        .args(["-c", PROGRAM])
        .arg(trace)
        .args([policy, &capacity_bytes.to_string()]);
    Ok(run_json(&mut command)?.0)
}
