//! The other side: libCacheSim, through its Python package, where that is installed.

use super::ours::{figure, said};
use super::record::Measured;
use crate::failure::Failure;
use std::path::Path;
use std::process::{Command, Stdio};

/// Its program: the processor time is that of the simulation alone, without the start of Python.
const PROGRAM: &str = include_str!("libcachesim.py");

/// The version of the package; `None` where it is not installed.
pub(crate) fn version(python: &str) -> Option<String> {
    let ask = "import importlib.metadata as m, libcachesim; print(m.version('libcachesim'))";
    let output = Command::new(python)
        .args(["-c", ask])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(version)
}

/// Simulates one cache.
pub(crate) fn measure(
    python: &str,
    trace: &Path,
    policy: &str,
    capacity_bytes: u64,
) -> Result<Measured, Failure> {
    let mut command = Command::new(python);
    command
        .args(["-c", PROGRAM])
        .arg(trace)
        .args([policy, &capacity_bytes.to_string()]);
    let said = said(&mut command)?;
    let number = |name: &str| figure("libcachesim", &said[name]);
    Ok(Measured {
        requests: number("requests")?,
        hits: number("hits")?,
        hit_bytes: number("hit_bytes")?,
        cpu_us: number("cpu_us")?,
    })
}
