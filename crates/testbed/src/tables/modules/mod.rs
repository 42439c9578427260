//! `cargo xtask modules`: how much code a module takes, beside Table 4 of the paper (Pai, Cox, Pai,
//! Zwaenepoel: A Flexible and Efficient Application Programming Interface for a Customizable Proxy
//! Cache. USITS 2003).
//!
//! The modules are counted from their source. The paper's were C: a semicolon there is about a
//! statement here. What its copies do not have is left out.

mod count;

use crate::record::{Benchmark, markdown};
use clap::Args;
use count::{Contract, Counts};
use serde::{Deserialize, Serialize};
use std::path::Path;
use xtask::failure::Failure;
use xtask::root;

type Record = crate::record::Record<Figures>;

/// Nothing can be chosen.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {}

/// A module of ours, and what does its work in a process of its own.
struct Module {
    name: &'static str,
    /// Its file, below `crates`.
    file: &'static str,
    /// The part that runs in a process of its own.
    helper: &'static str,
    /// The module of the paper, and its lines, lines of code, semicolons and call sites.
    paper: (&'static str, [&'static str; 4]),
}

const NONE: (&str, [&str; 4]) = ("", [""; 4]);

const MODULES: [Module; 7] = [
    Module {
        name: "block",
        file: "modules/src/block/mod.rs",
        helper: "",
        paper: ("Ad Remover", ["175", "115", "51", "4"]),
    },
    Module {
        name: "compress",
        file: "modules/src/compress/mod.rs",
        helper: "",
        paper: ("Dynamic Compressor", ["387", "280", "126", "11"]),
    },
    Module {
        name: "transcode",
        file: "modules/src/transcode/mod.rs",
        helper: "convert",
        paper: ("Image Transcoder", ["391+166", "309+118", "148+54", "10"]),
    },
    Module {
        name: "inject",
        file: "modules/src/inject.rs",
        helper: "",
        paper: ("Text Injector", ["473+56", "367+32", "", ""]),
    },
    Module {
        name: "feed",
        file: "modules/src/feed/mod.rs",
        helper: "",
        paper: ("Content Manager", [""; 4]),
    },
    Module {
        name: "headers",
        file: "modules/src/headers.rs",
        helper: "",
        paper: NONE,
    },
    Module {
        name: "rewrite",
        file: "modules/src/rewrite.rs",
        helper: "",
        paper: NONE,
    },
];

/// What was counted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    modules: Vec<Counted>,
}

/// What was counted of a module.
#[derive(Debug, Serialize, Deserialize)]
struct Counted {
    name: String,
    counts: Counts,
    /// Of the part that runs in a process of its own.
    helper: Option<Counts>,
    /// The module of the paper, and its numbers.
    paper: String,
    paper_counts: [String; 4],
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "modules";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> = Some("none: nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let crates = root::directory().join("crates");
        let contract = Contract::read(&crates.join("extend/src"))?;
        for module in &MODULES {
            let is_apart = |name: &str| name == module.helper;
            let path = crates.join(module.file);
            let (counts, helper) = count::count(&path, &contract, &is_apart)?;
            let (paper, numbers) = module.paper;
            record.figures.modules.push(Counted {
                name: module.name.to_owned(),
                counts,
                helper: (!module.helper.is_empty()).then_some(helper),
                paper: paper.to_owned(),
                paper_counts: numbers.map(str::to_owned),
            });
        }
        Ok(())
    }

    fn render(record: &Record) -> String {
        let mut out = String::new();
        let columns = "| module | lines | code lines | statements | call sites | paper's module | \
                       lines | code lines | semicolons | call sites |";
        let rows = record.figures.modules.iter().map(Counted::row);
        markdown::table(&mut out, "", columns, rows);
        out
    }

    fn faults(_: &Record) -> Vec<String> {
        Vec::new()
    }
}

/// Whether a record has all modules.
pub(super) fn record_is_whole(record: &Record) -> bool {
    record.figures.modules.len() == MODULES.len()
}

impl Counted {
    fn row(&self) -> String {
        let parts = |of: fn(&Counts) -> u64| match &self.helper {
            None => of(&self.counts).to_string(),
            Some(helper) => format!("{}+{}", of(&self.counts), of(helper)),
        };
        let known = |text: &String| match text.is_empty() {
            true => "-".to_owned(),
            false => text.clone(),
        };
        let own = [
            self.name.clone(),
            parts(|it| it.lines),
            parts(|it| it.code_lines),
            parts(|it| it.statements),
            self.counts.call_sites.to_string(),
        ];
        let paper = std::iter::once(&self.paper).chain(&self.paper_counts);
        markdown::row(own.into_iter().chain(paper.map(known)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_is_counted_and_calls_the_contract() {
        let mut record = Record::begin(Options {}, &["modules".to_owned()]);
        Figures::measure(&mut record, Path::new("")).expect("the sources are here");
        for module in &record.figures.modules {
            let counts = module.counts;
            let grows = [
                counts.call_sites,
                counts.statements,
                counts.code_lines,
                counts.lines,
            ];
            assert!(
                grows[0] > 3 && grows.is_sorted(),
                "{}: {counts:?}",
                module.name
            );
        }
        let table = Figures::render(&record);
        assert!(table.contains("| Image Transcoder | 391+166 | 309+118 | 148+54 | 10 |"));
    }
}
