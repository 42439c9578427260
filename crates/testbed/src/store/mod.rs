//! `cargo xtask store-bench`: the disk stores of weir and of other caching proxies: filled with
//! misses, with requests for a working set ten times their memory, killed and started again.
//!
//! Every proxy is a caching gateway on one core before an origin whose content is a function of
//! target and offset; clients check every byte. `docs/store-bench.md` says what each figure means.

mod latency;
mod load;
mod mix;
mod restart;
mod schedule;
mod setup;
mod table;

use crate::process::affinity::Cores;
use crate::proxy::contender::{self, Contender};
use crate::record::Benchmark;
use crate::record::benchmark::{self, Participants};
use clap::{Args, value_parser};
use restart::Restart;
use serde::{Deserialize, Deserializer, Serialize};
use setup::{Hits, Load};
use std::path::Path;
use xtask::failure::Failure;

pub(crate) type Record = crate::record::Record<Figures>;

/// Where the configurations of the proxies are, below `peers/`.
const FOLDER: &str = "store";

/// The proxies that are measured, and how each is started: one thread or worker, a cache on disk
/// that holds the whole working set, and as much memory for stored responses as the options say,
/// where there is such a setting. In the order of the table.
pub(crate) static CONTENDERS: [Contender; 5] = [
    Contender::WEIR.with(FOLDER),
    Contender::NGINX.with(FOLDER),
    Contender {
        arguments: "-s file,@DIR@/store,@DISK_MIB@M -p vsl_space=8M",
        ..Contender::VARNISH.with(FOLDER)
    },
    Contender::SQUID_ON_DISK.with(FOLDER),
    Contender::TRAFFIC_SERVER.with(FOLDER),
];

/// What to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Proxies to measure, comma separated; all, if not given
    #[arg(long, value_delimiter = ',', value_parser = contender::names(&CONTENDERS))]
    peers: Vec<String>,
    /// Memory that each may use for stored responses, MiB
    #[arg(long = "memory", default_value_t = 64, value_parser = value_parser!(u64).range(16..=1 << 16))]
    memory_mib: u64,
    /// Working set, times the memory
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=1000))]
    times: u64,
    /// Limit of process and page cache together, MiB (a control group); 0 is none
    #[arg(long = "cgroup", default_value_t = 0, value_parser = value_parser!(u64).range(..=1 << 16))]
    cgroup_mib: u64,
    /// Times that all are asked in turn for what is in their stores
    #[arg(long, default_value_t = 30, value_parser = value_parser!(u64).range(1..=100))]
    #[serde(default = "one")]
    rounds: u64,
    /// Length of a round
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Clients at once
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u64).range(1..=1000))]
    connections: u64,
    /// Responses in the store that is killed and started again; 0 leaves it out
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(..=100_000_000))]
    responses: u64,
    /// Of sizes and order
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Of records from before there were rounds.
const fn one() -> u64 {
    1
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    /// In the order of the table.
    rows: Vec<Row>,
    /// What went wrong, each beginning with the contender's name.
    troubles: Vec<String>,
}

/// The figures of one proxy.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Row {
    contender: String,
    fill: Option<Load>,
    /// Of each round.
    #[serde(deserialize_with = "rounds")]
    hits: Vec<Hits>,
    restart: Option<Restart>,
}

/// Before there were rounds, a record had the one or none.
fn rounds<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Hits>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Rounds {
        All(Vec<Hits>),
        One(Option<Hits>),
    }
    Rounds::deserialize(from).map(|rounds| match rounds {
        Rounds::All(all) => all,
        Rounds::One(one) => one.into_iter().collect(),
    })
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "store";
    const SCHEMA: u32 = 1;

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let peers = record.settings.peers.clone();
        let all = (&CONTENDERS[..], &peers[..]);
        let participants = Participants::prepare(record, all, &[], load::CONNECTIONS_MAX)?;
        record.figures.cores = Cores::choose()?;
        schedule::run(record, &participants)
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    fn faults(record: &Record) -> Vec<String> {
        benchmark::of_weir(record.figures.troubles.clone())
    }
}
