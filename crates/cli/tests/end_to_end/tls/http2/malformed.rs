//! Requests that are not as RFC 9113 §8 has them reach no next hop (R52).

use super::Clear;
use super::frames::{
    DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, PROTOCOL_ERROR, RST_STREAM, block, get,
};
use crate::support::RawClient;

/// Fields of a GET, without those named, and with these.
fn changed<'f>(without: &[&str], with: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    let own = get("/private").into_iter();
    let own = own.filter(|(name, _)| !without.contains(name));
    own.chain(with.iter().copied()).collect()
}

#[test]
fn malformed_request_is_a_stream_error_and_reaches_no_next_hop() {
    let clear = Clear::start();
    let mut client = clear.frames();
    let fields = [
        // of the connection (§8.2.2)
        changed(&[], &[("connection", "close")]),
        changed(&[], &[("keep-alive", "timeout=5")]),
        changed(&[], &[("proxy-connection", "keep-alive")]),
        changed(&[], &[("transfer-encoding", "chunked")]),
        changed(&[], &[("upgrade", "websocket")]),
        changed(&[], &[("te", "gzip")]),
        // names and values (§8.2.1)
        changed(&[], &[("X-Upper", "a")]),
        changed(&[], &[("x-space", " a")]),
        changed(&[], &[("x-space", "a\t")]),
        // pseudo-header fields (§8.3.1)
        changed(&[":method"], &[]),
        changed(&[":scheme"], &[]),
        changed(&[":path"], &[]),
        changed(&[":path"], &[(":path", "")]),
        changed(&[":path"], &[(":path", "private")]),
        changed(&[":path"], &[(":path", "*")]),
        changed(&[], &[("x-a", "b"), (":path", "/private")]),
        changed(&[], &[(":path", "/cached")]),
        changed(&[], &[(":status", "200")]),
        changed(&[], &[(":unknown", "a")]),
        changed(&[":authority"], &[(":authority", "user@a.test")]),
        // the authority twice
        changed(&[], &[("host", "b.test")]),
        changed(&[], &[("host", "a.test"), ("host", "a.test")]),
        // lengths (§8.1.1)
        changed(&[], &[("content-length", "5")]),
        changed(&[], &[("content-length", "0"), ("content-length", "1")]),
        changed(&[], &[("content-length", "-1")]),
    ];
    let mut stream = 1;
    for fields in &fields {
        client.request(stream, fields);
        let reset = client.until(RST_STREAM);
        assert_eq!(reset.error(), PROTOCOL_ERROR, "{fields:?}");
        if reset.kind == GOAWAY {
            // a name that is none ends the connection
            (client, stream) = (clear.frames(), 1);
        } else {
            assert_eq!(reset.stream, stream, "{fields:?}");
            stream += 2;
        }
    }
    let metrics = clear.weir.metrics();
    assert_eq!(metrics.all_requests(), 0);
    assert_eq!(metrics.count("weir_next_hop_sent_bytes_total"), 0);
    // the connection is as good as before
    client.get(stream, "/cached");
    assert_eq!(client.until(HEADERS).stream, stream);
    clear.expect_others_are_served();
}

/// `h2` drops it before anything can see it.
#[test]
fn fragment_of_a_path_is_in_no_key_and_reaches_no_next_hop() {
    let clear = Clear::start();
    let mut client = clear.frames();
    let mut contents = Vec::new();
    for (stream, path) in [(1, "/target#a"), (3, "/target#/b?c"), (5, "/target")] {
        client.get(stream, path);
        contents.push(client.until(DATA).payload);
    }
    // stored once
    assert_eq!(contents[0], contents[1]);
    assert_eq!(contents[0], contents[2]);
    assert!(contents[0].starts_with(b"/target|"), "{contents:?}");
    let metrics = clear.weir.metrics();
    assert_eq!(metrics.count("weir_store_entries"), 1);
    let mut by_http1 = RawClient::connect(clear.weir.address());
    by_http1.send("GET /target#a HTTP/1.1\r\nHost: a.test\r\n\r\n");
    by_http1.reply().expect(400);
}

#[test]
fn bytes_that_end_lines_reach_no_next_hop() {
    let clear = Clear::start();
    let values = ["a\r\nX-User: evil", "a\nb", "a\rb", "a\0b"];
    let in_path = [
        "/private HTTP/1.1\r\nX-User: evil",
        "/private\r\n",
        "/pri vate",
    ];
    let fields = values
        .iter()
        .map(|value| changed(&[], &[("x-value", value)]))
        .chain(
            in_path
                .iter()
                .map(|path| changed(&[":path"], &[(":path", path)])),
        );
    for fields in fields {
        let mut client = clear.frames();
        client.request(1, &fields);
        // a stream error or one of the connection, and no response
        loop {
            match client.next() {
                Some(frame) if frame.kind == HEADERS => panic!("{fields:?}: {frame:?}"),
                Some(frame) if frame.kind == RST_STREAM => break,
                Some(_) => {}
                None => break,
            }
        }
    }
    let metrics = clear.weir.metrics();
    assert_eq!(metrics.all_requests(), 0);
    assert_eq!(metrics.count("weir_next_hop_sent_bytes_total"), 0);
    clear.expect_others_are_served();
}

#[test]
fn content_of_another_length_than_its_head_says_ends_the_stream() {
    let clear = Clear::start();
    std::fs::create_dir(clear.nginx.path("put")).expect("a folder");
    for (name, content, ends) in [("short", "1234", true), ("long", "123456", false)] {
        let mut client = Frames::connect(clear.weir.address());
        let path = format!("/put/{name}");
        let fields = [
            (":method", "PUT"),
            (":scheme", "http"),
            (":path", &path),
            (":authority", "a.test"),
            ("content-length", "5"),
        ];
        client.send(HEADERS, END_HEADERS, 1, &block(&fields));
        let flags = if ends { END_STREAM } else { 0 };
        client.send(DATA, flags, 1, content.as_bytes());
        assert_eq!(client.until(RST_STREAM).error(), PROTOCOL_ERROR, "{name}");
        assert!(!clear.nginx.path(&format!("put/{name}")).exists());
    }
    clear.expect_others_are_served();
}

#[test]
fn connect_is_for_forward_proxies_and_has_no_other_target() {
    let clear = Clear::start();
    let mut client = clear.frames();
    let connect = (":method", "CONNECT");
    client.request(1, &[connect, (":authority", "a.test:443")]);
    // 405
    assert_eq!(client.until(HEADERS).stream, 1);
    let more = [(":path", "/"), (":scheme", "http"), ("content-length", "5")];
    for (stream, field) in (3..).step_by(2).zip(more) {
        client.request(stream, &[connect, (":authority", "a.test:443"), field]);
        assert_eq!(
            client.until(RST_STREAM).error(),
            PROTOCOL_ERROR,
            "{field:?}"
        );
    }
    let metrics = clear.weir.metrics();
    assert_eq!(metrics.count("weir_tunnels_opened_total"), 0);
}
