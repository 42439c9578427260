//! Content in both directions, byte for byte.

use crate::support::{Config, Curl, Nginx, RawClient, Weir, content};

const LARGE: usize = 10 << 20;

const LOCATIONS: &str = "
    location /plain/ { add_header Cache-Control max-age=3600; alias www/; }
    location /chunked/ { ssi on; ssi_types *; add_header Cache-Control max-age=3600; alias www/; }
    location /until-close/ {
        chunked_transfer_encoding off;
        ssi on;
        ssi_types *;
        add_header Cache-Control max-age=3600;
        alias www/;
    }
    location /put/ { alias www/put/; dav_methods PUT DELETE; create_full_put_path on; add_header Cache-Control max-age=3600; }
    location /small { client_max_body_size 1k; dav_methods PUT; }
";

fn parts() -> (Nginx, Weir) {
    (Nginx::start(LOCATIONS), Weir::serve(&Config::forward()))
}

#[test]
fn large_download_is_identical_on_miss_and_hit() {
    let (nginx, weir) = parts();
    let expected = content(1, LARGE);
    nginx.file("large", &expected);
    for (path, chunked) in [
        ("/plain/large", false),
        ("/chunked/large", true),
        ("/until-close/large", true),
    ] {
        let origin = Curl::direct().fetch(&nginx.url(path)).reply();
        assert_eq!(origin.field("content-length").is_empty(), chunked, "{path}");
        for round in ["miss", "hit"] {
            let curl = Curl::through(weir.address());
            let reply = curl.fetch(&nginx.url(path)).reply().expect(200);
            assert!(reply.body == expected, "{path}: {round}");
            assert_eq!(reply.is_hit(), round == "hit", "{path}: {}", reply.head);
        }
    }
}

#[test]
fn response_over_largest_response_is_forwarded_whole_and_not_stored() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward().set("cache.largest_response", "\"1MiB\""));
    let expected = content(2, 3 << 20);
    nginx.file("large", &expected);
    for path in ["/plain/large", "/chunked/large"] {
        for _ in 0..2 {
            let reply = weir.get(&nginx.url(path)).expect(200);
            assert!(reply.body == expected && !reply.is_hit(), "{}", reply.head);
        }
    }
    let metrics = weir.until("counted", |metrics| metrics.all_requests() == 4);
    assert_eq!(metrics.count("weir_store_entries"), 0);
    assert_eq!(
        metrics.count("weir_not_stored_total{reason=\"too-large\"}"),
        4
    );
}

#[test]
fn upload_reaches_the_origin_unchanged() {
    let (nginx, weir) = parts();
    let expected = content(3, LARGE);
    let file = nginx.file("source", &expected);
    let source = file.to_string_lossy();
    let check = |name: &str, curl: Curl| {
        let url = nginx.url(&format!("/put/{name}"));
        curl.args(["-T", &source]).fetch(&url).reply().expect(201);
        let found = std::fs::read(nginx.path(&format!("put/{name}"))).expect("nginx stored it");
        assert!(found == expected, "{name}");
    };
    let curl = || Curl::through(weir.address());
    // curl expects 100 by itself for content of this size
    check("length", curl());
    check("length-unexpected", curl().field("Expect:"));
    check("chunked", curl().field("Transfer-Encoding: chunked"));
    check(
        "chunked-unexpected",
        curl().field("Transfer-Encoding: chunked").field("Expect:"),
    );
}

#[test]
fn expectation_gets_100_or_a_refusal_before_the_content_is_sent() {
    let (nginx, weir) = parts();
    let url = nginx.url("/put/expected");
    let mut client = RawClient::connect(weir.address());
    client.send(format!(
        "PUT {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n"
    ));
    // not a byte of content before
    assert_eq!(client.head().status(), 100);
    client.send("content");
    client.reply().expect(201);
    assert_eq!(
        std::fs::read(nginx.path("put/expected")).expect("stored"),
        b"content"
    );

    // a refusal before the content: it is not sent, and the connection is not read as a request
    let url = nginx.url("/small");
    let mut client = RawClient::connect(weir.address());
    client.send(format!(
        "PUT {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n\r\n"
    ));
    client.reply().expect(413);
    assert!(client.is_closed());
}

#[test]
fn request_pipelined_behind_chunked_content_is_answered() {
    let (nginx, weir) = parts();
    let url = nginx.url("/put/piped");
    let get = nginx.url("/put/piped");
    let mut client = RawClient::connect(weir.address());
    client.send(format!(
        "PUT {url} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
         4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\nGET {get} HTTP/1.1\r\nHost: x\r\n\r\n"
    ));
    client.reply().expect(201);
    assert_eq!(client.reply().expect(200).body, b"abcdefg");
}

#[test]
fn unsafe_method_invalidates_the_stored_response() {
    let (nginx, weir) = parts();
    let url = nginx.url("/put/page");
    let put = |text: &str| {
        let curl = Curl::through(weir.address()).args(["-X", "PUT", "--data-binary", text]);
        let status = curl.fetch(&url).reply().status();
        assert!(matches!(status, 201 | 204), "{status}");
    };
    put("old");
    assert_eq!(weir.get(&url).expect(200).body, b"old");
    assert!(weir.get(&url).is_hit());
    put("new");
    let reply = weir.get(&url).expect(200);
    assert!(!reply.is_hit() && reply.body == b"new", "{}", reply.head);
    let curl = Curl::through(weir.address()).args(["-X", "DELETE"]);
    curl.fetch(&url).reply().expect(204);
    weir.get(&url).expect(404);
}

#[test]
fn slow_reader_does_not_delay_other_clients() {
    let nginx = Nginx::start(LOCATIONS);
    let weir = Weir::serve(&Config::forward().set("workers", "1"));
    let expected = content(4, LARGE);
    nginx.file("large", &expected);
    nginx.file("other", b"other");
    let url = nginx.url("/plain/large");
    let mut slow = RawClient::connect(weir.address());
    slow.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let head = slow.head().expect(200);
    for _ in 0..5 {
        assert_eq!(
            weir.get(&nginx.url("/plain/other")).expect(200).body,
            b"other"
        );
    }
    assert_eq!(head.field("content-length"), LARGE.to_string());
    assert!(slow.take(LARGE) == expected);
}
