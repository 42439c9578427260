//! CPU time of a request: the first table of `docs/performance.md`, with a row for each proxy and
//! bare loop, and the table of `README.md`, with a row for each kind of request.

use crate::peers::{self, Record};
use crate::record::markdown::{line, row, table};

/// Contenders by the names that people know; the version comes from the record.
const NAMES: [(&str, &str); 14] = [
    ("weir", "**weir**"),
    ("epoll-loop", "bare epoll loop"),
    // of records before there were several
    ("floor", "bare epoll loop, level-triggered"),
    ("writev-loop", "bare loop, one writev"),
    ("memfd-loop", "bare loop, sendfile of memory"),
    ("sendfile-loop", "bare loop, sendfile of a file"),
    ("relay-loop", "bare relay"),
    ("haproxy-current", "HAProxy"),
    ("haproxy", "HAProxy"),
    ("nginx-current", "nginx"),
    ("nginx", "nginx"),
    ("trafficserver", "Traffic Server"),
    ("varnish", "Varnish"),
    ("squid", "Squid"),
];

pub(super) fn render(record: &Record) -> String {
    let is_measured = |kind: &&str| {
        let mut names = NAMES.iter();
        names.any(|(contender, _)| peers::median_cpu_us(record, kind, contender).is_some())
    };
    let kinds: Vec<&str> = peers::cells().filter(is_measured).collect();
    let is_here = |(contender, _): &(&str, &str)| {
        let mut kinds = kinds.iter();
        kinds.any(|kind| peers::median_cpu_us(record, kind, contender).is_some())
    };
    let rows = NAMES.into_iter().filter(is_here).map(|(contender, name)| {
        let cells = kinds.iter().map(|kind| {
            let cpu = peers::median_cpu_us(record, kind, contender);
            cpu.map_or_else(String::new, |cpu| format!("{cpu:.1}"))
        });
        let idle = peers::idle_bytes(record, contender);
        let idle = idle.map_or_else(String::new, |bytes| bytes.to_string());
        let name = with_version(record, contender, name);
        row([name].into_iter().chain(cells).chain([idle]))
    });
    let kinds = kinds.join(" | ");
    let columns = format!("| µs of CPU a request | {kinds} | bytes an idle connection |");
    let mut out = String::new();
    table(&mut out, "", &columns, rows);
    let (rounds, commit) = (record.settings.rounds, &record.commit);
    line(
        &mut out,
        format_args!("\nMedians of {rounds} rounds, commit `{commit}`."),
    );
    out
}

/// Columns of the short table: what is measured, in the version that is measured first of these.
const COLUMNS: [(&str, &[&str]); 6] = [
    ("**Weir**", &["weir"]),
    ("HAProxy", &["haproxy-current", "haproxy"]),
    ("nginx", &["nginx-current", "nginx"]),
    ("Traffic Server", &["trafficserver"]),
    ("Varnish", &["varnish"]),
    ("Squid", &["squid"]),
];

/// Bare loops, of which the cheapest stands in the short table.
const LOOPS: [&str; 6] = [
    "epoll-loop",
    "floor",
    "writev-loop",
    "memfd-loop",
    "sendfile-loop",
    "relay-loop",
];

/// The table of `README.md`.
pub(super) fn render_short(record: &Record) -> String {
    let is_here = |name: &str| {
        let mut kinds = peers::cells();
        kinds.any(|kind| peers::median_cpu_us(record, kind, name).is_some())
    };
    let columns = COLUMNS.map(|(title, names)| {
        let name = names.iter().find(|name| is_here(name));
        name.map(|name| (with_version(record, name, title), *name))
    });
    let columns: Vec<(String, &str)> = columns.into_iter().flatten().collect();
    let figure = |cpu: Option<f64>| cpu.map_or_else(String::new, |cpu| format!("{cpu:.1}"));
    let rows = peers::cells().filter_map(|kind| {
        let of = |name: &str| peers::median_cpu_us(record, kind, name);
        of("weir")?;
        let least = LOOPS.into_iter().filter_map(of).min_by(f64::total_cmp);
        let cpus = columns.iter().map(|(_, name)| figure(of(name)));
        let cells = [kind.to_owned(), figure(least)].into_iter().chain(cpus);
        Some(row(cells))
    });
    let titles: Vec<&str> = columns.iter().map(|(title, _)| title.as_str()).collect();
    let columns = format!(
        "| µs of CPU a request | bare loop | {} |",
        titles.join(" | ")
    );
    let mut out = String::new();
    table(&mut out, "", &columns, rows);
    out
}

/// The name with the first two numbers of the version, but for our own.
fn with_version(record: &Record, contender: &str, name: &str) -> String {
    let version = record
        .versions
        .get(contender)
        .and_then(|said| two_numbers(said));
    match version {
        Some(version) if contender != crate::proxy::contender::WEIR => format!("{name} {version}"),
        _ => name.to_owned(),
    }
}

/// `5.7` of `Squid Cache: Version 5.7`.
fn two_numbers(said: &str) -> Option<String> {
    let mut words = said.split(|c: char| !c.is_ascii_digit() && c != '.');
    let word =
        words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))?;
    let mut numbers = word.split('.');
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_reduced_to_its_first_two_numbers() {
        for (said, expected) in [
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17", Some("2.6")),
            ("nginx version: nginx/1.22.1", Some("1.22")),
            (
                "Traffic Server 9.2.9 Apr  4 2026 14:52:39 localhost",
                Some("9.2"),
            ),
            ("varnishd (varnish-7.1.1 revision 7cee1c5)", Some("7.1")),
            ("Squid Cache: Version 5.7", Some("5.7")),
            ("unknown", None),
        ] {
            assert_eq!(two_numbers(said).as_deref(), expected, "{said}");
        }
    }
}
