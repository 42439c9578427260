//! A forward proxy between clients and nginx: messages, versions, connections.

mod tunnel;

use crate::support::{Config, Curl, Nginx, RawClient, Weir};
use std::collections::BTreeSet;

const LOCATIONS: &str = "
    location /cached { add_header Cache-Control max-age=3600; return 200 $request_id; }
    location /seen {
        add_header Cache-Control no-store;
        return 200 \"$server_protocol|$http_host|$http_via|$http_x_secret|$http_proxy_connection|$http_x_kept\";
    }
";

fn parts() -> (Nginx, Weir) {
    (Nginx::start(LOCATIONS), Weir::serve(&Config::forward()))
}

#[test]
fn second_get_is_a_hit() {
    let (nginx, weir) = parts();
    let get = || {
        let curl = Curl::through(weir.address());
        curl.fetch(&nginx.url("/cached")).reply().expect(200)
    };
    let (first, second) = (get(), get());
    assert_eq!(
        first.cache_status(),
        "weir;fwd=uri-miss;fwd-status=200;stored"
    );
    assert!(second.is_hit(), "{}", second.head);
    // nginx makes another id for every request
    assert_eq!(first.body, second.body);
    assert!(second.field("age").parse::<u64>().is_ok_and(|age| age < 60));
    let metrics = weir.until("counted", |metrics| metrics.all_requests() == 2);
    assert_eq!(
        (metrics.requests("uri-miss"), metrics.requests("hit")),
        (1, 1)
    );
    assert_eq!(metrics.count("weir_store_entries"), 1);
}

#[test]
fn head_gets_the_content_length_of_get_without_content() {
    let (nginx, weir) = parts();
    nginx.file("page.html", b"<p>0123456789</p>");
    let head = |url: &str| {
        Curl::through(weir.address())
            .args(["-I"])
            .fetch(url)
            .reply()
    };
    let missed = head(&nginx.url("/page.html")).expect(200);
    assert_eq!(missed.field("content-length"), "17");
    weir.get(&nginx.url("/cached")).expect(200);
    let hit = head(&nginx.url("/cached")).expect(200);
    assert!(hit.is_hit(), "{}", hit.head);
    assert_eq!(hit.field("content-length"), "32");

    // a HEAD leaves the connection where the next answer begins
    let mut client = RawClient::connect(weir.address());
    let url = nginx.url("/cached");
    client.send(format!("HEAD {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(client.head().status(), 200);
    assert_eq!(client.get(&url).expect(200).body.len(), 32);
}

#[test]
fn http_1_0_client_gets_no_chunks_and_keep_alive_only_on_request() {
    // server-side includes leave the length open: nginx sends chunks
    let nginx = Nginx::start("location / { ssi on; add_header Cache-Control max-age=60; }");
    let weir = Weir::serve(&Config::forward());
    nginx.file("page.html", b"0123456789");
    let url = nginx.url("/page.html");
    for round in ["miss", "hit"] {
        let fetched = Curl::through(weir.address()).args(["-0"]).fetch(&url);
        let reply = fetched.reply().expect(200);
        assert_eq!(reply.body, b"0123456789", "{round}");
        assert_eq!(reply.field("transfer-encoding"), "", "{round}");
    }
    let mut client = RawClient::connect(weir.address());
    client.send(format!("GET {url} HTTP/1.0\r\n\r\n"));
    assert_eq!(client.reply().expect(200).body, b"0123456789");
    assert!(client.is_closed());

    let mut client = RawClient::connect(weir.address());
    for _ in 0..2 {
        client.send(format!(
            "GET {url} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
        ));
        assert_eq!(client.reply().expect(200).body, b"0123456789");
    }
}

#[test]
fn hop_by_hop_fields_are_removed_and_via_is_added() {
    let (nginx, weir) = parts();
    let fetched = Curl::through(weir.address())
        .field("Connection: x-secret")
        .field("X-Secret: for this hop")
        .field("X-Kept: for the origin")
        .fetch(&nginx.url("/seen"));
    let seen = fetched.reply().expect(200).text();
    let seen: Vec<&str> = seen.split('|').collect();
    assert_eq!(seen[0], "HTTP/1.1");
    assert_eq!(seen[1], nginx.address.to_string());
    assert!(seen[2].starts_with("1.1 weir"), "{seen:?}");
    assert_eq!(&seen[3..], ["", "", "for the origin"]);
}

#[test]
fn pipelined_responses_are_complete_and_in_order() {
    let (nginx, weir) = parts();
    nginx.file("big", &crate::support::content(1, 300_000));
    let mut client = RawClient::connect(weir.address());
    weir.get(&nginx.url("/cached")).expect(200);
    // hits, misses, a content that fills buffers, an error, by turns and in one write
    let paths = [
        "/cached", "/seen", "/big", "/missing", "/cached", "/seen", "/big", "/cached",
    ];
    let mut requests = String::new();
    for path in paths.repeat(5) {
        requests.push_str(&format!(
            "GET {} HTTP/1.1\r\nHost: x\r\n\r\n",
            nginx.url(path)
        ));
    }
    client.send(requests);
    for path in paths.repeat(5) {
        let reply = client.reply();
        let expected = match path {
            "/missing" => (404, None),
            "/big" => (200, Some(300_000)),
            "/cached" => (200, Some(32)),
            _ => (200, None),
        };
        assert_eq!(reply.status(), expected.0, "{path}");
        if let Some(length) = expected.1 {
            assert_eq!(reply.body.len(), length, "{path}");
        }
    }
}

#[test]
fn connections_are_reused_on_both_sides() {
    let (nginx, weir) = parts();
    // ten requests by two clients one after the other: nginx sees one connection
    let url = nginx.url("/connection");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut client = RawClient::connect(weir.address());
        for _ in 0..5 {
            seen.push(client.get(&url).expect(200).text());
        }
        // the answer may be here before its connection is put away, and the next client with the
        // other worker
        weir.until("put away", |metrics| {
            metrics.count("weir_connection_cache_idle") == 1
        });
    }
    let connections: BTreeSet<&str> = seen.iter().filter_map(|s| s.split(' ').next()).collect();
    assert_eq!(connections.len(), 1, "{seen:?}");
    assert_eq!(seen[9].split(' ').nth(1), Some("10"), "{seen:?}");
    let metrics = weir.until("counted", |metrics| metrics.all_requests() == 10);
    let of = |outcome| {
        metrics.count(&format!(
            "weir_connection_cache_requests_total{{outcome=\"{outcome}\"}}"
        ))
    };
    assert_eq!((of("hit"), of("miss")), (9, 1));
    assert_eq!(metrics.count("weir_client_connections_accepted_total"), 2);
    assert_eq!(metrics.count("weir_next_hop_connections_open"), 1);
}

#[test]
fn curl_reuses_one_connection_for_all_its_requests() {
    let (nginx, weir) = parts();
    let url = nginx.url("/connection");
    let curl = Curl::through(weir.address()).args(["-w", ":%{num_connects};", &url, &url]);
    let text = curl.fetch(&url).reply().text();
    let connects: Vec<&str> = text
        .split(';')
        .filter_map(|one| one.split(':').nth(1))
        .collect();
    assert_eq!(connects, ["1", "0", "0"], "{text}");
}

#[test]
fn parallel_requests_each_get_the_content_of_their_own_target_uri() {
    let nginx = Nginx::start("location / { add_header Cache-Control max-age=3600; }");
    let weir = Weir::serve(&Config::forward());
    for number in 1..=100 {
        let content = crate::support::content(number, 1 + 997 * number as usize);
        nginx.file(&format!("files/{number}"), &content);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for round in ["misses", "hits"] {
        let output = folder.path().join("#1");
        let fetched = Curl::through(weir.address())
            .args(["--parallel", "--parallel-immediate", "--parallel-max", "50"])
            .args(["--fail", "-o", &output.to_string_lossy()])
            .fetch(&nginx.url("/files/[1-100]"));
        assert_eq!(fetched.exit, 0, "{round}: {}", fetched.stderr);
        for number in 1..=100_u32 {
            let found = std::fs::read(folder.path().join(number.to_string())).expect("a file");
            let expected = crate::support::content(number, 1 + 997 * number as usize);
            assert!(found == expected, "{round}: file {number} differs");
        }
    }
    let metrics = weir.until("counted", |metrics| metrics.all_requests() == 200);
    assert_eq!(metrics.requests("hit"), 100);
    assert_eq!(metrics.count("weir_panics_total"), 0);
}
