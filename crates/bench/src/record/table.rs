//! A record as a table for a terminal.

use std::fmt::Write as _;
use weir_measure::float;
use weir_measure::record::{Histogram, Mode, Phase, Record};

/// The phases of a run, and whether it is valid.
#[must_use]
pub fn text(record: &Record) -> String {
    let mut text = String::new();
    let subject = &record.subject;
    let caching = if subject.is_caching {
        ""
    } else {
        ", caching off"
    };
    let by = match subject.mode {
        Mode::Forward => format!("as a forward proxy at {}{caching}", subject.proxy),
        Mode::Gateway => format!("as a gateway at {}{caching}", subject.proxy),
        Mode::Direct => "the origin itself, without a proxy".to_owned(),
    };
    line(
        &mut text,
        &format!(
            "{}: {} {by}; {} agents, seed {}, {:.1} s",
            record.scenario_name,
            subject.label,
            record.parameters.get("clients").copied().unwrap_or(0.0),
            record.seed,
            record.seconds
        ),
    );
    line(&mut text, "");
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    rows.extend(record.phases.iter().map(row));
    if record.phases.len() > 1 {
        rows.push(row(&total(record)));
    }
    aligned(&mut text, &rows);
    line(&mut text, "");
    verdict(&mut text, record);
    text
}

const COLUMNS: [&str; 13] = [
    "phase",
    "requests",
    "per s",
    "offered",
    "hit ratio",
    "byte hit ratio",
    "collapsed",
    "mean",
    "p50",
    "p99",
    "hit p50",
    "miss p50",
    "errors",
];

/// The sum of the measured phases: a warm-up is no result.
fn total(record: &Record) -> Phase {
    let name = if record.phases.iter().all(|phase| phase.is_measured) {
        "total"
    } else {
        "total measured"
    };
    Phase {
        name: name.to_owned(),
        is_measured: true,
        ..record.measured_together()
    }
}

fn row(phase: &Phase) -> Vec<String> {
    let mark = if phase.is_measured { "" } else { " (warm-up)" };
    let times = &phase.response_time;
    vec![
        format!("{}{mark}", phase.name),
        phase.client.requests.to_string(),
        phase
            .rate_per_s()
            .map_or_else(none, |rate| format!("{rate:.1}")),
        percent(phase.offered_hit_ratio()),
        percent(phase.hit_ratio()),
        percent(phase.byte_hit_ratio()),
        phase.client.collapsed.to_string(),
        time(times.all.mean_us()),
        quantile(&times.all, 0.5),
        quantile(&times.all, 0.99),
        quantile(&times.hit, 0.5),
        quantile(&times.miss, 0.5),
        phase.client.error_count().to_string(),
    ]
}

fn verdict(text: &mut String, record: &Record) {
    if record.is_valid {
        line(text, "The run is valid.");
    } else {
        line(text, "The run is NOT VALID:");
        record
            .reasons
            .iter()
            .for_each(|reason| line(text, &format!("  {reason}")));
    }
    for wrong in record.wrong_responses.iter().take(WRONG_SHOWN) {
        let at = wrong
            .offset
            .map_or_else(String::new, |offset| format!(" at byte {offset}"));
        let path = &wrong.path;
        line(
            text,
            &format!(
                "  {} in server {} {path}{at}: {}",
                wrong.kind, wrong.server, wrong.detail
            ),
        );
    }
    if record.wrong_responses.len() > WRONG_SHOWN {
        line(
            text,
            &format!(
                "  ... and {} more in the record",
                record.wrong_responses.len() - WRONG_SHOWN
            ),
        );
    }
    record
        .warnings
        .iter()
        .for_each(|warning| line(text, &format!("note: {warning}")));
}

/// The record has more of them.
const WRONG_SHOWN: usize = 5;

fn percent(share: Option<f64>) -> String {
    share.map_or_else(none, |share| format!("{:.2} %", 100.0 * share))
}

fn quantile(times: &Histogram, quantile: f64) -> String {
    time(times.quantile_us(quantile).map(float))
}

fn time(us: Option<f64>) -> String {
    us.map_or_else(none, |us| match us {
        us if us < 1000.0 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.1} ms", us / 1000.0),
        us => format!("{:.2} s", us / 1e6),
    })
}

fn none() -> String {
    "-".into()
}

/// The first column to the left, numbers to the right.
fn aligned(text: &mut String, rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    for row in rows {
        let mut cells = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // a String takes whatever is written
            let _ = match column {
                0 => write!(cells, "{cell:<width$}"),
                _ => write!(cells, "  {cell:>width$}"),
            };
        }
        line(text, cells.trim_end());
    }
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE_UP: &str = include_str!("../../tests/data/record-wpb.json");

    #[test]
    fn table_number_stands_under_its_column_heading() {
        let record: Record = serde_json::from_str(MADE_UP).expect("it is a record");
        let text = text(&record);
        let lines: Vec<&str> = text.lines().collect();
        let head = lines[2];
        let (from, to) = (
            head.find("hit ratio").expect("a head"),
            head.find("byte").expect("a head"),
        );
        let cells: Vec<&str> = lines[3..6]
            .iter()
            .map(|row| row[from - 2..to].trim())
            .collect();
        assert_eq!(cells, ["0.00 %", "47.08 %", "23.54 %"], "{text}");
        assert!(text.contains("\nThe run is valid.\nnote: "), "{text}");
        assert!(lines[0].contains("24 agents, seed 1998"), "{text}");
    }

    #[test]
    fn total_row_covers_only_measured_phases() {
        let mut record: Record = serde_json::from_str(MADE_UP).expect("it is a record");
        record.phases[0].is_measured = false;
        let text = text(&record);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].starts_with("phase-1 (warm-up)"), "{text}");
        let cells = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(cells(lines[5])[..2], ["total", "measured"], "{text}");
        assert_eq!(cells(lines[4])[1..], cells(lines[5])[2..], "{text}");
    }

    #[test]
    fn invalid_run_is_shown_with_reasons_and_content_mismatches() {
        let mut record: Record = serde_json::from_str(MADE_UP).expect("it is a record");
        record.is_valid = false;
        record.reasons = vec!["One of 960 responses was not what the origin says.".into()];
        record.wrong_responses = serde_json::from_value(serde_json::json!([{
            "kind": "wrong-byte", "at_s": 1.0, "phase": "phase-1", "id": "0-0-1", "server": 3, "number": 17,
            "path": "/dummy17.html", "version": 0, "offset": 1234, "detail": "0x41 and not 0x42", "head": ""
        }]))
        .expect("a wrong");
        let text = text(&record);
        let expected = "NOT VALID:\n  One of 960 responses was not what the origin says.\n  wrong-byte in server 3 /dummy17.html at byte 1234: \
             0x41 and not 0x42\n";
        assert!(text.contains(expected), "{text}");
    }
}
