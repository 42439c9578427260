//! `cargo xtask peers`: weir beside other caching proxies, on this machine, in the same minutes.
//!
//! Each proxy is a caching gateway on one core before one origin, that of `weir bench`; `wrk`
//! drives it from the other core, where the origin lives too. All are started together and measured
//! in short runs in turn: a disturbance of the machine affects all, and the table shows medians
//! with the least and the most. The figure to believe is CPU time a request of the server; requests
//! a second also depend on how much of the other core the origin needs.
//!
//! A number is believed only when it was checked: the body has the right size, no request failed,
//! and the origin's own counter says that hits did not reach it and uncacheable requests did. A run
//! that fails a check stays in the record with the reason and out of the table.

pub(crate) mod attack;
mod cells;
pub(crate) mod dashboard;
pub(crate) mod links;
mod rounds;
mod run;
pub(crate) mod scenario;
mod table;
pub(crate) mod tls;
mod turns;

use crate::client::wrk;
use crate::process::affinity::Cores;
use crate::proxy::contender::{self, Contender};
use crate::proxy::idle::Idle;
use crate::record::Benchmark;
use crate::record::benchmark::Participants;
use crate::record::host;
use cells::FLOOR;
pub(crate) use cells::{Cell, FORWARD_1K, HIT_1K};
use clap::{Args, value_parser};
pub(crate) use run::{Run, measure, warm_up};
use serde::{Deserialize, Serialize};
use std::path::Path;
pub(crate) use table::{cells, idle_bytes, median_cpu_us};
use xtask::failure::Failure;
use xtask::program;

pub(crate) type Record = crate::record::Record<Figures>;

/// The servers that are measured, and how each is started, in the order of the table.
pub(crate) static CONTENDERS: [Contender; 9] = [
    Contender::WEIR,
    Contender {
        name: FLOOR,
        command: "@FLOOR@ bare-answers @PORT@",
        is_cache: false,
        ..Contender::NONE
    },
    Contender::NGINX,
    Contender::NGINX_CURRENT,
    Contender::HAPROXY,
    Contender::HAPROXY_CURRENT,
    Contender {
        // a small log, because it is shared memory that grows with traffic and would be counted as
        // memory of connections
        arguments: "-s malloc,1g -p thread_pools=1 -p thread_pool_min=50 -p thread_pool_max=200 \
                    -p timeout_idle=600 -p vsl_space=8M",
        ..Contender::VARNISH
    },
    Contender::SQUID,
    Contender::TRAFFIC_SERVER,
];

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Proxies to measure, comma separated; all, if not given
    #[arg(long, value_delimiter = ',', value_parser = contender::names(&CONTENDERS))]
    only: Vec<String>,
    /// Length of one run
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Runs of each kind, interleaved over the proxies
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Idle connections to hold; 0 leaves that part out
    // more would not fit between one source address and one port by much, nor under usual file
    // limits
    #[arg(long = "idle", default_value_t = 10_000, value_parser = value_parser!(u32).range(..=15_000))]
    idle_connections: u32,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    wrk_connections: u32,
    runs: Vec<Run>,
    idle: Vec<Idle>,
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "peers";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> = Some("none: every request is the same, nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let only = record.settings.only.clone();
        let connections = usize::try_from(record.settings.idle_connections).unwrap_or(usize::MAX);
        let all = (&CONTENDERS[..], &only[..]);
        let mut participants = Participants::prepare(record, all, &["wrk"], connections)?;
        let words = &mut participants.words;
        let version = host::version("wrk -v", words);
        record.versions.insert("wrk".to_owned(), version);
        words.set("FLOOR", program::own()?);
        record.figures.cores = Cores::choose()?;
        record.figures.wrk_connections = wrk::CONNECTIONS;
        rounds::fill(record, &participants)
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    /// Every check of every proxy must have passed.
    fn faults(record: &Record) -> Vec<String> {
        let mut faults = table::troubles(record);
        if record.figures.runs.is_empty() {
            faults.push("nothing was measured".to_owned());
        }
        faults
    }
}

/// Whether every contender is in the record with every kind of request.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    let caches = || {
        let required = CONTENDERS.iter();
        required.filter(|contender| contender.is_cache && !contender.is_of_next_release)
    };
    let has_idle = |name| {
        record
            .figures
            .idle
            .iter()
            .any(|idle| idle.contender == name)
    };
    let has_cells = |name| cells().all(|cell| median_cpu_us(record, cell, name).is_some());
    caches().all(|contender| has_idle(contender.name) && has_cells(contender.name))
}
