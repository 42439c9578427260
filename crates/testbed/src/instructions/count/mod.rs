//! `cargo xtask count`: instructions, system calls, readings of clocks and allocations that a
//! request costs weir, by callgrind; and `count --check`, which fails if one of them is more than
//! the newest record has.
//!
//! A client has some requests first; then callgrind counts from 0 on until all others are answered.
//! What weir does in that time without a request is taken off. Followers are counted by as many
//! fetches with one of them as with three, and requests under TLS by two connections of which one
//! has more. Clients ask at moments that are the same in each run, see `receive`: how often
//! weir waits does not depend on how busy the machine is.
//!
//! The build that is compared is that of the tests (`dev`), as CI has it anyway. It takes some ten
//! times the instructions of a release, in other proportions; calls and allocations are nearly the
//! same. A change that adds work adds some in both.

mod case;
mod check;
mod receive;
mod run;
mod table;

use crate::instructions::callgrind::{self, ThreadWork};
use crate::peers::tls::certificate;
use crate::proxy::template::Words;
use crate::record::Benchmark;
use crate::record::benchmark::{Participants, missed};
use crate::record::host;
use crate::record::markdown::ratio;
use case::Case;
pub(crate) use case::WEIRS;
pub(crate) use check::{CheckOptions, check};
use clap::{Args, ValueEnum, value_parser};
use run::IdleWork;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use xtask::failure::{During, Failure};
use xtask::program;
use xtask::workplace::Workplace;

type Record = crate::record::Record<Figures>;

const TOOLS: [&str; 3] = [callgrind::PROGRAM, "curl", "openssl"];

/// A profile that weir is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Build {
    /// As tests use it.
    Dev,
    Release,
}

impl Build {
    const ALL: [Self; 2] = [Self::Release, Self::Dev];

    const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
        }
    }

    /// Builds weir; its path.
    fn weir(self) -> Result<String, Failure> {
        let what = ["--package", "weir-cli", "--bin", "weir"];
        match self {
            Self::Dev => program::build_for_tests(&what, "weir"),
            Self::Release => program::build(&what, "weir"),
        }
    }
}

/// What to count; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Builds of weir, comma separated; `--check` compares with `dev`
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Build::ALL)]
    builds: Vec<Build>,
    /// Kinds of requests, comma separated
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Case::ALL)]
    cases: Vec<Case>,
    /// Small hits; of what takes longer there are fewer
    #[arg(long, default_value_t = 400, value_parser = value_parser!(u32).range(10..=1_000_000))]
    requests: u32,
    /// A weir to count instead of one that is built
    #[arg(long, value_name = "FILE")]
    #[serde(default)]
    weir: Option<PathBuf>,
    /// How often each is counted; the least is believed
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// What the requests of one case cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Count {
    build: Build,
    case: Case,
    round: u32,
    /// That were counted.
    requests: u64,
    /// What the busiest thread did.
    #[serde(flatten)]
    work: ThreadWork,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Instructions,
    SystemCalls,
    ClockReadings,
    Allocations,
}

impl Quantity {
    const ALL: [Self; 4] = [
        Self::Instructions,
        Self::SystemCalls,
        Self::ClockReadings,
        Self::Allocations,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::SystemCalls => "system calls",
            Self::ClockReadings => "readings of clocks",
            Self::Allocations => "allocations",
        }
    }

    const fn of(self, work: &ThreadWork) -> u64 {
        match self {
            Self::Instructions => work.instructions,
            Self::SystemCalls => work.system_calls,
            Self::ClockReadings => work.clock_readings,
            Self::Allocations => work.allocations,
        }
    }
}

impl Count {
    /// Of one request.
    fn each(&self, quantity: Quantity) -> f64 {
        ratio(quantity.of(&self.work), self.requests)
    }
}

/// What was counted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    counts: Vec<Count>,
}

impl Figures {
    /// Least and most of a request over the rounds.
    fn range(&self, (build, case): (Build, Case), quantity: Quantity) -> Option<(f64, f64)> {
        let counts = self.counts.iter();
        let counts = counts.filter(|count| (count.build, count.case) == (build, case));
        let each = counts.map(|count| count.each(quantity));
        each.fold(None, |range, each| {
            let (least, most) = range.unwrap_or((each, each));
            Some((each.min(least), each.max(most)))
        })
    }

    fn least(&self, of: (Build, Case), quantity: Quantity) -> Option<f64> {
        self.range(of, quantity).map(|(least, _)| least)
    }
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "count";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> =
        Some("none: requests of a case are the same, nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let options = record.settings.clone();
        for build in options.builds {
            let weir = match &options.weir {
                Some(weir) => {
                    let weir = std::fs::canonicalize(weir);
                    weir.during("find the weir")?.display().to_string()
                }
                None => build.weir()?,
            };
            let all = (&WEIRS[..1], &[][..]);
            let participants = Participants::prepare_with(record, all, &TOOLS, (0, Some(weir)))?;
            let workplace = Workplace::make(&format!("count-{}", build.name()))?;
            let setup = Setup::new(participants.words, build, &workplace)?;
            for round in 1..=options.rounds {
                for &case in &options.cases {
                    let count = setup.count(case, options.requests, round)?;
                    record.figures.counts.push(count);
                }
            }
            let tools = ["valgrind", "curl"];
            for tool in tools {
                let version = host::version(&format!("{tool} --version"), &setup.words);
                record.versions.insert(tool.to_owned(), version);
            }
        }
        Ok(())
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    fn faults(record: &Record) -> Vec<String> {
        missed(table::targets(record))
    }
}

/// Where weir is counted.
struct Setup<'w> {
    words: Words,
    build: Build,
    workplace: &'w Workplace,
    idle: IdleWork,
}

impl<'w> Setup<'w> {
    fn new(mut words: Words, build: Build, workplace: &'w Workplace) -> Result<Self, Failure> {
        certificate::make(&workplace.path().join("certificate"), &mut words)?;
        let idle = IdleWork::count(&words, &workplace.path().join("idle"))?;
        eprintln!("  {}, idle: {idle:?}", build.name());
        Ok(Self {
            words,
            build,
            workplace,
            idle,
        })
    }

    /// Counts a case once, with so many `requests` of small hits.
    fn count(&self, case: Case, requests: u32, round: u32) -> Result<Count, Failure> {
        let directory = self.workplace.path().join(format!("{case:?}-{round}"));
        let requests = case.requests(requests);
        let counted = run::count((case, requests), &self.words, self.idle, &directory)?;
        let count = Count {
            build: self.build,
            case,
            round,
            requests: counted.requests,
            work: counted.work,
        };
        let each = Quantity::ALL.map(|quantity| {
            let name = quantity.name();
            format!("{:.2} {name}", count.each(quantity))
        });
        let (build, case) = (self.build.name(), case.name());
        eprintln!("  {build}, {case}: {}", each.join(", "));
        Ok(count)
    }
}

/// Whether every case is in the record, of the build that is compared.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    has_all(record, Build::Dev)
}

fn has_all(record: &Record, build: Build) -> bool {
    let has = |case| {
        let least = record.figures.least((build, case), Quantity::Instructions);
        least.is_some()
    };
    Case::ALL.into_iter().all(has)
}
