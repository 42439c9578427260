//! The requests: hits of 1 KiB, or ten thousand robots.

use super::{CONNECTIONS, SEED};
use crate::origin::of_bench;
use crate::proxy::template::Words;
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
    /// Ten thousand robots with an address each.
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
            Self::Hits => include_str!("hits.toml"),
            Self::Robots => include_str!("robots.toml"),
        };
        let mut words = Words::default();
        words.set("TARGETS", TARGETS);
        words.set("CONNECTIONS", CONNECTIONS);
        words.set("ROBOTS", ROBOTS);
        words.set("SECONDS", seconds);
        Scenario::parse("speed.toml", &words.fill(text)?).during("read a scenario of its own")
    }
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
    write::field(&mut out, "Cache-Status", b"bare; hit");
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
