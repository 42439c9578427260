//! Requests of several clients on one connection to a next hop: what one of them asks for costs the
//! others nothing.

use super::super::frames::{GOAWAY, HEADERS, MAX_CONCURRENT_STREAMS};
use super::{Frames, Origin, expect_ends, fetch, gateway_to, opened, request, respond, server};
use crate::support::{Curl, PATIENCE, RawClient, content};
use std::sync::mpsc;
use std::thread;

const LENGTH: usize = 4 << 20;

#[test]
fn request_that_a_next_hop_ends_connections_for_costs_no_other_one() {
    for origin in [Origin::by_tls(), Origin::in_clear()] {
        let large = content(5, LENGTH);
        std::fs::create_dir(origin.nginx.path("large")).expect("a folder");
        origin.nginx.file("large/file", &large);
        let mut other = RawClient::connect(origin.weir.address());
        other.send("GET /large/file HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let head = other.head();
        assert_eq!((head.status(), opened(&origin.weir)), (200, 1));
        // nginx takes no trailers by HTTP/2: these are left out
        let mut client = RawClient::connect(origin.weir.address());
        client.send(
            "POST /told HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
             1\r\na\r\n0\r\nx-t: 1\r\n\r\n",
        );
        assert_eq!((client.reply().status(), opened(&origin.weir)), (200, 1));
        // nor fields of more than 8 KiB: it ends the connection that such a request has for itself
        let long = format!("x: {}", "y".repeat(20_000));
        let refused = Curl::direct().field(&long).fetch(&origin.weir.url("/told"));
        assert!(matches!(refused.reply().status(), 400 | 502));
        assert!(opened(&origin.weir) > 1);
        assert!(other.take(LENGTH) == large);
    }
}

#[test]
fn request_with_a_large_head_has_a_connection_for_itself_until_it_has_ended() {
    let origin = Origin::by_tls();
    let first = origin.connection();
    let long = format!("x: {}", "y".repeat(7 * 1024));
    let text = origin.fetch("/connection").expect(200).text();
    assert!(text.starts_with(&first));
    let curl = Curl::direct().field(&long);
    let reply = curl.fetch(&origin.weir.url("/connection")).reply();
    assert!(!reply.expect(200).text().starts_with(&first));
    assert_eq!(opened(&origin.weir), 2);
}

#[test]
fn new_connection_gets_no_more_requests_than_the_last_one_was_permitted() {
    const PERMITTED: usize = 2;
    const REQUESTS: usize = 3 * PERMITTED;
    let settings = [(MAX_CONCURRENT_STREAMS, 2)];
    let listener = server();
    let weir = gateway_to(&listener);
    let (came, requests) = mpsc::channel();
    // it ends with the process, as it waits for connections
    thread::spawn(move || {
        let mut last = Frames::accept(&listener, &settings);
        let stream = request(&mut last).stream;
        respond(&mut last, stream, b"last");
        let answered = [stream.to_be_bytes(), [0; 4]].concat();
        last.send(GOAWAY, 0, 0, &answered);
        for number in 0.. {
            let mut new = Frames::accept(&listener, &settings);
            let came = came.clone();
            thread::spawn(move || {
                while let Some(frame) = new.next() {
                    if frame.kind == HEADERS {
                        let request = (number, frame.stream, new.sender());
                        came.send(request).expect("the test waits for it");
                    }
                }
            });
        }
    });
    assert_eq!(fetch(&weir, "/").expect(200).text(), "last");
    expect_ends(&weir, "goaway", 1);
    let paths: Vec<_> = (0..REQUESTS).map(|number| format!("/{number}")).collect();
    let running: Vec<_> = paths
        .iter()
        .map(|path| Curl::direct().start(&weir.url(path)))
        .collect();
    // none is answered before all have come
    let next = || requests.recv_timeout(PATIENCE).expect("a request");
    let mut all: Vec<_> = (0..REQUESTS).map(|_| next()).collect();
    for (number, ..) in &all {
        let carried = all.iter().filter(|(other, ..)| other == number).count();
        assert!(carried <= PERMITTED, "{carried} on connection {number}");
    }
    for (_, stream, sender) in &mut all {
        respond(sender, *stream, b"new");
    }
    for curl in running {
        assert_eq!(curl.finish().reply().expect(200).text(), "new");
    }
}
