//! One run of wrk.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::process::{Usage, on_core, run};

/// What wrk says at the end (`peers/wrk-report.lua`).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) requests: u64,
    pub(crate) duration_us: u64,
    pub(crate) bytes: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) errors: u64,
    pub(crate) statuses: u64,
}

pub(crate) fn ask(
    to: SocketAddr,
    connections: u32,
    seconds: u64,
) -> Result<(Report, Usage), Box<dyn std::error::Error>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../peers/wrk-report.lua");
    let mut command = on_core(0, "wrk");
    command.args(["-t", "1", "-c", &connections.to_string(), "-d"]);
    command.arg(format!("{seconds}s")).args(["-s", script]);
    command.arg(format!("http://{to}/hit0.bin"));
    let (text, usage) = run(command)?;
    let line = text.lines().find(|line| line.starts_with('{'));
    let line = line.ok_or_else(|| format!("wrk did not report: {text}"))?;
    Ok((serde_json::from_str(line)?, usage))
}
