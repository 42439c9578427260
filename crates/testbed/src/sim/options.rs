//! The command line of `cargo xtask sim-bench`.

use crate::failure::Failure;
use crate::options::{Given, Said};
use serde::{Deserialize, Serialize};

/// What to measure; kept in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Options {
    /// What is measured; a record that is there keeps its other parts.
    pub(crate) parts: Vec<String>,
    /// Drawn for the trace.
    pub(crate) requests: u64,
    /// Responses that they are drawn from, Zipf-like with exponent 0.8.
    pub(crate) keys: u64,
    /// The cache's share of all responses that are asked for, percent.
    pub(crate) percent: u64,
    pub(crate) rounds: u64,
    pub(crate) seed: u64,
    /// Requests of the trace of 1997 that is made.
    pub(crate) made: u64,
    /// Requests at most, where it is seen what memory grows with; a quarter and a sixteenth of them
    /// before.
    pub(crate) memory: u64,
    /// Requests of the long trace, of as many keys as the other.
    pub(crate) streamed: u64,
    /// A Python that may have the package `libcachesim`.
    pub(crate) python: String,
    #[serde(skip)]
    pub(crate) out: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            parts: PARTS.map(str::to_owned).to_vec(),
            made: 1_000_000,
            memory: 16_000_000,
            streamed: 100_000_000,
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

/// The parts that there are.
pub(crate) const PARTS: [&str; 5] = ["hits", "made", "packets", "memory", "streamed"];

fn parts(list: &str) -> Result<Vec<String>, Failure> {
    let named: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    match named.iter().find(|name| !PARTS.contains(&name.as_str())) {
        None => Ok(named),
        Some(name) => Err(Failure::Usage(format!(
            "there is no part `{name}`; there are {}",
            PARTS.join(", ")
        ))),
    }
}

impl Options {
    pub(crate) fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|named| named == part)
    }

    /// Whether both measure the same, be it other parts of it.
    pub(crate) fn measures_as(&self, other: &Self) -> bool {
        let sizes = |it: &Self| {
            (
                [it.requests, it.keys, it.percent, it.seed],
                [it.made, it.memory, it.streamed],
            )
        };
        sizes(self) == sizes(other)
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
            "--parts" => self.parts = parts(option.value)?,
            "--made" => option.number(&mut self.made, 1000..=REQUESTS_MAX)?,
            "--memory" => option.number(&mut self.memory, 160_000..=REQUESTS_MAX)?,
            "--streamed" => option.number(&mut self.streamed, 1000..=REQUESTS_MAX)?,
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
    use crate::options::{Task, parse_line};

    fn check(line: &str, expected: Option<Task<Options>>) {
        assert_eq!(parse_line(line), expected, "{line}");
    }

    #[test]
    fn all_options_are_parsed() {
        check("", Some(Task::Measure(Options::default())));
        check("--show a.json", Some(Task::Show("a.json".to_owned())));
        let options = Options {
            parts: vec!["hits".to_owned(), "memory".to_owned()],
            made: 2000,
            memory: 160_000,
            streamed: 3000,
            requests: 5000,
            keys: 100,
            percent: 1,
            rounds: 2,
            seed: 7,
            python: "p".to_owned(),
            out: Some("r.json".to_owned()),
        };
        let line = "--requests 5000 --keys 100 --percent 1 --rounds 2 --seed 7 --python p --out r.json \
             --parts hits,memory --made 2000 --memory 160000 --streamed 3000";
        check(line, Some(Task::Measure(options)));
    }

    #[test]
    fn invalid_options_are_refused() {
        for line in [
            "--out",
            "--percent 0",
            "--rounds x",
            "--fast 1",
            "--parts hits,all",
        ] {
            check(line, None);
        }
    }
}
