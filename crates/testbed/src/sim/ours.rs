//! Our side: the real binary.

use super::record::{Measured, Whole};
use crate::failure::{During, Failure};
use crate::process::usage;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Draws so many requests of so many keys into a file, and says what is in it.
pub(crate) fn make_trace(
    weir: &str,
    requests: u64,
    keys: u64,
    seed: u64,
    to: &Path,
) -> Result<Whole, Failure> {
    let mut command = Command::new(weir);
    command
        .args([
            "sim", "hits", "--json", "--size", "1MiB", "--policy", "fifo",
        ])
        .args(["--zipf", &requests.to_string()])
        .args(["--zipf-keys", &keys.to_string()])
        .args(["--zipf-seed", &seed.to_string()])
        .arg("--write-oracle-general")
        .arg(to);
    let said = said(&mut command)?;
    let number = |name: &str| figure("weir sim hits --json", &said[name]);
    Ok(Whole {
        requests: number("requests")?,
        bytes: number("bytes")?,
        keys: number("keys")?,
        footprint_bytes: number("footprint_bytes")?,
    })
}

/// Simulates one cache. Its processor time is that of the whole process, its start and the reading
/// of the file included.
pub(crate) fn measure(
    weir: &str,
    trace: &Path,
    policy: &str,
    capacity_bytes: u64,
) -> Result<Measured, Failure> {
    let own = std::process::id();
    let before = usage::cpu_time(own);
    let mut command = Command::new(weir);
    command
        .args(["sim", "hits", "--json", "--format", "oracle-general"])
        .args(["--policy", policy, "--size", &capacity_bytes.to_string()])
        .arg(trace);
    let said = said(&mut command)?;
    // of a child that was waited for
    let used = usage::cpu_time(own) - before;
    let cache = &said["caches"][0];
    let number = |value: &Value| figure("weir sim hits --json", value);
    Ok(Measured {
        requests: number(&said["requests"])?,
        hits: number(&cache["hits"])?,
        hit_bytes: number(&cache["hit_bytes"])?,
        cpu_us: used.user_us + used.system_us,
    })
}

/// What a command says as JSON.
pub(crate) fn said(command: &mut Command) -> Result<Value, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .during(format_args!("run `{name}`"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::Outside(format!("`{name}` failed: {error}")));
    }
    understood(&name, &output.stdout)
}

pub(crate) fn understood(name: &str, text: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(text).during(format_args!("understand what `{name}` says"))
}

/// A whole number that `name` said.
pub(crate) fn figure(name: &str, value: &Value) -> Result<u64, Failure> {
    let missing = || Failure::Outside(format!("`{name}` lacks a figure"));
    value.as_u64().ok_or_else(missing)
}
