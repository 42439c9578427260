//! What is asked: hits of 1 KiB, or ten thousand robots.

use super::{CONNECTIONS, SEED};
use crate::failure::of_bench;
use clap::{Args, ValueEnum};
use std::net::Ipv4Addr;
use std::sync::Arc;
use weir_bench::mark::{self, Id, ResponseMark};
use weir_bench::origin::{OriginListen, OriginPlan, start};
use weir_semantics::write_http_date;
use weir_wire::{Version, write};
use weir_workload::{Scenario, Target, UnixSeconds};
use xtask::failure::{During, Failure};

/// The command that makes a process the origin of a site.
pub(crate) const ROLE: &str = "speed-origin";

const TARGETS: u32 = 16;

const ROBOTS: u32 = 10_000;

/// As many as the origin holds: a limit of 20 000 open files is a common one.
const CONNECTIONS_MAX: u32 = 19_500;

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Site {
    /// As fast as they come.
    Hits,
    /// PolyMix's robots and servers: 0.4 requests a second each, 2.5 s to answer, zipf(64) requests
    /// a connection. Two connections a robot and not four, so that all of them together stay within
    /// 20 000 open files whatever else the machine does.
    Robots,
}

impl Site {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hits => "hits",
            Self::Robots => "robots",
        }
    }

    pub(super) fn scenario(self, seconds: u32) -> Result<Scenario, Failure> {
        let text = match self {
            Self::Hits => hits(seconds),
            Self::Robots => robots(seconds),
        };
        Scenario::parse("speed.toml", &text).during("read a scenario of its own")
    }
}

fn hits(seconds: u32) -> String {
    format!(
        r#"
format = 1
name = "speed"
about = "hits of 1 KiB, as fast as they come"
sources = []

[workload]
kind = "hits"
targets = {TARGETS}
size = "constant(1KB)"
connections = {CONNECTIONS}
duration = "{seconds}s"

[origin]
latency = "constant(0s)"
http = "1.1"
keep_alive = true
idle_timeout = "60s"
conditional = true
addresses = "one"

[clients]
http = "1.1"
keep_alive = true
connections_max = 1
queue_max = 1
response_timeout = "20s"
addresses = "one"
"#
    )
}

fn robots(seconds: u32) -> String {
    format!(
        r#"
format = 1
name = "robots"
about = "ten thousand robots with an address each"
sources = []

[workload]
kind = "web"
agents = {ROBOTS}
rate_per_s = 4000.0
servers = 1
targets = 100000
zipf_exponent = 0.8
one_hit_share = "0%"
warm_up = "5s"
measured = "{seconds}s"
if_modified_share = "0%"
reload_share = "0%"
head_share = "0%"
cookie_share = "0%"
set_cookie_share = "0%"
cookie_size = "constant(1B)"
lifetime = "constant(1h)"
life_cycle = {{ length = "constant(1h)", variance = "0%" }}
validators = {{ last_modified = "100%", etag = "100%", both = "100%" }}

[[workload.contents]]
name = "page"
share = "100%"
media_type = "text/html"
extension = ".html"
size = "exp(10KB)"

[[workload.cache_control]]
share = "100%"
max_age = true

[origin]
latency = "normal(2.5s, 1s)"
http = "1.1"
keep_alive = true
idle_timeout = "4s"
conditional = true
addresses = "one"

[clients]
http = "1.1"
keep_alive = true
requests_per_connection = "zipf(64)"
connections_max = 2
queue_max = 100
response_timeout = "20s"
addresses = "each"
"#
    )
}

/// Options of the process that is the origin of a site.
#[derive(Args, Debug)]
pub(crate) struct Options {
    port: u16,
    site: Site,
}

/// Serves a site until the process is ended.
pub(crate) fn serve(options: &Options) -> Result<(), Failure> {
    let _serving = start(&OriginPlan {
        scenario: Arc::new(options.site.scenario(1)?),
        seed: SEED,
        listen: OriginListen::Ports {
            address: Ipv4Addr::LOCALHOST.into(),
            first: Some(options.port),
        },
        threads: 1,
        shares: 1,
        connections_max: CONNECTIONS_MAX,
    })
    .map_err(of_bench)?;
    loop {
        std::thread::park();
    }
}

/// The responses of [`Site::Hits`] by number, as a cache would send them from its store.
pub(crate) fn answers() -> Result<Vec<Vec<u8>>, Failure> {
    let site = weir_workload::Site::new(&Site::Hits.scenario(1)?, SEED);
    let targets = (0..u64::from(TARGETS)).map(|number| Target { server: 0, number });
    Ok(targets.map(|target| answer(&site, target)).collect())
}

fn answer(site: &weir_workload::Site, target: Target) -> Vec<u8> {
    let about = site.describe(target, UnixSeconds(0));
    let mut out = Vec::new();
    let mut date = [0; 29];
    write_http_date(about.modified.unwrap_or_default(), &mut date);
    write::status_line(&mut out, Version::Http11, 200, "OK");
    write::field(&mut out, "Content-Type", about.content_type.as_bytes());
    write::number_field(&mut out, "Content-Length", about.length);
    write::field(&mut out, "Last-Modified", &date);
    write::field(&mut out, "Date", &date);
    write::field(&mut out, "Cache-Control", b"public, max-age=31536000");
    write::field(&mut out, "Age", b"1");
    write::field(&mut out, "Cache-Status", b"floor; hit");
    let (mut tag, mut mark) = (Vec::new(), Vec::new());
    site.write_entity_tag(target, about.version, &mut tag);
    let id = Id {
        phase: 0,
        share: 9999,
        number: target.number,
    };
    let answered = ResponseMark {
        id: Some(id),
        version: about.version,
        is_validated: false,
        begun_us: None,
    };
    answered.write(&mut mark);
    write::field(&mut out, "ETag", &tag);
    write::field(&mut out, mark::FIELD, &mark);
    write::end_of_head(&mut out);
    let head_bytes = out.len();
    out.resize(head_bytes + usize::try_from(about.length).unwrap_or(0), 0);
    site.content(target, about.version)
        .fill(0, &mut out[head_bytes..]);
    out
}
