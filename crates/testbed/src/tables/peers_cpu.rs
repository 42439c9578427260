//! CPU time of a request, one row a proxy: the first table of `docs/performance.md`.

use crate::peers::{self, Record};
use crate::record::markdown::{line, row, table};

/// Contenders by the names that people know; the version comes from the record.
const NAMES: [(&str, &str); 7] = [
    ("floor", "bare epoll loop"),
    ("weir", "**weir**"),
    ("haproxy", "HAProxy"),
    ("nginx", "nginx"),
    ("trafficserver", "Traffic Server"),
    ("varnish", "Varnish"),
    ("squid", "Squid"),
];

pub(super) fn render(record: &Record) -> String {
    let kinds: Vec<&str> = peers::cells().collect();
    let rows = NAMES.map(|(contender, name)| {
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
