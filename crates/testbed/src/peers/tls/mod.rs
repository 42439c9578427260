//! `cargo xtask tls`: what TLS and HTTP/2 toward clients cost, beside other proxies.
//!
//! Each proxy is a caching gateway on one core, with a listener under TLS and one certificate on
//! P-256 (Caddy, which has no cache, sends files as large); h2load drives it from the other core,
//! where the origin lives too, by HTTP/2 and by HTTP/1.1. Runs are in turn, as in `peers`: the
//! figure to believe is CPU time of the server for a request, or for a handshake (`openssl
//! s_time`). Then idle connections are held by a script, each with a response behind it, and the
//! server's memory is read.
//!
//! Beside them is a bare server by the libraries that weir has (`proxy/bare/tls.rs`): what they
//! cost at least, for information. It is none of those that weir is to be compared with.
//!
//! The origin's own counter says that no hit reached it, and h2load that each response has status
//! 200 and the content its bytes.

pub(crate) mod certificate;
mod h2load;
mod handshakes;
mod held;
mod rounds;
mod table;

use crate::process::affinity::Cores;
use crate::proxy::contender::{self, Contender};
use crate::proxy::idle::Idle;
use crate::record::Benchmark;
use crate::record::benchmark::{Participants, missed, of_weir};
use crate::record::host;
use clap::{Args, value_parser};
use h2load::{Protocol, Report};
use serde::{Deserialize, Serialize};
use std::path::Path;
use xtask::failure::Failure;
use xtask::program;

pub(crate) type Record = crate::record::Record<Figures>;

/// The servers that are measured, in the order of the table.
pub(crate) static CONTENDERS: [Contender; 5] = [
    Contender::WEIR.with("tls"),
    Contender::NGINX.with("tls"),
    Contender::HAPROXY.with("tls"),
    CADDY,
    Contender {
        name: BARE,
        command: "@TESTBED@ bare-tls @PORT@ @TLS_PORT@ @CERTIFICATE@ @KEY@",
        is_cache: false,
        ..Contender::NONE
    },
];

/// The server that does the least.
const BARE: &str = "bare";

/// It has no cache, and sends files as large.
const CADDY: Contender = Contender {
    name: "caddy",
    installed_as: Some("caddy"),
    version: "caddy version",
    folder: "tls",
    files: &["Caddyfile", "caddy.sh"],
    directories: &["files/hit", "state"],
    command: "sh @DIR@/caddy.sh",
    is_cache: false,
    ..Contender::NONE
};

/// One kind of request.
#[derive(Debug)]
struct Case {
    name: &'static str,
    protocol: Protocol,
    /// Describes the response, see [`ResponseSpec`](weir_bench::origin::ResponseSpec).
    path: &'static str,
    body_bytes: u64,
}

const H2_1K: &str = "HTTP/2, 1 KiB";
const H1_1K: &str = "HTTP/1.1, 1 KiB";
const H2_256K: &str = "HTTP/2, 256 KiB";
const H1_256K: &str = "HTTP/1.1, 256 KiB";

const CASES: [Case; 4] = [
    small(H2_1K, Protocol::Http2),
    small(H1_1K, Protocol::Http1),
    large(H2_256K, Protocol::Http2),
    large(H1_256K, Protocol::Http1),
];

const fn small(name: &'static str, protocol: Protocol) -> Case {
    Case {
        name,
        protocol,
        path: "/hit/1k?size=1024",
        body_bytes: 1 << 10,
    }
}

const fn large(name: &'static str, protocol: Protocol) -> Case {
    Case {
        name,
        protocol,
        path: "/hit/256k?size=262144",
        body_bytes: 256 << 10,
    }
}

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Proxies to measure, comma separated; all, if not given
    #[arg(long, value_delimiter = ',', value_parser = contender::names(&CONTENDERS))]
    only: Vec<String>,
    /// The weir to measure, instead of one that is built
    #[arg(long, value_name = "FILE")]
    #[serde(default)]
    weir: Option<String>,
    /// Length of one run
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Runs of each kind, interleaved over the proxies
    #[arg(long, default_value_t = 7, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Idle connections to hold; 0 leaves that part out
    // one process holds them all, from one address
    #[arg(long = "idle", default_value_t = 2000, value_parser = value_parser!(u32).range(..=10_000))]
    idle_connections: u32,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    runs: Vec<Run>,
    handshakes: Vec<Handshakes>,
    /// Idle connections of HTTP/1.1.
    idle_http1: Vec<Idle>,
    /// The same of HTTP/2.
    idle_http2: Vec<Idle>,
}

/// One run of h2load.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    round: u32,
    contender: String,
    case: String,
    h2load: Report,
    /// CPU time of the server's process tree during the run, microseconds.
    user_us: u64,
    system_us: u64,
    /// Why the numbers are not to be believed; `None` when every check passed.
    trouble: Option<String>,
}

/// Handshakes one after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Handshakes {
    round: u32,
    contender: String,
    kind: String,
    count: u64,
    user_us: u64,
    system_us: u64,
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "tls";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> = Some("none: every request is the same, nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let only = record.settings.only.clone();
        let connections = usize::try_from(record.settings.idle_connections).unwrap_or(usize::MAX);
        let tools = ["h2load", "openssl", "python3"];
        let all = (&CONTENDERS[..], &only[..]);
        let how = (connections, record.settings.weir.clone());
        let mut participants = Participants::prepare_with(record, all, &tools, how)?;
        let words = &mut participants.words;
        words.set("TESTBED", program::own()?);
        for (tool, command) in [
            ("h2load", "h2load --version"),
            ("openssl", "openssl version"),
        ] {
            let version = host::version(command, words);
            record.versions.insert(tool.to_owned(), version);
        }
        record.figures.cores = Cores::choose()?;
        rounds::fill(record, &mut participants)
    }

    fn render(record: &Record) -> String {
        table::render(record)
    }

    fn faults(record: &Record) -> Vec<String> {
        let mut faults = of_weir(table::troubles(record));
        if record.figures.runs.is_empty() {
            faults.push("nothing was measured".to_owned());
        }
        faults.extend(missed(table::targets(record)));
        faults
    }
}

/// Whether every contender but the bare one is in the record, with every kind of request and idle
/// connections.
pub(crate) fn record_is_whole(record: &Record) -> bool {
    // records of before it was there have all that weir is compared with
    let names = CONTENDERS.iter().map(|it| it.name);
    let mut compared = names.filter(|name| *name != BARE);
    compared.all(|name| table::is_complete(record, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_bench::origin::ResponseSpec;

    #[test]
    fn path_of_a_case_describes_its_response() {
        for case in &CASES {
            let spec = ResponseSpec::parse(case.path).expect("a response");
            assert_eq!((spec.size_bytes, spec.is_storable), (case.body_bytes, true));
        }
    }
}
