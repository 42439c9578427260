//! The command line of `cargo xtask peers`.

use super::contender::CONTENDERS;
use crate::failure::Failure;
use crate::options::{Given, Said};
use serde::{Deserialize, Serialize};

/// How to measure; kept in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Options {
    #[serde(skip)]
    pub(crate) install: bool,
    /// Names of contenders; empty means all.
    pub(crate) only: Vec<String>,
    /// Length of one run.
    pub(crate) seconds: u32,
    /// Runs of each kind.
    pub(crate) rounds: u32,
    /// Idle connections to hold; 0 leaves that part out.
    pub(crate) idle_connections: usize,
    #[serde(skip)]
    pub(crate) record: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            install: false,
            only: Vec::new(),
            seconds: 2,
            rounds: 5,
            idle_connections: 10_000,
            record: None,
        }
    }
}

/// More would not fit between one source address and one port by much, nor under usual file limits.
const IDLE_CONNECTIONS_MAX: usize = 15_000;

impl Said for Options {
    fn install(&mut self) {
        self.install = true;
    }

    fn set(&mut self, option: Given<'_>) -> Result<bool, Failure> {
        match option.name {
            "--record" => option.file(&mut self.record),
            "--only" => option.contenders(&mut self.only, &CONTENDERS)?,
            "--seconds" => option.number(&mut self.seconds, 1..=600)?,
            "--rounds" => option.number(&mut self.rounds, 1..=100)?,
            "--idle" => option.number(&mut self.idle_connections, 0..=IDLE_CONNECTIONS_MAX)?,
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
            only: vec!["weir".to_owned(), "nginx".to_owned()],
            seconds: 3,
            rounds: 7,
            idle_connections: 0,
            record: Some("r.json".to_owned()),
        };
        let line = "--install --only weir,nginx --seconds 3 --rounds 7 --idle 0 --record r.json";
        check(line, Some(Task::Measure(options)));
    }

    #[test]
    fn invalid_options_are_refused() {
        for line in [
            "--seconds",
            "--seconds 0",
            "--seconds x",
            "--only apache",
            "--fast 1",
            "--idle 15001",
        ] {
            check(line, None);
        }
    }
}
