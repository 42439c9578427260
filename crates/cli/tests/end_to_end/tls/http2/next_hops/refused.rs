//! Requests that a next hop does not act upon, and connections that it ends.

use super::super::frames::{
    CANCEL, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, HTTP_1_1_REQUIRED,
    MAX_CONCURRENT_STREAMS, REFUSED_STREAM, RST_STREAM, block,
};
use super::{Frames, expect_ends, fetch, gateway_to, gateway_with, request, respond, server};
use crate::support::{Config, Curl, Issued, KeyKind, Nginx, RawClient, Weir, content};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

#[test]
fn refused_request_is_sent_again_once_whatever_its_method() {
    for (method, refusals, expected) in [("GET", 1, 200), ("POST", 1, 200), ("GET", 2, 502)] {
        let listener = server();
        let weir = gateway_to(&listener);
        let next_hop = thread::spawn(move || {
            let mut client = Frames::accept(&listener, &[]);
            for _ in 0..refusals {
                let stream = request(&mut client).stream;
                client.send(RST_STREAM, 0, stream, &REFUSED_STREAM.to_be_bytes());
            }
            if expected == 200 {
                let stream = request(&mut client).stream;
                respond(&mut client, stream, b"answered");
            }
            // the connection is kept until the client has its response
            let _ = client.goaway();
        });
        let curl = Curl::direct().args(["-X", method]);
        let reply = curl.fetch(&weir.url("/")).reply().expect(expected);
        assert!(expected != 200 || reply.text() == "answered");
        assert_eq!(weir.metrics().count("weir_next_hop_retries_total"), 1);
        drop(weir);
        next_hop.join().expect("no frame was unexpected");
    }
}

/// A server of which it is known that it speaks HTTP/2: requests wait for one connection.
fn known_server() -> (TcpListener, Weir) {
    let listener = server();
    let weir = gateway_to(&listener);
    let first = thread::spawn(move || {
        let mut first = Frames::accept(&listener, &[]);
        let stream = request(&mut first).stream;
        respond(&mut first, stream, b"known");
        first.send(GOAWAY, 0, 0, &in_order(stream));
        let _ = first.goaway();
        listener
    });
    assert_eq!(fetch(&weir, "/").expect(200).text(), "known");
    expect_ends(&weir, "goaway", 1);
    (first.join().expect("no frame was unexpected"), weir)
}

/// GOAWAY of a server that acts upon requests up to that on `stream`.
fn in_order(stream: u32) -> Vec<u8> {
    [stream.to_be_bytes(), [0; 4]].concat()
}

#[test]
fn connection_that_breaks_fails_the_request_that_breaks_its_own_one_again_alone() {
    const REQUESTS: usize = 20;
    // how many requests break the connection that they are sent again on
    for breaking in [0, 1, REQUESTS] {
        let (listener, weir) = known_server();
        let next_hop = thread::spawn(move || {
            let mut shared = Frames::accept(&listener, &[]);
            for _ in 0..REQUESTS {
                request(&mut shared);
            }
            shared.end();
            let mut answered = Vec::new();
            for number in 0..REQUESTS {
                let mut own = Frames::accept(&listener, &[]);
                let stream = request(&mut own).stream;
                if number < breaking {
                    own.end();
                } else {
                    respond(&mut own, stream, b"answered");
                    answered.push(own);
                }
            }
            // they carry no further request, and are closed but for one
            answered
        });
        let paths: Vec<String> = (0..REQUESTS).map(|number| format!("/{number}")).collect();
        let running = paths
            .iter()
            .map(|path| Curl::direct().start(&weir.url(path)));
        let running: Vec<_> = running.collect();
        let replies: Vec<_> = running
            .into_iter()
            .map(|curl| curl.finish().reply())
            .collect();
        let failed = replies.iter().filter(|reply| reply.status() == 502).count();
        let served = replies.iter().filter(|reply| reply.text() == "answered");
        assert_eq!((failed, served.count()), (breaking, REQUESTS - breaking));
        let sent_again = weir.metrics().count("weir_next_hop_retries_total");
        assert_eq!(sent_again, REQUESTS as u64);
        next_hop.join().expect("no frame was unexpected");
    }
}

#[test]
fn request_is_not_sent_again_when_its_connection_breaks_after_a_response_has_begun() {
    let (listener, weir) = known_server();
    let next_hop = thread::spawn(move || {
        let mut shared = Frames::accept(&listener, &[]);
        for _ in 0..2 {
            let stream = request(&mut shared).stream;
            // an interim response is one
            let early = block(&[(":status", "103")]);
            shared.send(HEADERS, END_HEADERS, stream, &early);
        }
        shared.end();
    });
    let running = ["/a", "/b"].map(|path| Curl::direct().start(&weir.url(path)));
    for curl in running {
        curl.finish().reply().expect(502);
    }
    assert_eq!(weir.metrics().count("weir_next_hop_retries_total"), 0);
    next_hop.join().expect("no frame was unexpected");
}

#[test]
fn requests_above_the_last_stream_of_a_goaway_share_the_next_connection() {
    // in order, or for an error that one of them may have brought about
    for (error, connections) in [(0_u32, 1), (2, 2)] {
        let (listener, weir) = known_server();
        let next_hop = thread::spawn(move || {
            let mut old = Frames::accept(&listener, &[]);
            for _ in 0..2 {
                request(&mut old);
            }
            let payload = [[0; 4], error.to_be_bytes()].concat();
            old.send(GOAWAY, 0, 0, &payload);
            let mut open = Vec::new();
            for _ in 0..connections {
                let mut new = Frames::accept(&listener, &[]);
                for _ in 0..2 / connections {
                    let stream = request(&mut new).stream;
                    respond(&mut new, stream, b"answered");
                }
                open.push(new);
            }
            (old, open)
        });
        let running = ["/a", "/b"].map(|path| Curl::direct().start(&weir.url(path)));
        for curl in running {
            assert_eq!(curl.finish().reply().expect(200).text(), "answered");
        }
        next_hop.join().expect("no frame was unexpected");
    }
}

#[test]
fn request_above_the_last_stream_of_a_goaway_goes_on_another_connection() {
    let listener = server();
    let weir = gateway_to(&listener);
    let next_hop = thread::spawn(move || {
        let mut old = Frames::accept(&listener, &[]);
        let first = request(&mut old).stream;
        // it acts upon the first, and on none behind it
        respond(&mut old, first, b"first");
        let second = request(&mut old).stream;
        let mut payload = first.to_be_bytes().to_vec();
        payload.extend(0_u32.to_be_bytes());
        old.send(GOAWAY, 0, 0, &payload);
        let mut new = Frames::accept(&listener, &[]);
        let third = request(&mut new).stream;
        respond(&mut new, third, b"second");
        let _ = new.goaway();
        second
    });
    assert_eq!(fetch(&weir, "/1").expect(200).text(), "first");
    assert_eq!(fetch(&weir, "/2").expect(200).text(), "second");
    expect_ends(&weir, "goaway", 1);
    drop(weir);
    assert_eq!(next_hop.join().expect("no frame was unexpected"), 3);
}

/// What of a request's content is kept, bytes.
const KEPT_BYTES_MAX: usize = 8 * 1024;

#[test]
fn request_that_was_not_acted_upon_is_sent_again_with_its_content_if_that_is_kept() {
    let clients = [
        ["--http1.1", "X-A: b"],
        ["--http1.1", "Transfer-Encoding: chunked"],
        ["--http2-prior-knowledge", "X-A: b"],
    ];
    for (bytes, expected) in [(3, 200), (KEPT_BYTES_MAX, 200), (KEPT_BYTES_MAX + 1, 502)] {
        for [version, field] in clients {
            let listener = server();
            let weir = gateway_with(&listener, |config| config.of_listener("http2 = true"));
            let sent = content(4, bytes);
            let file = weir.folder().join("sent");
            std::fs::write(&file, &sent).expect("a file");
            let next_hop = thread::spawn(move || {
                let mut old = Frames::accept(&listener, &[]);
                assert!(received(&mut old).1 == sent);
                // it acts upon none
                old.send(GOAWAY, 0, 0, &in_order(0));
                if expected == 200 {
                    let mut new = Frames::accept(&listener, &[]);
                    let (stream, again) = received(&mut new);
                    assert!(again == sent);
                    respond(&mut new, stream, b"answered");
                    let _ = new.goaway();
                }
                let _ = old.goaway();
            });
            let data = format!("@{}", file.display());
            let curl = Curl::direct().args([version, "--data-binary", &data]);
            let reply = curl.field(field).fetch(&weir.url("/")).reply();
            assert_eq!(
                reply.status(),
                expected,
                "{bytes} bytes, {version}, {field}"
            );
            drop(weir);
            next_hop.join().expect("no frame was unexpected");
        }
    }
}

#[test]
fn request_with_content_is_not_sent_again_where_it_may_have_been_acted_upon() {
    for method in ["POST", "PUT"] {
        let (listener, weir) = known_server();
        let next_hop = thread::spawn(move || {
            let mut shared = Frames::accept(&listener, &[]);
            let first = request(&mut shared).stream;
            respond(&mut shared, first, b"first");
            assert_eq!(received(&mut shared).1, b"content");
            shared.end();
            let _ = shared.goaway();
        });
        assert_eq!(fetch(&weir, "/first").expect(200).text(), "first");
        let curl = Curl::direct().args(["-X", method, "--data-binary", "content"]);
        curl.fetch(&weir.url("/")).reply().expect(502);
        assert_eq!(weir.metrics().count("weir_next_hop_retries_total"), 0);
        drop(weir);
        next_hop.join().expect("no frame was unexpected");
    }
}

/// The next request of a client with content: its stream, and that.
#[track_caller]
fn received(client: &mut Frames) -> (u32, Vec<u8>) {
    let stream = request(client).stream;
    let mut content = Vec::new();
    loop {
        let data = client.until(DATA);
        assert_eq!((data.kind, data.stream), (DATA, stream));
        content.extend(&data.payload);
        if data.flags & END_STREAM != 0 {
            return (stream, content);
        }
    }
}

#[test]
fn request_under_way_ends_as_usual_behind_a_goaway() {
    let listener = server();
    let weir = gateway_to(&listener);
    let next_hop = thread::spawn(move || {
        let mut client = Frames::accept(&listener, &[]);
        let stream = request(&mut client).stream;
        let head = block(&[(":status", "200"), ("cache-control", "no-store")]);
        client.send(HEADERS, END_HEADERS, stream, &head);
        let mut payload = stream.to_be_bytes().to_vec();
        payload.extend(0_u32.to_be_bytes());
        client.send(GOAWAY, 0, 0, &payload);
        client.send(DATA, 0, stream, b"begun, ");
        client.send(DATA, 1, stream, b"ended");
        let _ = client.goaway();
    });
    assert_eq!(fetch(&weir, "/").expect(200).text(), "begun, ended");
    expect_ends(&weir, "goaway", 1);
    drop(weir);
    next_hop.join().expect("no frame was unexpected");
}

#[test]
fn next_hop_that_permits_one_request_at_once_gets_a_connection_for_each() {
    let listener = server();
    let weir = gateway_to(&listener);
    let next_hop = thread::spawn(move || {
        let settings = [(MAX_CONCURRENT_STREAMS, 1)];
        let mut first = Frames::accept(&listener, &settings);
        let stream = request(&mut first).stream;
        respond(&mut first, stream, b"first");
        let stream = request(&mut first).stream;
        // it holds this one back until the other has come on another connection
        let mut second = Frames::accept(&listener, &settings);
        let other = request(&mut second).stream;
        respond(&mut second, other, b"at once");
        respond(&mut first, stream, b"at once");
        let _ = (first.goaway(), second.goaway());
    });
    assert_eq!(fetch(&weir, "/").expect(200).text(), "first");
    let running = ["/a", "/b"].map(|path| Curl::direct().start(&weir.url(path)));
    for curl in running {
        assert_eq!(curl.finish().reply().expect(200).text(), "at once");
    }
    // one is enough for what comes now: the other is not kept for the idle limit
    expect_ends(&weir, "idle", 1);
    drop(weir);
    next_hop.join().expect("no frame was unexpected");
}

#[test]
fn next_hop_without_http11_is_not_ejected_for_a_request_that_needs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "a", &["localhost"], KeyKind::Ecdsa);
    let mut node = Command::new("node")
        .arg("-e")
        .arg(include_str!("http2_alone.js"))
        .args([&issued.chain, &issued.key])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let mut line = String::new();
    let stdout = node.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a port");
    let http2 = format!("https://localhost:{}", line.trim());
    let other = Nginx::start("location / { return 200 other; }");
    let ca = format!("{{ ca = \"{}\" }}", issued.chain.display());
    let config = Config::gateway(&[&http2, &other.origin()]).route_tls(&ca);
    let weir = Weir::serve(&config.set("workers", "1"));
    for _ in 0..2 {
        let upgrade = Curl::direct().field("Connection: Upgrade");
        let upgrade = upgrade.field("Upgrade: websocket");
        let _refused_or_other = upgrade.fetch(&weir.url("/")).reply();
    }
    let texts: Vec<String> = (0..6)
        .map(|_| fetch(&weir, "/").expect(200).text())
        .collect();
    assert!(texts.iter().any(|text| text == "by HTTP/2"), "{texts:?}");
    drop(node.stdin.take());
    assert!(node.wait().expect("it ends").success());
}

#[test]
fn next_hop_that_requires_http11_gets_it() {
    let listener = server();
    let weir = gateway_to(&listener);
    let next_hop = thread::spawn(move || {
        let mut client = Frames::accept(&listener, &[]);
        let stream = request(&mut client).stream;
        client.send(RST_STREAM, 0, stream, &HTTP_1_1_REQUIRED.to_be_bytes());
        let (mut socket, _) = listener.accept().expect("a client");
        for _ in 0..2 {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).expect("a byte");
                head.push(byte[0]);
            }
            assert!(head.starts_with(b"GET / HTTP/1.1\r\n"));
            let response =
                b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\n1";
            socket.write_all(response).expect("sent");
        }
    });
    for _ in 0..2 {
        assert_eq!(fetch(&weir, "/").expect(200).text(), "1");
    }
    next_hop.join().expect("no byte was unexpected");
}

#[test]
fn client_that_leaves_has_its_stream_reset() {
    let listener = server();
    let weir = gateway_to(&listener);
    let next_hop = thread::spawn(move || {
        let mut client = Frames::accept(&listener, &[]);
        let stream = request(&mut client).stream;
        let head = block(&[(":status", "200"), ("cache-control", "no-store")]);
        client.send(HEADERS, END_HEADERS, stream, &head);
        client.send(DATA, 0, stream, b"part");
        let reset = client.until(RST_STREAM);
        assert_eq!(
            (reset.kind, reset.stream, reset.error()),
            (RST_STREAM, stream, CANCEL)
        );
        let stream = request(&mut client).stream;
        respond(&mut client, stream, b"next");
        let _ = client.goaway();
    });
    let mut client = RawClient::connect(weir.address());
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    client.head();
    drop(client);
    weir.until("left", |metrics| {
        metrics.count("weir_client_aborts_total") == 1
    });
    assert_eq!(fetch(&weir, "/").expect(200).text(), "next");
    drop(weir);
    next_hop.join().expect("no frame was unexpected");
}
