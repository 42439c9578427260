//! What is in captures, by our importer and by `tshark`: the table `file, packets, TCP conns (SYN),
//! ...`.
//!
//! Where segments are missing the two differ, and `tshark` differs with itself: putting segments in
//! order it stops a stream at its first hole, and without that it takes what it finds. We go on
//! behind a hole that the receiver acknowledged. Each such file is in [`DIFFERENCES`], with what is
//! there when one looks.

use super::{Comparison, number, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::command::json;
use xtask::failure::Failure;
use xtask::program;

/// Figures that are not those of the table: the file, the column, and what we find.
const DIFFERENCES: [(&str, &str, &str); 14] = [
    // of connections that were opened together the archive's times are too long; ours are those of
    // the table, whose median is equal
    ("p2h_fhs.pcap", "mean SYN->SYN-ACK us", "86884"),
    // a hole of 238 bytes, the head of one response: its request has none, and the content is
    // passed over up to the next head. `tshark` finds 999 responses, too, when it does not order
    // segments
    (Z1000, "resp", "999"),
    (Z1000, "status", "200:999"),
    (Z1000, "sum Content-Length", "614385"),
    // a hole of 7240 bytes within the content of a response: `tshark` has none of the six responses
    // from there on
    (ZBRO, "resp", "31"),
    (ZBRO, "status", "200:31"),
    (ZBRO, "sum Content-Length", "442575"),
    // three holes, and a request in one of them, whose response is no row; `tshark` finds 7
    // requests and 8 responses, too, when it does not order segments
    (ZDROPS, "req", "7"),
    (ZDROPS, "resp", "8"),
    (ZDROPS, "methods", "GET:7"),
    (ZDROPS, "status", "200:5 302:2"),
    (ZDROPS, "req w/ Cookie", "7"),
    (ZDROPS, "resp w/ Set-Cookie", "7"),
    (ZDROPS, "resp w/ Cache-Control", "5"),
];

const Z1000: &str = "zeek_1000-requests.pcap";
const ZBRO: &str = "zeek_bro.org.pcap";
const ZDROPS: &str = "zeek_zero-length-drops.pcap";

/// What an import says about one capture: counts of rows, and of what was met.
struct CaptureCounts(Value);

/// Compares the captures in `pcap/` and those of Squid's two sides.
///
/// # Errors
/// A capture cannot be read, or the table is not there.
pub(crate) fn check(data: &Path, readme: &str, found: &mut Comparison) -> Result<(), Failure> {
    let rows = table::find(readme, &["file", "packets", "TCP conns (SYN)"]);
    if rows.is_empty() {
        let what =
            "the README.md of the data has no table `file | packets | TCP conns (SYN) | ...`";
        return Err(Failure::Usage(what.to_owned()));
    }
    let counter = program::build_for_tests(
        &["-p", "weir-trace", "--example", "pcap_counts"],
        "pcap_counts",
    )?;
    for row in rows {
        let Some(path) = path(data, row["file"]) else {
            let what = format!("`{}` is in the table and not in the data", row["file"]);
            return Err(Failure::Usage(what));
        };
        let counted = CaptureCounts(import(Path::new(&counter), &path)?);
        compare(&row, &counted, found);
        let archive = path.with_added_extension("har");
        if archive.exists() {
            let theirs = CaptureCounts(import(Path::new(&counter), &archive)?);
            beside_archive(row["file"], &counted, &theirs, found);
        }
    }
    Ok(())
}

/// Another importer made an archive of the same capture. Its means are compared by the millisecond:
/// it rounds its times to that.
fn beside_archive(
    name: &str,
    ours: &CaptureCounts,
    theirs: &CaptureCounts,
    found: &mut Comparison,
) {
    for (figure, pointer, off) in [
        ("entries of its archive", "/rows", 0),
        ("mean SYN->SYN-ACK us", "/mean_setup_us", ARCHIVE_OFF_US),
        (RESPONSE, "/mean_response_us", ARCHIVE_OFF_US),
    ] {
        let (here, there) = (ours.number(pointer), theirs.number(pointer));
        let differs = DIFFERENCES
            .iter()
            .find(|difference| (difference.0, difference.1) == (name, figure));
        let there = there.to_string();
        let expected = differs.map_or(there.as_str(), |difference| difference.2);
        let is_near = differs.is_none() && here.abs_diff(theirs.number(pointer)) <= off;
        let shown = if is_near {
            there.clone()
        } else {
            here.to_string()
        };
        found.compare(name, figure, expected, &shown);
    }
}

const RESPONSE: &str = "mean request->response us";

/// How far apart two means may be, microseconds.
const ARCHIVE_OFF_US: u64 = 1000;

fn path(data: &Path, name: &str) -> Option<PathBuf> {
    ["pcap", "squid_gt"]
        .map(|folder| data.join(folder).join(name))
        .into_iter()
        .find(|path| path.exists())
}

fn import(counter: &Path, path: &Path) -> Result<Value, Failure> {
    let mut command = Command::new(counter);
    json(command.arg(path).stderr(Stdio::inherit())).map_err(|failure| {
        let path = path.display();
        Failure::Refused(format!("`{path}` cannot be imported: {failure}"))
    })
}

fn compare(row: &table::Row<'_>, counted: &CaptureCounts, found: &mut Comparison) {
    let name = row["file"].strip_suffix(".gz").unwrap_or(row["file"]);
    let mut figure = |column: &str, here: String| {
        let differs = DIFFERENCES
            .iter()
            .find(|difference| difference.0 == name && difference.1 == column);
        let expected = differs.map_or(row[column], |difference| difference.2);
        found.compare(name, column, expected, &here);
    };
    for (column, pointer) in [
        ("packets", "/met/packets"),
        ("TCP conns (SYN)", "/met/connections"),
        ("req", "/rows"),
        ("req w/ Cookie", "/requests_with_cookie"),
        ("resp w/ Set-Cookie", "/responses_with_set_cookie"),
        ("resp w/ Cache-Control", "/responses_with_cache_control"),
        ("sum Content-Length", "/declared_bytes"),
        ("conns with RST", "/met/connections-with-reset"),
    ] {
        figure(column, counted.number(pointer).to_string());
    }
    let responses = [
        "responses",
        "responses-interim",
        "responses-without-request",
    ];
    let responses = responses.map(|name| counted.number(&format!("/met/{name}")));
    figure("resp", responses.iter().sum::<u64>().to_string());
    figure("methods", counted.words("methods", 0));
    // all interim responses of these captures are 100
    figure("status", counted.words("statuses", responses[1]));
    let streams = row["HTTP streams / max req per conn"];
    let most = streams.split('/').next_back().unwrap_or_default().trim();
    let of_http = streams.split('/').next().unwrap_or_default().trim();
    let is_whole = counted.number("/met/connections-joined-in-the-middle") == 0;
    if is_whole && row["req"] == counted.number("/rows").to_string() {
        let here = counted.number("/most_requests_of_a_connection").to_string();
        found.compare(name, "max req per conn", most, &here);
    }
    if is_whole {
        let here = counted.number("/connections_with_requests").to_string();
        found.compare(name, "HTTP streams", of_http, &here);
    }
    // the table has all connections, rows only those that carried HTTP
    if is_whole && of_http == row["TCP conns (SYN)"] {
        let median_us = counted.number("/median_setup_us");
        let here = (median_us + 5) / 10;
        let here = format!("{}.{:02}", here / 100, here % 100);
        let column = "median SYN->SYN-ACK ms";
        found.compare(name, column, row[column], &here);
    }
}

impl CaptureCounts {
    fn number(&self, pointer: &str) -> u64 {
        number(&self.0, pointer)
    }

    /// `GET:290 POST:2`, of an object with counts; `interim` are counted as 100.
    fn words(&self, member: &str, interim: u64) -> String {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        if interim > 0 {
            counts.insert("100".to_owned(), interim);
        }
        for (name, count) in self.0[member].as_object().into_iter().flatten() {
            *counts.entry(name.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
        let words = counts.iter().map(|(name, count)| format!("{name}:{count}"));
        words.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const README: &str = "\
| file | packets | TCP conns (SYN) | req | resp | methods | status | req w/ Cookie | resp w/ Set-Cookie | resp w/ Cache-Control | sum Content-Length | conns with RST | median SYN->SYN-ACK ms | HTTP streams / max req per conn |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| a.pcap | 48 | 1 | 2 | 4 | GET:1 POST:1 | 100:2 200:2 | 0 | 1 | 0 | 27 | 0 | 5.11 | 1 / 2 |
";

    fn differences(change: impl Fn(&mut Value)) -> Vec<String> {
        let mut counted = json!({
            "rows": 2, "methods": {"GET": 1, "POST": 1}, "statuses": {"200": 2}, "requests_with_cookie": 0,
            "responses_with_set_cookie": 1, "responses_with_cache_control": 0, "declared_bytes": 27,
            "median_setup_us": 5109, "most_requests_of_a_connection": 2, "connections_with_requests": 1,
            "met": {"packets": 48, "connections": 1, "responses": 2, "responses-interim": 2},
        });
        change(&mut counted);
        let rows = table::find(README, &["file", "packets"]);
        let mut found = Comparison::default();
        compare(&rows[0], &CaptureCounts(counted), &mut found);
        assert_eq!(found.compared, 14);
        found.differences
    }

    #[test]
    fn differing_figure_is_reported_with_its_column() {
        assert_eq!(differences(|_| {}), Vec::<String>::new());
        for (pointer, column) in [
            ("/met/packets", "packets"),
            ("/met/responses", "resp"),
            ("/declared_bytes", "sum Content-Length"),
            ("/median_setup_us", "median SYN->SYN-ACK ms"),
            ("/most_requests_of_a_connection", "max req per conn"),
            ("/connections_with_requests", "HTTP streams"),
            ("/methods/GET", "methods"),
            ("/statuses/200", "status"),
        ] {
            let found = differences(|counted| {
                if let Some(figure) = counted.pointer_mut(pointer) {
                    *figure = json!(1000);
                }
            });
            assert_eq!(found.len(), 1, "{pointer}");
            assert!(found[0].contains(column), "{found:?}");
        }
    }
}
