//! `weir sim cluster`: back ends with content on their disks, behind a front end, or caches.

mod caches;

use super::trace::{choices, threads};
use crate::messages::{Failure, give, give_json, tell};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt::Display;
use std::num::NonZero;
use std::path::Path;
use std::str::FromStr;
use std::sync::Mutex;
use weir_bench::conduct::Interrupt;
use weir_policy::eviction::EvictionKind;
use weir_policy::route::policy::PolicyKind;
use weir_proxy::config::ByteSize;
use weir_sim::cluster::{
    BackEndsSetting, ClusterOutcome, ClusterRun, CostName, Http, Mechanism, MechanismCosts, Micros,
    Server, admitted,
};
use weir_trace::Reader;
use weir_trace::generator::Recipe;
use weir_trace::grouping::{ConnectionTrace, GroupingError, GroupingRules};

/// The flags of `weir sim cluster`.
#[derive(Debug, Args)]
pub(crate) struct ClusterFlags {
    /// The trace: Parquet, as `weir trace` makes it, or the name of a synthetic one, such as
    /// rice-1999
    #[arg(value_name = "TRACE")]
    trace: String,

    /// What a node is: a back end with all content on its disk (back-ends), or a cache that shares
    /// what it stores, in front of an origin (caches)
    #[arg(long, value_name = "MODEL", default_value = "back-ends")]
    model: Model,

    /// Requests of a synthetic trace, instead of its own length; of a file, the first rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=Recipe::REQUESTS_MAX))]
    requests: Option<u64>,

    /// Nodes; several numbers with commas. Without it 1,2,4,6, of caches 1,4,16,64,256,1024
    #[arg(long, value_name = "N", value_delimiter = ',')]
    nodes: Vec<NonZero<u16>>,

    #[arg(
        long,
        value_name = "POLICIES",
        value_delimiter = ',',
        help = choices(
            "How a node is chosen; several with commas. Without it extended-lard, of caches \
             replicated-hash",
            PolicyKind::WORDS
        )
    )]
    policy: Vec<PolicyKind>,

    #[arg(
        long,
        value_name = "MECHANISM",
        help = choices_or("How a request reaches another back end than the one of its connection", Mechanism::default(), Mechanism::WORDS)
    )]
    mechanism: Option<Mechanism>,

    #[arg(
        long,
        value_name = "VERSION",
        help = choices_or("One request a connection, or those that it has in the trace", Http::default(), Http::WORDS)
    )]
    http: Option<Http>,

    #[arg(
        long,
        value_name = "SERVER",
        help = choices_or("Whose published costs a back end has", Server::default(), Server::WORDS)
    )]
    server: Option<Server>,

    /// The part of a send that forwarding takes: costs of hand-off and forwarding that are not set
    /// follow from it (docs/lard.md)
    #[arg(long, value_name = "X")]
    scale: Option<f64>,

    #[arg(
        long,
        value_name = "NAME=US",
        help = choices("A cost, microseconds; may be repeated", CostName::WORDS)
    )]
    cost: Vec<SetCost>,

    /// Memory of a node for content. Without it 85000000B, of caches 16GiB
    #[arg(long, value_name = "SIZE")]
    cache_size: Option<ByteSize>,

    #[arg(
        long,
        value_name = "POLICY",
        help = choices("What leaves it. Without it gds, of caches s3-fifo", EvictionKind::WORDS)
    )]
    eviction: Option<EvictionKind>,

    /// Connections at once; without it, as many as the papers admit for so many back ends
    #[arg(long, value_name = "N")]
    admitted: Option<NonZero<u32>>,

    #[command(flatten)]
    caches: caches::CacheFlags,

    /// Of the trace and of choices at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,

    /// Runs at the same time; without it, one a core
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

/// The help of a flag that stands for `without` where it is not given.
fn choices_or(meaning: &str, without: impl Display, words: &[&str]) -> String {
    choices(&format!("{meaning}. Without it {without}"), words)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    BackEnds,
    Caches,
}

/// A cost with its name.
#[derive(Clone, Copy, Debug)]
struct SetCost {
    name: CostName,
    cost: Micros,
}

impl FromStr for SetCost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, cost) = text
            .split_once('=')
            .ok_or("expected NAME=US, such as request=527")?;
        Ok(Self {
            name: name.parse().map_err(|error| format!("{error}"))?,
            cost: cost.parse().map_err(|error| format!("{error}"))?,
        })
    }
}

/// What was simulated, and what came of it.
#[derive(Serialize)]
struct ClusterRecord {
    version: &'static str,
    trace: String,
    requests: usize,
    targets: usize,
    grouping: String,
    seed: u64,
    server: Server,
    mechanism: Mechanism,
    http: Http,
    runs: Vec<RunRecord>,
}

#[derive(Serialize)]
struct RunRecord {
    node_count: NonZero<u16>,
    policy: PolicyKind,
    admitted_max: NonZero<u32>,
    requests_per_s: f64,
    hit_ratio: f64,
    #[serde(flatten)]
    outcome: ClusterOutcome,
}

/// Simulates each number of back ends with each policy.
///
/// # Errors
/// The trace cannot be read or has no connections, a cost cannot be, or it was interrupted.
pub(super) fn cluster(flags: &ClusterFlags) -> Result<(), Failure> {
    match flags.model {
        Model::BackEnds => back_ends(flags),
        Model::Caches => caches::caches(flags),
    }
}

fn back_ends(flags: &ClusterFlags) -> Result<(), Failure> {
    if flags.caches.are_given() {
        let what = "cannot use `--sample` and `--rate`";
        return Err(Failure::usage(what, "they are for `--model caches`"));
    }
    let settings = settings(flags)?;
    let interrupt = Interrupt::on_signals()?;
    let trace = read(&flags.trace, flags.requests, flags.seed, flags.http())?;
    tell(&trace.description());
    let is_stopped = || interrupt.is_set();
    let outcomes = run(&settings, &trace, threads(flags.threads), &is_stopped)?;
    let record = ClusterRecord {
        version: env!("CARGO_PKG_VERSION"),
        trace: flags.trace.clone(),
        requests: trace.len(),
        targets: trace.targets(),
        grouping: trace.description(),
        seed: flags.seed,
        server: flags.server(),
        mechanism: flags.mechanism(),
        http: flags.http(),
        runs: settings.iter().zip(outcomes).map(RunRecord::new).collect(),
    };
    if flags.json {
        return give_json(&record);
    }
    give(&text(&record))
}

/// The trace of this name, or in this file. HTTP/1.0 needs no connections.
///
/// # Errors
/// It cannot be read, or its connections are neither known nor to be reconstructed.
pub(super) fn read(
    name: &str,
    requests: Option<u64>,
    seed: u64,
    http: Http,
) -> Result<ConnectionTrace, Failure> {
    let read = match Recipe::built_in(name) {
        Some(recipe) => {
            let requests = requests.unwrap_or(recipe.requests());
            group(recipe.rows(requests, seed).map(Ok), http)
        }
        None => {
            let rows = Reader::open(Path::new(name))?.rows(ConnectionTrace::COLUMNS);
            let most = requests.and_then(|most| usize::try_from(most).ok());
            group(rows.take(most.unwrap_or(usize::MAX)), http)
        }
    };
    read.map_err(|error| {
        let hint = error.hint().map(str::to_owned);
        let what = format!("cannot simulate `{name}`");
        Failure::usage(what, error).hint_if(hint)
    })
}

fn group(
    rows: impl Iterator<Item = Result<weir_trace::Row, weir_trace::TraceError>>,
    http: Http,
) -> Result<ConnectionTrace, GroupingError> {
    match http {
        Http::V1_0 => ConnectionTrace::read_single(rows),
        Http::Persistent => ConnectionTrace::read(rows, GroupingRules::default()),
    }
}

/// What is given, else what stands for nothing.
fn or<'a, T>(given: &'a [T], without: &'a [T]) -> &'a [T] {
    match given {
        [] => without,
        given => given,
    }
}

const fn nodes<const N: usize>(numbers: [u16; N]) -> [NonZero<u16>; N] {
    let mut all = [NonZero::<u16>::MIN; N];
    let mut index = 0;
    while index < N {
        if let Some(number) = NonZero::new(numbers[index]) {
            all[index] = number;
        }
        index += 1;
    }
    all
}

/// The numbers of back ends without `--nodes`.
const NODES: [NonZero<u16>; 4] = nodes([1, 2, 4, 6]);

impl ClusterFlags {
    fn mechanism(&self) -> Mechanism {
        self.mechanism.unwrap_or_default()
    }

    fn http(&self) -> Http {
        self.http.unwrap_or_default()
    }

    fn server(&self) -> Server {
        self.server.unwrap_or_default()
    }

    /// Whether a flag is given that only back ends have.
    fn has_back_ends(&self) -> bool {
        self.mechanism.is_some()
            || self.http.is_some()
            || self.server.is_some()
            || self.scale.is_some()
            || !self.cost.is_empty()
            || self.admitted.is_some()
    }
}

fn settings(flags: &ClusterFlags) -> Result<Vec<BackEndsSetting>, Failure> {
    let server = flags.server().costs();
    let costs = MechanismCosts::at_crossover(&server, flags.scale.unwrap_or(MechanismCosts::SCALE))
        .map_err(|error| Failure::usage("cannot use `--scale`", error))?;
    let mut all = Vec::new();
    for nodes in or(&flags.nodes, &NODES) {
        for policy in or(&flags.policy, &[PolicyKind::ExtendedLard]) {
            let mut setting = BackEndsSetting::of(*nodes, server, costs);
            setting.policy = *policy;
            setting.mechanism = flags.mechanism();
            setting.http = flags.http();
            if let Some(size) = flags.cache_size {
                setting.cache.capacity_bytes = size.bytes();
            }
            if let Some(eviction) = flags.eviction {
                setting.cache.eviction = eviction;
            }
            setting.seed = flags.seed;
            let admitted = admitted(*nodes, setting.rules.limits);
            setting.admitted_max = flags.admitted.unwrap_or(admitted);
            for SetCost { name, cost } in &flags.cost {
                name.set(&mut setting, *cost);
            }
            setting
                .check()
                .map_err(|error| Failure::usage("cannot simulate the cluster", error))?;
            all.push(setting);
        }
    }
    Ok(all)
}

/// The outcomes in the order of the settings, whatever thread made them.
fn run(
    settings: &[BackEndsSetting],
    trace: &ConnectionTrace,
    threads: NonZero<usize>,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<ClusterOutcome>, Failure> {
    let outcomes: Vec<Mutex<Option<ClusterOutcome>>> =
        settings.iter().map(|_| Mutex::default()).collect();
    let waiting = Mutex::new(settings.iter().zip(&outcomes));
    std::thread::scope(|scope| {
        for _ in 0..threads.get().min(settings.len()) {
            scope.spawn(|| {
                while let Some((setting, place)) = lock(&waiting).next() {
                    let run = ClusterRun::new(setting, trace).ok();
                    *lock(place) = run.and_then(|run| run.run(&|| is_stopped()));
                }
            });
        }
    });
    let made = outcomes.iter().map(|place| lock(place).take());
    made.collect::<Option<Vec<_>>>()
        .ok_or_else(|| Failure::check_said_no("the cluster is not simulated", "interrupted"))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl RunRecord {
    fn new((setting, outcome): (&BackEndsSetting, ClusterOutcome)) -> Self {
        Self {
            node_count: setting.nodes,
            policy: setting.policy,
            admitted_max: setting.admitted_max,
            requests_per_s: outcome.requests_per_s(),
            hit_ratio: outcome.hit_ratio(),
            outcome,
        }
    }
}

fn text(record: &ClusterRecord) -> String {
    let mut text = format!(
        "{}: {} requests for {} targets; {}\n{} by {}, costs of {}, HTTP {}\n\n",
        record.trace,
        record.requests,
        record.targets,
        record.grouping,
        "requests reach back ends",
        record.mechanism,
        record.server,
        record.http,
    );
    text.push_str(&format!(
        "{:>5}  {:<15} {:>9} {:>10} {:>9} {:>8} {:>8} {:>8} {:>10} {:>10} {:>9}\n",
        "nodes",
        "policy",
        "admitted",
        "requests/s",
        "hits",
        "busiest",
        "CPU",
        "disk",
        "lateral",
        "handed off",
        "delay"
    ));
    for run in &record.runs {
        let outcome = &run.outcome;
        let mean = |of: fn(&weir_sim::cluster::NodeOutcome) -> f64| {
            100.0 * outcome.nodes.iter().map(of).sum::<f64>() / outcome.nodes.len().max(1) as f64
        };
        text.push_str(&format!(
            "{:>5}  {:<15} {:>9} {:>10.1} {:>7.2} % {:>8.2} {:>6.1} % {:>6.1} % {:>10} {:>10} {:>6.1} ms\n",
            run.node_count,
            run.policy,
            run.admitted_max,
            run.requests_per_s,
            100.0 * run.hit_ratio,
            outcome.busiest(),
            mean(|node| node.cpu_busy),
            mean(|node| node.disk_busy),
            outcome.lateral,
            outcome.handed_off,
            outcome.delay.mean_us / 1000.0,
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_without_a_name_or_of_zero_is_refused() {
        for text in ["527", "request=0", "request=-1", "request=", "color=3"] {
            assert!(text.parse::<SetCost>().is_err(), "{text}");
        }
        let set: SetCost = "request=527".parse().unwrap();
        assert_eq!(set.name, CostName::Request);
        assert!((set.cost.us() - 527.0).abs() < 1e-9);
    }
}
