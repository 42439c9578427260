//! The places of connections of HTTP/2 among those that may be open, and the memory of one whose
//! readers have stopped.

use super::super::super::attacks::resident_bytes;
use super::super::frames::{Frames, HEADERS, INITIAL_WINDOW_SIZE};
use super::{LOCATIONS, expect_ends, fetch, opened, request, respond, server};
use crate::support::{Config, Curl, Nginx, Weir, content};
use std::thread;

/// Behind `/told` a next hop of HTTP/1.1, else one of HTTP/2; one connection may be open in all.
fn gateway(http2: &str, http1: &str, workers: &str) -> Weir {
    let config = Config::gateway(&[http2]).route_http2(true);
    let config = config.route("path = \"/told\"", &[http1]);
    Weir::serve(
        &config
            .set("workers", workers)
            .set("limits.next_hop_wait", "\"20s\"")
            .set("limits.next_hop_connections_max", "1")
            .set("limits.connections_per_next_hop_max", "1")
            .set("limits.idle_per_next_hop_max", "1")
            .set("limits.idle_next_hop_connections_max", "1"),
    )
}

#[test]
fn idle_connection_is_closed_for_another_next_hop_at_the_total_limit() {
    let (by_http2, by_http1) = (Nginx::start_http2(LOCATIONS), Nginx::start(LOCATIONS));
    for workers in ["1", "2"] {
        let weir = gateway(&by_http2.origin(), &by_http1.origin(), workers);
        for _ in 0..3 {
            fetch(&weir, "/version").expect(200);
            fetch(&weir, "/told").expect(200);
        }
        expect_ends(&weir, "idle", 3);
        assert_eq!(opened(&weir), 6);
    }
}

#[test]
fn connection_that_carries_a_request_is_closed_for_no_other() {
    let listener = server();
    let by_http1 = Nginx::start(LOCATIONS);
    let by_http2 = format!("http://{}", listener.local_addr().expect("bound"));
    let weir = gateway(&by_http2, &by_http1.origin(), "1");
    let next_hop = thread::spawn(move || {
        let mut client = Frames::accept(&listener, &[]);
        let first = request(&mut client).stream;
        (client, first)
    });
    let get = |path: &str| {
        let url = weir.url(path);
        thread::spawn(move || Curl::direct().fetch(&url).reply().expect(200).text())
    };
    let busy = get("/busy");
    let (mut client, stream) = next_hop.join().expect("a request");
    let other = get("/told");
    let waits = "weir_connection_waits_total{reason=\"total-max\"}";
    weir.until(waits, |it| it.count(waits) == 1);
    assert_eq!(opened(&weir), 1);
    respond(&mut client, stream, b"whole");
    assert_eq!(busy.join().expect("a response"), "whole");
    // it is idle now
    other.join().expect("a response");
    let _ = client.goaway();
    expect_ends(&weir, "idle", 1);
}

/// Requests on one connection to a next hop.
const STREAMS: u32 = 100;

/// What a stream of a client may hold, and as much for the window toward its next hop.
const STREAM_BYTES_MAX: u64 = 2 * (256 << 10);

#[test]
fn stopped_readers_of_one_connection_hold_no_more_than_is_planned_for() {
    let locations = "location /large/ { add_header Cache-Control no-store; }";
    let nginx = Nginx::start_http2(locations);
    nginx.file("large/file", &content(3, 2_000_000));
    let config = Config::gateway(&[&nginx.origin()]).route_http2(true);
    let config = config.of_listener("http2 = true").set("workers", "1");
    let weir = Weir::serve(&config);
    let before = resident_bytes(weir.id());
    let mut client = Frames::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    for number in 0..STREAMS {
        client.get(2 * number + 1, "/large/file");
    }
    for _ in 0..STREAMS {
        assert_eq!(client.until(HEADERS).kind, HEADERS);
    }
    // another one is served, behind whatever the next hop has sent
    fetch(&weir, "/large/file").expect(200);
    let grown = resident_bytes(weir.id()).saturating_sub(before);
    assert!(grown <= u64::from(STREAMS) * STREAM_BYTES_MAX, "{grown}");
    assert_eq!(
        weir.metrics().count("weir_requests_in_flight"),
        u64::from(STREAMS)
    );
}
