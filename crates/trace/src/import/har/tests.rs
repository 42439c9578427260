use super::super::tests::{Item, Open, all, everyway};
use super::super::{Format, Hide, Settings, open};
use super::*;
use crate::TraceMethod;
use serde_json::{Value, json};

fn archive(entries: &[Value]) -> String {
    let log = json!({ "log": {
        "version": "1.2",
        "creator": { "name": "Firefox", "version": "54" },
        "pages": [{ "title": "] } \" \\" }],
        "entries": entries,
        "comment": "end",
    }});
    log.to_string()
}

/// As a browser writes it.
fn entry() -> Value {
    json!({
        "startedDateTime": "2015-12-20T14:43:36.694+01:00",
        "time": 1443.65,
        "request": {
            "method": "GET", "url": "https://a.example/x?y#z", "httpVersion": "HTTP/1.1",
            "headers": [{ "name": "Host", "value": "a.example" }, { "name": ":path", "value": "/x" }, { "name": "Cookie", "value": "k" }],
            "headersSize": 300, "bodySize": 0,
        },
        "response": {
            "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1",
            "headers": [
                { "name": "Cache-Control", "value": "max-age=60\nno-store" },
                { "name": "Content-Length", "value": "1234" },
                { "name": "Content-Type", "value": "text/html; charset=utf-8" },
            ],
            "content": { "size": 9999, "mimeType": "text/plain", "text": "}]\"\\" },
            "headersSize": 200, "bodySize": 1234,
        },
        "timings": { "blocked": 0.25, "dns": 500, "connect": 300, "ssl": 100, "send": 0.5, "wait": 600, "receive": -1 },
        "connection": "22261",
    })
}

/// With another value at `pointer`; `null` takes it away.
fn with(pointer: &str, value: Value) -> Value {
    let mut entry = entry();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let object = entry.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        object.remove(name);
    } else {
        object.insert(name.to_owned(), value);
    }
    entry
}

fn by_chrome(entries: &[Value]) -> Vec<Item> {
    everyway(
        archive(entries)
            .replace("Firefox", "WebInspector")
            .as_bytes(),
    )
}

fn one(entry: Value) -> Row {
    let mut found = by_chrome(&[entry]);
    assert_eq!(found.len(), 1);
    found.pop().unwrap().unwrap()
}

#[test]
fn har_timings_add_up_to_setup_request_response_and_last_byte() {
    let row = one(entry());
    assert_eq!(row.arrival_us, 1_450_619_016_694_000);
    assert_eq!(row.setup_us, Some(200_000), "without the TLS handshake");
    assert_eq!(row.request_us, Some(800_250));
    assert_eq!(row.response_us, Some(1_400_750));
    assert_eq!(row.last_byte_us, None, "it is not said");
    let row = one(with("/timings/receive", json!(1)));
    assert_eq!(row.last_byte_us, Some(1_401_750));
    let row = one(with("/timings/connect", json!(-1)));
    assert_eq!(row.setup_us, None);
    assert_eq!(row.request_us, Some(500_250));
    let row = one(with("/timings", json!({})));
    assert_eq!((row.request_us, row.last_byte_us), (None, Some(1_443_650)));
}

#[test]
fn har_entry_fills_the_request_and_response_columns() {
    let row = one(entry());
    assert_eq!(row.method, Some(TraceMethod::Get));
    assert_eq!(row.target_text.as_deref(), Some("https://a.example/x?y"));
    assert_eq!(row.server, Some(Open.server(b"https://a.example:443")));
    assert_eq!(row.version, Some(TraceVersion::Http11));
    assert_eq!(row.has_cookie, Some(true));
    assert_eq!(row.has_authorization, Some(false));
    assert_eq!(row.max_age_s, Some(60));
    let directives = row.response_directives.unwrap();
    assert_ne!(directives & crate::ResponseBit::NoStore.bit(), 0);
    assert_eq!(row.declared_bytes, Some(1234));
    assert_eq!(row.content_type.as_deref(), Some("text/html"));
    assert_eq!(row.is_persistent_client, Some(true));
    assert_eq!(
        (row.request_head_bytes, row.response_head_bytes),
        (Some(300), Some(200))
    );
}

#[test]
fn absent_header_sections_leave_their_columns_empty() {
    let mut entry = with("/request/headers", json!([]));
    entry["response"]["headers"] = Value::Null;
    let row = one(entry);
    assert_eq!((row.has_cookie, row.has_set_cookie), (None, None));
    assert_eq!(row.has_query, Some(true));
    assert_eq!(row.status, Some(200));
    assert_eq!(row.content_type.as_deref(), Some("text/plain"));
}

#[test]
fn received_bytes_are_the_transfer_size_else_content_size_and_0_for_304() {
    assert_eq!(one(entry()).received_bytes, Some(1234));
    let unknown = with("/response/bodySize", json!(-1));
    assert_eq!(one(unknown.clone()).received_bytes, Some(9999));
    let mut neither = unknown;
    neither["response"]["content"] = Value::Null;
    assert_eq!(one(neither).received_bytes, None);
    let stored = with("/response/status", json!(304));
    assert_eq!(one(stored).received_bytes, Some(0), "Firebug's quirk");
}

#[test]
fn entry_without_a_response_has_no_status_and_may_be_aborted() {
    for status in [json!(0), json!(-2), json!(""), Value::Null] {
        let row = one(with("/response/status", status));
        assert_eq!(row.status, None);
        assert_eq!(row.has_set_cookie, None);
    }
    let mut aborted = with("/response/status", json!(0));
    aborted["response"]["statusText"] = json!("Aborted");
    assert_eq!(one(aborted).aborted_by, Some(AbortedBy::Client));
    let aborted = with("/response/_error", json!("net::ERR_ABORTED"));
    assert_eq!(one(aborted).aborted_by, Some(AbortedBy::Client));
    let reset = with("/response/_error", json!("net::ERR_CONNECTION_RESET"));
    assert_eq!(one(reset).aborted_by, Some(AbortedBy::Server));
    assert_eq!(one(with("/response", Value::Null)).status, None);
}

#[test]
fn firefox_port_is_not_a_connection_id_and_a_chrome_socket_is() {
    let port = with("/connection", json!("443"));
    let found = everyway(archive(&[port]).as_bytes());
    assert_eq!(found[0].as_ref().unwrap().connection, None);
    assert_eq!(one(with("/connection", json!("0"))).connection, None);
    let socket = with("/connection", Value::Null);
    assert_eq!(one(socket.clone()).connection, None);
    let mut socket = socket;
    socket["_socket"] = json!(18);
    assert!(one(socket).connection.is_some());
}

#[test]
fn requests_are_numbered_within_their_connection() {
    let other = with("/connection", json!("7"));
    let found = by_chrome(&[entry(), other, entry()]);
    let rows: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(rows[0].connection, rows[2].connection);
    assert_ne!(rows[0].connection, rows[1].connection);
    let counts: Vec<_> = rows.iter().map(|row| row.connection_sequence).collect();
    assert_eq!(counts, [Some(1), Some(1), Some(2)]);
}

#[test]
fn two_archives_have_different_clients_and_connections() {
    let text = archive(&[entry()]).replace("Firefox", "x");
    let row = |input| {
        let settings = Settings {
            input,
            ..Settings::new(&Open)
        };
        let mut rows = open(text.as_bytes(), None, settings).unwrap().rows;
        rows.next().unwrap().unwrap()
    };
    assert_ne!(row(0).client, row(1).client);
    assert_ne!(row(0).connection, row(1).connection);
    assert_eq!(row(0).target, row(1).target);
}

#[test]
fn entries_without_a_network_request_are_dropped_and_counted() {
    let entries = [
        with("/request/url", json!("data:image/gif;base64,AAAA")),
        with("/request/url", json!("chrome-extension://abc/x.js")),
        with("/_fromCache", json!("memory")),
        with("/_fetchedViaServiceWorker", json!(true)),
        with("/response/_error", json!("net::ERR_BLOCKED_BY_CLIENT")),
        with("/_fromCache", json!(false)),
    ];
    let text = archive(&entries);
    let mut rows = open(text.as_bytes(), None, Settings::new(&Open))
        .unwrap()
        .rows;
    assert!(rows.next().unwrap().is_ok());
    assert!(rows.next().is_none());
    let dropped: Vec<_> = rows.dropped().iter().collect();
    assert_eq!(
        dropped,
        [(reason::BROWSER_CACHE, 2), (reason::NO_REQUEST, 3)]
    );
}

fn damage(text: &str, says: &str, goes_on: bool) {
    let found = all(text.as_bytes(), Some(Format::Har));
    let damaged = found.iter().find_map(|item| item.as_ref().err());
    let damaged = damaged.unwrap_or_else(|| panic!("nothing is wrong with {text}"));
    assert!(damaged.to_string().contains(says), "{damaged}");
    assert_eq!(damaged.goes_on, goes_on, "{damaged}");
    assert_eq!(found.last().unwrap().is_ok(), goes_on, "{damaged}");
}

#[test]
fn damaged_archive_is_reported_with_its_place_and_cause() {
    let bad = |bad: Value| archive(&[entry(), bad, entry()]);
    damage(
        &bad(json!({})),
        "entry 2: it is not an entry: missing field `startedDateTime`",
        true,
    );
    damage(&bad(json!(7)), "entry 2", true);
    damage(
        &bad(with("/request/url", Value::Null)),
        "missing field `url`",
        true,
    );
    damage(
        &bad(with("/startedDateTime", json!("today"))),
        "startedDateTime `today`",
        true,
    );
    damage("{}", "no list `entries`", false);
    damage(r#"{"log": {"version": "1.2"}}"#, "no list `entries`", false);
    damage(r#"{"log": []}"#, "`[` at byte 8 is not an object", false);
    damage(r#"{"log": {"entries": {}}}"#, "is not a list", false);
    damage(r#"{"log" {}}"#, "is not a colon", false);
    damage(r#"{"a": 1 "b": 2}"#, "is not a comma", false);
    damage(r#"{"a": }"#, "is not a value", false);
    damage("[]", "not the beginning of an archive", false);
    let whole = archive(&[entry(), entry()]);
    let within = whole.rfind("startedDateTime").unwrap();
    damage(
        &whole[..within],
        "entry 2: the end comes within the archive",
        false,
    );
    damage(&format!("{whole} x"), "`x` at byte", false);
}

#[test]
fn member_order_and_whitespace_do_not_change_the_rows() {
    let pretty = serde_json::to_string_pretty(&json!({
        "zero": 0, "one": "1", "two": [{}], "three": null, "four": -1.5e3,
        "log": { "entries": [entry()], "version": "1.2" },
    }))
    .unwrap();
    let found = everyway(format!("\u{feff}\r\n{pretty}\n").as_bytes());
    assert_eq!(
        found,
        everyway(archive(&[entry()]).replace("Firefox", "").as_bytes())
    );
    let two = format!("{pretty}\n{pretty}");
    assert_eq!(everyway(two.as_bytes()).len(), 2);
    assert_eq!(everyway(archive(&[]).as_bytes()), []);
}
