//! `cargo xtask links`: what a link with a budget costs hits, and what a bulk fetch costs pages.
//!
//! Three weirs in the bed of `peers`: one is behind no link, the link of the second has spent its
//! quota, and that of the third has a rate. Runs of hits in turn, each of a weir with a link
//! between two of the plain one: a shared machine is faster for a minute and slower for the next.
//! While the third is measured, a bulk fetch takes what its link has. Then a client fetches pages
//! that may not be stored over that link, one after the other with a pause, as it is idle and
//! during a bulk fetch. The rate is the link: there is no other one between weir and its origin.
//!
//! That the quota is spent is checked (429 to a miss), and that the bulk fetch goes on.

use super::cells::{CELLS, Cell};
use super::turns::{RunRules, Turns};
use super::{Run, warm_up};
use crate::client::get;
use crate::client::reader::Reader;
use crate::origin::Origin;
use crate::process::affinity::{Cores, stay_on};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server};
use crate::record::benchmark::{Participants, missed};
use crate::record::markdown::{self, Target, list, row};
use crate::record::{Benchmark, host};
use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;
use weir_measure::quantile::{Spread, of_sorted};
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

pub(crate) type Record = crate::record::Record<Figures>;

/// Behind no link.
const PLAIN: &str = "plain";

/// Behind a link that has spent its quota.
const SPENT: &str = "spent";

/// Behind a link with a rate.
const RATE: &str = "rate";

/// What is built.
static WEIR_ALONE: [Contender; 1] = [Contender::WEIR];

pub(crate) static CONTENDERS: [Contender; 3] = [named(PLAIN), named(SPENT), named(RATE)];

const fn named(name: &'static str) -> Contender {
    Contender {
        name,
        folder: "links",
        ..Contender::WEIR
    }
}

/// The link of [`SPENT`].
const QUOTA: &str = r#"[[link]]
name = "quota"
quota = "1MiB"
period = "month"
when_spent = "refuse"
state_file = "@DIR@/link""#;

/// The rate of the link of [`RATE`], bytes a second.
const RATE_BYTES_S: u64 = 1 << 20;

/// A page: below what is bulk, and more than the link holds when it was idle, so that its time is
/// that of the link.
const PAGE_BYTES: u64 = 256 << 10;

/// Between the end of a page and the begin of the next one.
const READING_TIME: Duration = Duration::from_millis(1000);

/// What is fetched as bulk: it takes longer than any run.
const BULK_BYTES: u64 = 1 << 33;

/// The part of a bulk fetch that is not bulk yet, and what a link and kernels hold, bytes.
const BULK_BEGUN_BYTES: u64 = 2 << 20;

/// Longest time until a bulk fetch has come so far.
const BULK_BEGUN_MAX: Duration = Duration::from_secs(30);

/// Hits of weir with a link reach at least this share of their speed without.
const SPEED_MIN: f64 = 0.95;

/// The 95th percentile of pages during a bulk fetch is at most so many times that of an idle link.
const P95_MAX: f64 = 1.2;

/// A server that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(2 * 3600);

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Length of one run of hits
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Rounds, each with all conditions
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Pages of each condition in a round
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=1000))]
    pages: u32,
    /// The weir to measure, instead of one that is built
    #[arg(long, value_name = "FILE")]
    weir: Option<String>,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    runs: Vec<Run>,
    hits: Vec<Pair>,
    pages: Vec<Pages>,
    /// What was not as it has to be.
    troubles: Vec<String>,
}

/// A run of hits of a weir with a link beside the runs of the plain one before and after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pair {
    round: u32,
    condition: String,
    /// CPU time of a request, microseconds.
    plain_us: f64,
    linked_us: f64,
    plain_requests_s: f64,
    linked_requests_s: f64,
    /// What the bulk fetch got meanwhile, bytes.
    bulk_bytes: u64,
}

impl Pair {
    fn new(round: u32, (before, after): (&Run, &Run), linked: &Run, bulk_bytes: u64) -> Self {
        let mean = |number: fn(&Run) -> f64| f64::midpoint(number(before), number(after));
        Self {
            round,
            condition: linked.contender.clone(),
            plain_us: mean(Run::cpu_us_per_request),
            linked_us: linked.cpu_us_per_request(),
            plain_requests_s: mean(Run::requests_per_second),
            linked_requests_s: linked.requests_per_second(),
            bulk_bytes,
        }
    }

    /// Hits for a second of CPU time, beside those without a link. CPU time of the bulk fetch
    /// counts as theirs.
    fn cpu_speed(&self) -> f64 {
        self.plain_us / self.linked_us
    }

    fn throughput(&self) -> f64 {
        self.linked_requests_s / self.plain_requests_s
    }
}

/// Pages of one round, microseconds from the request to the last byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pages {
    round: u32,
    idle_us: Vec<u64>,
    bulk_us: Vec<u64>,
    /// What the bulk fetch got meanwhile, bytes.
    bulk_bytes: u64,
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "links";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> = Some("none: every request is the same, nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let weir = record.settings.weir.clone();
        let mut participants =
            Participants::prepare_with(record, (&WEIR_ALONE, &[]), &["wrk"], (0, weir))?;
        let words = &mut participants.words;
        let version = host::version("wrk -v", words);
        record.versions.insert("wrk".to_owned(), version);
        record.figures.cores = Cores::choose()?;
        fill(record, &participants)
    }

    fn render(record: &Record) -> String {
        let mut out = format!("{}\n\n", markdown::origin(record, "\\\n"));
        let rows = record.figures.hits.iter().map(|pair| {
            row([
                format!("{:>5}", pair.round),
                format!("{:<9}", pair.condition),
                format!("{:>10.0}", pair.linked_requests_s),
                format!("{:>10.4}", pair.throughput()),
                format!("{:>8.3}", pair.linked_us),
                format!("{:>9.4}", pair.cpu_speed()),
                format!("{:>10}", markdown::bytes(pair.bulk_bytes)),
            ])
        });
        let title = "### A hit of 1 KiB behind a link, and behind none, in turn";
        let columns =
            "| round | link | requests/s | throughput | CPU us | CPU speed | bulk fetch |";
        markdown::table(&mut out, title, columns, rows);
        let rows = record.figures.pages.iter().map(|pages| {
            let ms = |times: &[u64], share| percentile_us(times, share) / 1000.0;
            row([
                format!("{:>5}", pages.round),
                format!("{:>11.1}", ms(&pages.idle_us, 0.5)),
                format!("{:>11.1}", ms(&pages.idle_us, 0.95)),
                format!("{:>11.1}", ms(&pages.bulk_us, 0.5)),
                format!("{:>11.1}", ms(&pages.bulk_us, 0.95)),
                format!("{:>10}", markdown::bytes(pages.bulk_bytes)),
            ])
        });
        let title = "### A page of 256 KiB over a link of 1 MiB/s, idle and during a bulk fetch";
        let columns =
            "| round | idle p50, ms | idle p95, ms | bulk p50, ms | bulk p95, ms | bulk fetch |";
        markdown::table(&mut out, title, columns, rows);
        list(&mut out, markdown::TARGETS, targets(record));
        list(&mut out, markdown::COULD_NOT, troubles(record));
        out
    }

    fn faults(record: &Record) -> Vec<String> {
        let mut faults = troubles(record);
        if record.figures.hits.is_empty() || record.figures.pages.is_empty() {
            faults.push("nothing was measured".to_owned());
        }
        faults.extend(missed(targets(record)));
        faults
    }
}

fn targets(record: &Record) -> Vec<Target> {
    let figures = &record.figures;
    let mut targets = Vec::new();
    for condition in [SPENT, RATE] {
        let of = |number: fn(&Pair) -> f64| {
            let pairs = figures.hits.iter();
            Spread::of(pairs.filter(|pair| pair.condition == condition).map(number))
        };
        for (what, spread) in [
            ("CPU time", of(Pair::cpu_speed)),
            ("throughput", of(Pair::throughput)),
        ] {
            let Some(spread) = spread else { continue };
            let what = format!(
                "hits with a link ({condition}), by {what}: {:.1} % of their speed ({:.1} to \
                 {:.1}), at least {:.0} %",
                100.0 * spread.median,
                100.0 * spread.min,
                100.0 * spread.max,
                100.0 * SPEED_MIN
            );
            targets.push(Target::new(what, spread.median >= SPEED_MIN));
        }
    }
    let all = |times: fn(&Pages) -> &[u64]| -> Vec<u64> {
        let all = figures.pages.iter().flat_map(times);
        all.copied().collect()
    };
    let (idle, bulk) = (all(|pages| &pages.idle_us), all(|pages| &pages.bulk_us));
    if !idle.is_empty() && !bulk.is_empty() {
        let ratio = percentile_us(&bulk, 0.95) / percentile_us(&idle, 0.95);
        let what = format!(
            "p95 of {} pages during a bulk fetch: {ratio:.3} times that of {} over the idle link, \
             at most {P95_MAX}",
            bulk.len(),
            idle.len()
        );
        targets.push(Target::new(what, ratio <= P95_MAX));
    }
    targets
}

fn percentile_us(times: &[u64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let us = of_sorted(&sorted, share).unwrap_or_default();
    markdown::ratio(us, 1)
}

fn troubles(record: &Record) -> Vec<String> {
    let mut troubles = markdown::left_out(record);
    troubles.extend(record.figures.troubles.iter().cloned());
    for run in &record.figures.runs {
        if let Some(trouble) = &run.trouble {
            let (round, contender) = (run.round, &run.contender);
            troubles.push(format!("round {round}, {contender}: {trouble}"));
        }
    }
    troubles
}

fn fill(record: &mut Record, participants: &Participants) -> Result<(), Failure> {
    let Options {
        seconds,
        rounds,
        pages,
        ..
    } = record.settings;
    let cores = record.figures.cores;
    let work = Workplace::make("links")?;
    let place = |core| Place {
        core: Some(core),
        ..Place::local(LIFE)
    };
    let origin = Origin::start(&work.path().join("origin"), &place(cores.load), None)?;
    let cell: &Cell = &CELLS[0];
    let start = |contender: &'static Contender, links: &str| {
        let mut words = origin.words(&participants.words, place(cores.server).host);
        let directory = work.path().join(contender.name);
        words.set(
            "LINKS",
            links.replace("@DIR@", &directory.display().to_string()),
        );
        let place = place(cores.server);
        let server = Server::start(contender, &directory, &words, &place, cell.path)?;
        warm_up(contender, &server, cell, cores).map_err(Failure::Refused)?;
        Ok::<_, Failure>(server)
    };
    let rate = format!("[[link]]\nname = \"rate\"\nrate = \"{RATE_BYTES_S}B/s\"");
    let [plain, spent, with_rate] = &CONTENDERS;
    let of_plain = start(plain, "")?;
    let of_spent = start(spent, QUOTA)?;
    let of_rate = start(with_rate, &rate)?;
    spend(of_spent.address())?;
    let rules = RunRules {
        origin: &origin,
        cell,
        seconds,
        cores,
    };
    let mut turns = Turns::begin(rules, (plain, &of_plain))?;
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for (contender, server) in [(spent, &of_spent), (with_rate, &of_rate)] {
            let is_bulk = contender.name == RATE;
            let (turn, bulk_bytes) = turns.take(round, (contender, server), |run| {
                let bulk = is_bulk.then(|| Bulk::begin(server.address(), cores.load));
                let bulk = bulk.transpose()?;
                let linked = run()?;
                Ok((linked, bulk.map_or(Ok(0), Bulk::end)?))
            })?;
            if let Some((plain, linked)) = turn.sound() {
                let pair = Pair::new(round, plain, linked, bulk_bytes);
                record.figures.hits.push(pair);
            }
            if is_bulk && bulk_bytes == 0 {
                let trouble = format!("round {round}: the bulk fetch got nothing beside hits");
                record.figures.troubles.push(trouble);
            }
            record.figures.runs.extend(turn.into_runs());
        }
        let idle_us = fetch_pages(of_rate.address(), pages)?;
        let bulk = Bulk::begin(of_rate.address(), cores.load)?;
        let bulk_us = fetch_pages(of_rate.address(), pages)?;
        let bulk_bytes = bulk.end()?;
        if bulk_bytes == 0 {
            let trouble = format!("round {round}: the bulk fetch got nothing beside pages");
            record.figures.troubles.push(trouble);
        }
        record.figures.pages.push(Pages {
            round,
            idle_us,
            bulk_us,
            bulk_bytes,
        });
    }
    is_spent(of_spent.address())
}

/// Fetches until the quota is spent.
fn spend(weir: SocketAddr) -> Result<(), Failure> {
    let large = ResponseSpec {
        is_storable: false,
        ..ResponseSpec::new("/spend", 4 << 20)
    };
    // it is cut, with the quota
    let _cut = get::get_once(weir, &large.to_string());
    is_spent(weir)
}

/// # Errors
/// A miss is answered with something else than 429.
fn is_spent(weir: SocketAddr) -> Result<(), Failure> {
    let miss = ResponseSpec {
        is_storable: false,
        ..ResponseSpec::new("/miss", 1)
    };
    let answer = get::get_once(weir, &miss.to_string()).during("ask behind the spent link")?;
    match answer.status {
        429 => Ok(()),
        status => Err(Failure::Refused(format!(
            "the quota is spent, and a miss is answered with {status}"
        ))),
    }
}

/// Fetches so many pages, with a pause before each; how long each took, microseconds.
fn fetch_pages(weir: SocketAddr, pages: u32) -> Result<Vec<u64>, Failure> {
    let page = ResponseSpec {
        is_storable: false,
        ..ResponseSpec::new("/page", PAGE_BYTES)
    };
    let target = page.to_string();
    let mut stream = get::connect(weir).during("connect for pages")?;
    let mut times = Vec::new();
    for _ in 0..pages {
        std::thread::sleep(READING_TIME);
        let began = Instant::now();
        let answer = get::get(&mut stream, &target).during("fetch a page")?;
        let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        if answer.status != 200 || answer.body.len() as u64 != PAGE_BYTES {
            let (status, bytes) = (answer.status, answer.body.len());
            let what = format!("a page is answered with {status} and {bytes} bytes");
            return Err(Failure::Refused(what));
        }
        times.push(us);
    }
    Ok(times)
}

/// A bulk fetch that goes on until it is ended.
struct Bulk {
    is_on: Arc<AtomicBool>,
    reader: JoinHandle<Result<u64, String>>,
}

impl Bulk {
    /// Begins one, and waits until it is bulk.
    fn begin(weir: SocketAddr, core: usize) -> Result<Self, Failure> {
        let large = ResponseSpec {
            is_storable: false,
            ..ResponseSpec::new("/bulk", BULK_BYTES)
        };
        let mut reader = Reader::ask(weir, &large, None).map_err(Failure::Refused)?;
        let deadline = Instant::now() + BULK_BEGUN_MAX;
        let is_begun = reader.read_until(BULK_BEGUN_BYTES, deadline);
        if !is_begun.map_err(Failure::Refused)? {
            return Err(Failure::Refused("the bulk fetch does not begin".to_owned()));
        }
        let is_on = Arc::new(AtomicBool::new(true));
        let goes_on = Arc::clone(&is_on);
        let reader = std::thread::spawn(move || {
            stay_on(core).map_err(|failure| failure.to_string())?;
            let begun = reader.read_bytes();
            while goes_on.load(Ordering::Relaxed) {
                let soon = Instant::now() + Duration::from_millis(100);
                reader.read_until(reader.read_bytes() + (64 << 10), soon)?;
            }
            Ok(reader.read_bytes() - begun)
        });
        Ok(Self { is_on, reader })
    }

    /// Ends it; how many bytes it got since it was bulk.
    fn end(self) -> Result<u64, Failure> {
        self.is_on.store(false, Ordering::Relaxed);
        let ended = self.reader.join();
        let ended = ended.map_err(|_| Failure::Refused("the bulk fetch panicked".to_owned()))?;
        ended.map_err(Failure::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_told_beside_that_without_a_link() {
        let pair = Pair {
            round: 1,
            condition: SPENT.to_owned(),
            plain_us: 9.5,
            linked_us: 10.0,
            plain_requests_s: 1000.0,
            linked_requests_s: 960.0,
            bulk_bytes: 0,
        };
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(close(pair.cpu_speed(), 0.95));
        assert!(close(pair.throughput(), 0.96));
        let times: Vec<u64> = (1..=100).collect();
        assert!(close(percentile_us(&times, 0.95), 95.0));
    }
}
