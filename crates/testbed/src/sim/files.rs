//! Traces in files: made, read, and streamed.

use super::hits::{TraceSize, simulation};
use crate::process::child::{self, RunCost};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;
use xtask::failure::{During, Failure};

/// `weir trace make`, with the file written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MadeTrace {
    pub(crate) profile: String,
    pub(crate) requests: u64,
    pub(crate) file_bytes: u64,
    pub(crate) took: RunCost,
    /// `weir trace stats` of it: all columns read.
    pub(crate) stats: RunCost,
    /// `weir sim run` of it: three runs, the file read once.
    pub(crate) run: RunCost,
}

/// A trace that is much larger than memory could be taken for, read once or twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamedTrace {
    pub(crate) policy: String,
    pub(crate) requests: u64,
    pub(crate) keys: u64,
    pub(crate) file_bytes: u64,
    pub(crate) took: RunCost,
}

/// Makes a trace, and reads it.
pub(crate) fn make(
    weir: &str,
    profile: &str,
    requests: u64,
    seed: u64,
    to: &Path,
) -> Result<MadeTrace, Failure> {
    let mut command = Command::new(weir);
    command.args(["trace", "make", profile, "--output"]).arg(to);
    command.args(["--requests", &requests.to_string()]);
    command.args(["--seed", &seed.to_string()]);
    let (_, took) = child::run(&mut command)?;
    let (_, stats) = child::run(Command::new(weir).args(["trace", "stats"]).arg(to))?;
    let mut run = Command::new(weir);
    run.args(["sim", "run", "--network", "modem"])
        .args(["--profile", "http-1998", "--json"])
        .arg(to);
    let (_, run) = child::run(&mut run)?;
    Ok(MadeTrace {
        profile: profile.to_owned(),
        requests,
        file_bytes: length(to)?,
        took,
        stats,
        run,
    })
}

/// One cache over a trace in a file, which is read once.
pub(crate) fn stream(
    weir: &str,
    policy: &str,
    capacity_bytes: u64,
    trace: &Path,
) -> Result<StreamedTrace, Failure> {
    let mut command = simulation(weir, policy, capacity_bytes, trace);
    let (whole, took) = child::run_json::<TraceSize>(&mut command)?;
    Ok(StreamedTrace {
        policy: policy.to_owned(),
        requests: whole.requests,
        keys: whole.keys,
        file_bytes: length(trace)?,
        took,
    })
}

fn length(file: &Path) -> Result<u64, Failure> {
    let metadata = std::fs::metadata(file).during(format_args!("look at `{}`", file.display()))?;
    Ok(metadata.len())
}
