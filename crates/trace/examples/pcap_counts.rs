//! Imports captures (or archives) and prints what was in them, as one JSON object a line: for
//! comparison with other programs that read captures.
//!
//! `cargo run -p weir-trace --example pcap_counts -- FILE...`. Nothing is hidden, and nothing is
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};
use weir_measure::quantile::Spread;
use weir_trace::import::{Settings, open};
use weir_trace::{Anonymiser, Row};

fn main() -> ExitCode {
    let mut all_read = true;
    for path in std::env::args().skip(1) {
        match counted(&path) {
            Ok((counted, faults)) => {
                for fault in &faults {
                    eprintln!("error: cannot read all of `{path}`\n  caused by: {fault}");
                }
                all_read &= faults.is_empty();
                if writeln!(io::stdout(), "{counted}").is_err() {
                    return ExitCode::FAILURE;
                }
            }
            Err(cause) => {
                eprintln!("error: cannot read `{path}`\n  caused by: {cause}");
                all_read = false;
            }
        }
    }
    if all_read {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What is in one capture, and what is wrong with it.
fn counted(path: &str) -> Result<(Value, Vec<String>), String> {
    let names = Anonymiser::none();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let opened = open(file, None, Settings::new(&names)).map_err(|error| error.to_string())?;
    let mut rows = opened.rows;
    let (mut seen, mut faults) = (Seen::default(), Vec::new());
    for next in rows.by_ref() {
        match next {
            Ok(row) => seen.add(&row),
            Err(damaged) => faults.push(damaged.to_string()),
        }
    }
    let met: BTreeMap<&str, u64> = rows.met().into_iter().collect();
    Ok((seen.json(path, &met), faults))
}

/// What the rows of one capture say together.
#[derive(Default)]
struct Seen {
    rows: u64,
    methods: BTreeMap<&'static str, u64>,
    statuses: BTreeMap<u16, u64>,
    ends: BTreeMap<&'static str, u64>,
    requests_with_cookie: u64,
    responses_with_set_cookie: u64,
    responses_with_cache_control: u64,
    declared_bytes: u64,
    received_bytes: u64,
    setups_us: Vec<u64>,
    responses_us: Vec<u64>,
    connections: BTreeSet<u64>,
    most_requests: u32,
}

impl Seen {
    fn add(&mut self, row: &Row) {
        self.rows += 1;
        let method = row.method.map_or("none", |method| method.as_str());
        *self.methods.entry(method).or_default() += 1;
        if let Some(status) = row.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        let end = row.aborted_by.map_or("unknown", |by| by.as_str());
        *self.ends.entry(end).or_default() += 1;
        self.requests_with_cookie += u64::from(row.has_cookie == Some(true));
        self.responses_with_set_cookie += u64::from(row.has_set_cookie == Some(true));
        let has_directives = row.response_directives.is_some_and(|set| set != 0);
        self.responses_with_cache_control += u64::from(has_directives);
        self.declared_bytes += row.declared_bytes.unwrap_or(0);
        self.received_bytes += row.received_bytes.unwrap_or(0);
        self.setups_us.extend(row.setup_us);
        let times = row.request_us.zip(row.response_us);
        self.responses_us
            .extend(times.map(|(request, response)| response.saturating_sub(request)));
        self.connections.extend(row.connection);
        self.most_requests = self.most_requests.max(row.connection_sequence.unwrap_or(0));
    }

    fn json(self, path: &str, met: &BTreeMap<&str, u64>) -> Value {
        json!({
            "file": path,
            "rows": self.rows,
            "methods": self.methods,
            "statuses": self.statuses,
            "ends": self.ends,
            "requests_with_cookie": self.requests_with_cookie,
            "responses_with_set_cookie": self.responses_with_set_cookie,
            "responses_with_cache_control": self.responses_with_cache_control,
            "declared_bytes": self.declared_bytes,
            "received_bytes": self.received_bytes,
            "median_setup_us": median(&self.setups_us),
            "mean_setup_us": mean(&self.setups_us),
            "mean_response_us": mean(&self.responses_us),
            "connections_with_requests": self.connections.len(),
            "most_requests_of_a_connection": self.most_requests,
            "met": met,
        })
    }
}

/// Rounded down.
fn mean(values: &[u64]) -> Option<u64> {
    let sum: u64 = values.iter().sum();
    sum.checked_div(values.len() as u64)
}

/// The middle one, or the mean of the two in the middle, rounded down.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times of a capture are far below 2^53 us"
)]
fn median(values: &[u64]) -> Option<u64> {
    let spread = Spread::of(values.iter().map(|value| *value as f64));
    spread.map(|spread| spread.median as u64)
}
