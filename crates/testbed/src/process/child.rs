//! A program that is run to its end: how long it took, and the most memory it had.

use crate::process::usage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunCost {
    pub(crate) seconds: f64,
    /// User and system time of the process.
    pub(crate) cpu_us: u64,
    /// The most memory at a time, as Linux counts it: looked at every [`LOOK_EACH`], so what is
    /// grown in the last of them may be missing.
    pub(crate) peak_rss_kib: u64,
}

const LOOK_EACH: Duration = Duration::from_millis(5);

/// Runs a command; what it printed, and what it took.
pub(crate) fn run(command: &mut Command) -> Result<(String, RunCost), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let before = usage::ended_children_us();
    let begun = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .during(format_args!("run `{name}`"))?;
    let output = child.stdout.take();
    let reading =
        thread::spawn(move || output.map_or_else(|| Ok(String::new()), io::read_to_string));
    let mut took = RunCost::default();
    let status = loop {
        took.peak_rss_kib = took.peak_rss_kib.max(usage::peak_rss_kib(child.id()));
        let ended = child.try_wait().during(format_args!("wait for `{name}`"))?;
        if let Some(status) = ended {
            break status;
        }
        thread::sleep(LOOK_EACH);
    };
    took.seconds = begun.elapsed().as_secs_f64();
    took.cpu_us = usage::ended_children_us() - before;
    let text = reading
        .join()
        .map_err(|_| Failure::Outside(format!("what `{name}` says cannot be read")))?
        .during(format_args!("read what `{name}` says"))?;
    if status.success() {
        return Ok((text, took));
    }
    Err(Failure::Outside(format!("`{name}` failed: {status}")))
}

/// The same of a command that prints JSON.
pub(crate) fn run_json<T: DeserializeOwned>(
    command: &mut Command,
) -> Result<(T, RunCost), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (text, took) = run(command)?;
    let value = serde_json::from_str(&text).during(format_args!("understand what `{name}` says"));
    Ok((value?, took))
}
