//! What a program can do that is asked in the place of a member, and can ask the member itself.

use crate::nodes::{Nodes, fresh, get, member, set_secret};
use crate::support::{RawClient, ScriptedOrigin};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_measure::Metric;

type Change = fn(&str) -> String;

const UNCHANGED: Change = str::to_owned;

/// What node a answers, and does, if a relay stands before node c that changes heads so.
fn check(name: &str, of_request: Change, of_response: Change, is_taken: bool) {
    let cluster = Nodes::start(fresh);
    let _folder = set_secret(&cluster);
    let mut paths = cluster.paths_of(2);
    let (path, other) = (paths.next().expect("a path"), paths.next().expect("a path"));
    let asked = cluster.nodes[2].listener(1);
    let is_changed = Arc::new(AtomicBool::new(false));
    let changes = Arc::clone(&is_changed);
    let relay = ScriptedOrigin::new().answering(move |head, _| {
        let request = of_request(&head.text).replace("/swapped", &other);
        let response = RawClient::connect(asked).ask(&request);
        let answer = of_response(&response.head.text);
        let is_changed = request != head.text || answer != response.head.text;
        changes.store(is_changed, Ordering::Release);
        [answer.as_bytes(), &response.body].concat()
    });
    let node = &cluster.nodes[0];
    node.reload(|config| config.cluster.members[2] = member("c", relay.address()));
    let response = node.client().ask(get(&path));
    assert_eq!(response.status(), 200, "{name}");
    assert_eq!(response.text(), path, "{name}");
    assert!(!response.head.has("x-relay"), "{name}");
    assert_eq!(is_changed.load(Ordering::Acquire), !is_taken, "{name}");
    let cache_control = response.head.all("cache-control");
    assert_eq!(cache_control, ["max-age=3600"], "{name}");
    assert_eq!(relay.seen().len(), 1, "{name}");
    assert_eq!(cluster.asked(&path), if is_taken { 1 } else { 2 }, "{name}");
    let failed = u64::from(!is_taken);
    assert_eq!(node.count(Metric::PeersFailed), failed, "{name}");
}

#[test]
fn head_that_a_relay_has_not_changed_is_taken() {
    check("nothing", UNCHANGED, UNCHANGED, true);
}

#[test]
fn head_of_a_response_that_a_relay_has_changed_is_not_taken() {
    let changes: [(&str, Change); 6] = [
        ("freshness", |head| head.replace("=3600", "=9999")),
        ("a field more", |head| {
            head.replace("\r\nDate:", "\r\nX-Relay: 1\r\nDate:")
        }),
        ("a field less", |head| {
            head.replace("Cache-Control: max-age=3600\r\n", "")
        }),
        ("a field that is dropped", |head| {
            head.replace("\r\n\r\n", "\r\nConnection: cache-control\r\n\r\n")
        }),
        ("the status", |head| {
            head.replacen("200 OK", "404 Not Found", 1)
        }),
        ("the report", |head| {
            head.replace("outstanding=", "outstanding=9")
        }),
    ];
    for (name, change) in changes {
        check(name, UNCHANGED, change, false);
    }
}

#[test]
fn response_to_a_request_that_a_relay_has_changed_is_not_taken() {
    let changes: [(&str, Change); 4] = [
        ("the target", |head| {
            let (start, rest) = head.split_once(" HTTP/1.1").expect("a head");
            let (before, _) = start.split_once("/of/").expect("a path");
            format!("{before}/swapped HTTP/1.1{rest}")
        }),
        ("the method", |head| head.replacen("GET", "POST", 1)),
        ("a field more", |head| {
            head.replace("\r\n\r\n", "\r\nAccept-Language: xx\r\n\r\n")
        }),
        ("a field that is dropped", |head| {
            head.replace("\r\n\r\n", "\r\nConnection: via\r\n\r\n")
        }),
    ];
    for (name, change) in changes {
        check(name, change, UNCHANGED, false);
    }
}

/// What a client sends and an origin answers must not make nodes take each other for strangers.
#[test]
fn no_head_of_a_client_or_an_origin_breaks_a_proof() {
    let responses: [&[u8]; 13] = [
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 2\r\nX-Empty:\r\nX-Tab:\t a \t b \t\r\nX-Text: \xe9\xff\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\nX: y\r\n\r\nok",
        b"HTTP/1.1 200 \xe9\xff\r\nContent-Length: 2\r\nConnection: close, x-a\r\nX-A: b\r\n\r\nok",
        b"HTTP/1.1 200\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-end\r\n\r\n2\r\nok\r\n0\r\nX-End: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nWeir-Peer: node=c, own\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
        b"HTTP/1.1 999 Other\r\nContent-Length: 2\r\nAge: x\r\nVia: 1.0 a, 1.1 b\r\n\r\nok",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nok",
    ];
    let cluster = Nodes::start(move |head, _| {
        let path = head.start_line().split(' ').nth(1).expect("a target");
        let number = path.rsplit('/').next().expect("a number");
        responses[number.parse::<usize>().expect("a number")].to_vec()
    });
    let _folder = set_secret(&cluster);
    let fields: [&[u8]; 6] = [
        b"",
        b"X-Empty:\r\nX-Tab:\t a \t b \t\r\nX-Text: \xe9\xff\r\n",
        b"Connection: close, x-a\r\nX-A: b\r\nKeep-Alive: a\r\nTE: trailers\r\nProxy-Authorization: Basic YQ==\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n",
        b"Weir-Peer: node=b, mode=gateway\r\nVia: 1.1 a\r\nMax-Forwards: 3\r\nX-Text: x\r\nX-Text: y\r\n",
        b"If-None-Match: \"a\"\r\nRange: bytes=0-0\r\nCache-Control: no-cache\r\n",
    ];
    let mut asked = 0;
    for (line, fields) in (0..).zip(&fields) {
        for number in 0..responses.len() {
            let start = format!("GET /{line}/{number} HTTP/1.1\r\nHost: a.example\r\n");
            for node in &cluster.nodes {
                let request = [start.as_bytes(), fields, b"\r\n"].concat();
                let response = node.client().ask(request);
                assert_ne!(response.status(), 403, "{start}");
            }
        }
        let sum = |metric| {
            let counts = cluster.nodes.iter().map(|node| node.count(metric));
            counts.sum::<u64>()
        };
        assert_eq!(sum(Metric::PeersFailed), 0, "{line}");
        assert_eq!(sum(Metric::PeersDeclined), 0, "{line}");
        asked = sum(Metric::PeerRequests);
    }
    assert!(asked > 50, "{asked} requests to other nodes");
}

/// The node of the client says who asked; the node that asks the origin sends that on.
#[test]
fn origin_is_told_of_the_client_and_not_of_a_node() {
    let cluster = Nodes::start(fresh);
    for node in &cluster.nodes {
        node.reload(|config| {
            config.forwarded.trusted_proxies = vec!["127.0.0.2".parse().expect("an address")];
        });
    }
    let path = cluster.path_of(1);
    let ask = |at: usize, fields: &str| {
        let mut client = cluster.nodes[at].client_at(Ipv4Addr::new(127, 0, 0, 2));
        client.ask(format!(
            "GET {path} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"
        ))
    };
    let told = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n";
    assert!(!ask(0, told).is_hit());
    let seen = cluster.origin.seen();
    let head = seen.last().expect("a request");
    assert_eq!(head.field("x-forwarded-for"), Some("192.0.2.7, 127.0.0.2"));
    assert_eq!(head.field("x-forwarded-proto"), Some("https"));
    let same = "for=192.0.2.7;proto=https, for=127.0.0.2;host=a.example;proto=http";
    assert_eq!(head.field("forwarded"), Some(same));
    // what the node keeps is for that protocol alone
    assert!(ask(1, told).is_hit());
    let asked = cluster.asked(&path);
    assert!(ask(1, "").is_hit() && ask(0, "").is_hit());
    assert_eq!((asked, cluster.asked(&path)), (2, 2));
}
