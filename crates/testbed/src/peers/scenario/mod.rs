//! `cargo xtask peers --scenario NAME`: `weir bench` against weir and every other proxy that is
//! installed, with one report at the end.
//!
//! Proxies live on one core; the clients, the origin and this process on the other. Every run has a
//! freshly started proxy with an empty store, as the Wisconsin Proxy Benchmark requires. Where
//! clients mostly wait (its servers take three seconds, its modems longer) all proxies run at the
//! same time, each with clients and an origin of its own: the load of all of them is a small part
//! of a core, and a disturbance of the machine affects all. Scenarios that keep a proxy busy run
//! one proxy at a time.
//!
//! What is measured and how it is called valid is `weir bench`'s matter; this chore starts, waits,
//! and collects.

mod plan;
mod schedule;

use crate::proxy::contender::{self, Contender};
use crate::proxy::template::Words;
use crate::record::benchmark::Participants;
use crate::record::{self, host};
use clap::{Args, value_parser};
use plan::{PLANS, Plan};
use std::path::PathBuf;
use xtask::failure::Failure;

/// The requests.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// What is run: one of `weir bench scenarios`
    #[arg(long, value_parser = PLANS.each_ref().map(|plan| plan.name))]
    scenario: String,
    /// Get missing programs from Debian
    #[arg(long)]
    install: bool,
    /// Proxies to measure, comma separated; all, if not given
    #[arg(long, value_delimiter = ',', value_parser = contender::names(&CONTENDERS))]
    peers: Vec<String>,
    /// Length of the runs, 1 is the whole scenario [default: by scenario; wpb 0.13]
    #[arg(long, value_parser = scale)]
    scale: Option<f64>,
    /// Instead: the scale at which everything takes about so long
    #[arg(long, conflicts_with = "scale", value_parser = value_parser!(u32).range(1..=10_000))]
    minutes: Option<u32>,
    /// Numbers of clients, comma separated [default for wpb: 16,32,48,64,80,96]
    #[arg(long, value_delimiter = ',', value_parser = value_parser!(u32).range(1..=10_000))]
    clients: Vec<u32>,
    /// Room of each store, MiB [default: by scenario; wpb 75]
    #[arg(long = "cache", value_parser = value_parser!(u32).range(16..=1 << 20))]
    cache_mib: Option<u32>,
    /// A key of the scenario and its value; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Of requests and content
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// All proxies at the same time [default: by scenario; wpb and wpb-modem yes]
    #[arg(long, value_parser = ["yes", "no"])]
    together: Option<String>,
    /// Where records, report and figures go [default: records/bench-NAME-DATE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn scale(value: &str) -> Result<f64, String> {
    let scale = value.parse().ok();
    let scale = scale.filter(|scale| *scale > 0.0 && *scale <= 1.0);
    scale.ok_or_else(|| "it is not a number above 0 and up to 1".to_owned())
}

/// Where the configurations of the proxies are, below `peers/`.
pub(crate) const FOLDER: &str = "bench";

/// Who takes part in a scenario and how each is started: as a forward proxy if it can be one, with
/// one worker, a store on disk of the same size for all, and little memory before it. What each
/// stores and for how long is left to its own rules. In the order of reports.
pub(crate) static CONTENDERS: [Contender; 6] = [
    Contender::WEIR.with(FOLDER),
    Contender::SQUID_ON_DISK.with(FOLDER),
    Contender::NGINX.with(FOLDER),
    Contender {
        name: "apache",
        installed_as: Some("apache2"),
        version: "apache2 -v",
        files: &["apache.conf", "apache.sh"],
        directories: &["cache"],
        command: "sh @DIR@/apache.sh",
        ..Contender::NONE.with(FOLDER)
    },
    Contender {
        // its store is memory: that on disk is deprecated. A request was sent through it before
        // there was an origin, to see that it is up; it would refuse the first requests if that
        // counted against the origin
        arguments: "-s malloc,@CACHE_MIB@M -p thread_pools=1 -p thread_pool_max=2000 -p vsl_space=8M \
                    -p backend_remote_error_holddown=0 -p backend_local_error_holddown=0",
        ..Contender::VARNISH.with(FOLDER)
    },
    Contender::TRAFFIC_SERVER.with(FOLDER),
];

/// Whether it is a gateway before the origin: the only one that cannot be a forward proxy.
pub(crate) fn is_gateway(contender: &Contender) -> bool {
    contender.name == Contender::VARNISH.name
}

/// Memory before a store on disk, MiB: an eighth of the store, and enough for the largest response
/// of WPB.
fn memory_mib(cache_mib: u32) -> u32 {
    (cache_mib / 8).max(4)
}

/// The words about the store, with those that make each proxy store nothing.
pub(crate) fn set_store(words: &mut Words, cache_mib: u32, is_caching: bool) {
    let pick = |on: &'static str, off: &'static str| if is_caching { on } else { off };
    let memory_mib = memory_mib(cache_mib);
    words.set("CACHE_MIB", cache_mib);
    words.set("MEMORY_MIB", memory_mib);
    words.set("MEMORY_BYTES", u64::from(memory_mib) << 20);
    words.set("IS_CACHING", is_caching);
    words.set("ALLOW", pick("allow", "deny"));
    words.set("ZONE", pick("bench", "off"));
    words.set("BIT", pick("1", "0"));
    words.set("CACHE_DIRECTIVE", pick("CacheEnable disk", "CacheDisable"));
    words.set("VCL_RULE", pick("", "return (pass);"));
}

/// Room under the limit of open files: thousands of requests may be under way, on both sides of a
/// proxy.
const CONNECTIONS: usize = 17_000;

/// `cargo xtask peers --scenario NAME [options]`
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let name = format!("bench-{}-{}", options.scenario, host::date());
    let out = record::place(options.out.clone(), &name)?;
    let (present, left_out) =
        contender::prepare(&CONTENDERS, &options.peers, &[], options.install)?;
    let participants = Participants::start(present, CONNECTIONS, "")?;
    let outcome = schedule::run(options, participants, &out)?;
    for (name, reason) in left_out {
        eprintln!("left out: {name}: {reason}");
    }
    for trouble in &outcome.troubles {
        eprintln!("{trouble}");
    }
    println!("{}", outcome.report.display());
    if outcome.troubles.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(
        "not every run is there and valid; the report says which".to_owned(),
    ))
}

impl Options {
    fn plan(&self) -> &'static Plan {
        Plan::named(&self.scenario).unwrap_or(&PLANS[0])
    }

    /// All proxies run at the same time.
    fn is_together(&self) -> bool {
        self.is_together_in(self.plan())
    }

    /// The same for a plan that follows the scenario's. Where proxies are kept busy they never run
    /// at the same time.
    fn is_together_in(&self, plan: &Plan) -> bool {
        let wanted = self.together.as_ref().map(|it| it == "yes");
        let is_own = plan.name == self.scenario;
        wanted.unwrap_or(self.plan().is_together) && (plan.is_together || is_own)
    }

    /// The scale of every run, when there are `turns` runs one after the other.
    fn scale(&self, turns: usize) -> f64 {
        let Some(minutes) = self.minutes else {
            return self.scale.unwrap_or(self.plan().scale);
        };
        let turns = f64::from(u32::try_from(turns.max(1)).unwrap_or(u32::MAX));
        let each = f64::from(minutes) * 60.0 / turns;
        // three digits are enough for a scale, and are read more easily
        let scale = (each / self.plan().seconds).min(1.0);
        (scale * 1000.0).round().max(1.0) / 1000.0
    }
}

/// Options from a line, split at white space, without quotes.
#[cfg(test)]
fn parsed(line: &str) -> Options {
    use clap::FromArgMatches;
    let command = Options::augment_args(clap::Command::new("peers")).no_binary_name(true);
    let matches = command.get_matches_from(line.split_whitespace());
    Options::from_arg_matches(&matches).expect("a command line")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::server::file_of_peers;

    #[test]
    fn configuration_of_every_proxy_differs_without_caching() {
        for contender in &CONTENDERS {
            let filled = |is_caching| {
                let mut words = Words::default();
                for name in [
                    "WEIR",
                    "FILES",
                    "USER",
                    "MODULES",
                    "HOST",
                    "PORT",
                    "DIR",
                    "ORIGIN_HOST",
                    "ORIGIN_PORT",
                    "MODULE_TABLES",
                ] {
                    words.set(name, "1");
                }
                set_store(&mut words, 75, is_caching);
                let files = contender.files.iter().map(|file| {
                    let text = std::fs::read_to_string(file_of_peers(contender.folder, file));
                    words
                        .fill(&text.expect("a file of peers/"))
                        .expect("every word has a value")
                });
                files.collect::<Vec<_>>()
            };
            assert_ne!(filled(true), filled(false), "{}", contender.name);
        }
    }

    #[test]
    fn minutes_cover_all_runs_together_and_the_scale_is_at_most_one() {
        let options = parsed("--scenario wpb --minutes 25");
        assert!((options.scale(6) - 0.2).abs() < 1e-9);
        assert!((options.scale(600) - 0.002).abs() < 1e-9);
        let options = parsed("--scenario hits --minutes 100");
        assert!((options.scale(1) - 1.0).abs() < 1e-9);
    }
}
