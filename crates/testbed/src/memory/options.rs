//! The command line of `cargo xtask memory`.

use crate::failure::Failure;
use crate::options::{Given, Said};
use serde::{Deserialize, Serialize};

/// What to measure; kept in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Options {
    /// `memory` of the proxy, MiB.
    pub(crate) memory_mib: u64,
    /// How long clients read, seconds.
    pub(crate) seconds: u64,
    /// Clients at once; one in ten is fast.
    pub(crate) clients: u64,
    /// Size of a body, MB.
    pub(crate) body_mb: u64,
    /// What the disk takes, MB a second.
    pub(crate) disk_mb_s: u64,
    /// Of the rates of slow clients and of when they begin.
    pub(crate) seed: u64,
    #[serde(skip)]
    pub(crate) out: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_mib: 64,
            seconds: 180,
            clients: 200,
            body_mb: 5000,
            disk_mb_s: 20,
            seed: 1,
            out: None,
        }
    }
}

impl Said for Options {
    fn install(&mut self) {}

    fn set(&mut self, option: Given<'_>) -> Result<bool, Failure> {
        match option.name {
            "--out" => option.file(&mut self.out),
            "--memory" => option.number(&mut self.memory_mib, 16..=1 << 16)?,
            "--seconds" => option.number(&mut self.seconds, 1..=3600)?,
            "--clients" => option.number(&mut self.clients, 1..=10_000)?,
            "--body" => option.number(&mut self.body_mb, 1..=8000)?,
            "--disk" => option.number(&mut self.disk_mb_s, 1..=10_000)?,
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

    #[test]
    fn all_options_are_parsed_and_invalid_ones_are_refused() {
        let options = Options {
            memory_mib: 32,
            seconds: 3,
            clients: 8,
            body_mb: 100,
            disk_mb_s: 5,
            seed: 7,
            out: Some("r.json".to_owned()),
        };
        let line = "--memory 32 --seconds 3 --clients 8 --body 100 --disk 5 --seed 7 --out r.json";
        assert_eq!(parse_line(line), Some(Task::Measure(options)));
        for line in ["--memory 1", "--body 9000", "--fast 1", "--out"] {
            assert_eq!(parse_line::<Options>(line), None, "{line}");
        }
    }
}
