//! The tables of a record: medians, with the least and the most of all sound runs.

use super::cells::{
    CELLS, EPOLL_LOOP, FILL_10K, FORWARD_1K, HIT_1K, HIT_1M, HIT_1M_DISK, RELAY_LOOP,
    SENDFILE_LOOP, WRITEV_LOOP,
};
use super::run::Run;
use super::{CONTENDERS, ON_DISK_SUFFIX, Record};
use crate::proxy::contender::WEIR;
use crate::proxy::idle::Idle;
use crate::record::markdown::{self, Target, line, list, row};
use weir_measure::quantile::Spread;

/// The figures that were agreed for weir: its CPU time as a multiple of another's, at most.
const FIGURES: [(&str, &str, f64); 9] = [
    (HIT_1K, EPOLL_LOOP, 1.1),
    (HIT_1K, "haproxy", 1.0),
    (HIT_1M, WRITEV_LOOP, 0.6),
    (HIT_1M, "nginx", 0.75),
    (HIT_1M_DISK, SENDFILE_LOOP, 1.25),
    (HIT_1M_DISK, "nginx", 0.7),
    (FORWARD_1K, RELAY_LOOP, 1.15),
    (FORWARD_1K, "nginx", 0.9),
    (FILL_10K, "trafficserver", 0.8),
];

/// Agreed user memory of an idle connection, with a store on disk and without.
const IDLE_BYTES_MAX: u64 = 720;

/// Agreed anonymous memory after the start.
const START_KIB_MAX: u64 = 3 * 1024;

pub(super) fn render(record: &Record) -> String {
    let mut out = head(record);
    for cell in cells() {
        cell_table(&mut out, record, cell);
    }
    idle_table(&mut out, record);
    start_table(&mut out, record);
    let title = "CPU time of weir beside the agreed figures";
    list(&mut out, title, figures(record));
    list(&mut out, "Left out", troubles(record));
    out
}

fn head(record: &Record) -> String {
    let (settings, cores) = (&record.settings, &record.figures.cores);
    let mut out = format!(
        "{}\\\n{} rounds of {} s, wrk with {} connections; server on core {}, wrk and origin on core {}\n\n",
        markdown::origin(record, "\\\n"),
        settings.rounds,
        settings.seconds,
        record.figures.wrk_connections,
        cores.server,
        cores.load
    );
    markdown::versions(&mut out, record);
    out
}

fn of(
    record: &Record,
    cell: &str,
    contender: &str,
    number: impl Fn(&Run) -> f64,
) -> Option<Spread> {
    let sound = record
        .figures
        .runs
        .iter()
        .filter(|run| run.trouble.is_none());
    let these = sound.filter(|run| run.cell == cell && run.contender == contender);
    Spread::of(these.map(number))
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
    let idle = record.figures.idle.iter();
    let mut sound = idle.filter(|idle| idle.trouble.is_none());
    let found = sound.find(|idle| idle.contender == contender);
    found.map(Idle::bytes_per_connection)
}

fn cpu(record: &Record, cell: &str, contender: &str) -> Option<Spread> {
    of(record, cell, contender, Run::cpu_us_per_request)
}

fn cell_table(out: &mut String, record: &Record, cell: &str) {
    let reference = median_cpu_us(record, cell, WEIR);
    let rows = names(record).into_iter().filter_map(|name| {
        let cpu = cpu(record, cell, name)?;
        let median = |number: fn(&Run) -> f64| {
            of(record, cell, name, number).map_or(0.0, |spread| spread.median)
        };
        let ratio = reference.map_or("-".to_owned(), |weir| format!("{:.2}", cpu.median / weir));
        Some(row([
            format!("{name:<13}"),
            format!("{:>10.0}", median(Run::requests_per_second)),
            format!("{:>8.1}", cpu.median),
            format!("{:>7.1} - {:<7.1}", cpu.min, cpu.max),
            format!("{:>8.1}", median(Run::system_us_per_request)),
            format!("{:>8.0}", median(Run::p99_us)),
            format!("{:>8.1}", median(Run::pss_mib)),
            format!("{ratio:>7}"),
        ]))
    });
    let rows: Vec<String> = rows.collect();
    if !rows.is_empty() {
        line(
            out,
            format_args!(
                "\n### {cell}\n\n\
                 |               | requests/s |   CPU us |      least - most |   system |   p99 us |  PSS MiB | to weir |\n\
                 | --- | --: | --: | :-: | --: | --: | --: | --: |\n{}",
                rows.join("\n")
            ),
        );
    }
}

/// Contenders of the record in the order of the table, then those that no longer take part.
fn names(record: &Record) -> Vec<&str> {
    let mut names: Vec<&str> = CONTENDERS.iter().map(|contender| contender.name).collect();
    for run in &record.figures.runs {
        if !names.contains(&run.contender.as_str()) {
            names.push(&run.contender);
        }
    }
    names
}

fn start_table(out: &mut String, record: &Record) {
    let rows = record.figures.starts.iter().map(|start| {
        let kib = [start.anonymous_kib, start.pss_kib, start.rss_kib];
        let mib = kib.map(|kib| format!("{:.1}", markdown::ratio(kib, 1024)));
        row([start.contender.clone()].into_iter().chain(mib))
    });
    let title = "### User memory after the start and one request, MiB";
    markdown::table(out, title, "| | anonymous | PSS | RSS |", rows);
}

fn idle_table(out: &mut String, record: &Record) {
    let idle = record.figures.idle.iter();
    let rows = idle.filter(|idle| idle.trouble.is_none()).map(|idle| {
        let (contender, bytes) = (&idle.contender, idle.bytes_per_connection());
        format!(
            "| {contender:<13} | {:>11} | {bytes:>18} |",
            idle.connections
        )
    });
    let title = "### Idle keep-alive connections, growth of user memory (PSS)";
    let columns = "|               | connections | bytes a connection |";
    markdown::table(out, title, columns, rows);
}

fn figures(record: &Record) -> Vec<Target> {
    let of_cpu = FIGURES.into_iter().filter_map(|(cell, other, most)| {
        let (weir, of_other) = (cpu(record, cell, WEIR)?, cpu(record, cell, other)?);
        let ratio = weir.median / of_other.median;
        let what = format!("{cell}: {ratio:.2} x {other}, at most {most:.2}");
        Some(Target::new(what, ratio <= most))
    });
    let suffixes = ["", ON_DISK_SUFFIX];
    let idle = suffixes.into_iter().filter_map(|suffix| {
        let bytes = idle_bytes(record, &format!("{WEIR}{suffix}"))?;
        let what = format!("idle connection{suffix}: {bytes} bytes, at most {IDLE_BYTES_MAX}");
        Some(Target::new(what, bytes <= IDLE_BYTES_MAX))
    });
    let mut starts = record.figures.starts.iter();
    let start = starts.find(|start| start.contender == WEIR).map(|start| {
        let of = |kib| markdown::ratio(kib, 1024);
        let (mib, max) = (of(start.anonymous_kib), of(START_KIB_MAX));
        let what = format!("start: {mib:.1} MiB of anonymous memory, at most {max:.0}");
        Target::new(what, start.anonymous_kib <= START_KIB_MAX)
    });
    of_cpu.chain(idle).chain(start).collect()
}

/// What is not there or failed a check, with the reason.
pub(super) fn troubles(record: &Record) -> Vec<String> {
    let mut troubles = markdown::left_out(record);
    for run in &record.figures.runs {
        if let Some(trouble) = &run.trouble {
            let Run {
                round,
                cell,
                contender,
                ..
            } = run;
            troubles.push(format!("round {round}, {cell}, {contender}: {trouble}"));
        }
    }
    for idle in &record.figures.idle {
        if let Some(trouble) = &idle.trouble {
            troubles.push(format!("idle, {}: {trouble}", idle.contender));
        }
    }
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three runs: weir 10 us, a bare loop 8 us, and one of nginx that is not sound.
    const RECORD: &str = r#"{"schema":1,"command":"cargo xtask peers","seed":"none","commit":"none","begun":"now",
        "host":{"cpu":"c","cores":2,"kernel":"6","load_average":"0","memory_kib":"1"},"versions":{"nginx":"1"},
        "settings":{"only":[],"seconds":2,"rounds":1,"idle_connections":1000},"cores":{"server":0,"load":1},
        "wrk_connections":32,"left_out":{"squid":"not installed"},"runs":[RUNS],"idle":[{"contender":"weir",
        "connections":1000,"pss_before_kib":1000,"pss_after_kib":3000,"rss_before_kib":1,"rss_after_kib":1,
        "trouble":null}],"starts":[{"contender":"weir","anonymous_kib":3000,"pss_kib":9000,"rss_kib":9000}]}"#;

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
            run("epoll-loop", 8000, "null"),
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
            row("epoll-loop").is_some_and(|row| row.contains("8.0") && row.contains("0.80")),
            "{text}"
        );
        assert!(row("nginx").is_none(), "{text}");
        assert!(
            text.contains("hit 1 KiB: 1.25 x epoll-loop, at most 1.10: MISSED"),
            "{text}"
        );
        assert!(
            text.contains("idle connection: 2048 bytes, at most 720: MISSED"),
            "{text}"
        );
        assert!(
            text.contains("start: 2.9 MiB of anonymous memory, at most 3: met"),
            "{text}"
        );
        assert!(
            text.contains("round 1, hit 1 KiB, nginx: it broke"),
            "{text}"
        );
        assert!(text.contains("squid: not installed"), "{text}");
    }
}
