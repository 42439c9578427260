//! `cargo xtask peers --scenario NAME`: `weir bench` against weir and every other proxy that is
//! installed, with one report at the end.
//!
//! Proxies live on one core; the clients, the origin and this process on the other. Every run has a
//! freshly started proxy with an empty store, as the Wisconsin Proxy Benchmark asks for. Where
//! clients mostly wait (its servers take three seconds, its modems longer) all proxies run at the
//! same time, each with clients and an origin of its own: the load of all of them is a small part
//! of a core, and a disturbance of the machine meets everybody. Scenarios that keep a proxy busy
//! run one proxy at a time.
//!
//! What is measured and how it is called valid is `weir bench`'s matter; this chore starts, waits,
//! and collects.

mod options;
mod peer;
mod plan;
mod schedule;

use crate::failure::Failure;
use crate::proxy::contender;
use crate::{host, record};

/// `cargo xtask peers --scenario NAME [options]`
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = options::parse(arguments)?;
    let name = format!("bench-{}-{}", options.scenario.name, host::date());
    let out = record::place(options.out.as_deref(), &name)?;
    let chosen = contender::named(&peer::CONTENDERS, &options.peers)?;
    let tools = ["setpriv", "timeout"];
    let (present, left_out) = contender::prepare(&chosen, &tools, "peers", options.install)?;
    let outcome = schedule::run(&options, &present, &out)?;
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
