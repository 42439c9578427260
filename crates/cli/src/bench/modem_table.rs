//! The columns of tables 5 and 6 of the WPB paper: what clients saw, and what the proxy used,
//! beside each other for both kinds of clients.

use std::fmt::Write as _;
use weir_measure::float;
use weir_measure::record::{Phase, Record, UsageSecond};

/// Both tables.
pub(super) fn text(records: &[Record]) -> String {
    let mut text = String::new();
    table(&mut text, "What clients saw (table 5)", records, &CLIENTS);
    text.push('\n');
    table(
        &mut text,
        "What the proxy and its machine used (table 6)",
        records,
        &USAGE,
    );
    let is_unseen = records.iter().any(|record| record.usage.is_empty());
    if is_unseen {
        text.push_str("A proxy without ,pid=PID was not watched.\n");
    }
    text
}

type Column = (&'static str, fn(&Record) -> Option<String>);

const CLIENTS: [Column; 6] = [
    ("phase-1 latency s", |record| {
        latency(record.phases.first()?)
    }),
    ("phase-2 latency s", |record| latency(record.phases.get(1)?)),
    ("phase-1 errors", |record| errors(record.phases.first()?)),
    ("phase-2 errors", |record| errors(record.phases.get(1)?)),
    ("hit ratio %", |record| {
        percent(record.measured_together().hit_ratio())
    }),
    ("byte hit ratio %", |record| {
        percent(record.measured_together().byte_hit_ratio())
    }),
];

const USAGE: [Column; 7] = [
    ("CPU % of a core", |record| {
        percent(mean(record, |second| second.cpu_share))
    }),
    ("machine CPU %", |record| {
        percent(mean(record, |second| second.machine_cpu_share))
    }),
    ("memory MiB", |record| {
        let most = record.usage.iter().map(|second| second.rss_bytes).max()?;
        Some(format!("{:.1}", mebibytes(most)))
    }),
    ("proxy reads KiB/s", |record| {
        kibibytes(mean(record, |second| float(second.read_bytes)))
    }),
    ("proxy writes KiB/s", |record| {
        kibibytes(mean(record, |second| float(second.written_bytes)))
    }),
    ("disks KiB/s", |record| {
        kibibytes(mean(record, |second| {
            float(second.disk_read_bytes) + float(second.disk_written_bytes)
        }))
    }),
    ("disk busy %", |record| {
        let known = record
            .usage
            .iter()
            .all(|second| second.disk_busy_share.is_some());
        let busy = mean(record, |second| second.disk_busy_share.unwrap_or(0.0));
        percent(busy.filter(|_| known))
    }),
];

fn table(text: &mut String, title: &str, records: &[Record], columns: &[Column]) {
    let name = |record: &Record| {
        let link = record.parameters.get("link_bits_per_s");
        let how = link.map_or_else(
            || "unshaped".to_owned(),
            |bits| format!("{:.1} kbit/s", bits / 1000.0),
        );
        let mark = if record.is_valid { "" } else { " (not valid)" };
        format!("{}, {how}{mark}", record.subject.label)
    };
    let names: Vec<String> = records.iter().map(name).collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    // a String takes whatever is written
    let _ = writeln!(text, "{title}\n");
    let _ = write!(text, "{:<width$}", "");
    for (head, _) in columns {
        let _ = write!(text, "  {head}");
    }
    text.push('\n');
    for (record, name) in records.iter().zip(&names) {
        let _ = write!(text, "{name:<width$}");
        for (head, value) in columns {
            let cell = value(record).unwrap_or_else(|| "-".into());
            let _ = write!(
                text,
                "  {cell:>cell_width$}",
                cell_width = head.chars().count()
            );
        }
        text.push('\n');
    }
}

fn latency(phase: &Phase) -> Option<String> {
    let mean_us = phase.response_time.all.mean_us()?;
    Some(format!("{:.3}", mean_us / 1e6))
}

#[expect(clippy::unnecessary_wraps, reason = "a cell, as the others are")]
fn errors(phase: &Phase) -> Option<String> {
    Some(phase.client.error_count().to_string())
}

fn percent(share: Option<f64>) -> Option<String> {
    share.map(|share| format!("{:.2}", 100.0 * share))
}

fn kibibytes(bytes: Option<f64>) -> Option<String> {
    bytes.map(|bytes| format!("{:.1}", bytes / 1024.0))
}

fn mebibytes(bytes: u64) -> f64 {
    float(bytes) / 1_048_576.0
}

/// Of all seconds; `None` if the proxy was not watched.
fn mean(record: &Record, of: fn(&UsageSecond) -> f64) -> Option<f64> {
    let seconds = u32::try_from(record.usage.len())
        .ok()
        .filter(|&count| count > 0)?;
    let sum: f64 = record.usage.iter().map(of).sum();
    Some(sum / f64::from(seconds))
}
