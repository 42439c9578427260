//! The command line of `cargo xtask store-bench`.

use super::contender::CONTENDERS;
use super::load::CONNECTIONS_MAX;
use crate::bed::contender;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Print the table of this record.
    Show(String),
    Measure(Options),
}

/// What to measure; kept in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Options {
    #[serde(skip)]
    pub(crate) install: bool,
    /// Names of contenders; empty means all.
    pub(crate) peers: Vec<String>,
    /// Memory that each may use for its cache, MiB.
    pub(crate) memory_mib: u64,
    /// Working set in multiples of the memory.
    pub(crate) times: u64,
    /// Memory that the process may use in all, page cache included, MiB (a cgroup); 0 is no limit.
    pub(crate) cgroup_mib: u64,
    /// Length of the run of hits, seconds.
    pub(crate) seconds: u64,
    /// Connections that ask at the same time.
    pub(crate) connections: u64,
    /// Responses in the store that is killed and started again; 0 leaves that out.
    pub(crate) responses: u64,
    pub(crate) seed: u64,
    #[serde(skip)]
    pub(crate) out: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            install: false,
            peers: Vec::new(),
            memory_mib: 64,
            times: 10,
            cgroup_mib: 0,
            seconds: 20,
            connections: 32,
            responses: 1_000_000,
            seed: 1,
            out: None,
        }
    }
}

const MEMORY_MIB_MAX: u64 = 1 << 16;
const TIMES_MAX: u64 = 1000;
const SECONDS_MAX: u64 = 3600;
const RESPONSES_MAX: u64 = 100_000_000;

pub(crate) fn parse(arguments: &[String]) -> Result<Task, Failure> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        if name == "--install" {
            options.install = true;
            continue;
        }
        let Some(value) = rest.next() else {
            return Err(Failure::Usage(format!(
                "`{name}` wants a value, or is no option; see `cargo xtask help`"
            )));
        };
        let number = |least, most| number(name, value, least, most);
        match name.as_str() {
            "--show" => return Ok(Task::Show(value.clone())),
            "--out" => options.out = Some(value.clone()),
            "--peers" => options.peers = peers(value)?,
            "--memory" => options.memory_mib = number(16, MEMORY_MIB_MAX)?,
            "--times" => options.times = number(1, TIMES_MAX)?,
            "--cgroup" => options.cgroup_mib = number(0, MEMORY_MIB_MAX)?,
            "--seconds" => options.seconds = number(1, SECONDS_MAX)?,
            "--connections" => options.connections = number(1, CONNECTIONS_MAX as u64)?,
            "--responses" => options.responses = number(0, RESPONSES_MAX)?,
            "--seed" => options.seed = number(0, u64::MAX)?,
            _ => {
                return Err(Failure::Usage(format!(
                    "`{name}` is not an option; see `cargo xtask help`"
                )));
            }
        }
    }
    Ok(Task::Measure(options))
}

fn peers(list: &str) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    contender::named(&CONTENDERS, &names)?;
    Ok(names)
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64, Failure> {
    let parsed = value.parse().ok();
    parsed
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "`{name} {value}` is not a number from {least} to {most}"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<Task>) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(parse(&arguments).ok(), expected, "{line}");
    }

    #[test]
    fn every_option_arrives() {
        check("", Some(Task::Measure(Options::default())));
        check("--show a.json", Some(Task::Show("a.json".to_owned())));
        let options = Options {
            install: true,
            peers: vec!["weir".to_owned(), "squid".to_owned()],
            memory_mib: 32,
            times: 5,
            cgroup_mib: 100,
            seconds: 3,
            connections: 8,
            responses: 0,
            seed: 7,
            out: Some("r.json".to_owned()),
        };
        let line = "--install --peers weir,squid --memory 32 --times 5 --cgroup 100 --seconds 3 --connections 8 \
                    --responses 0 --seed 7 --out r.json";
        check(line, Some(Task::Measure(options)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in [
            "--out",
            "--peers haproxy",
            "--memory 1",
            "--seconds x",
            "--fast 1",
        ] {
            check(line, None);
        }
    }
}
