//! The command line of `cargo xtask store-bench`.

use super::contender::CONTENDERS;
use super::load::CONNECTIONS_MAX;
use crate::failure::Failure;
use crate::options::{Given, Said};
use serde::{Deserialize, Serialize};

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
    /// Times that all are asked in turn for what is in their stores.
    #[serde(default = "one")]
    pub(crate) rounds: u64,
    /// Length of a round, seconds.
    pub(crate) seconds: u64,
    /// Connections that ask at the same time.
    pub(crate) connections: u64,
    /// Responses in the store that is killed and started again; 0 leaves that out.
    pub(crate) responses: u64,
    pub(crate) seed: u64,
    #[serde(skip)]
    pub(crate) out: Option<String>,
}

/// Of records from before there were rounds.
const fn one() -> u64 {
    1
}

impl Default for Options {
    fn default() -> Self {
        Self {
            install: false,
            peers: Vec::new(),
            memory_mib: 64,
            times: 10,
            cgroup_mib: 0,
            rounds: 30,
            seconds: 2,
            connections: 32,
            responses: 1_000_000,
            seed: 1,
            out: None,
        }
    }
}

const MEMORY_MIB_MAX: u64 = 1 << 16;
const TIMES_MAX: u64 = 1000;
const ROUNDS_MAX: u64 = 100;
const SECONDS_MAX: u64 = 3600;
const RESPONSES_MAX: u64 = 100_000_000;

impl Said for Options {
    fn install(&mut self) {
        self.install = true;
    }

    fn set(&mut self, option: Given<'_>) -> Result<bool, Failure> {
        match option.name {
            "--out" => option.file(&mut self.out),
            "--peers" => option.contenders(&mut self.peers, &CONTENDERS)?,
            "--memory" => option.number(&mut self.memory_mib, 16..=MEMORY_MIB_MAX)?,
            "--times" => option.number(&mut self.times, 1..=TIMES_MAX)?,
            "--cgroup" => option.number(&mut self.cgroup_mib, 0..=MEMORY_MIB_MAX)?,
            "--rounds" => option.number(&mut self.rounds, 1..=ROUNDS_MAX)?,
            "--seconds" => option.number(&mut self.seconds, 1..=SECONDS_MAX)?,
            "--connections" => option.number(&mut self.connections, 1..=CONNECTIONS_MAX as u64)?,
            "--responses" => option.number(&mut self.responses, 0..=RESPONSES_MAX)?,
            "--seed" => option.number(&mut self.seed, 0..=u64::MAX)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Task, parse_line};

    fn check(line: &str, expected: Option<Task<Options>>) {
        assert_eq!(parse_line(line), expected, "{line}");
    }

    #[test]
    fn all_options_are_parsed() {
        check("", Some(Task::Measure(Options::default())));
        check("--show a.json", Some(Task::Show("a.json".to_owned())));
        let options = Options {
            install: true,
            peers: vec!["weir".to_owned(), "squid".to_owned()],
            memory_mib: 32,
            times: 5,
            cgroup_mib: 100,
            rounds: 2,
            seconds: 3,
            connections: 8,
            responses: 0,
            seed: 7,
            out: Some("r.json".to_owned()),
        };
        let line = "--install --peers weir,squid --memory 32 --times 5 --cgroup 100 --rounds 2 --seconds 3 --connections 8 \
                    --responses 0 --seed 7 --out r.json";
        check(line, Some(Task::Measure(options)));
    }

    #[test]
    fn invalid_options_are_refused() {
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
