//! Rows for tests, and runs of them.

use crate::Simulator;
use crate::results::outcome::Outcome;
use crate::settings::{Network, Settings};
use weir_policy::Profile;
use weir_trace::{Row, TraceMethod};

/// 2026-01-01 00:00:00 GMT.
pub(super) const START_S: i64 = 1_767_225_600;

/// A GET of `target` at `at_ms` by client 1, answered 200 with `bytes` of content that is fresh for
/// an hour; 100 ms away.
pub(super) fn row(at_ms: i64, target: u64, bytes: u64) -> Row {
    Row {
        arrival_us: START_S * 1_000_000 + at_ms * 1000,
        setup_us: Some(100_000),
        request_us: Some(100_000),
        response_us: Some(200_000),
        client: Some(1),
        server: Some(target / 1000),
        target,
        method: Some(TraceMethod::Get),
        status: Some(200),
        max_age_s: Some(3600),
        response_directives: Some(0),
        declared_bytes: Some(bytes),
        received_bytes: Some(bytes),
        response_head_bytes: Some(250),
        is_persistent_client: Some(true),
        is_persistent_server: Some(true),
        ..Row::default()
    }
}

/// The same by another client.
pub(super) fn by(client: u64, row: Row) -> Row {
    Row {
        client: Some(client),
        ..row
    }
}

/// The same, but the client leaves after `bytes`.
pub(super) fn leaving_after(bytes: u64, row: Row) -> Row {
    Row {
        received_bytes: Some(bytes),
        ..row
    }
}

/// The modem network, RFC 9111.
pub(super) fn settings() -> Settings {
    Settings::of(Network::MODEM, Profile::Rfc9111)
}

pub(super) fn run(settings: &Settings, rows: &[Row]) -> Outcome {
    let mut simulator = Simulator::new(settings.clone()).unwrap();
    for row in rows {
        simulator.push(row);
    }
    simulator.finish()
}

/// The verdicts in words, each as often as it was given.
pub(super) fn verdicts(outcome: &Outcome) -> Vec<(&str, u64)> {
    let pairs = outcome.verdicts.iter();
    pairs.map(|(word, count)| (word.as_str(), *count)).collect()
}
