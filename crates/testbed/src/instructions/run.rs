//! The runs of a measurement: each binary under callgrind for each case, then with idle
//! connections.

use super::counted::{self, Counted, Expected};
use super::{AGAINST, CASES, CASES_OF_RULES, Case, Count, Figures, Record, rules};
use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::idle;
use crate::proxy::template::Words;
use std::path::{Path, PathBuf};
use weir_bench::origin::ResponseSpec;
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

const SIZE_BYTES: u64 = 1 << 10;

/// Connections of [`Case::HitOfMany`]: as many as have hits in `peers`.
const MANY: usize = 32;

impl Case {
    fn spec(self) -> ResponseSpec {
        ResponseSpec {
            is_storable: self != Self::Forward,
            ..ResponseSpec::new(self.path(), SIZE_BYTES)
        }
    }

    /// What is requested. Hits have one path: a longer one takes more instructions.
    fn path(self) -> &'static str {
        match self {
            Self::Hit | Self::HitOfMany | Self::HitBesideRules | Self::HitByRule => "/Hit",
            Self::Forward => "/Forward",
        }
    }

    fn connections(self) -> usize {
        match self {
            Self::HitOfMany => MANY,
            Self::Hit | Self::Forward | Self::HitBesideRules | Self::HitByRule => 1,
        }
    }

    /// Rules for its runs, of `count` in all.
    fn tables(self, count: u16) -> String {
        match self {
            Self::Hit | Self::HitOfMany | Self::Forward => String::new(),
            Self::HitBesideRules => rules::tables(count, None),
            Self::HitByRule => rules::tables(count, Some(self.path())),
        }
    }
}

/// What an earlier record has of its weir, as of the other binary.
fn earlier_figures(file: &Path) -> Result<Figures, Failure> {
    let mut figures = Record::read(file)?.figures;
    figures
        .counts
        .retain(|count| count.binary == WEIR && CASES.contains(&count.case));
    figures.idle.retain(|idle| idle.contender == WEIR);
    for count in &mut figures.counts {
        AGAINST.clone_into(&mut count.binary);
    }
    for idle in &mut figures.idle {
        AGAINST.clone_into(&mut idle.contender);
    }
    Ok(figures)
}

/// Measures everything, into the record.
pub(super) fn measure(record: &mut Record, words: &Words) -> Result<(), Failure> {
    let options = record.settings.clone();
    let mut binaries = vec![(WEIR, words.clone())];
    let is_record = |file: &&PathBuf| file.extension().is_some_and(|it| it == "json");
    if let Some(earlier) = options.against.as_ref().filter(is_record) {
        record.figures = earlier_figures(earlier)?;
    } else if let Some(against) = &options.against {
        let file = std::fs::canonicalize(against);
        let file = file.during(format_args!("find `{}`", against.display()))?;
        let mut words = words.clone();
        words.set("WEIR", file.display());
        binaries.push((AGAINST, words));
    }
    let workplace = Workplace::make("instructions")?;
    let of_rules = CASES_OF_RULES.iter().filter(|_| options.rules > 0);
    for case in CASES.iter().chain(of_rules).copied() {
        // another weir may be older than rules
        let binaries = binaries
            .iter()
            .filter(|(binary, _)| CASES.contains(&case) || *binary == WEIR);
        for (binary, words) in binaries {
            let directory = workplace.path().join(format!("{binary}-{case:?}"));
            let mut words = words.clone();
            words.set("MODULE_TABLES", case.tables(options.rules));
            let counted = Counted {
                words: &words,
                spec: case.spec(),
                connections: case.connections(),
                requests: options.requests,
                expected: Expected::default(),
            };
            let difference = counted.difference(&directory)?;
            let count = Count {
                binary: (*binary).to_owned(),
                case,
                requests: difference.requests,
                instructions: difference.instructions,
            };
            eprintln!("  {count:?}");
            record.figures.counts.push(count);
        }
    }
    for (binary, words) in binaries.iter().filter(|_| options.idle_connections > 0) {
        let directory = workplace.path().join(format!("{binary}-idle"));
        let (_origin, server) = counted::start(&Contender::WEIR, &directory, words, &[])?;
        let target = Case::Hit.spec().to_string();
        let none = Expected::default();
        counted::ask(&server, &Case::Hit.spec(), none, (1, options.requests))?;
        let idle = idle::measure(binary, &server, options.idle_connections, &target);
        record.figures.idle.push(idle);
    }
    Ok(())
}
