//! Our clients beside wrk.

use serde::Serialize;
use weir_workload::Scenario;

use crate::client::Asked;
use crate::process::{Serving, Usage, part, run};
use crate::{Options, record, wrk};

pub(crate) const SEED: u64 = 1;
pub(crate) const TARGETS: u32 = 16;
const CONNECTIONS: u32 = 64;

/// The least rate that is wanted, as a share of wrk's.
const SHARE_WANTED: f64 = 0.8;

pub(crate) fn scenario(seconds: u64) -> Result<Scenario, Box<dyn std::error::Error>> {
    let text = format!(
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
    );
    Ok(Scenario::parse("speed.toml", &text)?)
}

#[derive(Debug, Serialize)]
struct Round {
    wrk: wrk::Report,
    wrk_usage: Usage,
    ours: Asked,
    ours_usage: Usage,
    /// Requests a second, ours by wrk's.
    rate_ratio: f64,
    /// CPU time a request, wrk's by ours.
    cpu_ratio: f64,
}

pub(crate) fn measure(options: &Options) -> crate::Outcome {
    let server = Serving::start(part(1, "serve")?)?;
    let mut rounds = Vec::new();
    println!("         wrk req/s  ours req/s  ratio   wrk us CPU  ours us CPU  ratio");
    for number in 1..=options.rounds {
        let round = round(&server.said, options.seconds)?;
        let wrk_rate = round.wrk.requests as f64 / (round.wrk.duration_us as f64 / 1e6);
        println!(
            "round {number}  {wrk_rate:9.0}  {:10.0}  {:5.2}   {:10.2}  {:11.2}  {:5.2}",
            round.rate_ratio * wrk_rate,
            round.rate_ratio,
            cpu_us(round.wrk_usage, round.wrk.requests),
            cpu_us(round.ours_usage, round.ours.requests),
            round.cpu_ratio,
        );
        rounds.push(round);
    }
    let mut ratios: Vec<f64> = rounds.iter().map(|round| round.rate_ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    let is_enough = median >= SHARE_WANTED;
    println!(
        "median of the rates' ratios {median:.2}, wanted {SHARE_WANTED}: {}",
        if is_enough { "holds" } else { "does not hold" }
    );
    record::write(options, "speed hits", &rounds)?;
    if is_enough {
        Ok(())
    } else {
        Err("the clients are too slow".into())
    }
}

fn round(server: &str, seconds: u64) -> Result<Round, Box<dyn std::error::Error>> {
    let (wrk, wrk_usage) = wrk::ask(server.parse()?, CONNECTIONS, seconds)?;
    let mut command = part(0, "ask-hits")?;
    command.args(["--server", server, "--seconds", &seconds.to_string()]);
    let (text, ours_usage) = run(command)?;
    let ours: Asked = serde_json::from_str(&text)?;
    if ours.wrong + ours.errors > 0 || ours.hits != ours.requests {
        return Err(format!("not everything was a hit and right: {text}").into());
    }
    let wrk_rate = wrk.requests as f64 / (wrk.duration_us as f64 / 1e6);
    let rate_ratio = ours.requests as f64 / ours.seconds / wrk_rate;
    let cpu_ratio = cpu_us(wrk_usage, wrk.requests) / cpu_us(ours_usage, ours.requests);
    Ok(Round {
        wrk,
        wrk_usage,
        ours,
        ours_usage,
        rate_ratio,
        cpu_ratio,
    })
}

fn cpu_us(usage: Usage, requests: u64) -> f64 {
    (usage.user_s + usage.system_s) * 1e6 / requests as f64
}
