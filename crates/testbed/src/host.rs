//! Where and with what a record was made.

use crate::proxy::contender::Contender;
use crate::proxy::template::Words;
use crate::root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// One-minute load average when the record was begun: above about 0.5 somebody else was
    /// working.
    pub(crate) load_average: String,
    pub(crate) memory_kib: String,
}

impl Host {
    pub(crate) fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, name: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_default();
            line.split_once(':')
                .map_or("", |(_, value)| value)
                .trim()
                .to_owned()
        };
        let first = |text: &str| {
            text.split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            cpu: value(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_average: first(&read("/proc/loadavg")),
            memory_kib: first(&value(&read("/proc/meminfo"), "MemTotal")),
        }
    }
}

/// The commit of the work tree, marked when there are changes on top of it.
pub(crate) fn commit() -> String {
    match git(&["rev-parse", "--verify", "HEAD"]) {
        None => "none".to_owned(),
        Some(commit) if changes().is_empty() => commit,
        Some(commit) => format!("{commit} and changes"),
    }
}

/// Paths of the repository with uncommitted changes. Changes below `records/` do not count: they
/// are what measurements write.
pub(crate) fn changes() -> Vec<String> {
    let said = git(&["status", "--porcelain", "--", ".", ":!records"]);
    let Some(said) = said else {
        return vec!["git does not tell".to_owned()];
    };
    let lines = said.lines().map(str::trim_start);
    lines
        .map(|line| line.split_once(' ').map_or(line, |(_, path)| path.trim()))
        .map(str::to_owned)
        .collect()
}

fn git(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*"]).args(arguments);
    let output = command
        .current_dir(root::directory())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// What takes part and the compiler say of themselves.
pub(crate) fn versions(present: &[&Contender], words: &Words) -> BTreeMap<String, String> {
    let who = present
        .iter()
        .map(|contender| (contender.name, contender.version))
        .chain([("rustc", &["rustc", "--version"][..])]);
    who.filter(|(_, arguments)| !arguments.is_empty())
        .map(|(name, arguments)| (name.to_owned(), version(arguments, words)))
        .collect()
}

/// The first line that a program prints about itself and that has a number in it; some print it to
/// standard error.
pub(crate) fn version(arguments: &[&str], words: &Words) -> String {
    let unknown = || "unknown".to_owned();
    let Ok(arguments) = arguments
        .iter()
        .map(|word| words.fill(word))
        .collect::<Result<Vec<_>, _>>()
    else {
        return unknown();
    };
    let mut command =
        crate::process::guarded::command(&arguments, std::time::Duration::from_secs(10));
    let Ok(output) = command.output() else {
        return unknown();
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text
        .lines()
        .find(|line| line.contains(|c: char| c.is_ascii_digit()));
    line.map_or_else(unknown, |line| line.trim().to_owned())
}

/// Whom nginx shall work as: itself.
pub(crate) fn user_name() -> String {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut names = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    names.next().unwrap_or_else(|| "nobody".to_owned())
}

/// Today in UTC, `YYYY-MM-DD`.
pub(crate) fn date() -> String {
    date_of(seconds_since_epoch())
}

/// Now in UTC, `YYYY-MM-DDThh:mm:ssZ`.
pub(crate) fn time() -> String {
    let now = seconds_since_epoch();
    let (hour, minute, second) = (now / 3600 % 24, now / 60 % 60, now % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", date_of(now))
}

fn seconds_since_epoch() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn date_of(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// Year, month and day; walks year by year and month by month from 1970: slow, short and plain.
fn civil(mut day: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_computed_across_leap_days_and_month_ends() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_767_225_599, "2025-12-31"),
            (1_767_225_600, "2026-01-01"),
        ] {
            assert_eq!(date_of(seconds), expected);
        }
    }

    #[test]
    fn current_host_has_kernel_cpu_and_cores() {
        let host = Host::here();
        assert!(
            host.cores > 0 && !host.kernel.is_empty() && !host.cpu.is_empty(),
            "{host:?}"
        );
    }
}
