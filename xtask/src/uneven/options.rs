//! The command line of `cargo xtask uneven`.

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

/// A part of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Experiment {
    Abort,
    Lead,
    Join,
    Herd,
    Memory,
    Path,
}

pub(crate) const EXPERIMENTS: [(&str, Experiment); 6] = [
    ("abort", Experiment::Abort),
    ("lead", Experiment::Lead),
    ("join", Experiment::Join),
    ("herd", Experiment::Herd),
    ("memory", Experiment::Memory),
    ("path", Experiment::Path),
];

/// What to measure; kept in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Options {
    #[serde(skip)]
    pub(crate) install: bool,
    /// Names of contenders; empty means all.
    pub(crate) peers: Vec<String>,
    pub(crate) experiments: Vec<Experiment>,
    /// Downloads over the long path with each lead, on each side.
    pub(crate) pairs: u32,
    #[serde(skip)]
    pub(crate) out: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            install: false,
            peers: Vec::new(),
            experiments: EXPERIMENTS.map(|(_, experiment)| experiment).to_vec(),
            pairs: 4,
            out: None,
        }
    }
}

const PAIRS_MAX: u32 = 100;

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
            "--out" => options.out = Some(value.clone()),
            "--peers" => options.peers = peers(value)?,
            "--experiments" => options.experiments = experiments(value)?,
            "--pairs" => options.pairs = pairs(value)?,
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

fn experiments(list: &str) -> Result<Vec<Experiment>, Failure> {
    let one = |name: &str| {
        let known = EXPERIMENTS.iter().find(|(known, _)| *known == name.trim());
        known.map(|(_, experiment)| *experiment).ok_or_else(|| {
            let names = EXPERIMENTS.map(|(name, _)| name).join(", ");
            Failure::Usage(format!("`{name}` is none of {names}"))
        })
    };
    list.split(',').map(one).collect()
}

fn pairs(value: &str) -> Result<u32, Failure> {
    let parsed = value.parse().ok();
    parsed
        .filter(|pairs| (1..=PAIRS_MAX).contains(pairs))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "`--pairs {value}` is not a number from 1 to {PAIRS_MAX}"
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
            experiments: vec![Experiment::Path, Experiment::Abort],
            pairs: 3,
            out: Some("r.json".to_owned()),
        };
        let line = "--install --peers weir,squid --experiments path,abort --pairs 3 --out r.json";
        check(line, Some(Task::Measure(options)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in [
            "--out",
            "--peers apache",
            "--experiments speed",
            "--pairs 0",
            "--pairs x",
            "--fast 1",
        ] {
            check(line, None);
        }
    }
}
