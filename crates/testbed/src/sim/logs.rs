//! Hit ratios on public logs, beside libCacheSim: whether the eviction algorithms keep what those
//! of others keep.
//!
//! A target has the size of its first request in both (`--key first-size`), so that a log in which
//! sizes change does not compare two ways to handle that.

use super::Options;
use super::hits::{theirs, version};
use crate::process::child::run_json;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::failure::{During, Failure};

/// The logs in the folder of `--data`: name, file, and what its importer has to be told.
const LOGS: [(&str, &str, &[&str]); 5] = [
    ("elastic", "clf/elastic_apache_logs.gz", SITE),
    ("nasa", "clf/nasa_jul95_head.log", SITE),
    ("squid_gt", "squid_gt/dev.access.log.gz", &[]),
    (
        "cloudphysics",
        "cdn/cloudPhysicsIO.oracleGeneral.bin.gz",
        &[],
    ),
    (
        "webcachesim",
        "cdn/webcachesim_test.tr",
        &["--format", "webcachesim"],
    ),
];

/// For paths without a host.
const SITE: &[&str] = &["--site", "https://www.example.org"];

/// Sizes of the cache, of the footprint.
const SIZES: &str = "1%,2%,3%,5%,7%,10%";

/// What is compared.
const POLICIES: &str = "s3-fifo,sieve";

/// Bytes of a request in an oracleGeneral file: time, key, size, next request.
const REQUEST_BYTES: usize = 24;

/// One cache on one log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LogHits {
    pub(super) log: String,
    pub(super) policy: String,
    pub(super) capacity_bytes: u64,
    pub(super) requests: u64,
    pub(super) hits: u64,
    /// Those that libCacheSim has.
    pub(super) other_hits: u64,
}

#[derive(Deserialize)]
struct Report {
    requests: u64,
    caches: Vec<Cache>,
}

#[derive(Deserialize)]
struct Cache {
    capacity_bytes: u64,
    policy: String,
    hits: u64,
}

/// Runs both on each log at each size.
///
/// # Errors
/// No folder of logs was named, the package is not there, a log cannot be read, or a program fails.
pub(super) fn measure(
    options: &Options,
    weir: &str,
    place: &Path,
) -> Result<Vec<LogHits>, Failure> {
    let Some(data) = &options.data else {
        let what = "the part `logs` needs the folder of the logs: `--data DIR`";
        return Err(Failure::Usage(what.to_owned()));
    };
    if version(&options.python).is_none() {
        return Err(Failure::Outside(format!(
            "`{}` has no package `libcachesim`\nhint: make an environment with it, and name its Python by --python",
            options.python
        )));
    }
    let mut all = Vec::new();
    for (name, file, arguments) in LOGS {
        let trace = place.join(format!("{name}.bin"));
        first_sizes(weir, &data.join(file), arguments, &trace)?;
        let mut command = Command::new(weir);
        command.args(["sim", "hits", "--json", "--format", "oracle-general"]);
        command.args(["--policy", POLICIES, "--size", SIZES]);
        let (ours, _) = run_json::<Report>(command.arg(&trace))?;
        for cache in ours.caches {
            let other = theirs(&options.python, &trace, &cache.policy, cache.capacity_bytes)?;
            let run = LogHits {
                log: name.to_owned(),
                policy: cache.policy,
                capacity_bytes: cache.capacity_bytes,
                requests: ours.requests,
                hits: cache.hits,
                other_hits: other.hits,
            };
            eprintln!(
                "{name}, {}, {} bytes: {} hits, libCacheSim {}",
                run.policy, run.capacity_bytes, run.hits, run.other_hits
            );
            all.push(run);
        }
    }
    Ok(all)
}

/// Imports a log and writes its requests as oracleGeneral, each with the first size of its key.
fn first_sizes(weir: &str, log: &Path, arguments: &[&str], to: &Path) -> Result<(), Failure> {
    let parquet = to.with_extension("parquet");
    let mut import = Command::new(weir);
    import.args(["trace", "import"]).args(arguments);
    import.arg("--out").arg(&parquet).arg(log);
    xtask::command::output(&mut import)?;
    let mut write = Command::new(weir);
    write.args(["sim", "hits", "--policy", "fifo", "--size", "10%"]);
    write.arg("--write-oracle-general").arg(to).arg(&parquet);
    xtask::command::output(&mut write)?;
    let mut bytes = fs::read(to).during("read a trace")?;
    let mut sizes: HashMap<[u8; 8], [u8; 4]> = HashMap::new();
    for request in bytes.chunks_exact_mut(REQUEST_BYTES) {
        let (Some(key), Some(size)) = (request[4..].first_chunk(), request[12..].first_chunk())
        else {
            continue;
        };
        let first = *sizes.entry(*key).or_insert(*size);
        request[12..16].copy_from_slice(&first);
    }
    fs::write(to, bytes).during("write a trace")
}
