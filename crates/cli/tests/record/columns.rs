//! Column by column.

use super::{Client, LOCATIONS, head_bytes, only, record, record_with};
use crate::support::{Config, Curl, Nginx, Reply, content};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_trace::{
    AbortedBy, Anonymiser, RequestBit, ResponseBit, Row, TraceMethod, TraceScheme, TraceVersion,
};

const HIDE: Anonymiser = Anonymiser::none();

/// A request as its client saw it.
struct Done {
    path: &'static str,
    method: TraceMethod,
    request_bytes: u32,
    reply: Reply,
}

/// Sends a request with these fields, and takes the answer.
fn ask(client: &mut Client, &(method, path, fields): &(TraceMethod, &'static str, &str)) -> Done {
    let request_bytes = client.send(method.as_str(), path, fields);
    let reply = match method {
        TraceMethod::Head => client.client.head(),
        _ => client.client.reply(),
    };
    Done {
        path,
        method,
        request_bytes,
        reply,
    }
}

fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.expect("after 1970").as_micros()).expect("before 290 000")
}

/// What can be told of every row from what its client saw.
#[track_caller]
fn check(row: &Row, done: &Done, host: &str) {
    let url = format!("http://{host}{}", done.path);
    assert_eq!(row.target_text.as_deref(), Some(url.as_str()));
    assert_eq!(row.target, HIDE.target(&url), "{url}");
    assert_eq!(row.server, Some(HIDE.server("http", host)), "{url}");
    assert_eq!(row.client, Some(HIDE.client("127.0.0.1")), "{url}");
    assert_eq!(row.method, Some(done.method), "{url}");
    assert_eq!(row.scheme, Some(TraceScheme::Http), "{url}");
    assert_eq!(row.version, Some(TraceVersion::Http11), "{url}");
    assert_eq!(row.has_query, Some(done.path.contains('?')), "{url}");
    assert_eq!(
        row.has_cgi_bin,
        Some(done.path.contains("cgi-bin")),
        "{url}"
    );
    assert_eq!(row.status, Some(done.reply.status()), "{url}");
    assert_eq!(
        row.received_bytes,
        Some(done.reply.body.len() as u64),
        "{url}"
    );
    let declared = done.reply.field("content-length").parse().ok();
    assert_eq!(row.declared_bytes, declared, "{url}");
    assert_eq!(row.request_head_bytes, Some(done.request_bytes), "{url}");
    let head = Some(head_bytes(&done.reply));
    assert_eq!(row.response_head_bytes, head, "{url}");
    assert_eq!(row.request_content_bytes, Some(0), "{url}");
    assert_eq!(row.aborted_by, Some(AbortedBy::Neither), "{url}");
    assert_eq!(row.is_persistent_client, Some(true), "{url}");
    let cache_status = done.reply.cache_status();
    let verdict = row.verdict.as_deref().expect("a verdict");
    assert!(cache_status.contains(verdict), "{verdict}: {cache_status}");
    let media_type = row.content_type.clone().unwrap_or_default();
    assert_eq!(media_type, done.reply.field("content-type"), "{url}");
    let age = done.reply.field("age").parse().ok();
    assert_eq!(row.age_s, age, "{url}");
    let has_set_cookie = !done.reply.field("set-cookie").is_empty();
    assert_eq!(row.has_set_cookie, Some(has_set_cookie), "{url}");
    assert_eq!((row.setup_us, row.request_us), (None, Some(0)), "{url}");
    let times = [row.response_us, row.first_byte_us, row.last_byte_us];
    let known: Vec<u64> = times.into_iter().flatten().collect();
    assert!(known.is_sorted(), "{url}: {times:?}");
    assert_eq!(row.first_byte_us.is_some(), !done.reply.body.is_empty());
    assert_eq!(row.vary, Some(Row::VARY_NONE), "{url}");
}

#[test]
fn times_of_large_stored_content_by_http2_are_its_first_and_last_byte() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("large", &content(2, 4_000_000));
    let config = Config::gateway(&[&nginx.origin()]).of_listener("http2 = true");
    let mut weir = record_with(&config, folder.path(), &[]);
    let url = weir.url("/hour/large");
    for _ in 0..2 {
        let fetch = Curl::direct().args(["--http2-prior-knowledge"]).fetch(&url);
        fetch.reply().expect(200);
    }
    assert_eq!(weir.stop().code(), Some(0));
    let [_, hit] = &only(folder.path())[..] else {
        panic!("two rows");
    };
    assert_eq!(hit.verdict.as_deref(), Some("hit"));
    // it leaves in some 250 pieces, with as many looks at the windows
    assert!(hit.first_byte_us < hit.last_byte_us, "{hit:#?}");
}

#[test]
fn recorded_row_agrees_with_the_request_and_response_in_every_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("file", &content(1, 5000));
    nginx.file("cgi-bin/x", b"cgi");
    let host = nginx.address.to_string();
    let began_us = unix_us();
    let mut weir = record(folder.path(), &["--record-names"]);
    let mut client = Client::new(&weir, &host);
    let tag = client.get("/validated/file", "").field("etag");
    let same = format!("If-None-Match: {tag}\r\n");
    let get = TraceMethod::Get;
    let asked: &[(TraceMethod, &'static str, &str)] = &[
        (get, "/validated/file", ""),
        (get, "/hour/file", ""),
        (get, "/hour/file", ""),
        (TraceMethod::Head, "/hour/file", ""),
        (get, "/hour/file", "Range: bytes=10-99\r\n"),
        (get, "/hour/file", &same),
        (
            get,
            "/hour/cgi-bin/x?a=b",
            "Cookie: c\r\nAuthorization: Basic eA==\r\n",
        ),
        (
            get,
            "/private/file",
            "Cache-Control: max-age=7\r\nPragma: no-cache\r\n",
        ),
    ];
    let done: Vec<Done> = asked.iter().map(|asked| ask(&mut client, asked)).collect();
    assert_eq!(weir.stop().code(), Some(0));
    let ended_us = unix_us();
    let rows = only(folder.path());
    assert_eq!(rows.len(), done.len() + 1);
    for (row, sequence) in rows.iter().zip(1..) {
        assert_eq!(row.connection, rows[0].connection);
        assert_eq!(row.connection_sequence, Some(sequence));
        assert!((began_us..=ended_us).contains(&row.arrival_us));
    }
    assert!(rows.is_sorted_by_key(|row| row.arrival_us), "{rows:#?}");
    for (row, done) in rows[1..].iter().zip(&done) {
        check(row, done, &host);
    }
    let [
        first,
        validated,
        miss,
        hit,
        head,
        part,
        unchanged,
        cookie,
        private,
    ] = &rows[..]
    else {
        panic!("{} rows", rows.len());
    };
    check_next_hops([
        first, validated, miss, hit, head, part, unchanged, cookie, private,
    ]);
    check_fields(first, part, unchanged, cookie, private);
    for row in [validated, miss, hit, head, part, unchanged] {
        assert_eq!((row.etag, row.etag_is_weak), (first.etag, Some(false)));
        assert_eq!(row.last_modified_s, first.last_modified_s);
    }
}

/// Who was asked, on which connection, and what came from there.
fn check_next_hops(rows: [&Row; 9]) {
    let verdicts = rows.map(|row| row.verdict.as_deref().unwrap_or_default());
    let expected = [
        "uri-miss", "stale", "uri-miss", "hit", "hit", "hit", "hit", "uri-miss", "uri-miss",
    ];
    assert_eq!(verdicts, expected);
    let from_next_hop = rows.map(|row| row.next_hop_bytes);
    assert_eq!(
        from_next_hop,
        [5000, 0, 5000, 0, 0, 0, 0, 3, 5000].map(Some)
    );
    for (row, verdict) in rows.iter().zip(verdicts) {
        let is_asked = verdict != "hit";
        assert_eq!(row.next_hop_connection.is_some(), is_asked, "{row:?}");
        assert_eq!(row.next_hop_response_us.is_some(), is_asked, "{row:?}");
        assert_eq!(row.is_persistent_server, is_asked.then_some(true));
        // nginx keeps connections open: one did for all
        assert_eq!(row.next_hop_setup_us.is_some(), row == &rows[0], "{row:?}");
        if is_asked {
            assert_eq!(row.next_hop_connection, rows[0].next_hop_connection);
        }
    }
}

/// What single fields say.
fn check_fields(first: &Row, part: &Row, unchanged: &Row, cookie: &Row, private: &Row) {
    let response = |bits: &[ResponseBit]| Some(bits.iter().map(|bit| bit.bit()).sum());
    assert_eq!(
        first.response_directives,
        response(&[ResponseBit::MaxAge, ResponseBit::MustRevalidate])
    );
    assert_eq!(first.max_age_s, Some(0));
    assert_eq!((part.range_first, part.range_last), (Some(10), Some(99)));
    assert_eq!(part.received_bytes, Some(90));
    assert_eq!(part.max_age_s, Some(3600));
    assert_eq!(
        (unchanged.status, unchanged.request_directives),
        (Some(304), Some(RequestBit::IfNoneMatch.bit()))
    );
    let credentials = |row: &Row| (row.has_cookie, row.has_authorization);
    assert_eq!(credentials(cookie), (Some(true), Some(true)));
    assert_eq!(credentials(private), (Some(false), Some(false)));
    assert_eq!(
        private.response_directives,
        response(&[ResponseBit::Private])
    );
    let asked = RequestBit::MaxAge.bit() | RequestBit::PragmaNoCache.bit();
    assert_eq!(private.request_directives, Some(asked));
    assert_eq!(private.request_max_age_s, Some(7));
    assert_eq!(private.has_set_cookie, Some(true));
}

/// The access log is made at the same place of the proxy, by other code.
#[test]
fn row_of_an_aborted_download_agrees_with_its_access_log_line() {
    const BYTES: usize = 3_000_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("large", &content(1, BYTES));
    let mut weir = record(folder.path(), &["--access-log", "access.log"]);
    for (location, asked) in ["hour", "private"].into_iter().zip(1..) {
        let mut client = Client::new(&weir, nginx.address);
        client.send("GET", &format!("/{location}/large"), "");
        assert_eq!(client.client.head().status(), 200);
        client.client.take(1_000_000);
        drop(client);
        weir.until("counted", |metrics| metrics.all_requests() == asked);
    }
    assert_eq!(weir.stop().code(), Some(0));
    let log = std::fs::read_to_string(weir.file("access.log")).expect("a log");
    let rows = only(folder.path());
    assert_eq!(rows.len(), 2);
    for (row, line) in rows.iter().zip(log.lines()) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(row.aborted_by, Some(AbortedBy::Client), "{line}");
        assert_eq!(row.is_persistent_client, Some(false));
        assert_eq!(row.declared_bytes, Some(BYTES as u64));
        let received = row.received_bytes.expect("it is known");
        assert!((1_000_000..3_000_000).contains(&received), "{received}");
        assert_eq!(line["body_bytes"], received, "{line}");
        assert_eq!(line["verdict"], row.verdict.as_deref().unwrap_or_default());
        let from_next_hop = row.next_hop_bytes.expect("it is known");
        assert!((received..=BYTES as u64).contains(&from_next_hop));
    }
}
