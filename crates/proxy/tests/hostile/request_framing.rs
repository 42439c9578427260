//! Requests whose end can be seen in two ways are refused, and no next hop sees them (R45, R46,
//! R47, R51).

use crate::support::{PATIENCE, Setup};
use weir_measure::{Metric, StatusClass};
use weir_wire::EXTENSION_BYTES_MAX;

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// The request is refused, the connection ends, what is behind it is no request, and no next hop is
/// asked.
fn refused(setup: &Setup, request: impl AsRef<[u8]>, status: u16) {
    let request = request.as_ref();
    let shown = String::from_utf8_lossy(request).into_owned();
    let mut client = setup.proxy.client();
    client.send([request, SMUGGLED.as_bytes()].concat());
    let response = client.read_response();
    assert_eq!(response.status(), status, "{shown:?}");
    assert_eq!(
        response.head.field("connection"),
        Some("close"),
        "{shown:?}"
    );
    client.expect_end();
    setup.origin.expect_untouched();
}

/// A POST with these field lines and this content.
fn post(setup: &Setup, fields: &str, content: &str) -> String {
    setup.head("POST", "/", "1.1", fields) + content
}

#[test]
fn ambiguous_content_length_is_refused_with_400() {
    Setup::each(|setup| {
        for fields in [
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5\r\ncontent-length: 0\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: 5,6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: -5\r\n",
            "Content-Length: 0x5\r\n",
            "Content-Length: 5 5\r\n",
            "Content-Length: 5_0\r\n",
            "Content-Length: 5.0\r\n",
            "Content-Length: \r\n",
            "Content-Length: five\r\n",
            "Content-Length: \u{665}\r\n",
            "Content-Length: 18446744073709551621\r\n",
            "Content-Length: 9223372036854775808\r\n",
            "Content-Length: 00000000000000000005\r\n",
            "Content_Length: 5\r\n",
            "Content-Length: 5\r\nContent_Length: 0\r\n",
        ] {
            refused(setup, post(setup, fields, "hello"), 400);
        }
    });
}

#[test]
fn ambiguous_transfer_encoding_is_refused_with_400() {
    Setup::each(|setup| {
        for fields in [
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 0\r\nTransfer-Encoding: identity\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: identity\r\n",
            "Transfer-Encoding: identity, chunked\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: \"chunked\"\r\n",
            "Transfer-Encoding: chunked;q=1\r\n",
            "Transfer-Encoding: ,chunked\r\n",
            "Transfer-Encoding: chunked,\r\n",
            "Transfer-Encoding:\r\n",
            "Transfer-Encoding: \u{b}chunked\r\n",
            "Transfer-Encoding: \u{c}chunked\r\n",
            "Transfer-Encoding: chunked\u{0}\r\n",
            "Transfer-Encoding : chunked\r\n",
            "Transfer_Encoding: chunked\r\n",
            "Transfer-Encoding: chun\r\n ked\r\n",
            "Transfer-Encoding:\r\n chunked\r\n",
            "X: y\rTransfer-Encoding: chunked\r\n",
            "X: y\nTransfer-Encoding: chunked\r\n",
        ] {
            refused(setup, post(setup, fields, "0\r\n\r\n"), 400);
        }
    });
}

#[test]
fn http10_request_with_a_transfer_coding_is_refused_with_400() {
    Setup::each(|setup| {
        for fields in [
            "Transfer-Encoding: chunked\r\n",
            "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        ] {
            refused(
                setup,
                setup.head("POST", "/", "1.0", fields) + "0\r\n\r\n",
                400,
            );
        }
    });
}

#[test]
fn malformed_field_line_is_refused_with_400() {
    Setup::each(|setup| {
        for fields in [
            "X : y\r\n",
            "X\t: y\r\n",
            ": y\r\n",
            "X\r\n",
            "X y: z\r\n",
            "X: y\r\n z\r\n",
            "X: y\r\n\tz\r\n",
            "X: a\u{0}b\r\n",
            "X: a\rb\r\n",
            "X: a\u{7f}b\r\n",
            "X: a\nY: b\r\n",
            "X\u{e9}: y\r\n",
            "X\u{0}: y\r\n",
            "(X): y\r\n",
            "X: y\n",
            "X: y\r\r\n",
        ] {
            refused(setup, setup.head("GET", "/", "1.1", fields), 400);
        }
        // a line that continues the request line
        let folded = format!(
            "GET {}/ HTTP/1.1\r\n X: y\r\nHost: {}\r\n\r\n",
            setup.base, setup.host
        );
        refused(setup, folded, 400);
        let bare = format!("GET {}/ HTTP/1.1\nHost: {}\n\n", setup.base, setup.host);
        refused(setup, bare, 400);
    });
}

#[test]
fn malformed_chunk_is_refused_with_400_and_not_forwarded() {
    Setup::each(|setup| {
        for content in [
            "5\nhello\r\n0\r\n\r\n",
            "5\rhello\r\n0\r\n\r\n",
            "5 \r\nhello\r\n0\r\n\r\n",
            " 5\r\nhello\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "-5\r\nhello\r\n0\r\n\r\n",
            "5_0\r\nhello\r\n0\r\n\r\n",
            "g\r\nhello\r\n0\r\n\r\n",
            "\r\nhello\r\n0\r\n\r\n",
            ";a=b\r\nhello\r\n0\r\n\r\n",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
            "00000000000000005\r\nhello\r\n0\r\n\r\n",
            "5;a=\"\u{0}\"\r\nhello\r\n0\r\n\r\n",
            "5;a=\"b\r\nhello\r\n0\r\n\r\n",
            "5;a=b\nhello\r\n0\r\n\r\n",
            "5;\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello!\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhello0\r\n\r\n",
            "5\r\nhello\r\n0\r\nX y: z\r\n\r\n",
            "5\r\nhello\r\n0\r\nX: y\n\r\n",
            "5\r\nhello\r\n0\r\n\nX: y\r\n\r\n",
            "5\r\nhello\r\n0\r\n X: y\r\n\r\n",
            "5\r\nhello\r\n0\n\n",
        ] {
            let request = post(setup, "Transfer-Encoding: chunked\r\n", content);
            refused(setup, request, 400);
        }
    });
}

#[test]
fn malformed_late_chunk_leaves_the_forwarded_content_incomplete() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(post(
            setup,
            "Transfer-Encoding: chunked\r\n",
            "5\r\nhello\r\n",
        ));
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.expect("5\r\nhello\r\n");
        client.send("5\nhello\r\n0\r\n\r\n".to_owned() + SMUGGLED);
        let response = client.read_response();
        assert_eq!(response.status(), 400);
        client.expect_end();
        // no last chunk: the next hop cannot take it for whole
        hop.expect_end();
        setup.origin.expect_untouched();
    });
}

#[test]
fn request_with_too_many_chunk_extension_bytes_is_refused_with_400() {
    Setup::each(|setup| {
        // `;` and a name; the size and the line's end do not count
        let name = |bytes: u32| "a".repeat(bytes as usize - 1);
        let allowed = format!("5;{}\r\nhello\r\n0\r\n\r\n", name(EXTENSION_BYTES_MAX - 1));
        let mut client = setup.proxy.client();
        client.send(post(setup, "Transfer-Encoding: chunked\r\n", &allowed));
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.expect("5\r\nhello\r\n0\r\n\r\n");
        hop.send("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
        // nothing is sent behind the byte that is one too many: no reset overtakes the answer
        let mut client = setup.proxy.client();
        let endless = format!("5;{}", name(EXTENSION_BYTES_MAX + 1));
        client.send(post(setup, "Transfer-Encoding: chunked\r\n", &endless));
        assert_eq!(client.read_response().status(), 400);
        client.expect_end();
    });
}

#[test]
fn endless_chunk_extension_in_a_request_ends_its_connection() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(post(setup, "Transfer-Encoding: chunked\r\n", "5;"));
        let extension = "a=b;".repeat(4096);
        for _ in 0..64 {
            client.try_send(&extension);
        }
        let (answer, _) = client.read_to_end();
        // the answer may be lost to the reset that unread bytes cause: then the proxy has counted
        // it
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "));
        let refused = Metric::Responses(StatusClass::ClientError);
        setup.proxy.wait_for(refused, 1);
    });
}

#[test]
fn request_content_truncated_by_the_client_is_forwarded_incomplete() {
    Setup::each(|setup| {
        for (fields, content, forwarded) in [
            ("Content-Length: 10\r\n", "hello", ""),
            ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n", "\r\n"),
            (
                "Transfer-Encoding: chunked\r\n",
                "5\r\nhello\r\n0\r\n",
                "\r\n",
            ),
        ] {
            let mut client = setup.proxy.client();
            client.send(post(setup, fields, content));
            let mut hop = setup.origin.accept();
            hop.read_head();
            hop.read_until("hello");
            client.finish();
            let (rest, _) = hop.read_to_end();
            assert_eq!(rest, forwarded.as_bytes(), "{content:?}");
            client.expect_end();
        }
    });
}

#[test]
fn request_before_a_refused_one_is_answered() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/good") + &post(setup, "Content-Length: x\r\n", "") + SMUGGLED);
        let (_hop, _) = setup
            .origin
            .answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
        assert_eq!(client.read_response().text(), "good");
        assert_eq!(client.read_response().status(), 400);
        client.expect_end();
    });
}

#[test]
fn malformed_request_line_is_refused_before_the_header_section_ends() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        // the fault is in the first line; nothing more is coming
        client.send("GET / HTTP/1.1\nHost");
        client
            .stream
            .set_read_timeout(Some(PATIENCE / 4))
            .expect("a socket");
        assert_eq!(client.read_response().status(), 400);
        client.expect_end();
    });
}

#[test]
fn more_than_64_connection_options_are_refused_with_400() {
    Setup::each(|setup| {
        let fields = |options: usize| {
            let names: Vec<String> = (0..options).map(|number| format!("x{number}")).collect();
            format!("Connection: {}\r\n", names.join(","))
        };
        refused(setup, setup.head("GET", "/", "1.1", &fields(65)), 400);
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.1", &fields(64)));
        let (_hop, asked) = setup.origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
        assert!(!asked.has("x0"));
        assert_eq!(client.read_head().status(), 204);
    });
}
