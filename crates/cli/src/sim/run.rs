//! `weir sim run`.

use super::rules;
use super::trace::choices;
use crate::effective::load_without_modules;
use crate::messages::{Failure, give, give_json};
use crate::serve::flags::ServeFlags;
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use weir_policy::Profile;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::{AbortKind, ReadAhead};
use weir_proxy::config::{ByteSize, Span};
use weir_sim::link::LinkRate;
use weir_sim::tcp::Tcp;
use weir_sim::{
    ASSUMED_LIFETIME_S, Caching, Comparing, Comparison, Keep, LinkSetting, Network, ServerTimes,
    Settings, SettingsError, SimulatedRows, Simulator,
};
use weir_trace::Reader;
use weir_workload::{Dimension, Law};

/// The flags of `weir sim run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunFlags {
    /// A trace: of `weir trace import` or `make`, or any Parquet file with its columns
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// The network: modem, research, fixed-2024, mobile-2024, leo, geo, mobile-slow; the flags
    /// below change single numbers of it
    #[arg(long, value_name = "NAME", default_value = "modem", value_parser = network)]
    network: Network,

    /// Rules of storing: rfc9111, or http-1998, as proxies of 1998 (nothing with a cookie, a query,
    /// cgi-bin or cache control)
    #[arg(long, value_name = "NAME", default_value_t)]
    profile: Profile,

    /// Config file of `weir serve` whose `[[rule]]` tables hold, as far as a trace can tell what
    /// they are for: statuses, media types and methods, and no hosts, paths or clients
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Caching: off (every request bypasses the cache), on (by the rules of the profile),
    /// ignoring-cookies (as if no message had a cookie)
    #[arg(long, value_name = "WORD", default_value_t = Caching::On)]
    caching: Caching,

    /// Heads and content that may be stored, and what the catalog needs for itself
    #[arg(long, value_name = "BYTES", default_value = "unlimited", value_parser = size)]
    cache_size: Size,

    #[arg(
        long,
        value_name = "NAME",
        default_value_t,
        help = choices("Which entries are evicted", EvictionKind::WORDS)
    )]
    eviction: EvictionKind,

    /// Rule of admission: always, second-request, or a largest content such as 64KiB
    #[arg(long, value_name = "RULE", default_value = "always", value_parser = admission)]
    admission: Rule,

    /// Which connections between client and proxy are kept open: never, as-in-trace (as in the
    /// trace), always (after every complete response)
    #[arg(long, value_name = "WORD", default_value_t = Keep::Always)]
    client_connections: Keep,

    /// Which connections between proxy and server are kept open, in the same words
    #[arg(long, value_name = "WORD", default_value_t = Keep::Always)]
    server_connections: Keep,

    #[arg(
        long,
        value_name = "NAME",
        default_value_t = AbortKind::Value,
        help = choices("Handling of a fetch without readers", AbortKind::WORDS)
    )]
    abort: AbortKind,

    /// How far a fetch runs ahead of its fastest reader
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = size)]
    read_ahead: Size,

    /// Bytes a second that fetches without readers may take
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = size)]
    background_rate: Size,

    /// Time of a hit beside the network: 5ms, or a distribution, exp(5ms)
    #[arg(long, value_name = "LAW")]
    hit_overhead: Option<Law>,

    /// What a forwarded request takes beside the network
    #[arg(long, value_name = "LAW")]
    miss_overhead: Option<Law>,

    /// Of what is drawn by these laws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Freshness lifetime of responses where the trace has no heads, as those of logs: 1h, or none
    #[arg(long, value_name = "TIME|none", default_value_t = Lifetime(Some(ASSUMED_LIFETIME_S)), value_parser = lifetime)]
    assume_lifetime: Lifetime,

    /// Write the requests of the trace, each as the simulated proxy handled it: verdict, times and
    /// bytes
    ///
    /// This is a trace, for `weir trace compare` and `weir trace stats`. An existing file is
    /// replaced when the new one is complete.
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,

    /// A config file with `[[link]]` tables: forecasts when the quota of each would be spent if all
    /// that comes from servers came over it
    #[arg(long, value_name = "FILE")]
    link: Option<PathBuf>,

    #[command(flatten)]
    links: LinkFlags,

    /// Print all numbers as JSON
    #[arg(long)]
    json: bool,
}

/// Single numbers of the network.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Network")]
struct LinkFlags {
    /// TCP: 1997 or linux
    #[arg(long, value_name = "NAME", value_parser = tcp)]
    tcp: Option<Tcp>,

    /// Segments under way on a new connection
    #[arg(long, value_name = "N")]
    initial_window: Option<u32>,

    /// Bytes of data in a segment
    #[arg(long, value_name = "N")]
    segment_bytes: Option<u32>,

    /// Bytes of headers of a packet
    #[arg(long, value_name = "N")]
    header_bytes: Option<u32>,

    /// What a receiver offers to take at once
    #[arg(long, value_name = "BYTES", value_parser = size)]
    receive_window: Option<Size>,

    /// Rate of the link toward each client: 21kbit/s
    #[arg(long, value_name = "RATE", value_parser = bits_s)]
    client_rate: Option<u64>,

    /// Round trip between client and proxy
    #[arg(long, value_name = "TIME")]
    client_rtt: Option<Span>,

    /// Rate of the link from all servers
    #[arg(long, value_name = "RATE", value_parser = bits_s)]
    internet_rate: Option<u64>,

    /// Round trip to servers where the trace has none
    #[arg(long, value_name = "TIME")]
    server_rtt: Option<Span>,

    /// How long a client's idle connection stays open
    #[arg(long, value_name = "TIME")]
    client_idle: Option<Span>,

    /// How long an idle connection to a server stays open
    #[arg(long, value_name = "TIME")]
    server_idle: Option<Span>,

    /// Bytes that a real queue would hold: packets beyond are counted, and sent all the same
    #[arg(long, value_name = "BYTES", value_parser = size)]
    queue_limit: Option<Size>,
}

/// A number of bytes, or no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size(Option<u64>);

/// A lifetime that is assumed, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lifetime(Option<u32>);

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seconds) => Span::from_secs(u64::from(seconds)).fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    trace: String,
    seed: u64,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Reads the trace once and simulates it.
///
/// # Errors
/// The flags contradict each other or it is no trace (exit 2), or it cannot be read (3).
pub(super) fn run(flags: &RunFlags) -> Result<(), Failure> {
    let mut settings = flags.settings();
    if let Some(path) = &flags.rules {
        settings.operator_rules = Some(rules::of_file(path)?);
    }
    settings.check()?;
    settings.links = flags.link_settings()?;
    let reader = Reader::open(&flags.trace)?;
    let rows = flags.rows(&reader)?;
    let mut server_times = ServerTimes::default();
    for row in reader.rows(ServerTimes::COLUMNS) {
        server_times.see(&row?);
    }
    settings.server_times = Some(Arc::new(server_times));
    let results = rows.as_ref().map(SimulatedRows::sink);
    let mut comparing = Comparing::with_results(&settings, results)?;
    for row in reader.rows(Simulator::COLUMNS) {
        comparing.push(&row?);
    }
    let comparison = comparing.finish();
    if let Some(rows) = rows {
        rows.write(&reader)?;
    }
    if !flags.json {
        return give(&comparison.to_string());
    }
    let record = Record {
        trace: flags.trace.display().to_string(),
        seed: flags.seed,
        comparison: &comparison,
    };
    give_json(&record)
}

impl RunFlags {
    /// The file of the rows, if there is one.
    fn rows(&self, trace: &Reader) -> Result<Option<SimulatedRows>, Failure> {
        let Some(path) = &self.rows else {
            return Ok(None);
        };
        let is_trace = path
            .canonicalize()
            .is_ok_and(|rows| self.trace.canonicalize().is_ok_and(|trace| trace == rows));
        if is_trace {
            return Err(Failure::usage(
                format!("cannot write trace `{}`", path.display()),
                "it is the trace that is simulated",
            )
            .hint("name another file by --rows"));
        }
        let mut meta = trace.meta().clone();
        meta.source = format!("weir sim run of: {}", meta.source);
        Ok(Some(SimulatedRows::create(path, meta)?))
    }

    /// The links with quotas of the file, if one is named.
    fn link_settings(&self) -> Result<Vec<LinkSetting>, Failure> {
        let Some(path) = &self.link else {
            return Ok(Vec::new());
        };
        let config = load_without_modules(&ServeFlags {
            config: Some(path.clone()),
            ..ServeFlags::default()
        })?;
        let links = config.links.iter();
        let links: Vec<LinkSetting> = links
            .filter(|link| link.quota.is_some())
            .map(|link| LinkSetting {
                name: link.name.clone(),
                rules: link.rules(),
            })
            .collect();
        if links.is_empty() {
            return Err(Failure::usage(
                format!("cannot forecast by `{}`", path.display()),
                "it has no [[link]] with a quota",
            )
            .hint("docs/links.md explains links"));
        }
        Ok(links)
    }

    fn settings(&self) -> Settings {
        let settings = Settings::of(self.links.network(self.network), self.profile);
        Settings {
            caching: self.caching,
            client_connections: self.client_connections,
            server_connections: self.server_connections,
            cache_bytes: self.cache_size.0.unwrap_or(settings.cache_bytes),
            eviction: self.eviction,
            admission: self.admission,
            abort: self.abort.into(),
            read_ahead: self
                .read_ahead
                .0
                .map_or(ReadAhead::Unbounded, ReadAhead::Bytes),
            background_bytes_s: self.background_rate.0.unwrap_or(u64::MAX),
            hit_overhead: self.hit_overhead.clone(),
            miss_overhead: self.miss_overhead.clone(),
            seed: self.seed,
            assumed_lifetime_s: self.assume_lifetime.0,
            ..settings
        }
    }
}

impl LinkFlags {
    fn network(&self, preset: Network) -> Network {
        let tcp = self.tcp.unwrap_or(preset.tcp);
        let window = self
            .receive_window
            .map_or(tcp.receive_window_bytes, |size| size.0.unwrap_or(u64::MAX));
        let link = |rate: Option<u64>, preset: LinkRate| LinkRate {
            bits_s: rate.unwrap_or(preset.bits_s),
            queue_limit_bytes: self.queue_limit.and_then(|size| size.0).unwrap_or(0),
        };
        let us = |span: Option<Span>, preset| span.map_or(preset, Span::as_micros);
        let ms = |span: Option<Span>, preset| span.map_or(preset, |span| span.as_millis());
        Network {
            client_link: link(self.client_rate, preset.client_link),
            client_rtt_us: us(self.client_rtt, preset.client_rtt_us),
            internet: link(self.internet_rate, preset.internet),
            client_idle_ms: ms(self.client_idle, preset.client_idle_ms),
            server_idle_ms: ms(self.server_idle, preset.server_idle_ms),
            server_rtt_us: us(self.server_rtt, preset.server_rtt_us),
            tcp: Tcp {
                initial_window: self.initial_window.unwrap_or(tcp.initial_window),
                segment_bytes: self.segment_bytes.unwrap_or(tcp.segment_bytes),
                header_bytes: self.header_bytes.unwrap_or(tcp.header_bytes),
                receive_window_bytes: window,
            },
            ..preset
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::usage("cannot simulate this", &error).hint(error.hint())
    }
}

fn network(name: &str) -> Result<Network, String> {
    let names = || Network::PRESETS.map(|(name, _)| name).join(", ");
    Network::preset(name).ok_or_else(|| format!("there is no such network; there are {}", names()))
}

fn tcp(name: &str) -> Result<Tcp, String> {
    Tcp::preset(name).ok_or_else(|| "there are 1997 and linux".to_owned())
}

fn admission(text: &str) -> Result<Rule, String> {
    match text {
        "always" => Ok(Rule::Always),
        "second-request" => Ok(Rule::SecondRequest),
        _ => {
            let largest = text.parse::<ByteSize>();
            let largest = largest.map_err(|error| {
                format!("it is neither always nor second-request, and as a size: {error}")
            })?;
            Ok(Rule::Small {
                largest: largest.bytes(),
            })
        }
    }
}

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "none" {
        return Ok(Lifetime(None));
    }
    let span = text.parse::<Span>();
    let span = span.map_err(|error| format!("{error}; or `none`"))?;
    if Span::from_secs(span.as_secs()) != span {
        return Err("a lifetime is a whole number of seconds; or `none`".to_owned());
    }
    let seconds = u32::try_from(span.as_secs()).unwrap_or(u32::MAX);
    Ok(Lifetime(Some(seconds)))
}

fn size(text: &str) -> Result<Size, String> {
    if text == "unlimited" {
        return Ok(Size(None));
    }
    let parsed = text.parse::<ByteSize>();
    let parsed = parsed.map_err(|error| format!("{error}; or `unlimited`"))?;
    Ok(Size(Some(parsed.bytes())))
}

/// A rate in the units of scenario files.
fn bits_s(text: &str) -> Result<u64, String> {
    let law: Law = text.parse().map_err(|error| format!("{error}"))?;
    let mean = law.mean().filter(|_| law.is_of(Dimension::BitsPerSecond));
    match mean {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be in range"
        )]
        Some(rate) if (1.0..1e15).contains(&rate) => Ok(rate.round() as u64),
        _ => Err("a rate is written as 21kbit/s or 45Mbit/s".to_owned()),
    }
}
