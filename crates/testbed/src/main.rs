//! Weir beside other programs: benchmarks that start several proxies side by side and send them the
//! same requests. They know a proxy by its command line and its address only.
//!
//! `peers` measures CPU time and memory, and runs scenarios of `weir bench`; `instructions` counts
//! instructions, and `count` system calls and allocations, too; `extend` is about what modules
//! cost, `cluster` about several weirs that share what they store, `uneven` about links that do not
//! match, `store-bench` about stores on disk, `memory` about a slow disk, `sim-bench` about the
//! simulator, `scale` about simulated networks of many caches, `bench-speed` about `weir bench`
//! itself, `dashboard` about the page of the admin interface, `links` about links with a budget,
//! `tls` about TLS and HTTP/2 toward clients, `attack` about attacks of a few bytes; `modules`
//! counts the code of modules; `tables` writes tables of documents from records. `cargo xtask`
//! starts this program: it is built in release where it measures time, or it would be what is
//! measured.

mod client;
mod cluster;
mod extend;
mod instructions;
mod memory;
mod origin;
mod peers;
mod process;
mod proxy;
mod record;
mod sim;
mod speed;
mod store;
mod tables;
mod uneven;

use clap::Parser;
use proxy::bare::{answers, relay, tls};
use record::benchmark::{self, CommandLine};
use std::process::ExitCode;
use xtask::failure::Failure;

/// Weir beside other programs
#[derive(Debug, Parser)]
#[command(name = "weir-testbed", bin_name = "cargo xtask")]
enum Command {
    /// Weir beside other caching proxies: CPU time of a request, memory of a connection
    ///
    /// With `--scenario NAME` it is `weir bench` against every proxy: see `peers --scenario NAME
    /// --help`.
    Peers(CommandLine<peers::Options>),
    /// `peers --scenario NAME`: `weir bench` against every installed proxy, one report of all runs
    ///
    /// NAME is one of `weir bench scenarios`. After wpb the load is raised until proxies fail
    /// (wpb-load).
    #[command(name = SCENARIO, hide = true)]
    Scenario(peers::scenario::Options),
    /// Where links are uneven: read-ahead, aborts, joined fetches, long paths
    Uneven(CommandLine<uneven::Options>),
    /// Instructions of a request and bytes of an idle connection, of weir and of another weir
    Instructions(CommandLine<instructions::Options>),
    /// Instructions, system calls and allocations of weir alone, by kind of request
    ///
    /// With `--check` they are compared with the newest record: see `count --check --help`.
    Count(CommandLine<instructions::count::Options>),
    /// `count --check`: fails if a request costs more than the newest record has
    #[command(name = CHECK, hide = true)]
    Check(instructions::count::CheckOptions),
    /// Modules: instructions and CPU time of a request, read-ahead, times under PolyMix-3 mini
    Extend(CommandLine<extend::Options>),
    /// A cluster: hit ratio, CPU time, a node that joins, a hot URL, a node that is killed
    ///
    /// With `--figure 13` it is a figure of the paper of LARD, from nodes with slow disks: see
    /// `cluster --figure 13 --help`.
    Cluster(CommandLine<cluster::Options>),
    /// `cluster --figure 13`: throughput of 1 to 6 nodes whose disk is the limit, beside HAProxy
    ///
    /// It takes root: memory and disk of each node are limited by control groups.
    #[command(name = FIGURE, hide = true)]
    Figure(CommandLine<cluster::figure13::Options>),
    /// Disk stores: hits, fill, start after kill -9
    StoreBench(CommandLine<store::Options>),
    /// Resident memory of weir before a slow disk, with bodies of gigabytes
    ///
    /// It needs root, a loop device and the block controller.
    Memory(CommandLine<memory::Options>),
    /// The simulator's rate and memory; hits alone beside libCacheSim
    SimBench(CommandLine<sim::Options>),
    /// Networks of up to 1024 caches, simulated: results, time and memory
    Scale(CommandLine<sim::scale::Options>),
    /// The clients and the origin of `weir bench` themselves: their rate, and memory
    BenchSpeed(CommandLine<speed::Options>),
    /// How much code the modules of `weir` take, beside the paper's Table 4
    Modules(CommandLine<tables::modules::Options>),
    /// What the page of the admin interface and `/top` cost: CPU time of a hit, in turn
    Dashboard(CommandLine<peers::dashboard::Options>),
    /// What a link with a rate or a quota costs: hits, and pages during a bulk fetch, in turn
    Links(CommandLine<peers::links::Options>),
    /// What TLS and HTTP/2 toward clients cost: hits, handshakes, idle connections, in turn
    Tls(CommandLine<peers::tls::Options>),
    /// What attacks of a few bytes by HTTP/2 and TLS cost: CPU time, memory, others' response times
    Attack(CommandLine<peers::attack::Options>),
    /// Write the tables of documents anew, from the newest records
    Tables,
    /// The origin of the benchmarks
    #[command(name = origin::ROLE, hide = true)]
    Origin(origin::Options),
    /// A server that does the least for a hit
    #[command(name = answers::ROLE, hide = true)]
    BareAnswers(answers::Options),
    /// A server that does the least to forward
    #[command(name = relay::ROLE, hide = true)]
    BareRelay(relay::Options),
    /// A server that does the least for a request under TLS
    #[command(name = tls::ROLE, hide = true)]
    BareTls(tls::Options),
    /// The attacker of `attack`
    #[command(name = peers::attack::ROLE, hide = true)]
    Attacker(peers::attack::AttackerOptions),
    /// The origin of `bench-speed`
    #[command(name = speed::ROLE, hide = true)]
    SpeedOrigin(speed::SiteOptions),
    /// The clients of `bench-speed`
    #[command(name = speed::client::ROLE, hide = true)]
    SpeedClients(speed::client::Options),
}

/// The command that `peers --scenario` is.
const SCENARIO: &str = "peers-scenario";

/// The command that `cluster --figure` is.
const FIGURE: &str = "cluster-figure";

/// The command that `count --check` is.
const CHECK: &str = "count-check";

/// Commands that are others with a certain option: both names, and the option.
const BY_OPTION: [(&str, &str, &str); 3] = [
    ("peers", "--scenario", SCENARIO),
    ("cluster", "--figure", FIGURE),
    ("count", "--check", CHECK),
];

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().collect();
    let arguments = words.split_off(1.min(words.len()));
    words.extend(arguments.iter().cloned());
    if let Some(name) = words.get_mut(1) {
        let other = BY_OPTION.iter().find(|(of, option, _)| {
            name == of && arguments.iter().any(|word| word.starts_with(option))
        });
        if let Some((_, _, command)) = other {
            (*command).clone_into(name);
        }
    }
    match run(Command::parse_from(words), &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(command: Command, arguments: &[String]) -> Result<(), Failure> {
    match command {
        Command::Peers(options) => benchmark::run::<peers::Figures>(options, arguments),
        Command::Scenario(options) => peers::scenario::run(&options),
        Command::Uneven(options) => benchmark::run::<uneven::Figures>(options, arguments),
        Command::Instructions(options) => {
            benchmark::run::<instructions::Figures>(options, arguments)
        }
        Command::Count(options) => {
            benchmark::run::<instructions::count::Figures>(options, arguments)
        }
        Command::Check(options) => instructions::count::check(&options),
        Command::Extend(options) => benchmark::run::<extend::Figures>(options, arguments),
        Command::Cluster(options) => benchmark::run::<cluster::Figures>(options, arguments),
        Command::Figure(options) => {
            benchmark::run::<cluster::figure13::Figures>(options, arguments)
        }
        Command::StoreBench(options) => benchmark::run::<store::Figures>(options, arguments),
        Command::Memory(options) => benchmark::run::<memory::Figures>(options, arguments),
        Command::SimBench(options) => benchmark::run::<sim::Figures>(options, arguments),
        Command::Scale(options) => benchmark::run::<sim::scale::Figures>(options, arguments),
        Command::Dashboard(options) => {
            benchmark::run::<peers::dashboard::Figures>(options, arguments)
        }
        Command::Links(options) => benchmark::run::<peers::links::Figures>(options, arguments),
        Command::Tls(options) => benchmark::run::<peers::tls::Figures>(options, arguments),
        Command::Attack(options) => benchmark::run::<peers::attack::Figures>(options, arguments),
        Command::Attacker(options) => peers::attack::run(&options),
        Command::BenchSpeed(options) => benchmark::run::<speed::Figures>(options, arguments),
        Command::Modules(options) => benchmark::run::<tables::modules::Figures>(options, arguments),
        Command::Tables => tables::run(),
        Command::Origin(options) => origin::run(&options),
        Command::BareAnswers(options) => {
            let of_site = options.site.then(speed::answers).transpose()?;
            answers::run(&options, of_site)
        }
        Command::BareRelay(options) => relay::run(&options),
        Command::BareTls(options) => tls::run(&options),
        Command::SpeedOrigin(options) => speed::serve(&options),
        Command::SpeedClients(options) => speed::client::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parses(line: &str) -> bool {
        let words = ["weir-testbed"].into_iter().chain(line.split_whitespace());
        Command::try_parse_from(words).is_ok()
    }

    #[test]
    fn options_of_every_benchmark_are_parsed() {
        for line in [
            "peers --install --only weir,nginx-current,relay-loop --runs hit-1m-disk,fill,idle --weir w \
             --seconds 3 --rounds 7 --idle 0 --record r.json",
            "peers --show a.json",
            "peers-scenario --scenario wpb --peers weir,apache --scale 0.1 --cache 75 --seed 7 \
             --clients 8,96 --together no --set origin.latency=constant(1s) --out /d --install",
            "uneven --install --peers weir,squid --experiments abort,path --pairs 3 --http2 --out r.json",
            "instructions --against w --requests 100 --idle 0 --rules 100 --record r.json",
            "count --builds dev,release --cases hit,large-hit --requests 100 --rounds 1 --weir /w --install --out r.json",
            "count --show records/count-2026-11-28.json",
            "count-check --check --against r.json",
            "extend --parts instructions,cpu,table5,read-ahead,transcoder --requests 100 \
             --seconds 1 --rounds 2 --scale 0.1 --seed 7 --out r.json",
            "cluster --parts hit-ratio,speed,join,hot,herd,read-ahead,kill,lateral,purge,choice \
             --rounds 2 --scale 0.1 \
             --seed 7 --out r.json --install",
            "cluster-figure --figure 13 --nodes 1,6 --systems wrr,extended-lard-peers --kinds nginx \
             --http 1.0,persistent --rounds 2 --scale 0.1 --fill 5 --seconds 9 --reads 80 --seed 7 --out r.json",
            "store-bench --peers weir,squid --memory 32 --times 5 --cgroup 100 --rounds 2 \
             --seconds 3 --connections 8 --responses 0 --seed 7 --out r.json",
            "memory --memory 32 --seconds 3 --clients 8 --body 100 --disk 5 --seed 7 --out r.json",
            "sim-bench --requests 5000 --keys 100 --percent 1 --rounds 2 --seed 7 --python p \
             --out r.json --parts hits,memory --made 2000 --memory 160000 --streamed 3000",
            "scale --requests 1000 --nodes 1,1024 --sample 4 --seed 7 --weir w --out r.json",
            "bench-speed --parts hits,robots --seconds 4 --rounds 5",
            "dashboard --seconds 5 --pairs 3 --out r.json",
            "links --seconds 5 --rounds 3 --pages 9 --weir w --out r.json",
            "tls --only weir,nginx --seconds 3 --rounds 3 --idle 0 --out r.json",
            "attack --only rapid-reset,tls-slow --seconds 3 --rounds 1 --share 5 --out r.json",
            "modules --record r.json",
            "tables",
        ] {
            assert!(parses(line), "{line}");
        }
    }

    #[test]
    fn invalid_options_are_refused() {
        for line in [
            "peers --seconds 0",
            "peers --seconds x",
            "peers --only apache",
            "peers --runs hit",
            "peers --idle 15001",
            "peers-scenario --scenario wbp",
            "peers-scenario --scenario wpb --scale 0",
            "peers-scenario --scenario wpb --scale 1.5",
            "peers-scenario --scenario wpb --peers haproxy",
            "peers-scenario --scenario wpb --minutes 0",
            "peers-scenario --scenario wpb --seconds 2",
            "peers-scenario --scenario wpb --clients 8,,9",
            "peers-scenario --scenario wpb --together maybe",
            "peers-scenario --scenario wpb --show r.json",
            "uneven --peers apache",
            "uneven --experiments all",
            "uneven --pairs 101",
            "instructions --requests 0",
            "instructions --rules 257",
            "count --builds debug",
            "count --requests 9",
            "extend --parts table6",
            "extend --scale 2",
            "extend --case native",
            "cluster --parts all",
            "cluster --scale 0",
            "cluster-figure --figure 12",
            "cluster-figure --nodes 1",
            "cluster-figure --figure 13 --nodes 7",
            "cluster-figure --figure 13 --parts hot",
            "cluster-figure --figure 13 --reads 0",
            "store-bench --out",
            "store-bench --peers haproxy",
            "store-bench --memory 1",
            "memory --memory 1",
            "memory --body 9000",
            "sim-bench --percent 0",
            "sim-bench --parts hits,all",
            "scale --nodes 1025",
            "scale --sample 0",
            "tls --only squid",
            "attack --only everything",
            "attack --share 0",
            "modules --seconds 1",
            "tables --fast",
        ] {
            assert!(!parses(line), "{line}");
        }
    }
}
