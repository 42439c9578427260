//! `cargo xtask uneven`: weir beside other caching proxies where the links on its two sides are
//! uneven: a client that disconnects, a slow one, one that stops, a fast one that joins a slow one,
//! thousands at once, thousands of modems, and a long path.
//!
//! Every proxy is a caching gateway before one [`origin`](crate::origin) that counts what is taken
//! from it; clients are threads of this process and check every byte. The proxies run at the same
//! time. What is light is measured of all at once, the rest of one after the other, experiment by
//! experiment, so that each row is of the same minutes. `docs/uneven.md` says what each row means.

mod abort;
mod experiments;
mod herd;
mod join;
mod measurement;
mod memory;
mod path;
mod read_ahead;
mod table;
mod targets;

use crate::proxy::contender::{self, Contender};
use crate::record::Benchmark;
use crate::record::benchmark::{self, Participants};
use abort::{Abort, Second};
use clap::{Args, ValueEnum};
pub(crate) use experiments::SEND_BUFFER_BYTES;
pub(crate) use herd::{CLIENTS as HERDS, Herd, measure_at as herd_at};
use join::Join;
use measurement::Measurement;
pub(crate) use measurement::Subject;
use memory::Memory;
use path::LongPath;
pub(crate) use read_ahead::{
    KINDS as READ_AHEADS, Kind as ReadAheadKind, ReadAhead, measure as read_ahead,
    requested as read_ahead_request,
};
use serde::{Deserialize, Serialize};
use std::path::Path;
pub(crate) use table::experiments as render_experiments;
use xtask::failure::Failure;

pub(crate) type Record = crate::record::Record<Figures>;

/// Where the configurations of the proxies are, below `peers/`.
pub(crate) const FOLDER: &str = "uneven";

/// The proxies that are measured, and how each is started: shipped defaults, and of the rest only a
/// cache that is on, large enough and not on disk where there is a choice, responses of up to 200
/// MB, one thread or worker, no log, and room for many connections. In the order of the table.
pub(crate) static CONTENDERS: [Contender; 6] = [
    Contender::WEIR.with(FOLDER),
    Contender::NGINX.with(FOLDER),
    Contender {
        arguments: "-s malloc,1g",
        ..Contender::VARNISH.with(FOLDER)
    },
    Contender::SQUID.with(FOLDER),
    Contender::TRAFFIC_SERVER.with(FOLDER),
    Contender::HAPROXY.with(FOLDER),
];

/// A part of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Experiment {
    Abort,
    /// Old records say `lead`.
    #[serde(alias = "lead")]
    ReadAhead,
    Join,
    Herd,
    Memory,
    Path,
}

/// What to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Proxies to measure, comma separated; all, if not given
    #[arg(long, value_delimiter = ',', value_parser = contender::names(&CONTENDERS))]
    peers: Vec<String>,
    /// Parts of the table, comma separated
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "abort,read-ahead,join,herd,memory,path"
    )]
    experiments: Vec<Experiment>,
    /// Clients and the origin speak HTTP/2: weir alone, without the long path
    #[arg(long)]
    #[serde(default)]
    http2: bool,
    /// Downloads over the long path with each read-ahead, on each side
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(..=100))]
    pairs: u32,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Open files that each process may have.
    files_max: u64,
    /// In the order of the table.
    contenders: Vec<String>,
    aborts: Vec<Measurement<Abort>>,
    seconds: Vec<Measurement<Second>>,
    leads: Vec<Measurement<ReadAhead>>,
    joins: Vec<Measurement<Join>>,
    herds: Vec<Measurement<Herd>>,
    memories: Vec<Measurement<Memory>>,
    path: Option<LongPath>,
}

/// Connections at once, of the clients: the maximum of all experiments.
const CONNECTIONS_MAX: usize = 10_000;

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "uneven";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> =
        Some("none: content is a function of target and offset, nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let mut peers = record.settings.peers.clone();
        if record.settings.http2 {
            peers = vec![contender::WEIR.to_owned()];
        }
        let all = (&CONTENDERS[..], &peers[..]);
        let participants = Participants::prepare(record, all, &[], CONNECTIONS_MAX)?;
        let names = participants.present.iter();
        record.figures.contenders = names.map(|contender| contender.name.to_owned()).collect();
        record.figures.files_max = participants.files_max;
        experiments::run(record, &participants)
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    fn faults(record: &Record) -> Vec<String> {
        benchmark::of_weir(table::troubles(record))
    }
}

/// Whether every contender is in the record with the experiments that all of them take part in.
pub(crate) fn record_has_experiments(record: &Record) -> bool {
    let figures = &record.figures;
    let has = |contender: &Contender| figures.contenders.iter().any(|it| it == contender.name);
    is_measured(record) && !record.settings.http2 && CONTENDERS.iter().all(has)
}

/// Whether the record is of the same experiments by HTTP/2, memory included.
pub(crate) fn record_is_of_http2(record: &Record) -> bool {
    is_measured(record) && record.settings.http2 && !record.figures.memories.is_empty()
}

fn is_measured(record: &Record) -> bool {
    let figures = &record.figures;
    !figures.aborts.is_empty()
        && !figures.leads.is_empty()
        && !figures.joins.is_empty()
        && !figures.herds.is_empty()
}
