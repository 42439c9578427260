//! How slow a client may be.

use crate::support::{RawClient, Running, ScriptedOrigin, Setup, span};
use std::time::{Duration, Instant};
use weir_measure::{Metric, StatusClass};
use weir_policy::eviction::EvictionKind;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn incomplete_header_section_is_answered_with_408_at_its_time_limit() {
    Setup::each(|setup| {
        setup.proxy.reload(|config| {
            config.limits.request_head = span("100ms");
            config.limits.client_idle = span("1h");
        });
        for begin in ["G", "GET / HTTP/1.1\r\nHost: a\r\nX: "] {
            let mut client = setup.proxy.client();
            client.send(begin);
            let response = client.read_response();
            assert_eq!(response.status(), 408, "{begin:?}");
            assert_eq!(response.head.field("connection"), Some("close"));
            client.expect_end();
        }
        setup.origin.expect_untouched();
        // as every request that is refused
        let refused = Metric::Responses(StatusClass::ClientError);
        setup.proxy.wait_for(refused, 2);
    });
}

#[test]
fn bytes_of_a_header_section_do_not_extend_its_time_limit() {
    Setup::each(|setup| {
        setup
            .proxy
            .reload(|config| config.limits.request_head = span("100ms"));
        let mut client = setup.proxy.client();
        client.stream.set_nonblocking(true).expect("a socket");
        let start = Instant::now();
        client.try_send("GET / HTTP/1.1\r\nX: ");
        let mut byte = [0];
        // bytes without a pause until the answer is there
        while client.stream.peek(&mut byte).is_err() {
            client.try_send("y");
            assert!(
                start.elapsed() < Duration::from_secs(15),
                "it goes on and on"
            );
        }
        client.stream.set_nonblocking(false).expect("a socket");
        let (answer, _) = client.read_to_end();
        // or the head was too large before its time was over
        assert!(answer.starts_with(b"HTTP/1.1 408 ") || answer.starts_with(b"HTTP/1.1 431 "));
    });
}

#[test]
fn idle_client_connection_is_closed_without_a_response() {
    Setup::each(|setup| {
        setup
            .proxy
            .reload(|config| config.limits.client_idle = span("500ms"));
        let mut fresh = setup.proxy.client();
        fresh.expect_end();
        let mut used = setup.proxy.client();
        assert_eq!(
            used.ask(setup.head("OPTIONS", "/", "1.1", "Max-Forwards: 0\r\n"))
                .status(),
            200
        );
        used.expect_end();
    });
}

#[test]
fn stalled_request_content_closes_client_and_next_hop_connections() {
    Setup::each(|setup| {
        setup
            .proxy
            .reload(|config| config.limits.client_silence = span("100ms"));
        for (fields, begin, end) in [
            ("Content-Length: 100\r\n", "begin", ""),
            ("Transfer-Encoding: chunked\r\n", "5\r\nbegin", "\r\n"),
        ] {
            let mut client = setup.proxy.client();
            client.send(setup.head("POST", "/", "1.1", fields) + begin);
            let mut hop = setup.origin.accept();
            hop.read_head();
            hop.read_until("begin");
            let (rest, _) = hop.read_to_end();
            assert_eq!(rest, end.as_bytes(), "{begin:?}");
            client.expect_end();
        }
        setup.proxy.wait_for(Metric::NextHopsOpen, 0);
    });
}

#[test]
fn slow_request_content_does_not_count_as_next_hop_silence() {
    Setup::each(|setup| {
        let silence = Duration::from_millis(250);
        setup
            .proxy
            .reload(|config| config.limits.next_hop_silence = span("250ms"));
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Transfer-Encoding: chunked\r\n"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let start = Instant::now();
        // byte by byte, each once the one before has arrived, for longer than the next hop may be
        // silent
        while start.elapsed() < 3 * silence {
            client.send("1\r\nx\r\n");
            hop.expect("1\r\nx\r\n");
        }
        client.send("0\r\n\r\n");
        hop.expect("0\r\n\r\n");
        hop.send("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
    });
}

/// A next hop may answer early, and send the rest of its response once it has all of the request.
#[test]
fn response_that_begins_early_is_not_cut_while_request_content_is_sent() {
    Setup::each(|setup| {
        let silence = Duration::from_millis(250);
        setup
            .proxy
            .reload(|config| config.limits.next_hop_silence = span("250ms"));
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Transfer-Encoding: chunked\r\n"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbe");
        client.read_head();
        client.expect("be");
        let start = Instant::now();
        while start.elapsed() < 3 * silence {
            client.send("1\r\nx\r\n");
            hop.expect("1\r\nx\r\n");
        }
        client.send("0\r\n\r\n");
        hop.expect("0\r\n\r\n");
        hop.send("gin");
        client.expect("gin");
    });
}

/// Unless the client waits for 100: then the next hop is to call for the content.
#[test]
fn request_content_that_begins_late_does_not_count_as_next_hop_silence() {
    Setup::each(|setup| {
        let silence = Duration::from_millis(250);
        setup
            .proxy
            .reload(|config| config.limits.next_hop_silence = span("250ms"));
        for (expects, continues) in [(false, false), (true, false), (true, true)] {
            let mut client = setup.proxy.client();
            let fields = if expects {
                "Expect: 100-continue\r\n"
            } else {
                ""
            };
            let fields = format!("Content-Length: 2\r\n{fields}");
            client.send(setup.head("POST", "/", "1.1", &fields));
            let mut hop = setup.origin.accept();
            hop.read_head();
            if continues {
                hop.send("HTTP/1.1 100 Continue\r\n\r\n");
                assert_eq!(client.read_head().status(), 100);
            } else if expects {
                assert_eq!(client.read_response().status(), 504);
                continue;
            }
            let start = Instant::now();
            let options = setup.head("OPTIONS", "/", "1.1", "Max-Forwards: 0\r\n");
            while start.elapsed() < 3 * silence {
                assert_eq!(setup.proxy.client().ask(&options).status(), 200);
            }
            client.send("ok");
            hop.expect("ok");
            hop.send("HTTP/1.1 204 No Content\r\n\r\n");
            assert_eq!(client.read_response().status(), 204);
        }
    });
}

#[test]
fn client_that_stops_reading_is_disconnected_and_its_fetch_aborted() {
    Setup::each(|setup| {
        setup
            .proxy
            .reload(|config| config.limits.client_silence = span("200ms"));
        let mut client = RawClient::connect_small(setup.proxy.address());
        client.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1000000000\r\n\r\n",
        );
        let mut sent: u64 = 0;
        while std::io::Write::write_all(&mut hop.stream, &[b'x'; 65_536]).is_ok() {
            sent += 65_536;
            assert!(
                sent < 200_000_000,
                "the proxy reads on for a client that does not"
            );
        }
        setup.proxy.wait_for(Metric::ClientAborts, 1);
        setup.proxy.wait_for(Metric::NextHopsOpen, 0);
        let (got, _) = client.read_to_end();
        assert!((got.len() as u64) < sent);
        assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
    });
}

#[test]
fn client_that_stops_reading_a_hit_is_disconnected() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let length: usize = 32 << 20;
    let _origin = origin.answering(move |_, _| {
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        answer.resize(answer.len() + length, b'x');
        answer
    });
    let proxy = Running::gateway_with(address, |config| {
        // which takes it in, however large it is
        config.cache.eviction = EvictionKind::Lru;
    });
    assert_eq!(proxy.client().ask(GET).body.len(), length);
    let silence = |text| proxy.reload(|config| config.limits.client_silence = span(text));
    silence("200ms");
    let mut client = RawClient::connect_small(proxy.address());
    client.send(GET);
    proxy.wait_for(Metric::ClientAborts, 1);
    let (got, _) = client.read_to_end();
    assert!(got.len() < length);
    // the stored response is as it was; a busy machine may take longer to read it
    silence("1min");
    let again = proxy.client().ask(GET);
    assert!(again.is_hit() && again.body.len() == length);
}

#[test]
fn slowly_reading_client_gets_its_whole_response() {
    Setup::each(|setup| {
        let silence = Duration::from_millis(500);
        setup
            .proxy
            .reload(|config| config.limits.client_silence = span("500ms"));
        let mut client = RawClient::connect_small(setup.proxy.address());
        client.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let length = 20_000_000;
        let sender = std::thread::spawn(move || {
            hop.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
            ));
            hop.send(vec![b'x'; length]);
            hop
        });
        let head = client.read_head();
        assert_eq!(head.length(), Some(length));
        let piece = 50_000;
        let mut other = setup.proxy.client();
        let start = Instant::now();
        for turn in 0..400 {
            client.read_exactly(piece);
            // three times the limit in all; other clients are served meanwhile
            while start.elapsed() < 3 * silence * turn / 400 {
                other.ask(setup.head("OPTIONS", "/", "1.1", "Max-Forwards: 0\r\n"));
            }
        }
        client.expect_nothing_more();
        sender.join().expect("sent");
    });
}

/// The limit of the next hop holds until its 100 was passed on, and then that of the client.
#[test]
fn wait_of_a_client_for_100_does_not_count_as_its_silence() {
    Setup::each(|setup| {
        let silence = Duration::from_millis(250);
        setup
            .proxy
            .reload(|config| config.limits.client_silence = span("250ms"));
        let aborts = setup.proxy.count(Metric::ClientAborts);
        for sends in [true, false] {
            let fields = "Content-Length: 2\r\nExpect: 100-continue\r\n";
            let (mut client, mut hop) = setup.lead(&setup.head("POST", "/", "1.1", fields));
            let start = Instant::now();
            while start.elapsed() < 3 * silence {
                setup.proxy.turn();
            }
            hop.send("HTTP/1.1 100 Continue\r\n\r\n");
            assert_eq!(client.read_head().status(), 100);
            if sends {
                client.send("ok");
                hop.expect("ok");
                hop.send("HTTP/1.1 204 No Content\r\n\r\n");
                assert_eq!(client.read_response().status(), 204);
            } else {
                hop.expect_end();
                client.expect_end();
            }
        }
        setup.proxy.wait_for(Metric::ClientAborts, aborts + 1);
        assert_eq!(setup.proxy.count(Metric::NextHopTimeouts), 0);
    });
}

#[test]
fn request_content_that_never_begins_is_the_silence_of_the_client() {
    Setup::each(|setup| {
        setup.proxy.reload(|config| {
            config.limits.client_silence = span("500ms");
            config.limits.next_hop_silence = span("250ms");
        });
        let fields = "Content-Length: 2\r\n";
        let (mut client, mut hop) = setup.lead(&setup.head("POST", "/", "1.1", fields));
        hop.expect_end();
        client.expect_end();
        setup.proxy.wait_for(Metric::ClientAborts, 1);
        assert_eq!(setup.proxy.count(Metric::NextHopTimeouts), 0);
    });
}
