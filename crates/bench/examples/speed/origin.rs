//! What a response costs the origin, and the origin as a part of other measurements.

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde::Serialize;
use weir_bench::origin::{self, OriginListen, OriginPlan};
use weir_workload::Scenario;

use crate::client::Asked;
use crate::hits::SEED;
use crate::process::{Serving, Usage, part, run};
use crate::{Options, record};

/// As many as the origin holds: a limit of 20 000 open files is a common one.
const CONNECTIONS_MAX: u32 = 19_500;

/// The most CPU time that a response of 1 KiB may take, in microseconds: a core then answers 80 000
/// a second, more than a proxy forwards.
const RESPONSE_US_MAX: f64 = 12.0;

/// Serves a scenario until it is killed; the first line it prints is its address.
pub(crate) fn serve(scenario: Scenario) -> crate::Outcome {
    let origin = origin::start(&OriginPlan {
        scenario: Arc::new(scenario),
        seed: SEED,
        listen: OriginListen::Ports {
            address: Ipv4Addr::LOCALHOST.into(),
            first: None,
        },
        threads: 1,
        shares: 1,
        connections_max: CONNECTIONS_MAX,
    })?;
    println!("{}", origin.servers()[0]);
    loop {
        std::thread::park();
    }
}

#[derive(Debug, Serialize)]
struct Round {
    asked: Asked,
    origin_usage: Usage,
    /// CPU time of the origin's process a response, in microseconds.
    response_us: f64,
}

/// Our clients ask the origin on another core for 1 KiB as fast as they can; every response is
/// checked.
pub(crate) fn measure(options: &Options) -> crate::Outcome {
    let mut rounds = Vec::new();
    println!("         responses/s  origin us CPU  user   system");
    for number in 1..=options.rounds {
        let round = round(options.seconds)?;
        let each = |s: f64| s * 1e6 / round.asked.requests as f64;
        println!(
            "round {number}  {:11.0}  {:13.2}  {:5.2}  {:5.2}",
            round.asked.requests as f64 / round.asked.seconds,
            round.response_us,
            each(round.origin_usage.user_s),
            each(round.origin_usage.system_s),
        );
        rounds.push(round);
    }
    let mut costs: Vec<f64> = rounds.iter().map(|round| round.response_us).collect();
    costs.sort_by(f64::total_cmp);
    let median = costs[costs.len() / 2];
    let is_enough = median < RESPONSE_US_MAX;
    println!(
        "median {median:.2} us a response, wanted less than {RESPONSE_US_MAX}: {}",
        if is_enough { "holds" } else { "does not hold" }
    );
    record::write(options, "speed origin", &rounds)?;
    if is_enough {
        Ok(())
    } else {
        Err("the origin is too slow".into())
    }
}

fn round(seconds: u64) -> Result<Round, Box<dyn std::error::Error>> {
    let server = Serving::start(part(1, "serve-hits")?)?;
    let mut command = part(0, "ask-hits")?;
    command.args(["--server", &server.said, "--seconds", &seconds.to_string()]);
    let before = server.usage()?;
    let (text, _) = run(command)?;
    let after = server.usage()?;
    let asked: Asked = serde_json::from_str(&text)?;
    if asked.wrong + asked.errors > 0 || asked.forwarded != asked.requests {
        return Err(format!("not everything was the origin's and right: {text}").into());
    }
    let origin_usage = Usage {
        user_s: after.user_s - before.user_s,
        system_s: after.system_s - before.system_s,
    };
    let response_us = (origin_usage.user_s + origin_usage.system_s) * 1e6 / asked.requests as f64;
    Ok(Round {
        asked,
        origin_usage,
        response_us,
    })
}
