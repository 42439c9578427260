//! Next hops that break the protocol, or send what costs more than it is worth.

use super::super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, block, frame,
};
use super::{Frames, expect_ends, fetch, gateway_to, request, respond, server};
use crate::support::{Config, Curl, Fetched, Nginx, Reply, Weir};
use std::thread;

/// What ends for what a next hop has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Stream,
    Connection,
}

/// A next hop answers the first request as `hostile` does; then another request is served, on the
/// same connection or on another one. What the first client got, if its `end` is as expected.
#[track_caller]
fn against(
    ends: Ends,
    end: Option<&str>,
    hostile: impl FnOnce(&mut Frames, u32) + Send + 'static,
) -> Fetched {
    let listener = server();
    let weir = gateway_to(&listener);
    let next_hop = thread::spawn(move || {
        let mut client = Frames::accept(&listener, &[]);
        let stream = request(&mut client).stream;
        hostile(&mut client, stream);
        if ends == Ends::Connection {
            while client.next().is_some() {}
            client = Frames::accept(&listener, &[]);
        }
        let stream = request(&mut client).stream;
        respond(&mut client, stream, b"other");
        let _ = client.goaway();
    });
    let first = Curl::direct().fetch(&weir.url("/"));
    assert_eq!(fetch(&weir, "/other").expect(200).text(), "other");
    if let Some(end) = end {
        expect_ends(&weir, end, 1);
    }
    expect_nothing_stored(&weir);
    drop(weir);
    next_hop.join().expect("it serves the others");
    first
}

#[track_caller]
fn expect_nothing_stored(weir: &Weir) {
    let metrics = weir.metrics();
    assert_eq!(metrics.count("weir_store_entries"), 0);
    assert_eq!(metrics.count("weir_panics_total"), 0);
}

/// Expects that the client gets 502, and is told that the next hop has broken the protocol.
#[track_caller]
fn expect_502(fetched: Fetched) {
    expect_error(&fetched.reply(), "http_protocol_error");
}

/// Expects a 502 with this type of error (RFC 9209 §2.3).
#[track_caller]
fn expect_error(reply: &Reply, error: &str) {
    let status = reply.field("proxy-status");
    assert_eq!(reply.status(), 502, "{status}");
    assert!(status.contains(&format!(";error={error}")), "{status}");
}

/// A head that permits to store what follows.
fn storable(more: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = vec![(":status", "200"), ("cache-control", "max-age=3600")];
    fields.extend(more);
    block(&fields)
}

#[test]
fn response_that_is_cut_is_never_stored_as_whole() {
    /// Kind, flags and payload of a frame.
    type Sent = (u8, u8, &'static [u8]);
    type Fields = &'static [(&'static str, &'static str)];
    let cases: [(&str, Fields, &[Sent]); 4] = [
        (
            "reset",
            &[],
            &[(DATA, 0, b"part"), (RST_STREAM, 0, &[0, 0, 0, 2])],
        ),
        (
            "short",
            &[("content-length", "9")],
            &[(DATA, END_STREAM, b"part")],
        ),
        (
            "long",
            &[("content-length", "3")],
            &[(DATA, END_STREAM, b"part")],
        ),
        (
            "trailers",
            &[],
            &[(DATA, 0, b"part"), (HEADERS, 5, b"\x00\x01a\x02 b")],
        ),
    ];
    for (name, more, frames) in cases {
        let head = storable(more);
        let frames: Vec<(u8, u8, Vec<u8>)> = frames
            .iter()
            .map(|(kind, flags, payload)| (*kind, *flags, payload.to_vec()))
            .collect();
        let fetched = against(Ends::Stream, None, move |client, stream| {
            client.send(HEADERS, END_HEADERS, stream, &head);
            for (kind, flags, payload) in frames {
                client.send(kind, flags, stream, &payload);
            }
        });
        let is_refused = fetched.exit == 0 && fetched.heads[0].contains(" 502");
        assert!(fetched.exit != 0 || is_refused, "{name}: {fetched:?}");
    }
    let head = storable(&[]);
    let fetched = against(Ends::Connection, Some("closed"), move |client, stream| {
        client.send(HEADERS, END_HEADERS, stream, &head);
        client.send(DATA, 0, stream, b"part");
        client.end();
    });
    assert_ne!(fetched.exit, 0, "{fetched:?}");
}

#[test]
fn head_that_could_frame_a_message_or_end_a_line_is_refused() {
    let fields: [&[(&str, &str)]; 10] = [
        &[("connection", "close")],
        &[("transfer-encoding", "chunked")],
        &[("upgrade", "websocket")],
        &[("keep-alive", "1")],
        &[("a", "b\r\nc: d")],
        &[("a\r\nc", "d")],
        &[("A", "b")],
        &[("a", " b")],
        &[("content-length", "1"), ("content-length", "2")],
        &[(":path", "/")],
    ];
    for more in fields {
        let head = storable(more);
        // some of it the library takes for an error of the connection
        let listener = server();
        let weir = gateway_to(&listener);
        let next_hop = thread::spawn(move || {
            let mut client = Frames::accept(&listener, &[]);
            let stream = request(&mut client).stream;
            client.send(HEADERS, END_HEADERS | END_STREAM, stream, &head);
            let _ = client.goaway();
        });
        expect_error(&fetch(&weir, "/"), "http_protocol_error");
        expect_nothing_stored(&weir);
        drop(weir);
        next_hop.join().expect("it is served");
    }
}

#[test]
fn switch_of_protocols_is_refused() {
    let fetched = against(Ends::Stream, None, |client, stream| {
        let head = block(&[(":status", "101")]);
        client.send(HEADERS, END_HEADERS, stream, &head);
    });
    expect_502(fetched);
}

#[test]
fn next_hop_that_goes_away_has_broken_no_protocol() {
    type Leave = fn(&mut Frames, u32);
    let leave: [(Ends, Leave); 3] = [
        (Ends::Stream, |client, stream| {
            client.send(RST_STREAM, 0, stream, &[0, 0, 0, 2]);
        }),
        (Ends::Connection, |client, _| client.end()),
        (Ends::Connection, |client, stream| {
            // it acts upon the request, and says that it ends for an error
            let mut payload = stream.to_be_bytes().to_vec();
            payload.extend([0, 0, 0, 2]);
            client.send(GOAWAY, 0, 0, &payload);
            client.end();
        }),
    ];
    for (ends, leave) in leave {
        let fetched = against(ends, None, leave);
        expect_error(&fetched.reply(), "connection_terminated");
    }
}

#[test]
fn server_that_does_not_speak_http2_breaks_the_protocol() {
    let nginx = Nginx::start("");
    let weir = Weir::serve(&Config::gateway(&[&nginx.origin()]).route_http2(true));
    expect_error(&fetch(&weir, "/"), "http_protocol_error");
}

#[test]
fn head_of_too_many_fields_or_bytes_is_refused() {
    let many: Vec<String> = (0..1100).map(|number| format!("x-{number}")).collect();
    let fields: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "a")).collect();
    let head = storable(&fields);
    expect_502(against(Ends::Stream, None, move |client, stream| {
        client.send(HEADERS, END_HEADERS | END_STREAM, stream, &head);
    }));
    let long = "a".repeat(9000);
    let fields: Vec<(&str, &str)> = many[..8]
        .iter()
        .map(|name| (name.as_str(), long.as_str()))
        .collect();
    let head = storable(&fields);
    expect_502(against(Ends::Stream, None, move |client, stream| {
        let mut pieces = head.chunks(16_000).peekable();
        let mut kind = HEADERS;
        while let Some(piece) = pieces.next() {
            let ends = if pieces.peek().is_none() {
                END_HEADERS
            } else {
                0
            };
            client.write(&frame(kind, ends, stream, piece));
            kind = CONTINUATION;
        }
    }));
}

#[test]
fn interim_responses_reach_the_client_and_are_bounded() {
    let listener = server();
    let weir = gateway_to(&listener);
    let next_hop = thread::spawn(move || {
        let mut client = Frames::accept(&listener, &[]);
        let stream = request(&mut client).stream;
        let early = block(&[(":status", "103"), ("link", "</a>; rel=preload")]);
        client.send(HEADERS, END_HEADERS, stream, &early);
        respond(&mut client, stream, b"final");
        let stream = request(&mut client).stream;
        while client.send(HEADERS, END_HEADERS, stream, &early) {}
    });
    let fetched = Curl::direct().fetch(&weir.url("/"));
    assert!(fetched.heads[0].contains(" 103"), "{fetched:?}");
    assert_eq!(fetched.reply().text(), "final");
    expect_error(&fetch(&weir, "/endless"), "http_protocol_error");
    expect_ends(&weir, "control", 1);
    next_hop.join().expect("it ends");
}

#[test]
fn frames_without_a_response_end_the_connection() {
    /// Its name, kind and flags of its frames, whether they are of a stream, their payload, and why
    /// the connection ends.
    type FloodOf = (&'static str, u8, u8, bool, &'static [u8], &'static str);
    let floods: [FloodOf; 6] = [
        ("PING", PING, 0, false, &[0; 8], "control"),
        ("SETTINGS", SETTINGS, 0, false, &[], "control"),
        ("empty DATA", DATA, 0, true, &[], "protocol"),
        (
            "WINDOW_UPDATE",
            WINDOW_UPDATE,
            0,
            false,
            &[0, 0, 0, 1],
            "window-updates",
        ),
        ("unknown frames", 99, 0, false, &[], "control"),
        ("PRIORITY", 2, 0, true, &[0, 0, 0, 0, 1], "control"),
    ];
    for (name, kind, flags, on_stream, payload, end) in floods {
        let payload = payload.to_vec();
        let head = storable(&[]);
        let fetched = against(Ends::Connection, Some(end), move |client, stream| {
            client.send(HEADERS, END_HEADERS, stream, &head);
            let stream = if on_stream { stream } else { 0 };
            // what it sends back is read, so that nothing else ends it
            for _ in 0..5000 {
                client.send(kind, flags, stream, &payload);
            }
        });
        assert_ne!(fetched.exit, 0, "{name}: {fetched:?}");
    }
}

#[test]
fn continuation_without_an_end_ends_the_connection() {
    let fetched = against(Ends::Connection, None, |client, stream| {
        client.send(HEADERS, 0, stream, &storable(&[]));
        while client.send(CONTINUATION, 0, stream, &[0; 0]) {}
    });
    expect_502(fetched);
}

#[test]
fn promised_response_ends_the_connection() {
    const PUSH_PROMISE: u8 = 5;
    let fetched = against(Ends::Connection, Some("protocol"), |client, stream| {
        let mut payload = 2_u32.to_be_bytes().to_vec();
        payload.extend(super::super::frames::block(&super::super::frames::get(
            "/pushed",
        )));
        client.send(PUSH_PROMISE, END_HEADERS, stream, &payload);
    });
    expect_502(fetched);
}

#[test]
fn content_beyond_the_window_ends_its_stream() {
    let fetched = against(Ends::Stream, None, |client, stream| {
        client.send(HEADERS, END_HEADERS, stream, &storable(&[]));
        for _ in 0..100 {
            client.send(DATA, 0, stream, &[0; 16_000]);
        }
    });
    assert_ne!(fetched.exit, 0, "{fetched:?}");
}
