//! Next hops that break the rules: 502, a connection not used again, nothing stored (R30, R31).

use crate::support::Setup;
use weir_measure::Metric;

const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";

/// The answer becomes a 502, the next hop's connection ends, nothing is stored.
fn refused(setup: &Setup, answer: &str) {
    let shown = &answer[..answer.len().min(200)];
    let mut client = setup.proxy.client();
    client.send(setup.get("/"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    hop.try_send(answer);
    let response = client.read_response();
    assert_eq!(response.status(), 502, "{shown:?}");
    let status = response.head.field("proxy-status").expect("a reason");
    assert!(status.contains("error=http_"), "{shown:?} {status}");
    hop.read_to_end();
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0, "{shown:?}");
    // the client has done nothing wrong
    client.send(setup.get("/"));
    let closing = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let (_hop, _) = setup.origin.answer(closing);
    assert_eq!(client.read_response().text(), "ok");
}

#[test]
fn ambiguous_response_framing_is_refused_with_502() {
    Setup::each(|setup| {
        for (fields, content) in [
            ("Content-Length: 2\r\nContent-Length: 9\r\n", "ok"),
            ("Content-Length: 2, 02\r\n", "ok"),
            ("Content-Length: 2,\r\n", "ok"),
            ("Content-Length: +2\r\n", "ok"),
            ("Content-Length: 0x2\r\n", "ok"),
            ("Content-Length: \r\n", "ok"),
            ("Content-Length: 18446744073709551618\r\n", "ok"),
            (
                "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                "2\r\nok\r\n0\r\n\r\n",
            ),
            (
                "Transfer-Encoding: gzip, chunked\r\n",
                "2\r\nok\r\n0\r\n\r\n",
            ),
            (
                "Transfer-Encoding: chunked, identity\r\n",
                "2\r\nok\r\n0\r\n\r\n",
            ),
            ("Transfer-Encoding: xchunked\r\n", "2\r\nok\r\n0\r\n\r\n"),
            ("Transfer-Encoding: ,\r\n", "2\r\nok\r\n0\r\n\r\n"),
            (
                "Content-Length: 2\r\nTransfer-Encoding : chunked\r\n",
                "2\r\nok\r\n0\r\n\r\n",
            ),
            ("Transfer Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n"),
            ("Transfer_Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n"),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                "0\r\n\r\n",
            ),
        ] {
            refused(setup, &format!("{FRESH}{fields}\r\n{content}"));
        }
        refused(
            setup,
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        );
        refused(
            setup,
            "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        );
        refused(
            setup,
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        );
    });
}

#[test]
fn malformed_response_is_refused_with_502() {
    Setup::each(|setup| {
        for answer in [
            "<html>HTTP/0.9</html>\r\n\r\n",
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 OK\r\n\r\n",
            "HTTP/1.1  200 OK\r\n\r\n",
            "http/1.1 200 OK\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\nX: y\n z\n\n",
            "HTTP/1.10 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX z: y\r\n\r\n",
            "HTTP/1.1 200 OK\r\n X: y\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\u{0}b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX\r\n\r\n",
            "HTTP/1.1 200 O\u{0}K\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
        ] {
            refused(setup, answer);
        }
    });
}

#[test]
fn oversized_response_header_section_is_refused_with_502() {
    Setup::each(|setup| {
        let fields = |count: usize| "X: y\r\n".repeat(count);
        refused(setup, &format!("HTTP/1.1 200 OK\r\n{}\r\n", fields(513)));
        refused(setup, &format!("HTTP/1.1 200 OK\r\n{}", fields(100_000)));
        refused(
            setup,
            &format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(65_536)),
        );
        refused(setup, &format!("HTTP/1.1 200 {}", "x".repeat(200_000)));
        let interim = format!("HTTP/1.1 103 Early Hints\r\n{}\r\n", fields(513));
        refused(setup, &interim);
    });
}

#[test]
fn more_than_64_connection_options_of_a_response_are_refused_with_502() {
    Setup::each(|setup| {
        let names = |options: usize| -> String {
            let names = (0..options).map(|number| format!("x{number},"));
            names.collect()
        };
        let answer = |status: &str, line: &str| {
            format!("HTTP/1.1 {status}\r\nConnection: {line}\r\nX0: y\r\n")
        };
        let end = "Content-Length: 2\r\n\r\nok";
        for line in [names(65), ",".repeat(4097), "x".repeat(4097)] {
            refused(setup, &format!("{}{end}", answer("200 OK", &line)));
            let interim = answer("103 Early Hints", &line);
            refused(setup, &format!("{interim}\r\n{PLAIN}"));
        }
        for line in [names(64), ",".repeat(4096)] {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let (_hop, _) = setup
                .origin
                .answer(format!("{}{end}", answer("200 OK", &line)));
            let response = client.read_response();
            assert_eq!((response.status(), &*response.text()), (200, "ok"));
            assert_eq!(response.head.has("x0"), !line.starts_with('x'));
        }
    });
}

#[test]
fn large_response_header_section_within_the_limits_is_forwarded() {
    Setup::each(|setup| {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n{}\r\n",
            "X: y\r\n".repeat(510)
        );
        let (response, _) = setup.fetch("/", &answer);
        assert_eq!(response.status(), 200);
        assert_eq!(response.head.all("x").len(), 510);
        let value = "y".repeat(60_000);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nX: {value}\r\nContent-Length: 0\r\n\r\n"
        );
        let (response, _) = setup.fetch("/", &answer);
        assert_eq!(response.head.field("x"), Some(&*value));
    });
}

#[test]
fn endless_chunk_extension_or_trailer_section_truncates_the_response() {
    Setup::each(|setup| {
        for (begin, endless) in [
            ("2\r\nok\r\n5;", "a=b;"),
            ("2\r\nok\r\n0\r\n", "X: y\r\n"),
            ("2\r\nok\r\n0\r\nX: ", "yyyy"),
        ] {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let start = format!("{FRESH}Transfer-Encoding: chunked\r\n\r\n{begin}");
            let (mut hop, _) = setup.origin.answer(start);
            client.read_until("ok\r\n");
            let more = endless.repeat(16_384);
            let sent_at_most = 64;
            for _ in 0..sent_at_most {
                hop.try_send(&more);
            }
            let (rest, _) = client.read_to_end();
            assert!(!rest.ends_with(b"0\r\n\r\n"), "{begin:?} looks whole");
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
        }
    });
}

#[test]
fn bytes_after_a_response_are_discarded_with_the_connection() {
    Setup::each(|setup| {
        let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        for (answer, status, text) in [
            (format!("{PLAIN}{evil}"), 200, "ok"),
            (format!("HTTP/1.1 204 No Content\r\n\r\n{evil}"), 204, ""),
            (format!("HTTP/1.1 304 Not Modified\r\n\r\n{evil}"), 304, ""),
            (format!("{chunked}{evil}"), 200, "ok"),
            (format!("{PLAIN}\r\n"), 200, "ok"),
        ] {
            let mut client = setup.proxy.client();
            client.send(setup.get("/1"));
            let (mut hop, _) = setup.origin.answer(&answer);
            let response = client.read_response();
            assert_eq!(
                (response.status(), &*response.text()),
                (status, text),
                "{answer:?}"
            );
            hop.expect_end();
            client.send(setup.get("/2"));
            let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ngood";
            let (_hop, head) = setup.origin.answer(closing);
            assert_eq!(head.start_line(), "GET /2 HTTP/1.1");
            assert_eq!(client.read_response().text(), "good", "{answer:?}");
        }
        // content in answer to HEAD is such bytes too
        let mut client = setup.proxy.client();
        client.send(setup.head("HEAD", "/", "1.1", ""));
        let (mut hop, _) = setup.origin.answer(PLAIN);
        assert_eq!(client.read_head().status(), 200);
        client.expect_no_bytes();
        hop.expect_end();
    });
}

#[test]
fn connection_with_an_unsolicited_response_is_not_reused() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/1"));
        let (mut hop, _) = setup.origin.answer(PLAIN);
        assert_eq!(client.read_response().text(), "ok");
        setup.proxy.wait_for(Metric::ConnectionCacheIdle, 1);
        hop.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
        client.send(setup.get("/2"));
        let (_second, head) = setup.origin.answer(PLAIN);
        assert_eq!(head.start_line(), "GET /2 HTTP/1.1");
        assert_eq!(client.read_response().text(), "ok");
        hop.expect_end();
        assert_eq!(setup.proxy.count(Metric::ConnectionCacheUnusable), 1);
        assert_eq!(setup.proxy.reuse(), (0, 2));
    });
}
