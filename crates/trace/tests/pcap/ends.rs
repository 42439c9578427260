//! How transactions end.

use weir_trace::{AbortedBy, Row};

use crate::conversation::{Conversation, STEP_US, Side};
use crate::{CONTENT, GET, OK, import_conversation};

const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
const CLOSE: &str = "HTTP/1.1 200 OK\r\n\r\n";

/// One request, what follows it, and how its row ends.
fn check(
    conversation: impl Fn(&mut Conversation) -> &mut Conversation,
    received: u64,
    by: Option<AbortedBy>,
) -> Row {
    let mut whole = Conversation::open();
    whole.ask(GET);
    conversation(&mut whole);
    let (rows, counts) = import_conversation(&whole);
    assert_eq!(rows.len(), 1, "{counts:?}");
    assert_eq!(
        (rows[0].received_bytes, rows[0].aborted_by),
        (Some(received), by),
        "{:?}",
        rows[0]
    );
    rows.into_iter().next().unwrap()
}

#[test]
fn abort_is_attributed_to_the_side_that_ended_the_connection() {
    use AbortedBy::{Client, Neither, Server};
    use Side::{Client as C, Server as S};
    // a declared length
    check(|t| t.answer(LONG).answer(CONTENT).rst(C), 10, Some(Client));
    check(
        |t| t.answer(LONG).answer(CONTENT).fin(C).fin(S),
        10,
        Some(Client),
    );
    check(
        |t| t.answer(LONG).answer(CONTENT).fin(S).fin(C),
        10,
        Some(Server),
    );
    check(|t| t.answer(LONG).answer(CONTENT).rst(S), 10, Some(Server));
    check(|t| t.answer(LONG).answer(CONTENT), 10, None);
    check(|t| t.answer(OK).answer(CONTENT).rst(C), 10, Some(Neither));
    check(|t| t.answer(OK).answer(CONTENT).rst(S), 10, Some(Neither));
    check(
        |t| t.answer(OK).fin(C).answer(CONTENT).fin(S),
        10,
        Some(Neither),
    );
    // content that ends with the connection
    check(
        |t| t.answer(CLOSE).answer(CONTENT).fin(S).fin(C),
        10,
        Some(Neither),
    );
    check(
        |t| t.answer(CLOSE).answer(CONTENT).fin(S).rst(C),
        10,
        Some(Neither),
    );
    check(|t| t.answer(CLOSE).answer(CONTENT).rst(C), 10, Some(Client));
    check(
        |t| t.answer(CLOSE).answer(CONTENT).fin(C).fin(S),
        10,
        Some(Client),
    );
    check(|t| t.answer(CLOSE).answer(CONTENT).rst(S), 10, Some(Server));
    check(|t| t.answer(CLOSE).answer(CONTENT), 10, None);
    // chunks without an end
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n";
    check(|t| t.answer(chunked).fin(S).fin(C), 10, Some(Server));
    check(|t| t.answer(chunked).rst(C), 10, Some(Client));
    // no response at all
    check(|t| t.rst(C), 0, Some(Client));
    check(|t| t.fin(S).fin(C), 0, Some(Server));
    check(|t| t.fin(C).fin(S), 0, Some(Client));
}

#[test]
fn client_that_closed_its_sending_side_has_not_aborted() {
    use AbortedBy::{Neither, Server};
    use Side::{Client as C, Server as S};
    check(
        |t| t.fin(C).answer(OK).answer(CONTENT).fin(S),
        10,
        Some(Neither),
    );
    check(
        |t| t.fin(C).answer(CLOSE).answer(CONTENT).fin(S),
        10,
        Some(Neither),
    );
    check(
        |t| t.fin(C).answer(LONG).answer(CONTENT).fin(S),
        10,
        Some(Server),
    );
}

#[test]
fn bytes_sent_after_the_client_closed_are_not_counted_as_received() {
    use Side::{Client as C, Server as S};
    // it closes, what is in flight comes to a socket that is gone, and is reset
    let row = check(
        |t| {
            t.answer(LONG)
                .answer(CONTENT)
                .fin(C)
                .send(S, b"abc")
                .send(S, b"def")
                .rst(C)
                .send(S, b"ghi")
        },
        10,
        Some(AbortedBy::Client),
    );
    assert_eq!(row.is_persistent_client, Some(false));
    let row = check(
        |t| {
            t.answer(LONG)
                .answer(CONTENT)
                .rst(C)
                .send(S, b"ghi")
                .send(S, OK.as_bytes())
        },
        10,
        Some(AbortedBy::Client),
    );
    assert_eq!(row.declared_bytes, Some(100));
    // 7 ms after the SYN
    assert_eq!(row.last_byte_us, u64::try_from(7 * STEP_US).ok());
}

#[test]
fn refused_connection_is_counted_and_has_no_row() {
    let mut conversation = Conversation::open();
    conversation.segments.truncate(1);
    conversation.push(Side::Server, b"", |segment| {
        segment.is_rst = true;
        segment.sequence = 0;
        segment.acknowledgement = Some(1001);
    });
    let (rows, counts) = import_conversation(&conversation);
    assert_eq!(rows, []);
    assert_eq!(
        (counts.refused, counts.resets, counts.connections),
        (1, 1, 1)
    );
}

#[test]
fn reset_outside_the_window_is_ignored() {
    let mut conversation = Conversation::open();
    conversation.ask(GET).answer(LONG);
    conversation.push(Side::Client, b"", |segment| {
        segment.is_rst = true;
        segment.sequence = segment.sequence.wrapping_add(1 << 30);
    });
    conversation.answer(&CONTENT.repeat(10)).close();
    let (rows, counts) = import_conversation(&conversation);
    assert_eq!(
        (rows[0].received_bytes, rows[0].aborted_by),
        (Some(100), Some(AbortedBy::Neither))
    );
    assert_eq!((counts.foreign, counts.resets), (1, 0));
}

#[test]
fn silent_connection_is_given_up_after_an_hour() {
    // an hour and more of silence, then another connection: the first is given up and its row
    // leaves
    let mut conversation = Conversation::open();
    conversation.ask(GET).answer(LONG);
    let mut other = Conversation::between("192.0.2.8:50000", "198.51.100.1:80", 5, 6);
    other
        .later(3_700_000_000)
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let (rows, counts) = crate::import_conversations(&[&conversation, &other]);
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (rows[0].aborted_by, rows[0].received_bytes),
        (None, Some(0))
    );
    assert_eq!((counts.given_up, counts.late), (1, 0));
}
