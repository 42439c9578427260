//! The record: what was measured, and where.

use std::process::Command;

use serde::Serialize;

use crate::Options;

#[derive(Serialize)]
struct Record<'m, M> {
    schema: u32,
    command: String,
    seed: u64,
    commit: String,
    begun_unix_s: u64,
    cpu: String,
    kernel: String,
    load_average: String,
    wrk: String,
    measured: &'m M,
}

/// Writes it where the options say, if they do.
pub(crate) fn write<M: Serialize>(options: &Options, part: &str, measured: &M) -> crate::Outcome {
    let Some(file) = &options.record else {
        return Ok(());
    };
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let cpu = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let record = Record {
        schema: 1,
        command: format!(
            "cargo run --release -p weir-bench --example {part} --seconds {} --rounds {}",
            options.seconds, options.rounds
        ),
        seed: crate::hits::SEED,
        commit: said_by("git", &["describe", "--always", "--dirty"]),
        begun_unix_s: since.as_secs(),
        cpu: cpu
            .unwrap_or_default()
            .trim_matches([':', ' ', '\t'])
            .to_owned(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        load_average: read("/proc/loadavg").trim().to_owned(),
        wrk: said_by("wrk", &["-v"]),
        measured,
    };
    std::fs::write(file, serde_json::to_string_pretty(&record)? + "\n")?;
    Ok(())
}

/// The first line that a program says.
fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}
