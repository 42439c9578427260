use super::*;
use crate::import::tests::{Open, all, everyway};
use crate::import::{Format, Hide, MissingSize, Settings, open};
use crate::{TraceMethod, TraceScheme, TraceVersion};
use proptest::prelude::*;

fn one(line: &str) -> Row {
    let mut found = everyway(line.as_bytes());
    assert_eq!(found.len(), 1, "{line}");
    found.pop().unwrap().unwrap()
}

#[test]
fn combined_line_fills_every_column_it_has_a_value_for() {
    let row = one(
        "a.example - - [17/May/2015:10:05:03 +0000] \"GET /x?y HTTP/1.1\" 200 203023 \"http://b/\" \"Mozilla/5.0 (\\\"x\\\")\"",
    );
    let expected = Row {
        arrival_us: 1_431_857_103_000_000,
        client: Some(Open.client(b"a.example")),
        target: Open.target(b"/x?y"),
        target_text: Some("/x?y".to_owned()),
        method: Some(TraceMethod::Get),
        version: Some(TraceVersion::Http11),
        has_query: Some(true),
        has_cgi_bin: Some(false),
        status: Some(200),
        received_bytes: Some(203_023),
        ..Row::default()
    };
    assert_eq!(row, expected);
}

/// A line with this request line, answer and what follows.
fn line(request: &str, answer: &str) -> String {
    format!("a - - [01/Jul/1995:00:00:01 -0400] \"{request}\" {answer}")
}

#[test]
fn quotation_mark_inside_a_request_line_does_not_end_it() {
    for (logged, target) in [
        (r#"GET /a\"b HTTP/1.0"#, r#"/a"b"#),
        (r"GET /a\x22b HTTP/1.0", r#"/a"b"#),
        (r#"GET /"><img src="x HTTP/1.0"#, r#"/"><img src="x"#),
        (r"GET /a\\ HTTP/1.0", r"/a\"),
        (r"GET /end\", r"/end\"),
        (r#"GET /a\" 404 12 HTTP/1.0"#, r#"/a" 404 12"#),
    ] {
        let row = one(&line(logged, "200 5 \"-\" \"-\""));
        assert_eq!(row.target_text.as_deref(), Some(target), "{logged}");
        assert_eq!(row.received_bytes, Some(5), "{logged}");
    }
}

#[test]
fn dash_for_a_size_is_0_or_the_configured_missing_size() {
    assert_eq!(
        one(&line("GET / HTTP/1.0", "304 -")).received_bytes,
        Some(0)
    );
    for (missing_size, expected) in [(MissingSize::Assume(9), Some(9)), (MissingSize::Skip, None)] {
        let settings = Settings {
            missing_size,
            ..Settings::new(&Open)
        };
        let text = line("GET / HTTP/1.0", "304 -");
        let mut rows = open(text.as_bytes(), None, settings).unwrap().rows;
        let found = rows.next().map(|item| item.unwrap().received_bytes);
        assert_eq!(found, expected.map(Some));
        assert_eq!(rows.dropped().total(), u64::from(expected.is_none()));
    }
}

#[test]
fn client_user_and_virtual_host_are_read_from_the_line_prefix() {
    let with = |who: &str| {
        let text = format!("{who} [17/May/2015:10:05:03 +0000] \"GET /x HTTP/1.1\" 200 1");
        one(&text)
    };
    let client = |name: &str| Some(Open.client(name.as_bytes()));
    for (who, name, is_known) in [
        ("::1 - -", "::1", None),
        ("::1 - frank", "::1", Some(true)),
        ("::1 - frank [x] b", "::1", Some(true)),
        ("::1 ident \"\"", "::1", None),
        ("::1", "::1", None),
    ] {
        let row = with(who);
        assert_eq!(row.client, client(name), "{who}");
        assert_eq!(row.has_authorization, is_known, "{who}");
        assert_eq!(row.server, None, "{who}");
    }
    let row = with("www.example.org:443 ::1 - -");
    assert_eq!(row.client, client("::1"));
    assert_eq!(row.server, Some(Open.server(b"//www.example.org:443")));
    assert_eq!(row.target_text.as_deref(), Some("//www.example.org:443/x"));
}

#[test]
fn configured_site_completes_the_target_uri() {
    let settings = Settings {
        site: Some("https://www.example.org".parse().unwrap()),
        ..Settings::new(&Open)
    };
    let text = line("GET /x HTTP/1.0", "200 1");
    let mut rows = open(text.as_bytes(), None, settings).unwrap().rows;
    let row = rows.next().unwrap().unwrap();
    assert_eq!(row.target, Open.target(b"https://www.example.org/x"));
    assert_eq!(row.scheme, Some(TraceScheme::Https));
    assert_eq!(
        row.server,
        Some(Open.server(b"https://www.example.org:443"))
    );
}

#[test]
fn squid_verdict_nginx_499_and_absent_status_are_read() {
    let squids = one(&line(
        "GET http://a/ HTTP/1.1",
        "200 1 \"-\" \"x\" TCP_MISS:HIER_DIRECT",
    ));
    assert_eq!(squids.verdict.as_deref(), Some("TCP_MISS"));
    let nginx = one(&line(
        "GET / HTTP/1.1",
        "499 0 \"-\" \"TCP_MISS:HIER_DIRECT x\"",
    ));
    assert_eq!(nginx.aborted_by, Some(AbortedBy::Client));
    assert_eq!(nginx.verdict, None);
    assert_eq!(one(&line("GET / HTTP/1.1", "000 0")).status, None);
    assert_eq!(one(&line("GET / HTTP/1.1", "- -")).status, None);
}

#[test]
fn non_http_request_lines_are_dropped_and_counted() {
    let input = [
        line("-", "408 -"),
        line(r"\x16\x03\x01\x02", "400 226"),
        line("", "400 0"),
        line("GET / HTTP/1.0", "200 1"),
    ];
    let text = input.join("\n");
    let mut rows = open(text.as_bytes(), None, Settings::new(&Open))
        .unwrap()
        .rows;
    assert!(rows.next().unwrap().is_ok());
    assert!(rows.next().is_none());
    let dropped: Vec<_> = rows.dropped().iter().collect();
    assert_eq!(dropped, [(reason::NOT_HTTP, 3)]);
}

#[test]
fn damaged_line_is_reported_with_its_cause_and_reading_continues() {
    for (bad, says) in [
        ("a - - 200 1".to_owned(), "it is not like"),
        ("a - - [x] \"GET / HTTP/1.0\" 200 1".to_owned(), "time `x`"),
        (
            "a - - [31/Jun/1995:00:00:01 -0400] \"GET / HTTP/1.0\" 200 1".to_owned(),
            "time `31/Jun/1995:00:00:01 -0400`",
        ),
        (
            "a - - [01/Jul/1995:00:00:01 -0400] \"GET /".to_owned(),
            "no closing quotation mark",
        ),
        (line("GET / HTTP/1.0", "2000 1"), "status `2000`"),
        (line("GET / HTTP/1.0", "OK 1"), "status `OK`"),
        (line("GET / HTTP/1.0", "200 1k"), "size `1k`"),
        (line("GET / HTTP/1.0", "200"), "size ``"),
    ] {
        let input = format!("{bad}\n{}\n", line("GET / HTTP/1.0", "200 1"));
        let found = all(input.as_bytes(), Some(Format::Common));
        assert_eq!(found.len(), 2, "{bad}");
        let damaged = found[0].as_ref().unwrap_err();
        assert!(damaged.to_string().contains(says), "{damaged}");
        assert!(damaged.goes_on && found[1].is_ok(), "{bad}");
    }
}

/// Escapes as Apache does.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"")
}

proptest! {
    #[test]
    fn valid_common_line_is_read_with_exact_values(
        second in 0_u32..60,
        status in 100_u16..999,
        size: u64,
        path in "[a-z/?=%~.\"\\\\ ]{0,40}[a-z]",
        user in "(-|[a-z]{1,8})",
        agent in "[a-zA-Z/\"\\\\ \\[\\]]{0,30}",
    ) {
        let text = format!(
            "::1 - {user} [01/Jul/1995:00:00:{second:02} +0000] \"GET /{} HTTP/1.1\" {status} {size} \"-\" \"{}\"",
            escaped(&path), escaped(&agent)
        );
        let mut found = all(text.as_bytes(), Some(Format::Common));
        let row = found.pop().unwrap().unwrap();
        prop_assert_eq!(row.arrival_us, 804_556_800_000_000 + i64::from(second) * 1_000_000);
        prop_assert_eq!(row.status, Some(status));
        prop_assert_eq!(row.received_bytes, Some(size));
        prop_assert_eq!(row.has_authorization, (user != "-").then_some(true));
        prop_assert_eq!(row.target_text, Some(format!("/{path}")));
    }
}
