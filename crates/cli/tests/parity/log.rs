//! The access log against the simulated verdicts.

use crate::difference::Difference;
use crate::script::Script;
use std::collections::BTreeMap;
use weir_policy::Verdict;

/// A line of the log.
#[derive(serde::Deserialize)]
struct Line {
    #[serde(default)]
    cache_status: String,
    #[serde(default)]
    user_agent: String,
}

/// Every request has the same verdict in both, word for word, and they came to their end in the
/// same order.
pub(crate) fn check_log(log: &str, script: &Script) -> Result<(), Difference> {
    let mut logged: Vec<(u64, String)> = Vec::new();
    for text in log.lines() {
        let line: Line = serde_json::from_str(text).map_err(|error| {
            Difference::new(None, format!("a line of the log: {error}: {text}"))
        })?;
        let row = line.user_agent.strip_prefix("row/");
        if let Some(row) = row.and_then(|row| row.parse().ok()) {
            logged.push((row, line.cache_status));
        }
    }
    let simulated: Vec<(u64, u64, String)> = script
        .verdicts()
        .map(|(at_ms, row, verdict)| (at_ms, row, text_of(&verdict)))
        .collect();
    let mut lines: BTreeMap<u64, &str> = BTreeMap::new();
    for (row, status) in &logged {
        if lines.insert(*row, status).is_some() {
            return Err(Difference::new(
                Some(*row),
                format!("row {row} is logged twice"),
            ));
        }
    }
    for (_, row, expected) in &simulated {
        let live = lines.get(row).copied().unwrap_or("no line in the log");
        if live != expected {
            let what = format!("row {row} live: {live}\n  simulated: {expected}");
            return Err(Difference::new(Some(*row), what));
        }
    }
    check_order(&logged, &simulated)
}

/// Those that ended at one time may stand in any order.
fn check_order(
    logged: &[(u64, String)],
    simulated: &[(u64, u64, String)],
) -> Result<(), Difference> {
    let at: BTreeMap<u64, u64> = simulated
        .iter()
        .map(|(at_ms, row, _)| (*row, *at_ms))
        .collect();
    let pairs = logged.iter().zip(logged.iter().skip(1));
    for ((one, _), (other, _)) in pairs {
        if at.get(one) > at.get(other) {
            let what = format!("row {one} ended before row {other} live, and after it simulated");
            return Err(Difference::new(Some(*one), what));
        }
    }
    Ok(())
}

/// A verdict as Cache-Status has it.
pub(crate) fn text_of(verdict: &Verdict) -> String {
    let mut text = Vec::new();
    verdict.cache_status("weir").write(&mut text);
    String::from_utf8(text).expect("ASCII")
}
