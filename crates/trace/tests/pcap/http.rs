//! Requests and responses in streams that are whole.

use weir_trace::{AbortedBy, Row, TraceMethod, TraceVersion};

use crate::conversation::{Conversation, START_US, STEP_US, Side};
use crate::invariants::OPEN;
use crate::{CONTENT, GET, OK, import_conversation, import_conversations};

/// Method, status, content bytes and the side that ended it, of each row.
fn check(conversation: &Conversation, expected: &[(TraceMethod, u16, u64)]) -> Vec<Row> {
    let (rows, counts) = import_conversation(conversation);
    let said: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.method.unwrap(),
                row.status.unwrap_or(0),
                row.received_bytes.unwrap_or(u64::MAX),
            )
        })
        .collect();
    assert_eq!(said, expected, "{counts:?}");
    for row in &rows {
        assert_eq!(row.aborted_by, Some(AbortedBy::Neither), "{row:?}");
    }
    rows
}

#[test]
fn row_times_are_those_of_its_packets() {
    let mut conversation = Conversation::open();
    // SYN 0, SYN-ACK 1, ACK 2 ms
    conversation
        .wait(4_000)
        .send(Side::Client, &GET.as_bytes()[..10]);
    conversation
        .send(Side::Client, &GET.as_bytes()[10..])
        .wait(50_000);
    let answered_us = conversation.now_us - START_US;
    conversation
        .send(Side::Server, &OK.as_bytes()[..20])
        .send(Side::Server, &OK.as_bytes()[20..]);
    conversation
        .wait(1_000)
        .send(Side::Server, &CONTENT.as_bytes()[..4]);
    conversation
        .wait(2_000)
        .answer(&CONTENT[4..])
        .wait(1_000_000);
    let again_us = conversation.now_us;
    conversation
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let (rows, _) = import_conversation(&conversation);
    let us = |row: &Row| {
        [
            row.setup_us,
            row.request_us,
            row.response_us,
            row.first_byte_us,
            row.last_byte_us,
        ]
    };
    let answered = u64::try_from(answered_us).unwrap();
    assert_eq!(rows[0].arrival_us, START_US);
    assert_eq!(
        us(&rows[0]),
        [
            Some(1_000),
            Some(7_000),
            Some(answered),
            Some(answered + 3_000),
            Some(answered + 6_000)
        ]
    );
    assert_eq!(rows[1].arrival_us, again_us);
    assert_eq!(
        us(&rows[1]),
        [None, Some(0), Some(2_000), Some(2_000), Some(2_000)]
    );
    assert_eq!(
        rows.iter()
            .map(|row| row.connection_sequence)
            .collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
    assert_eq!(rows[0].client, Some(OPEN.client("192.0.2.7")));
    assert_eq!(rows[0].server, Some(OPEN.server("http", "a.example:80")));
    assert_eq!(rows[0].target_text.as_deref(), Some("http://a.example/a"));
    assert_eq!(rows[0].request_head_bytes, Some(36));
    assert_eq!(rows[0].response_head_bytes, Some(39));
    assert_eq!(rows[0].version, Some(TraceVersion::Http11));
}

#[test]
fn pipelined_responses_are_matched_to_requests_in_order() {
    let mut conversation = Conversation::open();
    let requests: String = (0..5)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .collect();
    conversation.ask(&requests);
    let responses: String = (0..5)
        .map(|n| {
            format!(
                "HTTP/1.1 50{n} OK\r\nContent-Length: {n}\r\n\r\n{}",
                &CONTENT[..n]
            )
        })
        .collect();
    conversation.answer(&responses).close();
    let get = TraceMethod::Get;
    let rows = check(
        &conversation,
        &[
            (get, 500, 0),
            (get, 501, 1),
            (get, 502, 2),
            (get, 503, 3),
            (get, 504, 4),
        ],
    );
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row.target_text, Some(format!("http://a/{n}")));
        assert_eq!(row.connection_sequence, u32::try_from(n + 1).ok());
    }
}

#[test]
fn response_to_head_304_and_204_has_no_content() {
    let mut conversation = Conversation::open();
    conversation
        .ask("HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n")
        .answer("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
    conversation
        .ask(GET)
        .answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n");
    conversation
        .ask(GET)
        .answer("HTTP/1.1 204 No Content\r\n\r\n");
    conversation
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let get = TraceMethod::Get;
    let rows = check(
        &conversation,
        &[
            (TraceMethod::Head, 200, 0),
            (get, 304, 0),
            (get, 204, 0),
            (get, 200, 10),
        ],
    );
    assert_eq!(rows[0].declared_bytes, Some(99));
    assert!(
        rows.iter()
            .all(|row| row.is_persistent_client == Some(true))
    );
}

#[test]
fn chunk_framing_is_not_counted_as_content() {
    let mut conversation = Conversation::open();
    conversation.ask(
        "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    conversation.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\nTrailer: t\r\n\r\n");
    conversation
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let rows = check(
        &conversation,
        &[(TraceMethod::Post, 200, 10), (TraceMethod::Get, 200, 10)],
    );
    assert_eq!(rows[0].request_content_bytes, Some(3));
    assert_eq!(rows[0].declared_bytes, None);
}

#[test]
fn interim_response_is_not_the_final_response() {
    let mut conversation = Conversation::open();
    let post = "POST /p HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    conversation
        .ask(post)
        .answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\n")
        .ask("12345");
    conversation.answer(&format!("{OK}{CONTENT}"));
    // refused: the content never comes, another request does
    conversation
        .ask(post)
        .answer("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
    conversation
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let rows = check(
        &conversation,
        &[
            (TraceMethod::Post, 200, 10),
            (TraceMethod::Post, 417, 0),
            (TraceMethod::Get, 200, 10),
        ],
    );
    assert_eq!(rows[0].request_content_bytes, Some(5));
    assert_eq!(import_conversation(&conversation).1.interim, 2);
}

#[test]
fn content_delimited_by_close_is_complete_at_the_close() {
    let mut conversation = Conversation::open();
    conversation
        .ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        .answer("HTTP/1.0 200 OK\r\n\r\nabc")
        .answer("def")
        .close();
    let rows = check(&conversation, &[(TraceMethod::Get, 200, 6)]);
    assert_eq!(rows[0].is_persistent_client, Some(false));
    assert_eq!(
        rows[0].target_text.as_deref(),
        Some("http://198.51.100.1/a")
    );
    assert_eq!(rows[0].version, Some(TraceVersion::Http10));
}

#[test]
fn http_0_9_request_has_a_row_with_its_content() {
    let mut conversation = Conversation::open();
    conversation
        .ask("GET /old\r\n")
        .answer("<html>")
        .answer("</html>")
        .close();
    let rows = check(&conversation, &[(TraceMethod::Get, 0, 13)]);
    assert_eq!(rows[0].version, Some(TraceVersion::Http09));
    assert_eq!(
        rows[0].target_text.as_deref(),
        Some("http://198.51.100.1/old")
    );
}

#[test]
fn bytes_after_a_successful_connect_or_upgrade_are_opaque_content() {
    let mut conversation = Conversation::open();
    conversation.ask("CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n");
    conversation.answer("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
    conversation.ask("CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n");
    conversation
        .answer("HTTP/1.1 200 OK\r\n\r\n")
        .ask("GET / HTTP/1.1\r\n\r\n")
        .answer("HTTP/1.1 500 No\r\n\r\n")
        .close();
    let rows = check(
        &conversation,
        &[
            (TraceMethod::Connect, 407, 0),
            (TraceMethod::Connect, 200, 19),
        ],
    );
    assert_eq!(rows[1].request_content_bytes, Some(18));
    assert_eq!(rows[1].target_text.as_deref(), Some("b.example:443"));
    let mut conversation = Conversation::open();
    let upgrade =
        "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    conversation
        .ask(upgrade)
        .answer(&format!("{OK}{CONTENT}"))
        .ask(upgrade);
    conversation
        .answer("HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
        .ask("\x01\x02")
        .answer("\x03")
        .close();
    check(
        &conversation,
        &[(TraceMethod::Get, 200, 10), (TraceMethod::Get, 101, 1)],
    );
}

#[test]
fn malformed_header_sections_of_real_servers_are_readable() {
    let mut conversation = Conversation::open();
    conversation.ask("GET /a b HTTP/1.0\nHost : A.example\nX-Long: a\n b\n\n");
    conversation
        .answer("HTTP/1.1 200\nContent-Length: 10\nContent-Length: 10\nno colon\n\n0123456789");
    conversation
        .ask(GET)
        .answer("HTTP/1.0 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc");
    conversation.ask(GET).answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n").close();
    let get = TraceMethod::Get;
    let rows = check(
        &conversation,
        &[(get, 200, 10), (get, 200, 3), (get, 200, 1)],
    );
    assert_eq!(
        rows[0].target_text.as_deref(),
        Some("http://a.example/a%20b")
    );
    assert_eq!(import_conversation(&conversation).1.repaired, 2);
}

#[test]
fn connection_is_persistent_only_if_request_and_response_allow_it() {
    let check = |request: &str, response: &str, expected: bool| {
        let mut conversation = Conversation::open();
        conversation
            .ask(&format!("GET / {request}\r\n\r\n"))
            .answer(&format!("{response}\r\nContent-Length: 0\r\n\r\n"))
            .close();
        assert_eq!(
            import_conversation(&conversation).0[0].is_persistent_client,
            Some(expected),
            "{request} {response}"
        );
    };
    check("HTTP/1.1\r\nHost: a", "HTTP/1.1 200 OK", true);
    check(
        "HTTP/1.1\r\nHost: a\r\nConnection: close",
        "HTTP/1.1 200 OK",
        false,
    );
    check(
        "HTTP/1.1\r\nHost: a",
        "HTTP/1.1 200 OK\r\nConnection: x, Close",
        false,
    );
    check("HTTP/1.0", "HTTP/1.0 200 OK", false);
    check(
        "HTTP/1.0\r\nConnection: keep-alive",
        "HTTP/1.0 200 OK",
        false,
    );
    check(
        "HTTP/1.0\r\nProxy-Connection: Keep-Alive",
        "HTTP/1.0 200 OK\r\nProxy-Connection: keep-alive",
        true,
    );
    check(
        "HTTP/1.0\r\nConnection: keep-alive",
        "HTTP/1.1 200 OK",
        true,
    );
}

#[test]
fn variant_is_of_the_request_that_is_answered() {
    let variant = |encodings: [&str; 2]| {
        let mut conversation = Conversation::open();
        let request =
            |encoding| format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {encoding}\r\n\r\n");
        conversation.ask(&encodings.map(request).concat());
        let response = "HTTP/1.1 200 OK\r\nVary: accept-encoding\r\nContent-Length: 0\r\n\r\n";
        conversation.answer(response).answer(response).close();
        let rows = import_conversation(&conversation).0;
        assert_eq!(rows[0].vary, rows[1].vary);
        (rows[0].variant, rows[1].variant)
    };
    let (gzip, none) = variant(["gzip", "identity"]);
    assert_ne!(gzip, none);
    assert_eq!(variant(["identity", "gzip"]), (none, gzip));
}

#[test]
fn non_http_connection_is_counted_and_has_no_row() {
    let mut ssh = Conversation::open();
    ssh.answer("SSH-2.0-OpenSSH\r\n")
        .ask("SSH-2.0-other\r\n")
        .answer("\x00\x01\x02")
        .close();
    let mut tls = Conversation::open();
    tls.ask("\x16\x03\x01\x00\x05hello")
        .answer("\x16\x03\x03")
        .close();
    let mut smtp = Conversation::open();
    smtp.answer("220 mail\r\n")
        .ask("EHLO me\r\n")
        .answer("250 ok\r\n")
        .close();
    for conversation in [ssh, tls, smtp] {
        let (rows, counts) = import_conversation(&conversation);
        assert_eq!(rows, []);
        assert_eq!(
            (counts.not_http, counts.requests, counts.connections),
            (1, 0, 1),
            "{counts:?}"
        );
    }
}

#[test]
fn rows_are_given_in_order_of_arrival_not_of_completion() {
    let mut long = Conversation::open();
    let mut short = Conversation::between("192.0.2.8:50000", "198.51.100.1:80", 5, 6);
    long.ask(GET).answer(OK);
    short
        .later(100 * STEP_US)
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    long.wait(10_000 * STEP_US).answer(CONTENT).close();
    let (rows, counts) = import_conversations(&[&short, &long]);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].arrival_us, START_US);
    assert!(rows[0].last_byte_us > rows[1].last_byte_us);
    assert_ne!(rows[0].connection, rows[1].connection);
    assert_eq!(counts.late, 0);
}

#[test]
fn unanswered_requests_are_held_up_to_a_limit() {
    let mut conversation = Conversation::open();
    for _ in 0..5_000 {
        conversation.send(Side::Client, GET.as_bytes());
    }
    conversation.close();
    let (rows, counts) = import_conversation(&conversation);
    assert_eq!((rows.len(), counts.overdue), (5_000, 904));
    assert_eq!(
        (rows[0].aborted_by, rows[4_999].aborted_by),
        (None, Some(AbortedBy::Server))
    );
    assert!(rows.iter().all(|row| row.status.is_none()));
}
