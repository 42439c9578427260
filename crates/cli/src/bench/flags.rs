//! The flags of `weir bench`. What is documented here is what `--help` prints.

use super::proxy_list::{GivenProxy, NamedProxy};
use super::range::Range;
use super::repeat::RepeatFlags;
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use weir_bench::conduct::Shaping;
use weir_proxy::config::ByteSize;

/// The commands of `weir bench`.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure one proxy or several, one after the other: clients and origin in this process
    ///
    /// Prints a table and writes a record (JSON) for each proxy, and one report (HTML). A proxy
    /// that does not respond, or that refuses the first request, ends the command before its run.
    ///
    /// The clients verify every byte of every response; by the origin's marks they recognise hits.
    /// Client and origin counts must agree: otherwise the run is not valid, and the exit code is 1.
    Run(RunFlags),
    /// Measure with origin and clients on other machines: wait for them, start them together, write
    /// one record
    Master(MasterFlags),
    /// Serve as origin for a master
    Origin(OriginFlags),
    /// Run clients for a master
    Clients(ClientsFlags),
    /// Measure with a growing number of clients, caching on and off, and draw figures 2-11 of the
    /// WPB paper
    Sweep(SweepFlags),
    /// The modem experiment of the WPB paper: clients at 28.8 kbit/s against the same clients
    /// unshaped
    ///
    /// Prints the columns of the paper's tables 5 and 6 for every proxy.
    Modem(ModemFlags),
    /// Draw records: one HTML file that loads nothing from the network, and each figure as SVG
    Report(ReportFlags),
    /// List the scenarios that are built in, or print one
    Scenarios(ScenariosFlags),
}

/// The scenario.
#[derive(Clone, Debug, Args)]
pub(crate) struct ScenarioFlags {
    /// A scenario that is built in (see `weir bench scenarios`), or a file
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: String,

    #[command(flatten)]
    pub(crate) changes: ChangeFlags,
}

/// How the scenario is changed.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeFlags {
    /// Seed of requests and content: the same seed makes the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Run this share of the scenario, such as 0.05; the record has it
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) scale: f64,

    /// Change a key of the scenario, such as origin.latency=constant(0.1s); may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// HTTP/1.1 with persistent connections on both sides, whatever the scenario says
    #[arg(long)]
    pub(crate) keep_alive: bool,

    /// Link of every client: modem-1998, fixed-2024, mobile-2024, leo, geo, mobile-low-income, or
    /// none
    #[arg(long, value_name = "PRESET")]
    pub(crate) link: Option<String>,
}

/// What is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProxyFlags {
    /// The proxy's address and port
    #[arg(long, value_name = "ADDR", required_unless_present = "direct")]
    pub(crate) proxy: Option<String>,

    /// The proxy is a gateway: origin-form, and every path begins with /s and the server's number
    ///
    /// All servers then have one address, that of --origin-listen, for the gateway's configuration.
    #[arg(long, conflicts_with = "direct")]
    pub(crate) gateway: bool,

    /// No proxy: send requests to the origin itself
    #[arg(long, conflicts_with = "proxy")]
    pub(crate) direct: bool,

    #[command(flatten)]
    pub(crate) about: AboutFlags,
}

/// What is measured, in one process.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProxiesFlags {
    /// Address and port of a proxy, or NAME=ADDR; with ,pid=PID for its process on this machine,
    /// and ,gateway if it is a gateway; may be repeated
    #[arg(
        long,
        value_name = "[NAME=]ADDR[,pid=PID][,gateway]",
        required_unless_present = "direct"
    )]
    pub(crate) proxy: Vec<GivenProxy>,

    /// All proxies are gateways: origin-form, and every path begins with /s and the server's number
    ///
    /// All servers then have one address, that of --origin-listen, for the gateway's configuration.
    #[arg(long, conflicts_with = "direct")]
    pub(crate) gateway: bool,

    /// No proxy: send requests to the origin itself
    #[arg(long, conflicts_with = "proxy")]
    pub(crate) direct: bool,

    #[command(flatten)]
    pub(crate) about: AboutFlags,
}

/// What the operator knows of the proxy.
#[derive(Clone, Debug, Args)]
pub(crate) struct AboutFlags {
    /// What tables and figures call it
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<String>,

    /// Its version, for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) proxy_version: Option<String>,

    /// Caching is switched off in it; for the record
    #[arg(long)]
    pub(crate) uncached: bool,

    /// The size of its cache, such as 75MiB: WPB requires four times as much traffic
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache_bytes: Option<ByteSize>,

    /// Process id of the proxy on this machine: CPU, memory and disk of its process tree are
    /// recorded each second
    #[arg(long, value_name = "PID")]
    pub(crate) proxy_pid: Option<u32>,

    /// More errors than this share of the requests make a run invalid
    #[arg(long, value_name = "SHARE", default_value_t = weir_bench::conduct::ERRORS_SHARE_MAX)]
    pub(crate) errors_max: f64,
}

/// How this process takes part.
#[derive(Clone, Debug, Args)]
pub(crate) struct ThreadFlags {
    /// Threads of clients
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,

    /// Threads of the origin
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) origin_threads: u32,

    /// Address of the origin; the port of its first server, or of all behind a gateway, if one is
    /// given
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = super::plan::listen_address)]
    pub(crate) origin_listen: Option<SocketAddr>,

    /// What emulates links: `user`, the clients themselves, or `namespace`, the kernel (needs root,
    /// and the proxy on this machine at all addresses)
    #[arg(long, value_name = "BY", default_value_t, value_parser = clap::builder::ValueParser::new(str::parse::<Shaping>))]
    pub(crate) shape: Shaping,
}

/// Single requests.
#[derive(Clone, Debug, Args)]
pub(crate) struct SampleFlags {
    /// Write single requests to this file (Parquet)
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: Option<PathBuf>,

    /// Write one of so many requests
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), requires = "samples")]
    pub(crate) sample_every: u32,
}

/// The flags of `weir bench run`.
#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) scenario: ScenarioFlags,

    /// Number of clients; each has as many servers as in the scenario
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: Option<u32>,

    #[command(flatten)]
    pub(crate) proxy: ProxiesFlags,

    #[command(flatten)]
    pub(crate) threads: ThreadFlags,

    #[command(flatten)]
    pub(crate) repeat: RepeatFlags,

    /// The record's file, the report beside it; with several proxies or repetitions a directory.
    /// Named after scenario, label and time under `bench`, if not given
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) samples: SampleFlags,
}

/// The flags of `weir bench master`.
#[derive(Debug, Args)]
pub(crate) struct MasterFlags {
    #[command(flatten)]
    pub(crate) scenario: ScenarioFlags,

    /// Number of clients; each has as many servers as in the scenario
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: Option<u32>,

    #[command(flatten)]
    pub(crate) proxy: ProxyFlags,

    /// Address and port where participants join
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: SocketAddr,

    /// Wait for so many `weir bench origin`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) origin_hosts: u32,

    /// Wait for so many `weir bench clients`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) client_hosts: u32,

    /// How long to wait for them, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) wait: u64,

    /// The record's file; named after scenario, label and time in the directory `bench`, if not
    /// given
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// How a participant finds its master.
#[derive(Clone, Debug, Args)]
pub(crate) struct JoinFlags {
    /// The master's address and port
    #[arg(long, value_name = "ADDR")]
    pub(crate) master: String,

    /// What to call this participant; the host's name, if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How long to try to reach the master, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) wait: u64,
}

/// The flags of `weir bench origin`.
#[derive(Debug, Args)]
pub(crate) struct OriginFlags {
    #[command(flatten)]
    pub(crate) join: JoinFlags,

    /// Address of the servers; the port of the first, if one is given. The address the master is
    /// reached from, if not given
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = super::plan::listen_address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
}

/// The flags of `weir bench clients`.
#[derive(Debug, Args)]
pub(crate) struct ClientsFlags {
    #[command(flatten)]
    pub(crate) join: JoinFlags,

    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,

    /// What emulates links: `user`, the clients themselves, or `namespace`, the kernel (needs root,
    /// and the proxy on this machine at all addresses)
    #[arg(long, value_name = "BY", default_value_t, value_parser = clap::builder::ValueParser::new(str::parse::<Shaping>))]
    pub(crate) shape: Shaping,

    #[command(flatten)]
    pub(crate) samples: SampleFlags,
}

/// The flags of `weir bench sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepFlags {
    #[command(flatten)]
    pub(crate) scenario: ScenarioFlags,

    /// Numbers of clients: FROM..TO:STEP, both ends included, or a list such as 8,16,64
    #[arg(long, value_name = "RANGE", default_value = "8..96:8")]
    pub(crate) clients: Range,

    /// Address and port of a proxy, or NAME=ADDR; with ,pid=PID for its process on this machine,
    /// and ,gateway if it is a gateway; may be repeated
    #[arg(long, value_name = "[NAME=]ADDR[,pid=PID][,gateway]", required = true)]
    pub(crate) proxy: Vec<GivenProxy>,

    /// The proxy of the same name with caching off, at another address: every point is measured
    /// with it as well; may be repeated
    #[arg(
        long,
        value_name = "[NAME=]ADDR[,pid=PID][,gateway]",
        conflicts_with = "uncached"
    )]
    pub(crate) proxy_without_cache: Vec<GivenProxy>,

    /// All proxies are gateways, as for `weir bench run`
    #[arg(long)]
    pub(crate) gateway: bool,

    #[command(flatten)]
    pub(crate) about: AboutFlags,

    #[command(flatten)]
    pub(crate) repeat: RepeatFlags,

    /// Seconds between two points; the paper's authors waited 300 for connections in TIME_WAIT
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) pause: u64,

    #[command(flatten)]
    pub(crate) threads: ThreadFlags,

    /// Directory for records, report and figures; named after scenario, label and time under
    /// `bench`, if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The flags of `weir bench modem`.
#[derive(Debug, Args)]
pub(crate) struct ModemFlags {
    /// A proxy: NAME=ADDR; with ,pid=PID for its process on this machine, and ,gateway if it is a
    /// gateway; may be repeated
    #[arg(long, value_name = "NAME=ADDR[,pid=PID][,gateway]", required = true)]
    pub(crate) proxy: Vec<NamedProxy>,

    /// The scenario of the unshaped and, with its link, of the shaped clients
    #[arg(long, value_name = "SCENARIO", default_value = "wpb-modem")]
    pub(crate) scenario: String,

    #[command(flatten)]
    pub(crate) changes: ChangeFlags,

    /// So many clients instead of the scenario's 30
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: Option<u32>,

    #[command(flatten)]
    pub(crate) threads: ThreadFlags,

    /// Directory for records and report; named after the time under `bench`, if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The flags of `weir bench report`.
#[derive(Debug, Args)]
pub(crate) struct ReportFlags {
    /// Records (JSON) of `weir bench run`, `sweep` or `modem`
    #[arg(value_name = "RECORD", required = true)]
    pub(crate) records: Vec<PathBuf>,

    /// The report's file (HTML)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// Directory for the figures, one file each
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
}

/// The flags of `weir bench scenarios`.
#[derive(Debug, Args)]
pub(crate) struct ScenariosFlags {
    /// Print this scenario with its comments, as a file to change
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}
