//! `cargo xtask bench-speed`: how fast the clients and the origin of `weir bench` are, and how much
//! memory the clients take.
//!
//! `hits`: on one core wrk and our clients in turn, on the other a bare loop; 64 connections that
//! are kept, 1 KiB a response. Our clients check every byte, every validator and the mark; wrk
//! checks nothing.
//!
//! `origin`: our clients on one core, the origin on the other, 1 KiB a response as fast as they
//! come.
//!
//! `robots`: 10 000 robots in an open loop, each with its own address and up to two connections,
//! against an origin that takes 2.5 s to answer.

pub(crate) mod client;
mod site;

use crate::client::wrk::{self, Report};
use crate::process::affinity::Cores;
use crate::process::guarded;
use crate::proxy::bare::answers;
use crate::proxy::server::{self, Server};
use crate::record::Benchmark;
use crate::record::benchmark::{self, Participants};
use crate::record::host;
use crate::record::markdown::{self, TARGETS, Target, list, median, ratio, row, table};
use clap::{Args, value_parser};
use client::ClientTotals;
use serde::{Deserialize, Serialize};
use site::Site;
pub(crate) use site::{Options as SiteOptions, ROLE, answers, serve};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::program;
use xtask::workplace::Workplace;

type Record = crate::record::Record<Figures>;

const SEED: u64 = 1;

const CONNECTIONS: u32 = 64;

/// The minimum rate of the target, as a share of wrk's.
const SHARE_WANTED: f64 = 0.8;

/// The most CPU time that a response of 1 KiB may take the origin, microseconds: a core then
/// answers 80 000 a second, more than a proxy forwards.
const RESPONSE_US_MAX: f64 = 12.0;

/// How many connections of robots there have to be at once, at least.
const CONNECTIONS_WANTED: u64 = 16_000;

/// How much memory their clients may take, bytes.
const MEMORY_BYTES_MAX: u64 = 2 << 30;

/// Descriptors for the origin of the robots.
const FILES: usize = 19_500;

/// The parts that there are.
const PARTS: [&str; 3] = ["hits", "origin", "robots"];

/// What to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// What is measured, comma separated
    #[arg(long, value_delimiter = ',', value_parser = PARTS, default_values_t = PARTS.map(str::to_owned))]
    parts: Vec<String>,
    /// Length of a run
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Runs of hits and of the origin
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    hits: Vec<Hits>,
    origin: Vec<OriginRun>,
    robots: Option<ClientTotals>,
}

/// Our clients beside wrk.
#[derive(Debug, Serialize, Deserialize)]
struct Hits {
    wrk: Report,
    wrk_cpu_us: u64,
    ours: ClientTotals,
    ours_cpu_us: u64,
}

impl Hits {
    /// Requests a second, ours by wrk's.
    fn rate_ratio(&self) -> f64 {
        self.ours.rate() / self.wrk_rate()
    }

    fn wrk_rate(&self) -> f64 {
        ratio(self.wrk.requests * 1_000_000, self.wrk.duration_us)
    }
}

/// What a response costs the origin.
#[derive(Debug, Serialize, Deserialize)]
struct OriginRun {
    asked: ClientTotals,
    user_us: u64,
    system_us: u64,
}

impl OriginRun {
    /// CPU time of its process a response.
    fn response_us(&self) -> f64 {
        ratio(self.user_us + self.system_us, self.asked.requests)
    }
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "bench-speed";
    const SCHEMA: u32 = 2;
    const SEED: Option<&'static str> = Some("1");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let options = record.settings.clone();
        let has = |part: &str| options.parts.iter().any(|named| named == part);
        let participants = Participants::prepare(record, (&[], &[]), &["wrk"], FILES)?;
        let version = host::version("wrk -v", &participants.words);
        record.versions.insert("wrk".to_owned(), version);
        let bench = Bench {
            cores: Cores::choose()?,
            place: Workplace::make("bench-speed")?,
        };
        record.figures.cores = bench.cores;
        for round in 1..=options.rounds {
            eprintln!("round {round} of {}", options.rounds);
            if has("hits") {
                record.figures.hits.push(bench.hits(options.seconds)?);
            }
            if has("origin") {
                record.figures.origin.push(bench.origin(options.seconds)?);
            }
        }
        if has("robots") {
            record.figures.robots = Some(bench.robots(options.seconds)?);
        }
        Ok(())
    }

    fn render(record: &Record) -> String {
        let mut out = format!("{}.\n", markdown::origin(record, "; "));
        let number = |number: f64| format!("{number:.2}");
        let rows = record.figures.hits.iter().map(|run| {
            let wrk_us = ratio(run.wrk_cpu_us, run.wrk.requests);
            let ours_us = ratio(run.ours_cpu_us, run.ours.requests);
            let numbers = [run.rate_ratio(), wrk_us, ours_us, wrk_us / ours_us].map(number);
            let rates = [run.wrk_rate(), run.ours.rate()].map(|rate| format!("{rate:.0}"));
            row(rates.into_iter().chain(numbers))
        });
        let columns = "| wrk, requests/s | ours, requests/s | ratio | wrk, us of CPU | ours, us of CPU | ratio |";
        let title = "### Hits of 1 KiB: our clients beside wrk";
        table(&mut out, title, columns, rows);
        let rows = record.figures.origin.iter().map(|run| {
            let each = |us| ratio(us, run.asked.requests);
            let costs = [run.response_us(), each(run.user_us), each(run.system_us)].map(number);
            let rate = format!("{:.0}", run.asked.rate());
            row([rate].into_iter().chain(costs))
        });
        let columns = "| responses/s | us of CPU | user | system |";
        table(&mut out, "### The origin", columns, rows);
        if let Some(asked) = &record.figures.robots {
            let rows = [
                ("robots", asked.agents.to_string()),
                ("connections at once", asked.connections_max.to_string()),
                ("memory, MiB", (asked.memory_max_bytes >> 20).to_string()),
                ("requests a second", format!("{:.0}", asked.rate())),
                ("errors", asked.errors.to_string()),
                ("wrong", asked.wrong.to_string()),
                ("late, share", format!("{:.4}", asked.late_share)),
                ("the latest, us", asked.late_max_us.to_string()),
                ("CPU, of a core", number(asked.cpu_s / asked.seconds)),
            ];
            let rows = rows.map(|(what, value)| row([what, &value]));
            table(&mut out, "### Robots", "| | |", rows);
        }
        list(&mut out, TARGETS, targets(record));
        out
    }

    fn faults(record: &Record) -> Vec<String> {
        benchmark::missed(targets(record))
    }
}

fn targets(record: &Record) -> Vec<Target> {
    let Figures {
        hits,
        origin,
        robots,
        ..
    } = &record.figures;
    let mut targets = Vec::new();
    if let Some(share) = median(hits.iter().map(Hits::rate_ratio)) {
        let what =
            format!("rate of the clients: {share:.2} x that of wrk, at least {SHARE_WANTED}");
        targets.push(Target::new(what, share >= SHARE_WANTED));
    }
    if let Some(us) = median(origin.iter().map(OriginRun::response_us)) {
        let what = format!("the origin: {us:.2} us a response, at most {RESPONSE_US_MAX}");
        targets.push(Target::new(what, us <= RESPONSE_US_MAX));
    }
    if let Some(asked) = robots {
        let (connections, bytes) = (asked.connections_max, asked.memory_max_bytes);
        let what = format!(
            "robots: {connections} connections of at least {CONNECTIONS_WANTED} in {} MiB of at most {}, without an error",
            bytes >> 20,
            MEMORY_BYTES_MAX >> 20
        );
        let is_met = connections >= CONNECTIONS_WANTED && bytes <= MEMORY_BYTES_MAX;
        targets.push(Target::new(what, is_met && asked.errors + asked.wrong == 0));
    }
    targets
}

/// Where everything runs: clients on the core of the load, the server on the other.
struct Bench {
    cores: Cores,
    place: Workplace,
}

impl Bench {
    fn hits(&self, seconds: u32) -> Result<Hits, Failure> {
        let server = self.start(&[answers::ROLE, "PORT", "--site"], seconds)?;
        let (to, load) = (server.address(), self.cores.load);
        let (wrk, wrk_cpu_us) = wrk::run(to, "/hit0.bin", (CONNECTIONS, seconds), load)?;
        let (ours, ours_cpu_us) = self.ask(Site::Hits, to, seconds)?;
        ours.check(ours.hits)?;
        Ok(Hits {
            wrk,
            wrk_cpu_us,
            ours,
            ours_cpu_us,
        })
    }

    fn origin(&self, seconds: u32) -> Result<OriginRun, Failure> {
        let server = self.start(&[ROLE, "PORT", "hits"], seconds)?;
        let before = server.cpu_time();
        let (asked, _) = self.ask(Site::Hits, server.address(), seconds)?;
        let used = server.cpu_time() - before;
        asked.check(asked.forwarded)?;
        Ok(OriginRun {
            asked,
            user_us: used.user_us,
            system_us: used.system_us,
        })
    }

    fn robots(&self, seconds: u32) -> Result<ClientTotals, Failure> {
        let server = self.start(&[ROLE, "PORT", "robots"], seconds)?;
        Ok(self.ask(Site::Robots, server.address(), seconds)?.0)
    }

    /// Starts this program in another role.
    fn start(&self, role: &[&str], seconds: u32) -> Result<Server, Failure> {
        let port = server::take_port()?;
        let words = role
            .iter()
            .map(|word| word.replace("PORT", &port.to_string()));
        let arguments: Vec<String> = [program::own()?].into_iter().chain(words).collect();
        let mut command = guarded::command(&arguments, life(seconds));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let core = Some(self.cores.server);
        let mut server = Server::spawn(role[0], &mut command, self.place.path(), address, core)?;
        server.wait_until_it_listens()?;
        Ok(server)
    }

    /// What our clients had from a server, and their CPU time, microseconds.
    fn ask(
        &self,
        site: Site,
        to: SocketAddr,
        seconds: u32,
    ) -> Result<(ClientTotals, u64), Failure> {
        let arguments = [
            program::own()?,
            client::ROLE.to_owned(),
            site.name().to_owned(),
            to.to_string(),
            seconds.to_string(),
        ];
        let (text, cpu_us) = guarded::output(self.cores.load, &arguments, life(seconds))?;
        let asked = serde_json::from_str(&text);
        Ok((asked.during("understand the clients")?, cpu_us))
    }
}

fn life(seconds: u32) -> Duration {
    Duration::from_secs(120 + 4 * u64::from(seconds))
}
