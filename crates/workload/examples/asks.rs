//! How fast the request streams are generated:
//! `cargo run --release -p weir-workload --example asks -- [SCENARIO] [ASKS]`.
//!
//! Without a name every built-in scenario is measured. Prints a line each: scenario, requests
//! generated, seconds, million requests a second, and how long the plan of its phases took. The
//! whole schedule is generated, as every participant of a run does, whatever its share. Embedded
//! requests, two for each that is generated, are the client's and not counted.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use weir_workload::{Scenario, ScenarioError, Share, Stream};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next();
    let most = arguments.next().map_or(Ok(ASKS), |asks| asks.parse());
    let Ok(most) = most else {
        eprintln!("usage: asks [SCENARIO] [ASKS]");
        return ExitCode::from(2);
    };
    let names: Vec<&str> = match &name {
        Some(name) => vec![name],
        None => Scenario::names().collect(),
    };
    for name in names {
        if let Err(error) = measure(name, most) {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn measure(name: &str, most: usize) -> Result<(), ScenarioError> {
    let scenario = Scenario::built_in(name)?;
    let start = Instant::now();
    let asks = match scenario.stream(1, Share::WHOLE) {
        Stream::Open(schedule) => schedule.take(most).map(black_box).count(),
        Stream::Closed(agents) => {
            let each = most / agents.len().max(1);
            let agents = agents.into_iter();
            agents
                .map(|agent| agent.take(each).map(black_box).count())
                .sum()
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let million_a_second = asks as f64 / seconds / 1e6;
    let start = Instant::now();
    let phases = black_box(scenario.phases(1)).len();
    let plan_s = start.elapsed().as_secs_f64();
    println!(
        "{name}: {asks} asks in {seconds:.3} s, {million_a_second:.2} M/s; {phases} phases planned in {plan_s:.3} s"
    );
    Ok(())
}

/// Enough for PolyMix-3 to leave the fill at its default size.
const ASKS: usize = 20_000_000;
