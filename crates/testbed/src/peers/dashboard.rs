//! `cargo xtask dashboard`: what the page of the admin interface and `/top` cost.
//!
//! Two weirs in the bed of `peers`: one counts no heavy hitters and its page is not open, the other
//! counts them, and a watcher reads of it what an open page reads. Runs of hits in turn, each of
//! the second weir between two of the first: a shared machine is faster for a minute and slower for
//! the next one, by more than what is measured here.
//!
//! What the page costs is by the second, and what the counting costs is by the request. `wrk` sends
//! as fast as weir answers, so the share of the former is told for [`HITS_S`], too: the CPU time
//! beyond that of the requests, without which it would be the more hidden the faster weir is.

use super::cells::{CELLS, Cell};
use super::turns::{RunRules, Turns};
use super::{Run, warm_up};
use crate::client::get;
use crate::origin::Origin;
use crate::process::affinity::{Cores, stay_on};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server, take_port};
use crate::record::benchmark::{Participants, missed};
use crate::record::markdown::{self, Target, list, row};
use crate::record::{Benchmark, host};
use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_measure::quantile::Spread;
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

pub(crate) type Record = crate::record::Record<Figures>;

/// Without heavy hitters; its page is not open.
const PLAIN: &str = "plain";

/// With heavy hitters, and an open page.
const WATCHED: &str = "watched";

/// What is built.
static WEIR_ALONE: [Contender; 1] = [Contender::WEIR];

pub(crate) static CONTENDERS: [Contender; 2] = [
    Contender {
        name: PLAIN,
        folder: "dashboard",
        ..Contender::WEIR
    },
    Contender {
        name: WATCHED,
        folder: "dashboard",
        ..Contender::WEIR
    },
];

/// Hits a second for which the cost of an open page is told.
const HITS_S: f64 = 50_000.0;

/// The most that page and heavy hitters may cost at [`HITS_S`], as a share of the CPU time.
const SHARE_MAX: f64 = 0.03;

/// A server that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(2 * 3600);

/// How often an open page asks for names: `/top`, `/misses` and `/next-hops`.
const NAMES_EACH: Duration = Duration::from_secs(5);

/// How to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Length of one run
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Pairs of runs
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=100))]
    pairs: u32,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    cores: Cores,
    runs: Vec<Run>,
    pairs: Vec<Pair>,
}

/// A run of the watched weir beside the runs of the plain one before and after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pair {
    round: u32,
    /// CPU time of a request, microseconds.
    plain_us: f64,
    watched_us: f64,
    /// Requests a second of the watched one.
    watched_requests_s: f64,
    /// 99th percentile of response times as `wrk` saw them, microseconds.
    plain_p99_us: f64,
    watched_p99_us: f64,
}

impl Pair {
    fn new(round: u32, (before, after): (&Run, &Run), watched: &Run) -> Self {
        let mean = |number: fn(&Run) -> f64| f64::midpoint(number(before), number(after));
        Self {
            round,
            plain_us: mean(Run::cpu_us_per_request),
            watched_us: watched.cpu_us_per_request(),
            watched_requests_s: watched.requests_per_second(),
            plain_p99_us: mean(Run::p99_us),
            watched_p99_us: watched.p99_us(),
        }
    }

    /// CPU time of a watched request beside that of a plain one, at the rate that was reached.
    fn ratio(&self) -> f64 {
        self.watched_us / self.plain_us
    }

    /// The share of CPU time that is added at [`HITS_S`], if all of it were by the second. What is
    /// by the request is a smaller share then: this is an upper bound.
    fn share_at_most(&self) -> f64 {
        let added_us_s = (self.watched_us - self.plain_us) * self.watched_requests_s;
        added_us_s / (self.plain_us * HITS_S.min(self.watched_requests_s))
    }

    fn p99_ratio(&self) -> f64 {
        self.watched_p99_us / self.plain_p99_us
    }
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "dashboard";
    const SCHEMA: u32 = 1;
    const SEED: Option<&'static str> = Some("none: every request is the same, nothing is drawn");

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let mut participants = Participants::prepare(record, (&WEIR_ALONE, &[]), &["wrk"], 0)?;
        let words = &mut participants.words;
        let version = host::version("wrk -v", words);
        record.versions.insert("wrk".to_owned(), version);
        record.figures.cores = Cores::choose()?;
        fill(record, &participants)
    }

    fn render(record: &Record) -> String {
        let mut out = format!("{}\n\n", markdown::origin(record, "\\\n"));
        let rows = record.figures.pairs.iter().map(|pair| {
            row([
                format!("{:>5}", pair.round),
                format!("{:>9.0}", pair.watched_requests_s),
                format!("{:>8.3}", pair.plain_us),
                format!("{:>8.3}", pair.watched_us),
                format!("{:>6.4}", pair.ratio()),
                format!("{:>6.4}", pair.p99_ratio()),
            ])
        });
        let title = "### A hit of 1 KiB, with an open page and without, in turn";
        let columns =
            "| round | requests/s | plain, CPU us | watched, CPU us | ratio | ratio of p99 |";
        markdown::table(&mut out, title, columns, rows);
        list(&mut out, markdown::TARGETS, targets(record));
        list(&mut out, markdown::COULD_NOT, troubles(record));
        out
    }

    fn faults(record: &Record) -> Vec<String> {
        let mut faults = troubles(record);
        if record.figures.pairs.is_empty() {
            faults.push("nothing was measured".to_owned());
        }
        faults.extend(missed(targets(record)));
        faults
    }
}

fn targets(record: &Record) -> Vec<Target> {
    let of = |number: fn(&Pair) -> f64| Spread::of(record.figures.pairs.iter().map(number));
    let share = of(Pair::share_at_most).map(|share| {
        let what = format!(
            "an open page and heavy hitters at {HITS_S:.0} hits/s: at most {:.1} % more CPU time \
             ({:.1} to {:.1}), at most {:.0} %",
            100.0 * share.median,
            100.0 * share.min,
            100.0 * share.max,
            100.0 * SHARE_MAX
        );
        Target::new(what, share.median <= SHARE_MAX)
    });
    let p99 = of(Pair::p99_ratio).map(|ratio| {
        let what = format!(
            "p99 of response times: {:.3} times that without ({:.3} to {:.3}), 1 within the spread",
            ratio.median, ratio.min, ratio.max
        );
        Target::new(what, ratio.min <= 1.0)
    });
    share.into_iter().chain(p99).collect()
}

fn troubles(record: &Record) -> Vec<String> {
    let mut troubles = markdown::left_out(record);
    for run in &record.figures.runs {
        if let Some(trouble) = &run.trouble {
            let (round, contender) = (run.round, &run.contender);
            troubles.push(format!("round {round}, {contender}: {trouble}"));
        }
    }
    troubles
}

fn fill(record: &mut Record, participants: &Participants) -> Result<(), Failure> {
    let (seconds, pairs) = (record.settings.seconds, record.settings.pairs);
    let cores = record.figures.cores;
    let work = Workplace::make("dashboard")?;
    let place = |core| Place {
        core: Some(core),
        ..Place::local(LIFE)
    };
    let origin = Origin::start(&work.path().join("origin"), &place(cores.load), None)?;
    let cell: &Cell = &CELLS[0];
    let start = |contender: &'static Contender, counts: bool| {
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, take_port()?));
        let mut words = origin.words(&participants.words, place(cores.server).host);
        words.set("ADMIN", admin.port());
        words.set("TOP", counts);
        let directory = work.path().join(contender.name);
        let place = place(cores.server);
        let server = Server::start(contender, &directory, &words, &place, cell.path)?;
        warm_up(contender, &server, cell, cores).map_err(Failure::Refused)?;
        Ok::<_, Failure>((server, admin))
    };
    let [plain, watched] = &CONTENDERS;
    let (of_plain, _) = start(plain, false)?;
    let (of_watched, admin) = start(watched, true)?;
    let rules = RunRules {
        origin: &origin,
        cell,
        seconds,
        cores,
    };
    let mut turns = Turns::begin(rules, (plain, &of_plain))?;
    for round in 1..=pairs {
        eprintln!("pair {round} of {pairs}");
        let (turn, ()) = turns.take(round, (watched, &of_watched), |run| {
            let page = Page::open(admin, cores.load)?;
            let with_page = run()?;
            Ok((with_page, page.close()?))
        })?;
        if let Some((plain, watched)) = turn.sound() {
            let pair = Pair::new(round, plain, watched);
            record.figures.pairs.push(pair);
        }
        record.figures.runs.extend(turn.into_runs());
    }
    Ok(())
}

/// What an open page reads: an event each second, and names at intervals.
struct Page {
    is_open: Arc<AtomicBool>,
    reader: JoinHandle<io::Result<u64>>,
}

impl Page {
    fn open(admin: SocketAddr, core: usize) -> Result<Self, Failure> {
        for path in ["/live", "/history?step=1s", "/history?step=1min"] {
            ask(admin, path).during(format_args!("read {path}"))?;
        }
        let is_open = Arc::new(AtomicBool::new(true));
        let reads = Arc::clone(&is_open);
        let reader = std::thread::spawn(move || {
            stay_on(core).map_err(|failure| io::Error::other(failure.to_string()))?;
            follow(admin, &reads)
        });
        Ok(Self { is_open, reader })
    }

    /// # Errors
    /// It got no event, or not what it asked for.
    fn close(self) -> Result<(), Failure> {
        self.is_open.store(false, Ordering::Relaxed);
        let events = self.reader.join();
        let events = events.map_err(|_| Failure::Refused("the watcher panicked".to_owned()))?;
        match events.during("watch the page's numbers")? {
            0 => Err(Failure::Refused("the page got no event".to_owned())),
            _ => Ok(()),
        }
    }
}

/// Reads events until the page is closed, and asks for names as a page does; how many events came.
fn follow(admin: SocketAddr, is_open: &AtomicBool) -> io::Result<u64> {
    let mut stream = get::connect(admin)?;
    let head = format!("GET /events HTTP/1.1\r\nHost: {admin}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let (mut events, mut part) = (0, [0; 16 * 1024]);
    let each_events = NAMES_EACH.as_secs();
    while is_open.load(Ordering::Relaxed) {
        let length = stream.read(&mut part)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let begun = part[..length].windows(6).filter(|word| word == b"data: ");
        let new = begun.count() as u64;
        events += new;
        if new > 0 && events.is_multiple_of(each_events) {
            for path in ["/top?of=urls&by=to-clients&n=20", "/misses", "/next-hops"] {
                ask(admin, path)?;
            }
        }
    }
    Ok(events)
}

fn ask(admin: SocketAddr, path: &str) -> io::Result<()> {
    let lines = format!("Host: {admin}\r\nAccept: application/json\r\n");
    let answer = get::get_with(&mut get::connect(admin)?, &lines, path)?;
    match answer.status {
        200 => Ok(()),
        status => Err(io::Error::other(format!("{path}: status {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_a_page_is_told_for_a_rate_that_is_no_higher_than_the_one_of_the_figure() {
        let pair = |requests_s: f64| Pair {
            round: 1,
            plain_us: 10.0,
            watched_us: 10.1,
            watched_requests_s: requests_s,
            plain_p99_us: 100.0,
            watched_p99_us: 110.0,
        };
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(close(pair(1000.0).ratio(), 1.01));
        assert!(close(pair(1000.0).share_at_most(), 0.01));
        assert!(close(pair(100_000.0).share_at_most(), 0.02));
        assert!(close(pair(1.0).p99_ratio(), 1.1));
    }
}
