//! The page, what it reads, and who may watch.

use super::*;
use std::io::{BufRead as _, BufReader};
use weir_measure::live::{
    CertificateOrder, HistoryTable, LinkQuotaRow, ListenerCertificate, Live, LiveSample,
};

/// An answer whose body has no end: its head, and a reader of what follows.
fn watch(admin: &AdminHandle, head: &str) -> (String, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(tcp(admin)).expect("listens");
    let limit = Some(std::time::Duration::from_secs(20));
    stream.set_read_timeout(limit).expect("a limit");
    let head = head.replace('\n', "\r\n");
    let request = format!("{head}\r\nHost: {}\r\n\r\n", tcp(admin));
    stream.write_all(request.as_bytes()).expect("takes it");
    let mut reader = BufReader::new(stream);
    let mut answer = String::new();
    while !answer.ends_with("\r\n\r\n") {
        assert!(
            reader.read_line(&mut answer).expect("answers") > 0,
            "{answer}"
        );
    }
    (answer, reader)
}

/// The next event.
fn event(reader: &mut impl std::io::BufRead) -> LiveSample {
    loop {
        let mut line = String::new();
        assert!(
            reader.read_line(&mut line).expect("goes on") > 0,
            "it ended"
        );
        if let Some(event) = line.strip_prefix("data: ") {
            return serde_json::from_str(event).expect("as declared");
        }
    }
}

#[test]
fn browser_gets_the_page_and_another_program_the_list() {
    let (admin, _fake) = start(Fake::default());
    let browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8";
    let (status, text) = ask(&admin, &format!("GET / HTTP/1.1\n{browser}"));
    assert_eq!(status, 200);
    for part in [
        "content-type: text/html; charset=utf-8\r\n",
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "frame-ancestors 'none'",
        "referrer-policy: no-referrer\r\n",
        "x-content-type-options: nosniff\r\n",
        "cache-control: no-store\r\n",
        "vary: Accept\r\n",
        "<!doctype html>",
    ] {
        assert!(text.contains(part), "no `{part}`");
    }
    for head in ["GET / HTTP/1.1", "GET / HTTP/1.1\nAccept: */*"] {
        let (status, text) = ask(&admin, head);
        assert!(status == 200 && text.contains("text/plain"), "{text}");
        assert!(text.contains("GET  /events"), "{text}");
    }
}

#[test]
fn each_second_is_an_event_and_the_last_one_is_live() {
    let (admin, _fake) = start(Fake::default());
    let (head, mut events) = watch(&admin, "GET /events HTTP/1.1");
    assert!(
        head.contains("content-type: text/event-stream\r\n"),
        "{head}"
    );
    let (first, second) = (event(&mut events), event(&mut events));
    assert!(second.at_s > first.at_s);
    let (status, text) = ask(&admin, "GET /live HTTP/1.1");
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    let live: Live = serde_json::from_str(body).expect("as declared");
    assert_eq!(status, 200);
    assert!(live.sample.at_s >= second.at_s);
    assert_eq!(live.series.len(), live.sample.values.len());
    assert_eq!(live.series.len(), live.sample.totals.len());
    let panics = live
        .series
        .iter()
        .position(|series| series.name == "panics");
    assert_eq!(live.sample.totals[panics.expect("a series")], Some(1));
    let (_, text) = ask(&admin, "GET /history?series=panics HTTP/1.1");
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    let table: HistoryTable = serde_json::from_str(body).expect("as declared");
    let panics: u64 = table.columns[0].iter().flatten().sum();
    assert_eq!(
        panics, 1,
        "the fake has counted one, before the first second"
    );
}

#[test]
fn seventeenth_watcher_is_refused_until_another_one_has_gone() {
    let (admin, _fake) = start(Fake::default());
    let mut watchers: Vec<_> = (0..16)
        .map(|_| watch(&admin, "GET /events HTTP/1.1"))
        .collect();
    let refused = watch(&admin, "GET /events HTTP/1.1\nConnection: close");
    assert!(refused.0.starts_with("HTTP/1.1 503 "), "{}", refused.0);
    // the others still get each second
    event(&mut watchers[15].1);
    drop(watchers.pop());
    let until = Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let (head, _) = watch(&admin, "GET /events HTTP/1.1");
        if head.starts_with("HTTP/1.1 200 ") {
            break;
        }
        assert!(Instant::now() < until, "its place was not given back");
    }
}

#[test]
fn watcher_that_reads_nothing_holds_up_neither_seconds_nor_others() {
    let (admin, _fake) = start(Fake::default());
    let _silent = watch(&admin, "GET /events HTTP/1.1");
    let (_, mut events) = watch(&admin, "GET /events HTTP/1.1");
    let times: Vec<u64> = (0..3).map(|_| event(&mut events).at_s).collect();
    assert!(times.windows(2).all(|pair| pair[1] > pair[0]), "{times:?}");
    assert_eq!(ask(&admin, "GET /healthz HTTP/1.1").0, 200);
}

#[test]
fn numbers_are_for_our_own_page_and_name_nobody() {
    let (_folder, token) = token();
    let (admin, _fake) = start(Fake {
        token: Some(token),
        ..Fake::default()
    });
    for path in ["/live", "/history", "/events"] {
        let request = format!("GET {path} HTTP/1.1\nSec-Fetch-Site: cross-site");
        assert_eq!(ask(&admin, &request).0, 403, "{path}");
    }
    let (status, text) = ask(&admin, "GET /history?step=1min HTTP/1.1");
    assert_eq!(status, 200, "no token is needed: {text}");
    let (status, text) = ask(&admin, "GET /history?step=1d HTTP/1.1");
    assert!(status == 400 && text.contains("1s or 1min"), "{text}");
}

#[test]
fn history_that_is_not_read_keeps_no_other_reader_out() {
    let (admin, _fake) = start(Fake::default());
    // 3600 and 10 080 rows of all series: more than the kernel takes
    let request = "GET /history?step=1min HTTP/1.1";
    let readers: Vec<_> = (0..4).map(|_| watch(&admin, request)).collect();
    for (head, _) in &readers {
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    }
    let until = Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let (head, _) = watch(&admin, request);
        if head.starts_with("HTTP/1.1 200 ") {
            break;
        }
        assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
        assert!(Instant::now() < until, "no place was given up");
    }
    drop(readers);
}

/// The next hops of the fake.
pub(super) fn next_hops() -> Vec<NextHopRow> {
    let row = |url: &str, ejected_for_s: Option<u64>| NextHopRow {
        url: url.to_owned(),
        kind: "route".to_owned(),
        routes: "a.test /".to_owned(),
        state: ejected_for_s.map_or("in", |_| "ejected").to_owned(),
        ejected_for_s,
        outstanding: 2,
    };
    vec![
        row("http://10.0.0.1:80", None),
        row("http://10.0.0.2:80", Some(7)),
    ]
}

/// Its rules.
pub(super) fn links() -> Vec<LinkRow> {
    vec![LinkRow {
        name: "satellite".into(),
        received_bytes: 3000,
        sent_bytes: 200,
        refused: 1,
        waited_ms: 2500,
        rate_bytes_s: Some(1_000_000),
        is_in_window: false,
        is_free: false,
        is_after_clock_step: false,
        quota: Some(LinkQuotaRow {
            bytes: 1 << 30,
            spent_bytes: 4096,
            booked_bytes: 8192,
            begin_unix_s: 1_793_491_200,
            end_unix_s: 1_796_083_200,
            when_spent: "refuse".into(),
            is_spent: false,
        }),
    }]
}

pub(super) fn certificates() -> Vec<ListenerCertificate> {
    vec![ListenerCertificate {
        listener: "web".into(),
        names: vec!["a.test".into()],
        source: "authority".into(),
        from: "https://ca.test/".into(),
        end_unix_s: None,
        order_unix_s: Some(1_793_491_200),
        failures: Some(2),
        last_order: Some(CertificateOrder {
            at_unix_s: 1_793_491_140,
            end: "refused".into(),
            reason: Some("<b>no</b>".into()),
        }),
    }]
}

pub(super) fn rules() -> Vec<RuleReport> {
    vec![RuleReport {
        name: "debs".to_owned(),
        requests: 9,
    }]
}

#[test]
fn next_hops_and_links_are_told_as_tables_and_json_and_rules_among_the_metrics() {
    let (admin, _fake) = start(Fake::default());
    for (path, expected) in [
        (
            "/next-hops",
            "http://10.0.0.2:80  route  ejected  7          2         a.test /\n",
        ),
        (
            "/next-hops?format=json",
            "\"state\":\"in\",\"ejected_for_s\":null",
        ),
        (
            "/links",
            "satellite         1000000   3000      200   2         1073741824  4096   8192    Sun, 01 Nov 2026 00:00:00 GMT  Tue, 01 Dec 2026 00:00:00 GMT  refuse  1",
        ),
        ("/links?format=json", "\"spent_bytes\":4096"),
        (
            "/certificates",
            "web       a.test  https://ca.test/  none yet  Sun, 01 Nov 2026 00:00:00 GMT  2         Sat, 31 Oct 2026 23:59:00 GMT refused: <b>no</b>",
        ),
        (
            "/certificates?format=json",
            "\"end_unix_s\":null,\"order_unix_s\":1793491200,\"failures\":2",
        ),
        (
            "/metrics",
            "\nweir_link_spent_bytes{link=\"satellite\"} 4096\n",
        ),
        (
            "/metrics",
            "\nweir_link_waited_seconds_total{link=\"satellite\"} 2\n",
        ),
        ("/metrics", "\nweir_rule_matched_total{rule=\"debs\"} 9\n"),
    ] {
        let (status, text) = ask(&admin, &format!("GET {path} HTTP/1.1"));
        assert_eq!(status, 200, "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
