//! Packets and connections: how many requests of a trace a second on one core, in how much memory.

use crate::process::child::{self, RunCost};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;
use weir_measure::float;
use xtask::failure::Failure;

/// One scenario of one run of the example `sim_speed`: one thread, rows at hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Packets {
    /// `proxy`, `proxy without caches` or `no proxy`.
    #[serde(alias = "name")]
    pub(crate) scenario: String,
    /// Rows of the trace.
    pub(crate) requests: u64,
    /// By the clock, of the simulation alone.
    pub(crate) seconds: f64,
    /// Processor time of the one thread.
    pub(crate) cpu_seconds: f64,
    pub(crate) packets_each: f64,
    pub(crate) hit_ratio: f64,
    /// Different ones that were stored at the end.
    pub(crate) stored: u64,
    /// Of the outcome: runs of the same have the same.
    pub(crate) outcome: String,
}

/// Memory of the proxy alone, for so many requests of the same keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) requests: u64,
    pub(crate) keys: u64,
    pub(crate) took: RunCost,
}

#[derive(Deserialize)]
struct Scenarios {
    scenarios: Vec<Packets>,
}

/// The three scenarios on a trace.
pub(crate) fn measure(speed: &str, trace: &Path) -> Result<Vec<Packets>, Failure> {
    let (said, _) = child::run_json::<Scenarios>(Command::new(speed).arg("--json").arg(trace))?;
    Ok(said.scenarios)
}

/// The proxy alone, on requests that are drawn as they are needed.
pub(crate) fn memory(speed: &str, requests: u64, keys: u64) -> Result<Memory, Failure> {
    let mut command = Command::new(speed);
    command
        .args(["--main", "--json"])
        .args(["--requests", &requests.to_string()])
        .args(["--keys", &keys.to_string()]);
    let (_, took) = child::run(&mut command)?;
    Ok(Memory {
        requests,
        keys,
        took,
    })
}

impl Packets {
    pub(crate) fn requests_s(&self) -> f64 {
        float(self.requests) / self.cpu_seconds.max(1e-9)
    }
}
