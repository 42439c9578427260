//! Responses that the next hop cuts: the client can tell, and the store never has them (R27).

use crate::support::{End, Head, RawClient, Setup};

/// How the next hop ends its connection.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Close,
    Reset,
    /// By these bytes, which are no chunk.
    Garbage(&'static str),
}

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
const PRIVATE: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n";

const CASES: &[(&str, &str, Stop)] = &[
    ("Content-Length: 10\r\n", "part", Stop::Close),
    ("Content-Length: 10\r\n", "part", Stop::Reset),
    ("Content-Length: 5\r\n", "part", Stop::Close),
    ("Transfer-Encoding: chunked\r\n", "4\r\npart", Stop::Close),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart\r\n",
        Stop::Close,
    ),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart\r\n",
        Stop::Reset,
    ),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart\r\n0\r\n",
        Stop::Close,
    ),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart\r\n0\r\nX: y\r\n",
        Stop::Close,
    ),
    ("Transfer-Encoding: chunked\r\n", "9\r\npart", Stop::Close),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart\r\n",
        Stop::Garbage("x\r\n"),
    ),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart\r\n",
        Stop::Garbage("0\n\n"),
    ),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart\r\n",
        Stop::Garbage("10000000000000001\r\n"),
    ),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart",
        Stop::Garbage("and more\r\n0\r\n\r\n"),
    ),
    (
        "Transfer-Encoding: chunked\r\n",
        "4\r\npart\r\n",
        Stop::Garbage("0\r\nX y: z\r\n\r\n"),
    ),
    ("", "part", Stop::Reset),
];

/// Reads `part`, lets the next hop stop, and sees whether what came looks whole.
fn is_cut(client: &mut RawClient, head: &Head, stop: impl FnOnce()) -> bool {
    let mut body = client.read_until("part");
    stop();
    let (rest, end) = client.read_to_end();
    body.extend(rest);
    if head.is_chunked() {
        !body.ends_with(b"0\r\n\r\n")
    } else if let Some(length) = head.length() {
        body.len() < length
    } else {
        end == End::Reset
    }
}

#[test]
fn truncated_response_is_detectable_and_not_stored() {
    Setup::each(|setup| {
        for (at, (framing, content, stop)) in CASES.iter().enumerate() {
            // one goes by way of the store, the other is relayed
            for (version, rules) in [
                ("1.1", FRESH),
                ("1.0", FRESH),
                ("1.1", PRIVATE),
                ("1.0", PRIVATE),
            ] {
                let path = format!("/{at}/{version}/{}", rules.len());
                let mut client = setup.proxy.client();
                client.send(setup.head("GET", &path, version, ""));
                let (mut hop, _) = setup
                    .origin
                    .answer(format!("{rules}{framing}\r\n{content}"));
                let head = client.read_head();
                assert_eq!(head.status(), 200);
                let cut = is_cut(&mut client, &head, || match stop {
                    Stop::Close => drop(hop),
                    Stop::Reset => hop.into_peer().reset(),
                    Stop::Garbage(bytes) => {
                        hop.send(bytes);
                        // the proxy has no more use for it
                        hop.expect_end();
                    }
                });
                assert!(
                    cut,
                    "{rules}{framing:?} {content:?} {stop:?} HTTP/{version}"
                );
                // the second fetch asks again
                let whole = format!("{FRESH}Connection: close\r\nContent-Length: 5\r\n\r\nwhole");
                assert_eq!(setup.fetch(&path, &whole).0.text(), "whole");
            }
        }
    });
}

#[test]
fn response_malformed_at_its_first_content_byte_becomes_502() {
    Setup::each(|setup| {
        let broken = format!("{FRESH}Transfer-Encoding: chunked\r\n\r\nx\r\n");
        let (response, mut hop) = setup.fetch("/", &broken);
        assert_eq!(response.status(), 502);
        hop.expect_end();
        let whole = format!("{FRESH}Content-Length: 5\r\n\r\nwhole");
        assert_eq!(setup.fetch("/", &whole).0.text(), "whole");
    });
}

#[test]
fn truncated_response_to_a_validation_is_not_stored() {
    Setup::each(|setup| {
        let old = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nold";
        drop(setup.fetch("/", old));
        setup.proxy.clock.advance_ms(2000);
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (hop, head) = setup
            .origin
            .answer(format!("{FRESH}Content-Length: 9\r\n\r\npart"));
        assert_eq!(head.field("if-none-match"), Some("\"a\""));
        let head = client.read_head();
        assert!(is_cut(&mut client, &head, || drop(hop)));
        // neither the part nor a mixture is served afterwards
        let whole = format!("{FRESH}Content-Length: 3\r\n\r\nnew");
        assert_eq!(setup.fetch("/", &whole).0.text(), "new");
    });
}
