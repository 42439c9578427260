//! Playbooks: on this event expect this, the whole conversation compared.

use super::*;

/// What the inspector saw, in the order of the conversation.
#[derive(Debug, Default)]
struct Witness {
    seen: Vec<String>,
    /// Breaks off when it has seen so many bytes of content.
    enough: Option<usize>,
    content_bytes: usize,
}

impl Inspect for Witness {
    fn head(&mut self, head: &ResponseHead<'_, '_>, bytes: &[u8]) {
        assert!(bytes.ends_with(b"\r\n\r\n"));
        self.seen.push(format!("head {}", head.status));
    }

    fn content(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.content_bytes += bytes.len();
        self.seen
            .push(format!("content {}", String::from_utf8_lossy(bytes)));
        if self
            .enough
            .is_some_and(|enough| self.content_bytes >= enough)
        {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

const GET: Event<'_> = Event::Ask {
    method: Method::Get,
    keep: true,
};

const KEPT: &str = "Finish { ending: Whole { until_close: false }, keep: true }";
const LAST: &str = "Finish { ending: Whole { until_close: false }, keep: false }";

fn play(witness: &mut Witness, book: &[(Event<'_>, &[&str])]) {
    let mut connection = Connection::new();
    for (line, (event, expected)) in book.iter().enumerate() {
        let command = connection.handle(*event, witness);
        let mut said = std::mem::take(&mut witness.seen);
        said.push(format!("{command:?}"));
        assert_eq!(said, *expected, "line {line}: {event:?}");
    }
}

fn check(book: &[(Event<'_>, &[&str])]) {
    play(&mut Witness::default(), book);
}

/// A response to a GET on a fresh connection.
fn check_response(pieces: &[&[u8]], expected: &[&str]) {
    let mut witness = Witness::default();
    let mut connection = Connection::new();
    for event in [GET, Event::Connected, Event::Sent] {
        connection.handle(event, &mut witness);
    }
    for piece in pieces {
        let command = connection.handle(Event::Bytes(piece), &mut witness);
        witness.seen.push(format!("{command:?}"));
    }
    assert_eq!(witness.seen, expected);
}

#[test]
fn persistent_connection_is_reused_until_the_peer_closes_it() {
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    check(&[
        (GET, &["Connect"]),
        (Event::Connected, &["Send"]),
        (Event::Sent, &["Receive"]),
        (Event::Bytes(ok), &["head 200", "content hi", KEPT]),
        (GET, &["Send"]),
        (Event::Sent, &["Receive"]),
        (Event::Bytes(ok), &["head 200", "content hi", KEPT]),
        (Event::Closed, &["Close"]),
        (GET, &["Connect"]),
    ]);
}

#[test]
fn connection_is_kept_only_when_both_sides_agree() {
    let close = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    check_response(&[close], &["head 200", LAST]);
    let old = b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n";
    check_response(&[old], &["head 200", LAST]);
    let old_kept = b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nProxy-Connection: Keep-Alive\r\n\r\n";
    check_response(&[old_kept], &["head 200", KEPT]);
    let once = Event::Ask {
        method: Method::Get,
        keep: false,
    };
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    check(&[
        (once, &["Connect"]),
        (Event::Connected, &["Send"]),
        (Event::Sent, &["Receive"]),
        (Event::Bytes(ok), &["head 200", LAST]),
        (once, &["Connect"]),
    ]);
}

#[test]
fn header_section_split_at_any_byte_is_read_the_same() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    for at in 1..whole.len() - 3 {
        let (first, rest) = whole.split_at(at);
        check_response(
            &[first, rest],
            &["Receive", "head 200", "content abc", KEPT],
        );
    }
    let (first, rest) = whole.split_at(whole.len() - 2);
    check_response(
        &[first, rest],
        &["head 200", "content a", "Receive", "content bc", KEPT],
    );
}

#[test]
fn chunked_content_is_delivered_without_its_framing() {
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    let expected = ["head 200", "content ab", "content c", KEPT];
    check_response(&[chunked], &expected);
}

#[test]
fn interim_responses_are_skipped_and_endless_ones_are_unreadable() {
    let early = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    check_response(&[early], &["head 200", KEPT]);
    let unfinished = &early[..early.len() - 10];
    check_response(
        &[unfinished, &early[early.len() - 10..]],
        &["Receive", "head 200", KEPT],
    );
    let endless = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(9);
    let said = "Finish { ending: Unreadable(\"endless interim responses, or an unrequested switch of protocols\"), keep: false }";
    check_response(&[&endless], &[said]);
}

#[test]
fn response_to_head_ends_after_the_header_section() {
    let head = Event::Ask {
        method: Method::Head,
        keep: true,
    };
    check(&[
        (head, &["Connect"]),
        (Event::Connected, &["Send"]),
        (Event::Sent, &["Receive"]),
        (
            Event::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
            &["head 200", KEPT],
        ),
    ]);
}

#[test]
fn truncated_response_fails_with_early_close() {
    let early = "Finish { ending: Failed(EarlyClose), keep: false }";
    let start: [(Event<'_>, &[&str]); 3] = [
        (GET, &["Connect"]),
        (Event::Connected, &["Send"]),
        (Event::Sent, &["Receive"]),
    ];
    let cut: [(Event<'_>, &[&str]); 2] = [
        (
            Event::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
            &["head 200", "content abc", "Receive"],
        ),
        (Event::Closed, &[early]),
    ];
    check(&[&start[..], &cut].concat());
    let in_head: [(Event<'_>, &[&str]); 2] = [
        (Event::Bytes(b"HTTP/1.1 200 OK\r\nCont"), &["Receive"]),
        (Event::Closed, &[early]),
    ];
    check(&[&start[..], &in_head].concat());
    let to_close: [(Event<'_>, &[&str]); 2] = [
        (
            Event::Bytes(b"HTTP/1.0 200 OK\r\n\r\nabc"),
            &["head 200", "content abc", "Receive"],
        ),
        (
            Event::Closed,
            &["Finish { ending: Whole { until_close: true }, keep: false }"],
        ),
    ];
    check(&[&start[..], &to_close].concat());
}

#[test]
fn reused_connection_closed_before_any_response_byte_is_stale() {
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let used: [(Event<'_>, &[&str]); 6] = [
        (GET, &["Connect"]),
        (Event::Connected, &["Send"]),
        (Event::Sent, &["Receive"]),
        (Event::Bytes(ok), &["head 200", KEPT]),
        (GET, &["Send"]),
        (Event::Sent, &["Receive"]),
    ];
    let closed: [(Event<'_>, &[&str]); 1] = [(
        Event::Closed,
        &["Finish { ending: Stale(EarlyClose), keep: false }"],
    )];
    check(&[&used[..], &closed].concat());
    let broken: [(Event<'_>, &[&str]); 1] = [(
        Event::Broken,
        &["Finish { ending: Stale(Reset), keep: false }"],
    )];
    check(&[&used[..], &broken].concat());
    let answered: [(Event<'_>, &[&str]); 2] = [
        (Event::Bytes(b"H"), &["Receive"]),
        (
            Event::Broken,
            &["Finish { ending: Failed(Reset), keep: false }"],
        ),
    ];
    check(&[&used[..], &answered].concat());
}

#[test]
fn failure_on_a_fresh_connection_is_an_error_without_retry() {
    check(&[
        (GET, &["Connect"]),
        (
            Event::NotConnected(ErrorKind::ConnectRefused),
            &["Finish { ending: Failed(ConnectRefused), keep: false }"],
        ),
        (GET, &["Connect"]),
        (
            Event::Silent,
            &["Finish { ending: Failed(ConnectTimeout), keep: false }"],
        ),
        (GET, &["Connect"]),
        (Event::Connected, &["Send"]),
        (
            Event::Broken,
            &["Finish { ending: Failed(Reset), keep: false }"],
        ),
        (GET, &["Connect"]),
        (Event::Connected, &["Send"]),
        (Event::Sent, &["Receive"]),
        (
            Event::Silent,
            &["Finish { ending: Failed(Timeout), keep: false }"],
        ),
        (GET, &["Connect"]),
        (
            Event::Over,
            &["Finish { ending: Failed(Unfinished), keep: false }"],
        ),
    ]);
}

#[test]
fn bytes_after_the_end_of_a_response_close_the_connection() {
    let two = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc";
    check_response(
        &[two],
        &[
            "head 200",
            "content a",
            "Finish { ending: Surplus, keep: false }",
        ],
    );
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    check(&[
        (GET, &["Connect"]),
        (Event::Connected, &["Send"]),
        (Event::Sent, &["Receive"]),
        (Event::Bytes(ok), &["head 200", KEPT]),
        (Event::Bytes(b"more"), &["Close"]),
    ]);
}

#[test]
fn response_is_aborted_when_the_inspector_breaks_off() {
    let mut witness = Witness {
        enough: Some(2),
        ..Witness::default()
    };
    play(
        &mut witness,
        &[
            (GET, &["Connect"]),
            (Event::Connected, &["Send"]),
            (Event::Sent, &["Receive"]),
            (
                Event::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na"),
                &["head 200", "content a", "Receive"],
            ),
            (
                Event::Bytes(b"bcd"),
                &["content bcd", "Finish { ending: Aborted, keep: false }"],
            ),
        ],
    );
}

#[test]
fn malformed_response_ends_as_unreadable_at_once() {
    let head = "Finish { ending: Unreadable(\"the head is not one of HTTP/1\"), keep: false }";
    check_response(&[b"\x16\x03\x01 hello"], &[head]);
    let lengths = "Finish { ending: Unreadable(\"the fields do not say how long the content is\"), keep: false }";
    let two = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab";
    check_response(&[two], &[lengths]);
    let chunks =
        "Finish { ending: Unreadable(\"the chunks of the content are malformed\"), keep: false }";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    check_response(&[chunked], &["head 200", chunks]);
}
