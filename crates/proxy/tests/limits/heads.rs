//! How large a request head may be.

use crate::support::Setup;
use weir_measure::{Metric, StatusClass};

const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// Field lines that make the head of `GET` exactly `length` bytes long.
fn padding(setup: &Setup, length: usize) -> String {
    let without = setup.head("GET", "/", "1.1", "X: \r\n").len();
    format!("X: {}\r\n", "y".repeat(length - without))
}

#[test]
fn request_header_section_beyond_64_kib_is_refused_with_431() {
    Setup::each(|setup| {
        let limit = 64 * 1024;
        let mut client = setup.proxy.client();
        let request = setup.head("GET", "/", "1.1", &padding(setup, limit));
        assert_eq!(request.len(), limit);
        client.send(&request);
        let (_, head) = setup.origin.answer(OK);
        assert!(head.field("x").expect("the long field").len() > 65_000);
        assert_eq!(client.read_response().status(), 204);

        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.1", &padding(setup, limit + 1)));
        assert_eq!(client.read_response().status(), 431);
        client.expect_end();
        setup.origin.expect_untouched();
    });
}

#[test]
fn request_with_more_than_128_fields_is_refused_with_431() {
    Setup::each(|setup| {
        // with Host
        for (others, status) in [(127, 204), (128, 431), (5000, 431)] {
            let mut client = setup.proxy.client();
            client.send(setup.head("GET", "/", "1.1", &"X: y\r\n".repeat(others)));
            if status == 204 {
                let (_, head) = setup.origin.answer(OK);
                assert_eq!(head.all("x").len(), others);
            }
            assert_eq!(client.read_response().status(), status, "{others}");
            if status == 431 {
                client.expect_end();
                setup.origin.expect_untouched();
            }
        }
    });
}

#[test]
fn endless_request_line_or_header_section_is_refused() {
    Setup::each(|setup| {
        let mut refused = 0;
        for (begin, more) in [
            (
                setup
                    .head("GET", "/", "1.1", "")
                    .trim_end_matches("\r\n")
                    .to_owned()
                    + "\r\nX: ",
                "y",
            ),
            (format!("GET {}/", setup.base), "y"),
            ("GET".to_owned(), "T"),
            (String::new(), "\r\n"),
        ] {
            let mut client = setup.proxy.client();
            client.send(&begin);
            let more = more.repeat(8192 / more.len());
            for _ in 0..64 {
                client.try_send(&more);
            }
            let (answer, _) = client.read_to_end();
            // the answer may be lost to the reset that unread bytes cause: then the proxy has
            // counted it
            let status = answer.get(9..12).unwrap_or(b"431");
            assert!(
                [b"431", b"400", b"414"]
                    .iter()
                    .any(|known| *known == status),
                "{begin:?}"
            );
            refused += 1;
            setup
                .proxy
                .wait_for(Metric::Responses(StatusClass::ClientError), refused);
            setup.origin.expect_untouched();
        }
    });
}

#[test]
fn request_sent_byte_by_byte_is_forwarded_intact() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let request = setup.head("POST", "/x", "1.1", "X: y\r\nContent-Length: 2\r\n") + "ok";
        for byte in request.as_bytes() {
            client.send([*byte]);
        }
        let (mut hop, head) = setup.origin.answer(OK);
        assert_eq!(head.start_line(), "POST /x HTTP/1.1");
        assert_eq!(head.field("x"), Some("y"));
        hop.expect("ok");
        assert_eq!(client.read_response().status(), 204);
        // and again behind it
        for byte in setup.get("/y").as_bytes() {
            client.send([*byte]);
        }
        assert_eq!(hop.answer(OK).start_line(), "GET /y HTTP/1.1");
        assert_eq!(client.read_response().status(), 204);
    });
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send("\r\n\r\n".to_owned() + &setup.get("/"));
        let (_, head) = setup.origin.answer(OK);
        assert_eq!(head.start_line(), "GET / HTTP/1.1");
        assert_eq!(client.read_response().status(), 204);
    });
}
