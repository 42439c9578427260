//! How many requests a second the simulator takes on one core, on traffic as modem users made it in 1997.
//!
//! `cargo run --release -p weir-sim --example speed [requests]`

use std::time::{Duration, Instant};
use weir_policy::Profile;
use weir_sim::{Network, Settings, Simulator};
use weir_workload::Chance;
use weir_workload::trace::{Row, TraceMethod};

/// Rows that are made at a time: making them is not measured.
const CHUNK: u64 = 10_000;

fn main() {
    let requests = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let requests: u64 = requests.unwrap_or(1_000_000);
    let all = Settings::of(Network::MODEM, Profile::Http1998);
    let runs = [
        ("proxy", all.clone()),
        ("proxy without caches", all.without_caches()),
        ("no proxy", all.without_proxy()),
    ];
    for (name, settings) in runs {
        let mut simulator = Simulator::new(settings).unwrap_or_else(|error| panic!("{error}"));
        let chance = &mut Chance::new(1, 0);
        let mut spent = Duration::ZERO;
        let mut at_us = 872_000_000_000_000;
        for _ in 0..requests.div_ceil(CHUNK) {
            let rows: Vec<Row> = (0..CHUNK).map(|_| row(chance, &mut at_us)).collect();
            let begun = Instant::now();
            for row in &rows {
                simulator.push(row);
            }
            spent += begun.elapsed();
        }
        let outcome = simulator.finish();
        println!(
            "{name}: {:.0} requests/s, {:.1} packets each, hit ratio {:.3}, {} connections at once",
            outcome.requests.count as f64 / spent.as_secs_f64(),
            (outcome.traffic.to_clients_packets + outcome.traffic.from_servers_packets) as f64
                / outcome.requests.count as f64,
            outcome.requests.hit_ratio(),
            outcome.client_connections.open_max,
        );
    }
}

/// Ten requests a second by 400 users at a time, a third of them for what was asked for before.
fn row(chance: &mut Chance, at_us: &mut i64) -> Row {
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
