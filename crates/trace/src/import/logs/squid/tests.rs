use super::*;
use crate::import::MissingSize;
use crate::import::tests::{Open, all, everyway};
use crate::import::{Format, Hide, Settings, Summary, open};
use crate::{TraceMethod, TraceScheme};
use proptest::prelude::*;

/// Written by Squid 5.7, a few lines of every tag and status of a known workload.
const EXCERPT: &[u8] = include_bytes!("excerpt.log");
/// Its lines.
const EXCERPT_ROWS: u64 = 40;
/// The sum of its sizes.
const EXCERPT_BYTES: u128 = 4_022_516;
/// From its first to its last time.
const EXCERPT_SPAN_US: u64 = 19_546_000;

fn one(line: &str) -> Row {
    let mut found = all(line.as_bytes(), Some(Format::Squid));
    assert_eq!(found.len(), 1, "{line}");
    found.pop().unwrap().unwrap()
}

#[test]
fn squid_line_fills_every_column_it_has_a_value_for() {
    let row = one(
        "1795242069.175    163 127.0.0.1 TCP_MISS_ABORTED/200 315667 GET http://h:41880/b/6?x - HIER_DIRECT/127.0.0.1 text/Plain;x=y",
    );
    let expected = Row {
        arrival_us: 1_795_242_069_012_000,
        last_byte_us: Some(163_000),
        client: Some(Open.client(b"127.0.0.1")),
        server: Some(Open.server(b"http://h:41880")),
        target: Open.target(b"http://h:41880/b/6?x"),
        target_text: Some("http://h:41880/b/6?x".to_owned()),
        method: Some(TraceMethod::Get),
        scheme: Some(TraceScheme::Http),
        has_query: Some(true),
        has_cgi_bin: Some(false),
        status: Some(200),
        received_bytes: Some(315_667),
        content_type: Some("text/plain".to_owned()),
        aborted_by: Some(AbortedBy::Client),
        verdict: Some("TCP_MISS_ABORTED".to_owned()),
        ..Row::default()
    };
    assert_eq!(row, expected);
}

#[test]
fn every_line_of_a_real_squid_log_is_read() {
    let found = everyway(EXCERPT);
    let mut summary = Summary::default();
    for item in &found {
        summary.add(item.as_ref().unwrap());
    }
    assert_eq!(summary.rows, EXCERPT_ROWS);
    assert_eq!(summary.received_bytes, EXCERPT_BYTES);
    assert_eq!(summary.client_count(), 1);
    let ends = summary.ends.unwrap();
    assert!(ends.is_in_order, "Squid writes when a transaction ends");
    assert!(!summary.arrivals.unwrap().is_in_order);
    assert_eq!(ends.length_us(), EXCERPT_SPAN_US);
}

#[test]
fn trailing_fields_of_a_squid_line_are_optional() {
    let row = one("1286536308.779 180 ::1 TCP_MEM_HIT/304 411 GET http://a/");
    assert_eq!(row.next_hop_bytes, None);
    assert_eq!(row.content_type, None);
    let row = one("1286536308.779 180 ::1 TCP_MEM_HIT/304 411 GET http://a/ - HIER_NONE/-");
    assert_eq!(row.next_hop_bytes, Some(0));
    let row = one("1286536308.779 180 ::1 TCP_TUNNEL/200 411 CONNECT a:443 - HIER_DIRECT/a -");
    assert_eq!(row.server, Some(Open.server(b"//a:443")));
    assert_eq!(row.scheme, None);
    assert_eq!(row.content_type, None);
}

#[test]
fn status_000_or_dash_is_no_status_and_the_tag_gives_the_abort() {
    let row = one("1286536308.779 5 ::1 TCP_MISS_ABORTED/000 0 GET http://a/ - DIRECT/a -");
    assert_eq!(
        (row.status, row.aborted_by),
        (None, Some(AbortedBy::Client))
    );
    let row = one("1286536308.779 5 ::1 TCP_MISS_TIMEDOUT/- 0 GET http://a/ - DIRECT/a -");
    assert_eq!(
        (row.status, row.aborted_by),
        (None, Some(AbortedBy::Server))
    );
    let row = one("1286536308.779 5 ::1 TCP_MISS/200 0 GET http://a/ - DIRECT/a -");
    assert_eq!(row.aborted_by, None, "an old version would not say so");
}

#[test]
fn impossible_elapsed_time_is_ignored() {
    for elapsed in ["-7", "99999999999999999", "18446744073709551615"] {
        let line = format!("1286536308.779 {elapsed} ::1 TCP_MISS/200 1 GET http://a/");
        let row = one(&line);
        assert_eq!(row.arrival_us, 1_286_536_308_779_000, "{elapsed}");
        assert_eq!(row.last_byte_us, None, "{elapsed}");
    }
}

fn damage(line: &str, says: &str, hints: &str) {
    let input = format!("{line}\n1286536308.779 5 ::1 TCP_MISS/200 7 GET http://a/\n");
    let found = all(input.as_bytes(), Some(Format::Squid));
    assert_eq!(found.len(), 2, "{line}");
    let damaged = found[0].as_ref().unwrap_err();
    assert!(damaged.to_string().starts_with("line 1: "), "{damaged}");
    assert!(damaged.to_string().contains(says), "{damaged}");
    assert!(damaged.hint().contains(hints), "{damaged}");
    assert!(damaged.goes_on && found[1].is_ok(), "{line}");
}

#[test]
fn damaged_line_is_reported_with_its_cause_and_a_hint() {
    let rest = "::1 TCP_MISS/200 7 GET http://a/";
    let skip = "--on-damage skip";
    damage("1286536308.779 5", "fewer than the seven fields", skip);
    damage(&format!("12x 5 {rest}"), "time `12x`", skip);
    damage(&format!("1.5 five {rest}"), "elapsed time `five`", skip);
    damage(
        "1.5 5 ::1 TCP_MISS 7 GET http://a/",
        "`TCP_MISS` is not a tag",
        skip,
    );
    damage(
        "1.5 5 ::1 TCP_MISS/2000 7 GET http://a/",
        "TCP_MISS/2000",
        skip,
    );
    damage("1.5 5 ::1 /200 7 GET http://a/", "`/200`", skip);
    damage(
        "1.5 5 ::1 TCP_MISS/200 7k GET http://a/",
        "size `7k` is not a number",
        skip,
    );
    damage(
        "1.5 5 ::1 TCP_MISS/200 - GET http://a/",
        "size `-` is not a number",
        "--missing-size",
    );
}

#[test]
fn non_http_blank_and_sizeless_lines_are_dropped_and_counted() {
    let input = b"\n# comment\n\
        1.5 0 10.0.0.1 UDP_MISS/000 69 ICP_QUERY http://a/ - NONE/- -\n\
        1.5 0 10.0.0.1 NONE/400 3829 NONE error:invalid-request - NONE/- text/html\n\
        1.5 0 10.0.0.1 TCP_MISS/200 7 GET cache_object://localhost/info - NONE/- text/plain\n\
        1.5 0 10.0.0.1 TCP_DENIED/407 1754 GET http://a/ - NONE/- text/html\n\
        1.5 0 10.0.0.1 TCP_MISS/200 - GET http://a/ - NONE/- text/html\n";
    let settings = Settings {
        missing_size: MissingSize::Skip,
        ..Settings::new(&Open)
    };
    let mut rows = open(&input[..], None, settings).unwrap().rows;
    assert_eq!(rows.next().unwrap().unwrap().status, Some(407));
    assert!(rows.next().is_none());
    let dropped: Vec<_> = rows.dropped().iter().collect();
    let expected = [
        (reason::BLANK, 2),
        (reason::MISSING_SIZE, 1),
        (reason::NOT_HTTP, 3),
    ];
    assert_eq!(dropped, expected);
}

#[test]
fn missing_size_is_replaced_by_the_assumed_size() {
    let settings = Settings {
        missing_size: MissingSize::Assume(8192),
        ..Settings::new(&Open)
    };
    let line = b"1.5 0 10.0.0.1 TCP_MISS/200 - GET http://a/ - NONE/- text/html\n";
    let mut rows = open(&line[..], None, settings).unwrap().rows;
    assert_eq!(rows.next().unwrap().unwrap().received_bytes, Some(8192));
}

proptest! {
    #[test]
    fn valid_squid_line_is_read_with_exact_values(
        end_ms in 1_000_000_000_000_u64..2_000_000_000_000,
        elapsed_ms in 0_u64..10_000_000,
        status in 100_u16..999,
        size: u64,
        method in proptest::sample::select(TraceMethod::ALL),
        path in "[a-z/?=%~.]{0,40}",
        client in "[0-9a-f:.]{1,20}",
    ) {
        prop_assume!(method != TraceMethod::Connect);
        let url = format!("http://host/{path}");
        let line = format!(
            "{}.{:03} {elapsed_ms:6} {client} TCP_HIT/{status} {size} {} {url} - HIER_NONE/- image/gif",
            end_ms / 1000, end_ms % 1000, method.as_str()
        );
        let row = one(&line);
        prop_assert_eq!(row.arrival_us, i64::try_from((end_ms - elapsed_ms) * 1000).unwrap());
        prop_assert_eq!(row.last_byte_us, Some(elapsed_ms * 1000));
        prop_assert_eq!(row.status, Some(status));
        prop_assert_eq!(row.received_bytes, Some(size));
        prop_assert_eq!(row.method, Some(method));
        prop_assert_eq!(row.client, Some(Open.client(client.as_bytes())));
        prop_assert_eq!(row.target_text, Some(url));
    }
}
