//! The command line of `cargo xtask sim-bench`.

use crate::bed::options::{Given, Said};
use crate::failure::Failure;
use serde::{Deserialize, Serialize};

/// What to measure; kept in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Drawn for the trace.
    pub(crate) requests: u64,
    /// Responses that they are drawn from, Zipf-like with exponent 0.8.
    pub(crate) keys: u64,
    /// The cache's share of all responses that are asked for, percent.
    pub(crate) percent: u64,
    pub(crate) rounds: u64,
    pub(crate) seed: u64,
    /// A Python that may have the package `libcachesim`.
    pub(crate) python: String,
    #[serde(skip)]
    pub(crate) out: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            requests: 10_000_000,
            keys: 2_000_000,
            percent: 10,
            rounds: 3,
            seed: 1,
            python: "python3".to_owned(),
            out: None,
        }
    }
}

const REQUESTS_MAX: u64 = 1_000_000_000;
const KEYS_MAX: u64 = 1 << 31;
const ROUNDS_MAX: u64 = 100;

impl Said for Options {
    fn install(&mut self) {
        // a Python package is not ours to install
    }

    fn set(&mut self, option: Given<'_>) -> Result<bool, Failure> {
        match option.name {
            "--out" => option.file(&mut self.out),
            "--python" => option.value.clone_into(&mut self.python),
            "--requests" => option.number(&mut self.requests, 1000..=REQUESTS_MAX)?,
            "--keys" => option.number(&mut self.keys, 10..=KEYS_MAX)?,
            "--percent" => option.number(&mut self.percent, 1..=100)?,
            "--rounds" => option.number(&mut self.rounds, 1..=ROUNDS_MAX)?,
            "--seed" => option.number(&mut self.seed, 0..=u64::MAX)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::options::{Task, parse_line};

    fn check(line: &str, expected: Option<Task<Options>>) {
        assert_eq!(parse_line(line), expected, "{line}");
    }

    #[test]
    fn every_option_arrives() {
        check("", Some(Task::Measure(Options::default())));
        check("--show a.json", Some(Task::Show("a.json".to_owned())));
        let options = Options {
            requests: 5000,
            keys: 100,
            percent: 1,
            rounds: 2,
            seed: 7,
            python: "p".to_owned(),
            out: Some("r.json".to_owned()),
        };
        let line =
            "--requests 5000 --keys 100 --percent 1 --rounds 2 --seed 7 --python p --out r.json";
        check(line, Some(Task::Measure(options)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in ["--out", "--percent 0", "--rounds x", "--fast 1"] {
            check(line, None);
        }
    }
}
