//! How long connections last.

use weir_wire::Version;

use crate::support::{Curl, TestOrigin, Wire, hits, target};

/// Requests on one connection until it ends, at most 40.
fn requests_on(wire: &mut Wire, line: &str, fields: &[&str]) -> usize {
    let lines: Vec<&str> = std::iter::once(line)
        .chain(fields.iter().copied())
        .collect();
    for count in 1..=40 {
        let reply = wire.ask(&lines);
        assert_eq!(reply.status, 200);
        if reply.field("connection") == Some("close") {
            assert_eq!(wire.rest().expect("the end"), b"");
            return count;
        }
    }
    40
}

#[test]
fn connection_closes_after_the_configured_number_of_requests() {
    let served = TestOrigin::new(hits(&["origin.requests_per_connection=constant(3)"]));
    let line = format!("GET {} HTTP/1.1", served.path(target(1)));
    for _ in 0..3 {
        assert_eq!(requests_on(&mut served.wire(), &line, &["Host: a"]), 3);
    }
    let phase = &served.counts().phases[0];
    assert_eq!(
        (phase.connections_opened, phase.connection_requests_max),
        (3, 3)
    );
    assert_eq!(phase.requests, 3 * phase.connections_opened);
}

#[test]
fn drawn_connection_lengths_match_range_and_mean_of_the_distribution() {
    let served = TestOrigin::new(hits(&["origin.requests_per_connection=zipf(16)"]));
    let line = format!("GET {} HTTP/1.1", served.path(target(1)));
    let counts: Vec<usize> = (0..60)
        .map(|_| requests_on(&mut served.wire(), &line, &["Host: a"]))
        .collect();
    assert!(
        counts.iter().all(|count| (1..=16).contains(count)),
        "{counts:?}"
    );
    let sum: usize = counts.iter().sum();
    // zipf(16) has a mean of 5.17 and a standard deviation of 4.4; of sixty, 0.57
    assert!((180..=440).contains(&sum), "{counts:?}");
}

#[test]
fn origin_without_keep_alive_closes_after_one_response() {
    let served = TestOrigin::new(hits(&["origin.keep_alive=false"]));
    let line = format!("GET {} HTTP/1.1", served.path(target(1)));
    assert_eq!(requests_on(&mut served.wire(), &line, &["Host: a"]), 1);
}

#[test]
fn connection_persistence_follows_http_version_and_connection_field() {
    for http in ["1.0", "1.1"] {
        let served = TestOrigin::new(hits(&[&format!("origin.http=\"{http}\"")]));
        let old = format!("GET {} HTTP/1.0", served.path(target(1)));
        let new = format!("GET {} HTTP/1.1", served.path(target(1)));
        assert_eq!(requests_on(&mut served.wire(), &old, &[]), 1);
        let keeps = ["Connection: keep-alive"];
        let mut wire = served.wire();
        assert_eq!(requests_on(&mut wire, &old, &keeps), 40);
        let reply = wire.ask(&[&old, keeps[0]]);
        assert_eq!(reply.field("connection"), Some("keep-alive"));
        let version = if http == "1.0" {
            Version::Http10
        } else {
            Version::Http11
        };
        assert_eq!(reply.version, version);
        assert_eq!(requests_on(&mut served.wire(), &new, &["Host: a"]), 40);
        let closes = ["Host: a", "Connection: close"];
        assert_eq!(requests_on(&mut served.wire(), &new, &closes), 1);
    }
}

#[test]
fn curl_reuses_one_connection_for_all_requests() {
    let served = TestOrigin::new(hits(&[]));
    let urls: Vec<String> = (0..5).map(|number| served.url(target(number))).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let fetched = Curl::direct().fetch(&urls);
    let expected: Vec<u8> = (0..5)
        .flat_map(|number| served.content(target(number)))
        .collect();
    assert!(fetched.content() == expected);
    assert_eq!(served.counts().phases[0].connections_opened, 1);
}

#[test]
fn idle_connection_is_closed_after_the_idle_timeout() {
    let served = TestOrigin::new(hits(&["origin.idle_timeout=50ms"]));
    let line = format!("GET {} HTTP/1.1", served.path(target(1)));
    // one that never asked, one that did, one in the middle of a head
    let mut silent = served.wire();
    assert_eq!(silent.rest().expect("the end"), b"");
    let mut wire = served.wire();
    assert_eq!(wire.ask(&[&line, "Host: a"]).status, 200);
    assert_eq!(wire.rest().expect("the end"), b"");
    let mut half = served.wire();
    half.send(line.as_bytes()).expect("sent");
    assert_eq!(half.rest().expect("the end"), b"");
    assert_eq!(served.counts().connections_open, 0);
}
