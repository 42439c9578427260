//! Where messages end, in every way they can, on both sides (RFC 9112 §6, §7).

use crate::support::{End, Setup, pattern};

/// `body` in chunks of `size`, with extensions that mean nothing.
fn chunks(body: &[u8], size: usize, trailers: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(size) {
        out.extend_from_slice(format!("{:X};note=\"a;b\"\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
    out
}

#[test]
fn content_length_and_content_of_a_response_are_unchanged() {
    Setup::each(|setup| {
        for length in [0, 1, 8191, 8193, 65_535, 65_537, 300_000] {
            let body = pattern(length);
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let sent = body.clone();
            let sender = std::thread::spawn(move || {
                hop.send(format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
                ));
                hop.send(sent);
            });
            let response = client.read_response();
            sender.join().expect("sent");
            assert_eq!(response.head.length(), Some(length));
            assert!(response.body == body, "{length} bytes differ");
            client.expect_nothing_more();
        }
    });
}

#[test]
fn chunked_response_is_forwarded_intact_without_extensions() {
    Setup::each(|setup| {
        for (length, size) in [(0, 1), (1, 1), (1000, 7), (300_000, 40_000)] {
            let body = pattern(length);
            let sent = chunks(&body, size, "");
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let sender = std::thread::spawn(move || {
                hop.send(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n",
                );
                hop.send(sent);
            });
            // the reader takes bare sizes only
            let response = client.read_response();
            sender.join().expect("sent");
            assert!(response.head.is_chunked() && response.body == body);
            client.expect_nothing_more();
        }
    });
}

#[test]
fn chunked_response_received_byte_by_byte_is_forwarded_intact() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" {
            hop.send([*byte]);
        }
        for byte in chunks(b"hello, world", 5, "X-Sum: 7\r\n") {
            hop.send([byte]);
        }
        let response = client.read_response();
        assert_eq!(response.text(), "hello, world");
        assert_eq!(response.trailers, "X-Sum: 7\r\n");
        client.send(setup.get("/again"));
        hop.answer("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
    });
}

#[test]
fn close_delimited_response_is_forwarded_chunked() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (mut hop, _) = setup.origin.answer("HTTP/1.1 200 OK\r\n\r\nto the ");
        hop.send("end");
        drop(hop);
        let response = client.read_response();
        assert!(response.head.is_chunked());
        assert_eq!(response.text(), "to the end");
        client.expect_nothing_more();
    });
}

#[test]
fn http10_client_gets_chunked_content_delimited_by_close() {
    Setup::each(|setup| {
        let answers = [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\nX-Sum: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nonetwo",
        ];
        for answer in answers {
            let mut client = setup.proxy.client();
            let keep = "Connection: keep-alive\r\n";
            client.send(setup.head("GET", "/", "1.0", keep));
            drop(setup.origin.answer(answer));
            let head = client.read_head();
            assert!(!head.has("transfer-encoding") && !head.has("content-length"));
            assert_eq!(head.field("connection"), Some("close"));
            assert_eq!(client.read_to_end(), (b"onetwo".to_vec(), End::Closed));
        }
    });
}

#[test]
fn response_trailers_are_forwarded_without_forbidden_fields() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let trailers = "X-Sum: 1\r\nContent-Length: 3\r\nSet-Cookie: a=b\r\nx-Sum: 2\r\n\
             Connection: close\r\nWeir-Peer: node=a\r\n";
        let (_hop, _) = setup.origin.answer(format!(
            "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n{trailers}\r\n"
        ));
        let response = client.read_response();
        assert_eq!(response.head.field("trailer"), Some("X-Sum"));
        assert_eq!(response.trailers, "X-Sum: 1\r\nx-Sum: 2\r\n");
        client.expect_nothing_more();
    });
}

#[test]
fn trailers_that_the_head_names_in_connection_are_dropped_in_both_directions() {
    Setup::each(|setup| {
        for (named, section, kept) in [
            ("close, X-Drop", "X-Sum: 7\r\nX-DROP: 1\r\n", "X-Sum: 7\r\n"),
            (
                "x-drop\r\nConnection: X-Sum, close",
                "X-Sum: 7\r\nX-Drop: 1\r\n",
                "",
            ),
            // not what is for all recipients, as in a head
            (
                "close, ETag",
                "X-Sum: 7\r\nETag: a\r\n",
                "X-Sum: 7\r\nETag: a\r\n",
            ),
        ] {
            let fields = format!("Connection: {named}\r\nTransfer-Encoding: chunked\r\n");
            let mut client = setup.proxy.client();
            let mut request = setup.head("PUT", "/", "1.1", &fields).into_bytes();
            request.extend(chunks(b"hello", 5, section));
            client.send(request);
            let mut hop = setup.origin.accept();
            hop.read_head();
            let (content, trailers) = hop.read_chunks();
            assert_eq!(content, b"hello");
            assert_eq!(trailers, kept, "of a request with {named}");
            let mut response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes();
            response.extend(chunks(b"hello", 5, section));
            hop.send(response);
            let response = client.read_response();
            assert_eq!(response.text(), "hello");
            assert_eq!(response.trailers, kept, "of a response with {named}");
        }
    });
}

#[test]
fn request_content_is_forwarded_unchanged() {
    Setup::each(|setup| {
        let body = pattern(200_000);
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 200000\r\n"));
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        assert_eq!(head.length(), Some(200_000));
        let sent = body.clone();
        let sender = std::thread::spawn(move || {
            client.send(sent);
            client
        });
        assert!(hop.read_exactly(200_000) == body);
        let mut client = sender.join().expect("sent");
        hop.send("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
        // both connections go on
        client.send(setup.get("/next"));
        hop.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(client.read_response().status(), 200);
    });
}

#[test]
fn chunked_request_keeps_allowed_trailers_and_loses_extensions() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let mut request = setup
            .head("PUT", "/", "1.1", "Transfer-Encoding: chunked\r\n")
            .into_bytes();
        request.extend(chunks(
            b"hello, world",
            5,
            "X-Sum: 7\r\nContent-Length: 9\r\nHost: evil\r\nWeir-Peer: node=a\r\n",
        ));
        request.extend(setup.get("/next").into_bytes());
        client.send(request);
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        assert!(head.is_chunked() && !head.has("content-length"));
        let (body, trailers) = hop.read_chunks();
        assert_eq!(body, b"hello, world");
        assert_eq!(trailers, "X-Sum: 7\r\n");
        hop.send("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
        let next = hop.answer("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(next.start_line(), "GET /next HTTP/1.1");
        assert_eq!(client.read_response().status(), 204);
    });
}

#[test]
fn response_to_head_ends_with_its_header_section() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let answers = [
            "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-Length: none\r\n\r\n",
        ];
        let mut hop = None;
        for answer in answers {
            client.send(setup.head("HEAD", "/", "1.1", ""));
            let hop = hop.get_or_insert_with(|| setup.origin.accept());
            hop.answer(answer);
            let head = client.read_head();
            assert_eq!(head.status(), 200);
            assert_eq!(head.length(), answer.contains("1234").then_some(1234));
            client.expect_nothing_more();
        }
    });
}

#[test]
fn response_without_content_ends_with_its_header_section() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let mut hop = None;
        let answers = [
            (204, "HTTP/1.1 204 No Content\r\n\r\n", None),
            (
                304,
                "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
                None,
            ),
            (
                304,
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
                Some(9),
            ),
            (200, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Some(0)),
        ];
        for (status, answer, length) in answers {
            client.send(setup.head("GET", "/", "1.1", "If-None-Match: \"a\"\r\n"));
            let hop = hop.get_or_insert_with(|| setup.origin.accept());
            hop.answer(answer);
            let head = client.read_head();
            assert_eq!((head.status(), head.length()), (status, length));
            assert!(!head.has("transfer-encoding"));
            client.expect_nothing_more();
        }
    });
}
