//! The command line of `cargo xtask uneven`.

use super::contender::CONTENDERS;
use crate::failure::Failure;
use crate::options::{Given, Said};
use serde::{Deserialize, Serialize};

/// A part of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Experiment {
    Abort,
    /// Old records say `lead`.
    #[serde(alias = "lead")]
    ReadAhead,
    Join,
    Herd,
    Memory,
    Path,
}

pub(crate) const EXPERIMENTS: [(&str, Experiment); 6] = [
    ("abort", Experiment::Abort),
    ("read-ahead", Experiment::ReadAhead),
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

impl Said for Options {
    fn install(&mut self) {
        self.install = true;
    }

    fn set(&mut self, option: Given<'_>) -> Result<bool, Failure> {
        match option.name {
            "--out" => option.file(&mut self.out),
            "--peers" => option.contenders(&mut self.peers, &CONTENDERS)?,
            "--experiments" => self.experiments = experiments(option.value)?,
            "--pairs" => option.number(&mut self.pairs, 1..=PAIRS_MAX)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
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
            experiments: vec![Experiment::Path, Experiment::Abort],
            pairs: 3,
            out: Some("r.json".to_owned()),
        };
        let line = "--install --peers weir,squid --experiments path,abort --pairs 3 --out r.json";
        check(line, Some(Task::Measure(options)));
    }

    #[test]
    fn invalid_options_are_refused() {
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
