//! One run of wrk: one thread, a fixed number of connections, as fast as the server answers.
//!
//! wrk is a closed loop: when the server stalls it sends less, so its p99 flatters. It is used
//! because it is widely used; the figure to compare is the server's CPU time.

use crate::process::guarded;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::root;

pub(crate) const CONNECTIONS: u32 = 32;

/// What wrk says at the end (`peers/wrk-report.lua`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) requests: u64,
    pub(crate) duration_us: u64,
    pub(crate) bytes: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    /// Failed connects, reads, writes, and timeouts.
    pub(crate) errors: u64,
    /// Responses that are neither 2xx nor 3xx.
    pub(crate) statuses: u64,
}

/// Runs it on one core for so many seconds; also its CPU time, microseconds.
pub(crate) fn run(
    to: SocketAddr,
    path: &str,
    load: (u32, u32),
    core: usize,
) -> Result<(Report, u64), Failure> {
    run_script(
        "wrk-report.lua",
        &[format!("http://{to}{path}")],
        load,
        core,
    )
}

/// The same with a target of its own for each request: `prefix`, a number from 1 on, and `query`.
pub(crate) fn fill(
    to: SocketAddr,
    (prefix, query): (&str, &str),
    load: (u32, u32),
    core: usize,
) -> Result<(Report, u64), Failure> {
    let arguments = [&format!("http://{to}"), "--", prefix, query];
    run_script("wrk-fill.lua", &arguments.map(str::to_owned), load, core)
}

fn run_script(
    script: &str,
    after: &[String],
    (connections, seconds): (u32, u32),
    core: usize,
) -> Result<(Report, u64), Failure> {
    let script = root::directory().join("peers").join(script);
    let words = format!("wrk -t 1 -c {connections} -d {seconds}s -s");
    let mut arguments: Vec<String> = words.split(' ').map(str::to_owned).collect();
    arguments.push(script.display().to_string());
    arguments.extend_from_slice(after);
    let life = Duration::from_secs(u64::from(seconds) + 20);
    let (text, cpu_us) = guarded::output(core, &arguments, life)?;
    let report = parse(&text).ok_or_else(|| format!("it said: {text}"));
    Ok((report.during("read the report of wrk")?, cpu_us))
}

fn parse(text: &str) -> Option<Report> {
    let line = text.lines().find(|line| line.starts_with('{'))?;
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_report_is_found_below_the_text_that_wrk_prints() {
        let text = "Running 1s test @ http://127.0.0.1:80/\n  1 threads and 32 connections\n{\"requests\":5,\
                    \"duration_us\":1000,\"bytes\":9,\"p50_us\":1,\"p99_us\":2,\"errors\":0,\"statuses\":3}\n";
        let expected = Report {
            requests: 5,
            duration_us: 1000,
            bytes: 9,
            p50_us: 1,
            p99_us: 2,
            errors: 0,
            statuses: 3,
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("unable to connect\n"), None);
    }
}
