//! `cargo xtask instructions`: instructions that weir executes for a request, counted by callgrind,
//! and user memory of an idle connection; of another weir beside it, if one is named.
//!
//! Two runs send N and 3N requests over one kept connection. The difference of the busiest thread
//! by 2N is what a request costs: what the start, the first request and the end cost is in both.
//! Counts repeat within a percent or so on a busy machine, where CPU time does not.

mod callgrind;
mod counted;
mod run;

use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::idle::Idle;
use crate::record::Benchmark;
use crate::record::benchmark::Participants;
use crate::record::host;
use crate::record::markdown::{self, COULD_NOT, list, ratio, row, table};
use clap::{Args, value_parser};
pub(crate) use counted::{Counted, Expected};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use xtask::failure::Failure;

/// What counts.
pub(crate) const PROGRAM: &str = callgrind::PROGRAM;

type Record = crate::record::Record<Figures>;

static CONTENDERS: [Contender; 1] = [Contender::WEIR];

/// The other binary, in records and tables.
const AGAINST: &str = "against";

/// What to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Another weir to measure in turn
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Requests of the short run; the long one has three times as many
    #[arg(long, default_value_t = 2000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    requests: u32,
    /// Idle connections to hold; 0 leaves that part out
    #[arg(long = "idle", default_value_t = 2000, value_parser = value_parser!(u32).range(..=15_000))]
    idle_connections: u32,
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Case {
    /// Stored content of 1 KiB.
    Hit,
    /// 1 KiB that may not be stored.
    Forward,
}

const CASES: [Case; 2] = [Case::Hit, Case::Forward];

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit 1 KiB",
            Self::Forward => "forward 1 KiB",
        }
    }
}

/// What the requests of one case cost one binary.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Count {
    binary: String,
    case: Case,
    /// More requests of the long run.
    requests: u64,
    /// More instructions of its busiest thread.
    instructions: u64,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    counts: Vec<Count>,
    idle: Vec<Idle>,
}

impl Figures {
    /// Instructions of a request.
    fn instructions(&self, binary: &str, case: Case) -> Option<f64> {
        let mut counts = self.counts.iter();
        let count = counts.find(|count| count.binary == binary && count.case == case)?;
        Some(ratio(count.instructions, count.requests))
    }

    /// Bytes of an idle connection.
    fn idle_bytes(&self, binary: &str) -> Option<f64> {
        let mut idle = self.idle.iter().filter(|idle| idle.trouble.is_none());
        let idle = idle.find(|idle| idle.contender == binary)?;
        Some(ratio(idle.bytes_per_connection(), 1))
    }
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "instructions";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> = Some("none: every request is the same, nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let connections = usize::try_from(record.settings.idle_connections).unwrap_or(usize::MAX);
        let all = (&CONTENDERS[..], &[][..]);
        let participants = Participants::prepare(record, all, &[callgrind::PROGRAM], connections)?;
        let words = &participants.words;
        let version = host::version("valgrind --version", words);
        record
            .versions
            .insert(callgrind::PROGRAM.to_owned(), version);
        run::measure(record, words)
    }

    fn render(record: &Record) -> String {
        let figures = &record.figures;
        let mut out = format!("{}.\n\n", markdown::origin(record, "; "));
        markdown::versions(&mut out, record);
        let rows = CASES.map(|case| {
            let of = |binary| figures.instructions(binary, case);
            compared(&format!("instructions, {}", case.name()), of)
        });
        let idle = compared("bytes of an idle connection", |binary| {
            figures.idle_bytes(binary)
        });
        let rows: Vec<String> = rows.into_iter().chain([idle]).flatten().collect();
        let columns = format!("| | {WEIR} | {AGAINST} | {WEIR} / {AGAINST} |");
        table(
            &mut out,
            "### Cost of a request and of a connection",
            &columns,
            rows,
        );
        list(&mut out, COULD_NOT, troubles(record));
        out
    }

    fn faults(record: &Record) -> Vec<String> {
        let mut faults = troubles(record);
        if record.figures.counts.is_empty() && record.figures.idle.is_empty() {
            faults.push("nothing was measured".to_owned());
        }
        faults
    }
}

/// Whether weir is in the record with every case and idle connections.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    let figures = &record.figures;
    let has = |case| figures.instructions(WEIR, case).is_some();
    CASES.into_iter().all(has) && figures.idle_bytes(WEIR).is_some()
}

/// A row of both binaries; `None` if neither has a number.
fn compared(what: &str, of: impl Fn(&'static str) -> Option<f64>) -> Option<String> {
    let (weir, against) = (of(WEIR), of(AGAINST));
    let ratio = weir.zip(against).map(|(weir, against)| weir / against);
    let cell = |number: Option<f64>, digits: usize| {
        number.map_or_else(String::new, |number| format!("{number:.digits$}"))
    };
    let cells = [
        what.to_owned(),
        cell(weir, 0),
        cell(against, 0),
        cell(ratio, 3),
    ];
    (weir.is_some() || against.is_some()).then(|| row(cells))
}

fn troubles(record: &Record) -> Vec<String> {
    let idle = record.figures.idle.iter().filter_map(|idle| {
        let trouble = idle.trouble.as_ref()?;
        Some(format!("idle, {}: {trouble}", idle.contender))
    });
    markdown::left_out(record).into_iter().chain(idle).collect()
}
