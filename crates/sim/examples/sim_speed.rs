//! How many requests a second the simulator takes on one core, and in how much memory.
//!
//! `cargo run --release -p weir-sim --example sim_speed -- [--requests N] [--keys N] [--main]
//! [--json] [TRACE]`
//!
//! Of a trace, or of requests as modem users made them in 1997, which are drawn; with `--keys` no
//! more targets are drawn from than that. Making and reading rows is not measured, and what others
//! do on the machine counts little: requests a second are those of processor time. The scenarios
//! run one after the other; with `--main` the first alone, which is what a peak of memory is of.

use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use weir_policy::Profile;
use weir_sim::{Network, Outcome, Settings, Simulator};
use weir_trace::{Columns, Reader, Row, TraceMethod};
use weir_workload::Chance;

/// As in the command that is measured here.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rows that are made at a time: as few as a reader has just decoded when the simulator gets them.
const CHUNK: u64 = 500;

/// What is asked for.
#[derive(Debug)]
struct Options {
    requests: u64,
    keys: Option<u64>,
    is_main_alone: bool,
    is_json: bool,
    trace: Option<String>,
}

fn main() {
    let options = options();
    let all = Settings::of(Network::MODEM, Profile::Http1998);
    let mut runs = vec![
        ("proxy", all.clone()),
        ("proxy without caches", all.without_caches()),
        ("no proxy", all.without_proxy()),
    ];
    if options.is_main_alone {
        runs.truncate(1);
    }
    let mut scenarios = Vec::new();
    for (name, settings) in runs {
        let mut simulator = Simulator::new(settings).unwrap_or_else(|error| panic!("{error}"));
        let mut spent = Spent::default();
        let mut push = |rows: &[Row]| {
            let begun = Begun::now();
            for row in rows {
                simulator.push(row);
            }
            spent.add(&begun);
        };
        match &options.trace {
            Some(path) => read(Path::new(path), &mut push),
            None => draw(&options, &mut push),
        }
        let begun = Begun::now();
        simulator.settle_all();
        let events = simulator.events();
        let outcome = simulator.finish();
        spent.add(&begun);
        let figures = figures(name, &outcome, events, &spent);
        if !options.is_json {
            tell(&figures);
        }
        scenarios.push(figures);
    }
    if options.is_json {
        println!("{}", json!({ "scenarios": scenarios }));
    }
}

/// What the simulation alone took.
#[derive(Debug, Default)]
struct Spent {
    time: Duration,
    on_cpu: Duration,
}

/// The beginning of a stretch of it.
#[derive(Debug)]
struct Begun {
    at: Instant,
    on_cpu: Option<Duration>,
}

impl Begun {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            on_cpu: on_cpu(),
        }
    }
}

impl Spent {
    fn add(&mut self, begun: &Begun) {
        let time = begun.at.elapsed();
        self.time += time;
        let ended = on_cpu().zip(begun.on_cpu);
        self.on_cpu += ended.map_or(time, |(now, then)| now.saturating_sub(then));
    }
}

/// How long this thread has had a processor, as Linux tells it; nothing elsewhere.
fn on_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let ns = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

fn figures(name: &str, outcome: &Outcome, events: u64, spent: &Spent) -> Value {
    let requests = outcome.requests.count;
    let packets = outcome.traffic.to_clients_packets + outcome.traffic.from_servers_packets;
    let text = serde_json::to_string(outcome).unwrap_or_else(|error| panic!("{error}"));
    json!({
        "name": name,
        "requests": requests,
        "seconds": spent.time.as_secs_f64(),
        "cpu_seconds": spent.on_cpu.as_secs_f64(),
        "requests_s": requests as f64 / spent.on_cpu.as_secs_f64(),
        "packets_each": packets as f64 / requests as f64,
        "events_each": events as f64 / requests as f64,
        "hit_ratio": outcome.requests.hit_ratio(),
        "stored": outcome.stored,
        "connections_at_once": outcome.client_connections.open_max,
        "peak_rss_kib": peak_rss_kib(),
        "outcome": format!("{:016x}", fingerprint(&text)),
    })
}

fn tell(figures: &Value) {
    println!(
        "{}: {:.0} requests/s of {}, {:.1} packets and {:.1} events each, hit ratio {:.3}, {} connections at once, peak {} KiB, outcome {}",
        figures["name"].as_str().unwrap_or_default(),
        figures["requests_s"].as_f64().unwrap_or_default(),
        figures["requests"],
        figures["packets_each"].as_f64().unwrap_or_default(),
        figures["events_each"].as_f64().unwrap_or_default(),
        figures["hit_ratio"].as_f64().unwrap_or_default(),
        figures["connections_at_once"],
        figures["peak_rss_kib"],
        figures["outcome"].as_str().unwrap_or_default(),
    );
}

/// The most memory that this process has had, as Linux tells it; nothing elsewhere.
fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// FNV-1a: two outcomes that differ anywhere differ in it.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn read(path: &Path, push: &mut impl FnMut(&[Row])) {
    let reader = Reader::open(path).unwrap_or_else(|error| panic!("{error}"));
    let mut rows = Vec::new();
    for row in reader.rows(Columns::ALL) {
        rows.push(row.unwrap_or_else(|error| panic!("{error}")));
        if rows.len() as u64 == CHUNK {
            push(&rows);
            rows.clear();
        }
    }
    push(&rows);
}

fn draw(options: &Options, push: &mut impl FnMut(&[Row])) {
    let chance = &mut Chance::new(1, 0);
    let mut at_us = 872_000_000_000_000;
    for _ in 0..options.requests.div_ceil(CHUNK) {
        let rows: Vec<Row> = (0..CHUNK)
            .map(|_| row(chance, &mut at_us, options.keys))
            .collect();
        push(&rows);
    }
}

/// Ten requests a second by 400 users at a time, a third of them for what was asked for before.
fn row(chance: &mut Chance, at_us: &mut i64, keys: Option<u64>) -> Row {
    *at_us += i64::try_from(chance.below(186_000)).unwrap_or(0);
    let era = *at_us / 3_600_000_000;
    let user = chance.below(400) + 400 * u64::try_from(era).unwrap_or(0);
    let is_popular = chance.is(0.6);
    let target = if is_popular {
        let rank = chance.unit() * chance.unit() * chance.unit();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 200 000"
        )]
        let target = (rank * 200_000.0) as u64;
        target
    } else {
        chance.word()
    };
    let target = keys.map_or(target, |keys| target % keys);
    let doublings = chance.below(8);
    let bytes = chance.below(128 << doublings) + chance.below(4000);
    let is_aborted = chance.is(0.1);
    let bytes = if is_aborted { bytes * 6 } else { bytes };
    Row {
        arrival_us: *at_us,
        setup_us: Some(60_000 + chance.below(300_000)),
        request_us: Some(100_000),
        response_us: Some(250_000 + chance.below(900_000)),
        client: Some(user),
        server: Some(target % 20_000),
        target,
        method: Some(TraceMethod::Get),
        status: Some(200),
        has_cookie: Some(target % 10 < 3),
        last_modified_s: Some(860_000_000),
        response_directives: Some(0),
        declared_bytes: Some(bytes),
        received_bytes: Some(if is_aborted { bytes / 5 } else { bytes }),
        response_head_bytes: Some(250),
        is_persistent_client: Some(target % 100 < 18),
        is_persistent_server: Some(true),
        ..Row::default()
    }
}

fn options() -> Options {
    let mut options = Options {
        requests: 1_000_000,
        keys: None,
        is_main_alone: false,
        is_json: false,
        trace: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().unwrap_or_default();
            let parsed = text.parse().ok().filter(|number| *number > 0);
            parsed.unwrap_or_else(|| panic!("`{argument} {text}`: a number above 0 is wanted"))
        };
        match argument.as_str() {
            "--requests" => options.requests = number(),
            "--keys" => options.keys = Some(number()),
            "--main" => options.is_main_alone = true,
            "--json" => options.is_json = true,
            _ => options.trace = Some(argument),
        }
    }
    options
}
