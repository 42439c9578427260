//! The command line of `cargo xtask peers`.

use super::contender::CONTENDERS;
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
        match name.as_str() {
            "--show" => return Ok(Task::Show(value.clone())),
            "--record" => options.record = Some(value.clone()),
            "--only" => options.only = names(value)?,
            "--seconds" => options.seconds = number(name, value, 1, 600)?,
            "--rounds" => options.rounds = number(name, value, 1, 100)?,
            "--idle" => options.idle_connections = number(name, value, 0, IDLE_CONNECTIONS_MAX)?,
            _ => {
                return Err(Failure::Usage(format!(
                    "`{name}` is not an option; see `cargo xtask help`"
                )));
            }
        }
    }
    Ok(Task::Measure(options))
}

fn names(list: &str) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    contender::named(&CONTENDERS, &names)?;
    Ok(names)
}

fn number<T>(name: &str, value: &str, min: T, max: T) -> Result<T, Failure>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let parsed = value
        .parse()
        .ok()
        .filter(|number| (&min..=&max).contains(&number));
    parsed.ok_or_else(|| {
        Failure::Usage(format!(
            "`{name} {value}` is not a number from {min} to {max}"
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
    fn what_cannot_be_meant_is_refused() {
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
