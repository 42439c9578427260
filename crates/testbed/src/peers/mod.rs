//! `cargo xtask peers`: weir beside other caching proxies, on this machine, in the same minutes.
//!
//! Each proxy is a caching gateway on one core before one origin, that of `weir bench`; `wrk`
//! drives it from the other core, where the origin lives too. All are started together and measured
//! in short runs in turn: a disturbance of the machine affects all, and the table shows medians
//! with the least and the most. The figure to believe is CPU time a request of the server; requests
//! a second also depend on how much of the other core the origin needs.
//!
//! Beside them are bare loops (`proxy/bare`), which do for one kind of request the least that a
//! server can do, and versions of nginx and HAProxy newer than Debian's release has. Some kinds of
//! requests are for proxies with a store on disk, which run beside those that have memory.
//!
//! A number is believed only when it was checked: the body has the right size, no request failed,
//! and the origin's own counter says that hits did not reach it and uncacheable requests did. What
//! a run filled is requested again in part, and has to be stored; weir has to say that hits from
//! disk came from there. A run that fails a check stays in the record with the reason and out of
//! the table.

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
use cells::CELLS;
pub(crate) use cells::{Cell, FORWARD_1K, HIT_1K};
use cells::{EPOLL_LOOP, MEMFD_LOOP, RELAY_LOOP, SENDFILE_LOOP, Store, WRITEV_LOOP};
use clap::builder::PossibleValuesParser;
use clap::{Args, value_parser};
use rounds::Present;
pub(crate) use run::{Run, measure, warm_up};
use serde::{Deserialize, Serialize};
use std::path::Path;
pub(crate) use table::{cells, idle_bytes, median_cpu_us};
use xtask::failure::Failure;
use xtask::program;

pub(crate) type Record = crate::record::Record<Figures>;

/// The servers that are measured, and how each is started, in the order of the table.
pub(crate) static CONTENDERS: [Contender; 13] = [
    Contender::WEIR,
    Contender {
        name: EPOLL_LOOP,
        ..BARE_ANSWERS
    },
    Contender {
        name: WRITEV_LOOP,
        arguments: "--by writev --size 1048576",
        ..BARE_ANSWERS
    },
    Contender {
        name: MEMFD_LOOP,
        arguments: "--by memfd --size 1048576",
        ..BARE_ANSWERS
    },
    Contender {
        name: SENDFILE_LOOP,
        arguments: "--by sendfile --size 1048576",
        ..BARE_ANSWERS
    },
    Contender {
        name: RELAY_LOOP,
        command: "@TESTBED@ bare-relay @PORT@ @ORIGIN@",
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

/// One of the bare loops that send what was made beforehand.
const BARE_ANSWERS: Contender = Contender {
    command: "@TESTBED@ bare-answers @PORT@",
    is_cache: false,
    ..Contender::NONE
};

/// Where the configurations with a store on disk are, below `peers/`.
const DISK_FOLDER: &str = "disk";

/// Those that have a store on disk, with little memory before it. nginx never has another one.
/// Varnish's is memory that is mapped to a file, and HAProxy has none.
pub(crate) static ON_DISK: [Contender; 5] = [
    Contender::WEIR.with(DISK_FOLDER),
    Contender::NGINX.with(DISK_FOLDER),
    Contender::NGINX_CURRENT.with(DISK_FOLDER),
    Contender::SQUID_ON_DISK.with(DISK_FOLDER),
    Contender::TRAFFIC_SERVER.with(DISK_FOLDER),
];

/// What the name of one of them ends with where a table has both.
const ON_DISK_SUFFIX: &str = " on disk";

/// The value of `--runs` for idle connections and memory after the start.
const IDLE: &str = "idle";

/// Values of `--runs`.
fn runs() -> PossibleValuesParser {
    let cells = CELLS.iter().map(|cell| cell.option);
    PossibleValuesParser::new(cells.chain([IDLE]))
}

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Proxies to measure, comma separated; all, if not given
    #[arg(long, value_delimiter = ',', value_parser = contender::names(&CONTENDERS))]
    only: Vec<String>,
    /// Kinds of runs, comma separated; all, if not given
    #[arg(long, value_delimiter = ',', value_parser = runs())]
    #[serde(default)]
    runs: Vec<String>,
    /// The weir to measure, instead of one that is built
    #[arg(long, value_name = "FILE")]
    #[serde(default)]
    weir: Option<String>,
    /// Length of one run
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Runs of each kind, interleaved over the proxies
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Idle connections to hold; 0 leaves that part out
    // more would not fit between one source address and one port by much, nor under usual file
    // limits
    #[arg(long = "idle", default_value_t = 10_000, value_parser = value_parser!(u32).range(..=15_000))]
    idle_connections: u32,
}

impl Options {
    fn has(&self, run: &str) -> bool {
        let is_chosen = self.runs.is_empty() || self.runs.iter().any(|chosen| chosen == run);
        is_chosen && (run != IDLE || self.idle_connections > 0)
    }
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    wrk_connections: u32,
    runs: Vec<Run>,
    idle: Vec<Idle>,
    #[serde(default)]
    starts: Vec<Start>,
}

/// User memory of a server that has answered one request.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Start {
    contender: String,
    anonymous_kib: u64,
    pss_kib: u64,
    rss_kib: u64,
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
        let how = (connections, record.settings.weir.clone());
        let mut participants = Participants::prepare_with(record, all, &["wrk"], how)?;
        // the same programs: what is missing was said of the others
        let (on_disk, _) = contender::prepare(&ON_DISK, &only, &[], false)?;
        let words = &mut participants.words;
        let version = host::version("wrk -v", words);
        record.versions.insert("wrk".to_owned(), version);
        words.set("TESTBED", program::own()?);
        record.figures.cores = Cores::choose()?;
        record.figures.wrk_connections = wrk::CONNECTIONS;
        let present = Present {
            participants: &participants,
            on_disk: &on_disk,
        };
        rounds::fill(record, &present)
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

/// Whether every contender that is installed by `--install` on any machine is in the record, with
/// every kind of request that the record is about.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    let settings = &record.settings;
    if !settings.only.is_empty() || !settings.runs.is_empty() {
        return false;
    }
    let Figures { runs, idle, .. } = &record.figures;
    let has_idle = |name| idle.iter().any(|idle| idle.contender == name);
    let is_measured = |cell: &Cell, contender: &Contender| {
        let is_here = runs.iter().any(|run| run.cell == cell.name);
        !is_here || median_cpu_us(record, cell.name, contender.name).is_some()
    };
    let has_cells = |all: &[Contender], store| {
        let required = all
            .iter()
            .filter(|it| it.is_cache && !it.is_of_next_release);
        let mut pairs = required.flat_map(|contender| {
            let cells = CELLS.iter().filter(|cell| cell.store == store);
            cells.map(move |cell| (cell, contender))
        });
        pairs.all(|(cell, contender)| is_measured(cell, contender))
    };
    let mut required = CONTENDERS
        .iter()
        .filter(|contender| contender.is_cache && !contender.is_of_next_release);
    required.all(|contender| has_idle(contender.name))
        && has_cells(&CONTENDERS, Store::Memory)
        && has_cells(&ON_DISK, Store::Disk)
}
