//! What a response to one user brings does not change what others get (RFC 9111 §3.5, §4.3.4,
//! §4.3.5).

use crate::support::{Head, Response, Setup};

/// Stored for others, with the field for them that the update leaves out.
const STORED: &str = "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=600\r\n\
     CDN-Cache-Control: public, max-age=600\r\nETag: \"1\"\r\nX-For: all\r\nContent-Length: 3\r\n\r\nall";

/// A user's own request about the stored response, and what the next hop says to it. The head of
/// the user's response, and the response of another client then.
fn update(
    setup: &Setup,
    method: &str,
    request: &str,
    status: &str,
    fields: &str,
) -> (Head, Response) {
    let (stored, mut hop) = setup.fetch("/", STORED);
    assert_eq!(stored.text(), "all");
    let mut user = setup.proxy.client();
    user.send(setup.head(method, "/", "1.1", request));
    let head = hop.answer(format!("HTTP/1.1 {status}\r\nETag: \"1\"\r\n{fields}\r\n"));
    assert_eq!(
        head.field("if-none-match"),
        Some("\"1\""),
        "{method} {request}"
    );
    let own = user.read_head();
    let others = setup.proxy.client().ask(setup.get("/"));
    (own, others)
}

#[test]
fn response_to_credentials_changes_nothing_that_others_get() {
    for (method, status, fields) in [
        ("HEAD", "200 OK", "Cache-Control: private\r\n"),
        ("HEAD", "200 OK", "Content-Length: 3\r\n"),
        ("GET", "304 Not Modified", ""),
        ("GET", "304 Not Modified", "Cache-Control: private\r\n"),
        ("GET", "304 Not Modified", "Cache-Control: max-age=60\r\n"),
    ] {
        Setup::each(|setup| {
            let request = "Authorization: Basic eDp5\r\nCache-Control: no-cache\r\n";
            let fields = format!("{fields}X-For: ann\r\n");
            let (own, others) = update(setup, method, request, status, &fields);
            assert_eq!(own.field("x-for"), Some("ann"), "{method} {fields}");
            assert!(others.is_hit(), "{method} {fields}: it was dropped");
            assert_eq!(others.head.field("x-for"), Some("all"), "{method} {fields}");
            assert_eq!(others.text(), "all");
        });
    }
}

/// Any client could empty the store for the others.
#[test]
fn no_store_of_a_client_leaves_the_validated_response_stored() {
    Setup::each(|setup| {
        let request = "Cache-Control: no-cache, no-store\r\n";
        let status = "304 Not Modified";
        let (own, others) = update(setup, "GET", request, status, "X-For: ann\r\n");
        assert_eq!(own.status(), 200);
        assert!(others.is_hit(), "it was dropped");
        assert_eq!(others.head.field("x-for"), Some("all"));
    });
}

/// The targeted field of the stored response says that it is shared; the update says otherwise.
#[test]
fn private_head_response_is_not_merged_into_a_response_shared_by_its_targeted_field() {
    let setup = Setup::gateway();
    let request = "Cache-Control: no-cache\r\n";
    let fields = "Cache-Control: private\r\nX-For: ann\r\n";
    let (stored, mut hop) = setup.fetch("/", STORED);
    assert_eq!(stored.text(), "all");
    let mut user = setup.proxy.client();
    user.send(setup.head("HEAD", "/", "1.1", request));
    hop.answer(format!("HTTP/1.1 200 OK\r\nETag: \"1\"\r\n{fields}\r\n"));
    assert_eq!(user.read_head().field("x-for"), Some("ann"));
    let mut other = setup.proxy.client();
    other.send(setup.get("/"));
    // the stored one was dropped: what it was shared by does not hold any more
    hop.answer(STORED);
    let response = other.read_response();
    assert_eq!(response.head.field("x-for"), Some("all"));
}
