//! Our side: the real binary.

use super::options::Options;
use super::record::{Measured, Whole};
use crate::bed::usage;
use crate::failure::{During, Failure};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Draws the trace into a file, and says what is in it.
pub(crate) fn make_trace(weir: &str, options: &Options, to: &Path) -> Result<Whole, Failure> {
    let mut command = Command::new(weir);
    command
        .args([
            "sim", "hits", "--json", "--size", "1MiB", "--policy", "fifo",
        ])
        .args(["--zipf", &options.requests.to_string()])
        .args(["--zipf-keys", &options.keys.to_string()])
        .args(["--zipf-seed", &options.seed.to_string()])
        .arg("--write-oracle-general")
        .arg(to);
    let said = said(&mut command)?;
    let number = |name: &str| said[name].as_u64().unwrap_or_default();
    Ok(Whole {
        requests: number("requests"),
        bytes: number("bytes"),
        keys: number("keys"),
        footprint_bytes: number("footprint_bytes"),
    })
}

/// Simulates one cache. Its processor time is that of the whole process, its start and the reading of the file included.
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
    let number = |value: &Value| {
        let missing = || Failure::Outside("`weir sim hits --json` lacks a figure".to_owned());
        value.as_u64().ok_or_else(missing)
    };
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
    serde_json::from_slice(&output.stdout).during(format_args!("understand what `{name}` says"))
}
