//! CPU time of a request, one row a proxy: the first table of `docs/performance.md`.

use crate::peers::{self, Record};
use std::fmt::Write;
use xtask::failure::Failure;

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

/// # Errors
/// Never: a cell that was not measured stays empty.
pub(super) fn render(record: &Record) -> Result<String, Failure> {
    let cells: Vec<&str> = peers::cells().collect();
    let mut out = format!(
        "| µs of CPU a request | {} | bytes an idle connection |\n| --- |{}\n",
        cells.join(" | "),
        " --: |".repeat(cells.len() + 1)
    );
    for (contender, name) in NAMES {
        // writing to a string cannot fail
        let _ = write!(out, "| {}", with_version(record, contender, name));
        for cell in &cells {
            let cpu = peers::median_cpu_us(record, cell, contender);
            let _ = write!(
                out,
                " | {}",
                cpu.map_or_else(String::new, |cpu| format!("{cpu:.1}"))
            );
        }
        let idle = peers::idle_bytes(record, contender);
        let _ = writeln!(
            out,
            " | {} |",
            idle.map_or_else(String::new, |bytes| bytes.to_string())
        );
    }
    let _ = write!(
        out,
        "\nMedians of {} rounds, commit `{}`.\n",
        record.settings.rounds, record.commit
    );
    Ok(out)
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
