//! The tables of a record: medians, with the least and the most of all sound runs.

use super::contender::{CELLS, CONTENDERS, FLOOR, FORWARD_1K, HIT_1K};
use super::record::Record;
use super::run::Run;
use crate::proxy::contender::WEIR;
use crate::spread::{Spread, spread};
use std::fmt::Write;

/// The figures that were agreed for the first proxy: weir's CPU time as a multiple of somebody
/// else's, at most.
const FIGURES: [(&str, &str, f64); 3] = [
    (HIT_1K, FLOOR, 1.4),
    (HIT_1K, "haproxy", 1.0),
    (FORWARD_1K, "nginx", 1.0),
];

/// Agreed user memory of an idle connection.
const IDLE_BYTES_MAX: u64 = 2048;

pub(crate) fn render(record: &Record) -> String {
    let mut out = String::new();
    head(&mut out, record);
    for cell in &CELLS {
        cell_table(&mut out, record, cell.name);
    }
    idle_table(&mut out, record);
    figures(&mut out, record);
    trouble(&mut out, record);
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // writing to a string cannot fail
    let _ = out.write_fmt(text);
    out.push('\n');
}

fn head(out: &mut String, record: &Record) {
    let Record {
        command,
        begun,
        commit,
        host,
        settings,
        cores,
        ..
    } = record;
    line(
        out,
        format_args!("`{command}`, begun {begun}, commit `{commit}`\\"),
    );
    line(
        out,
        format_args!(
            "{}, {} cores, Linux {}, load average {} at the beginning\\",
            host.cpu, host.cores, host.kernel, host.load_average
        ),
    );
    line(
        out,
        format_args!(
            "{} rounds of {} s, wrk with {} connections; server on core {}, wrk and origin on core {}\n",
            settings.rounds, settings.seconds, record.wrk_connections, cores.server, cores.load
        ),
    );
    for (name, version) in &record.versions {
        line(out, format_args!("* {name}: {version}"));
    }
}

fn of(
    record: &Record,
    cell: &str,
    contender: &str,
    number: impl Fn(&Run) -> f64,
) -> Option<Spread> {
    let sound = record.runs.iter().filter(|run| run.trouble.is_none());
    let these = sound.filter(|run| run.cell == cell && run.contender == contender);
    spread(these.map(number).collect())
}

/// Names of the kinds of requests, in the order of the tables.
pub(crate) fn cells() -> impl Iterator<Item = &'static str> {
    CELLS.iter().map(|cell| cell.name)
}

/// Median CPU time of a request, microseconds; `None` if no sound run has it.
pub(crate) fn median_cpu_us(record: &Record, cell: &str, contender: &str) -> Option<f64> {
    cpu(record, cell, contender).map(|spread| spread.median)
}

/// User memory of an idle connection, bytes; `None` if it was not measured.
pub(crate) fn idle_bytes(record: &Record, contender: &str) -> Option<u64> {
    let mut sound = record.idle.iter().filter(|idle| idle.trouble.is_none());
    let found = sound.find(|idle| idle.contender == contender);
    found.map(super::idle::Idle::bytes_per_connection)
}

fn cpu(record: &Record, cell: &str, contender: &str) -> Option<Spread> {
    of(record, cell, contender, Run::cpu_us_per_request)
}

fn cell_table(out: &mut String, record: &Record, cell: &str) {
    let reference = cpu(record, cell, WEIR).map(|spread| spread.median);
    let mut rows = String::new();
    for name in CONTENDERS.iter().map(|contender| contender.name) {
        let median = |number: fn(&Run) -> f64| {
            of(record, cell, name, number).map_or(0.0, |spread| spread.median)
        };
        let Some(cpu) = cpu(record, cell, name) else {
            continue;
        };
        let ratio = reference.map_or("-".to_owned(), |weir| format!("{:.2}", cpu.median / weir));
        line(
            &mut rows,
            format_args!(
                "| {name:<13} | {:>10.0} | {:>8.1} | {:>7.1} - {:<7.1} | {:>8.1} | {:>8.0} | {:>8.1} | {ratio:>7} |",
                median(Run::requests_per_second),
                cpu.median,
                cpu.least,
                cpu.most,
                median(Run::system_us_per_request),
                median(Run::p99_us),
                median(Run::pss_mib),
            ),
        );
    }
    if rows.is_empty() {
        return;
    }
    line(out, format_args!("\n### {cell}\n"));
    line(
        out,
        format_args!(
            "| {:<13} | {:>10} | {:>8} | {:>17} | {:>8} | {:>8} | {:>8} | {:>7} |",
            "", "requests/s", "CPU us", "least - most", "system", "p99 us", "PSS MiB", "to weir"
        ),
    );
    line(
        out,
        format_args!("| --- | --: | --: | :-: | --: | --: | --: | --: |"),
    );
    out.push_str(&rows);
}

fn idle_table(out: &mut String, record: &Record) {
    let sound: Vec<_> = record
        .idle
        .iter()
        .filter(|idle| idle.trouble.is_none())
        .collect();
    if sound.is_empty() {
        return;
    }
    line(
        out,
        format_args!("\n### Idle keep-alive connections, growth of user memory (PSS)\n"),
    );
    line(
        out,
        format_args!(
            "| {:<13} | {:>11} | {:>18} |",
            "", "connections", "bytes a connection"
        ),
    );
    line(out, format_args!("| --- | --: | --: |"));
    for idle in sound {
        let bytes = idle.bytes_per_connection();
        line(
            out,
            format_args!(
                "| {:<13} | {:>11} | {bytes:>18} |",
                idle.contender, idle.connections
            ),
        );
    }
}

fn figures(out: &mut String, record: &Record) {
    let mut lines = String::new();
    let verdict = |is_met: bool| if is_met { "met" } else { "MISSED" };
    for (cell, other, most) in FIGURES {
        if let (Some(weir), Some(other_cpu)) = (cpu(record, cell, WEIR), cpu(record, cell, other)) {
            let ratio = weir.median / other_cpu.median;
            let verdict = verdict(ratio <= most);
            line(
                &mut lines,
                format_args!("* {cell}: {ratio:.2} x {other}, at most {most:.2}: {verdict}"),
            );
        }
    }
    if let Some(idle) = record
        .idle
        .iter()
        .find(|idle| idle.contender == WEIR && idle.trouble.is_none())
    {
        let bytes = idle.bytes_per_connection();
        let verdict = verdict(bytes <= IDLE_BYTES_MAX);
        line(
            &mut lines,
            format_args!("* idle connection: {bytes} bytes, at most {IDLE_BYTES_MAX}: {verdict}"),
        );
    }
    if !lines.is_empty() {
        line(
            out,
            format_args!("\n### CPU time of weir beside the agreed figures\n"),
        );
        out.push_str(&lines);
    }
}

fn trouble(out: &mut String, record: &Record) {
    let mut lines = String::new();
    for (name, reason) in &record.left_out {
        line(&mut lines, format_args!("* {name}: {reason}"));
    }
    for run in &record.runs {
        if let Some(trouble) = &run.trouble {
            line(
                &mut lines,
                format_args!(
                    "* round {}, {}, {}: {trouble}",
                    run.round, run.cell, run.contender
                ),
            );
        }
    }
    for idle in &record.idle {
        if let Some(trouble) = &idle.trouble {
            line(
                &mut lines,
                format_args!("* idle, {}: {trouble}", idle.contender),
            );
        }
    }
    if !lines.is_empty() {
        line(out, format_args!("\n### Left out\n"));
        out.push_str(&lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four runs: weir 10 us, floor 8 us, and one of nginx that is not sound.
    const RECORD: &str = r#"{"schema":1,"command":"cargo xtask peers","seed":"none","commit":"none","begun":"now",
        "host":{"cpu":"c","cores":2,"kernel":"6","load_average":"0","memory_kib":"1"},"versions":{"nginx":"1"},
        "settings":{"only":[],"seconds":2,"rounds":1,"idle_connections":1000},"cores":{"server":0,"load":1},
        "wrk_connections":32,"left_out":{"squid":"not installed"},"runs":[RUNS],"idle":[{"contender":"weir",
        "connections":1000,"pss_before_kib":1000,"pss_after_kib":3000,"rss_before_kib":1,"rss_after_kib":1,
        "trouble":null}]}"#;

    fn run(contender: &str, cpu_us: u64, trouble: &str) -> String {
        format!(
            r#"{{"round":1,"contender":"{contender}","cell":"hit 1 KiB","wrk":{{"requests":1000,"duration_us":1000000,
            "bytes":1,"p50_us":1,"p99_us":77,"errors":0,"statuses":0}},"user_us":0,"system_us":{cpu_us},
            "origin_requests":0,"rss_kib":1,"pss_kib":2048,"trouble":{trouble}}}"#
        )
    }

    #[test]
    fn table_shows_valid_runs_with_ratios_and_names_the_others() {
        let runs = [
            run("weir", 10_000, "null"),
            run("floor", 8000, "null"),
            run("nginx", 1000, "\"it broke\""),
        ];
        let record: Record =
            serde_json::from_str(&RECORD.replace("RUNS", &runs.join(","))).expect("a record");
        let text = render(&record);
        let row = |name: &str| {
            text.lines()
                .find(|line| line.starts_with(&format!("| {name} ")))
        };
        assert!(
            row("floor").is_some_and(|row| row.contains("8.0") && row.contains("0.80")),
            "{text}"
        );
        assert!(row("nginx").is_none(), "{text}");
        assert!(
            text.contains("hit 1 KiB: 1.25 x floor, at most 1.40: met"),
            "{text}"
        );
        assert!(
            text.contains("idle connection: 2048 bytes, at most 2048: met"),
            "{text}"
        );
        assert!(
            text.contains("round 1, hit 1 KiB, nginx: it broke"),
            "{text}"
        );
        assert!(text.contains("squid: not installed"), "{text}");
    }
}
