//! What nodes tell each other of what they hold, and what that is good for.

use crate::nodes::{Nodes, ask_as_peer, fresh, member};
use crate::support::{RawClient, ScriptedOrigin, span};
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_measure::Metric;
use weir_proxy::config::Config;
use xtask::closed_port::ClosedPort;

const ASKED: &str = "GET /weir/digest HTTP/1.1\r\nHost: b\r\n";
const MEMBER: &str = "Weir-Peer: node=a, mode=digests\r\n";

fn ask_often(config: &mut Config) {
    config.cluster.digest_interval = span("1s");
    config.cluster.digest_memory = "1MiB".parse().expect("a size");
}

/// Waits until node number `at` has begun and ended a round of questions.
fn wait_for_round(cluster: &Nodes, at: usize) {
    let node = &cluster.nodes[at];
    let taken = node.count(Metric::DigestsTaken);
    // one may be under way that began before
    let each_round = cluster.nodes.len() as u64 - 1;
    node.wait_for_at_least(Metric::DigestsTaken, taken + 2 * each_round);
}

#[test]
fn while_the_owner_is_gone_what_another_node_holds_is_not_requested_from_the_origin() {
    let mut cluster = Nodes::start(fresh);
    let paths: Vec<String> = cluster.paths_of(2).take(8).collect();
    // node a stores them while it reaches none of the others
    let closed = [(); 2].map(|()| ClosedPort::hold().expect("a port"));
    cluster.nodes[0].reload(|config| {
        for (other, closed) in config.cluster.members[1..].iter_mut().zip(&closed) {
            *other = member(&other.name, closed.address());
        }
    });
    for path in &paths {
        assert_eq!(cluster.get(0, path).text(), *path);
        assert_eq!(cluster.asked(path), 2);
    }
    cluster.nodes[1].reload(ask_often);
    wait_for_round(&cluster, 1);
    let owner = cluster.nodes.pop().expect("three nodes");
    assert!(owner.stop().join().expect("no panic"));
    for path in &paths {
        let response = cluster.get(1, path);
        assert_eq!(response.text(), *path);
        assert!(
            response
                .head
                .all("cache-status")
                .join(",")
                .contains("weir;hit")
        );
        assert_eq!(cluster.asked(path), 2, "{path}");
    }
    assert!(cluster.nodes[1].count(Metric::DigestBytes) > 0);
}

#[test]
fn digest_is_for_members_alone() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    let told = RawClient::connect(peers).ask(format!("{ASKED}{MEMBER}\r\n"));
    assert_eq!(told.status(), 200);
    assert!(told.body.starts_with(b"weirdgst\x01\x00"));
    assert!(told.head.has("weir-peer"));
    for refused in [
        format!("{ASKED}\r\n"),
        format!("{ASKED}Weir-Peer: node=z, mode=digests\r\n\r\n"),
        format!("{ASKED}{MEMBER}{MEMBER}\r\n"),
        format!("{ASKED}Weir-Peer: node=a, mode=gateway, proof=:YQ==:\r\n\r\n"),
    ] {
        let response = RawClient::connect(peers).ask(&refused);
        assert_eq!(response.status(), 403, "{refused}");
    }
    let of_client = cluster.nodes[1]
        .client()
        .ask(format!("{ASKED}{MEMBER}\r\n"));
    assert_eq!(
        of_client.text(),
        "/weir/digest",
        "it is a path of the origin"
    );
    let absolute = ask_as_peer(peers, "/weir/digest", "Weir-Peer: node=a, mode=gateway\r\n");
    assert_eq!(
        absolute.text(),
        "/weir/digest",
        "it is a path of the origin"
    );
}

#[test]
fn node_is_told_what_was_stored_since_it_asked() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    let ask = |known: &str| {
        let target = format!("GET /weir/digest{known} HTTP/1.1\r\nHost: b\r\n{MEMBER}\r\n");
        RawClient::connect(peers).ask(target).body
    };
    let whole = ask("");
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("8 bytes"));
    let (epoch, additions) = (number(10), number(18));
    cluster.path_of(1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let since = ask(&format!("?{epoch}-{additions}"));
        assert_eq!(
            since[..26],
            [b"weirdgst\x01\x01", &whole[10..26]].concat()[..]
        );
        // the store is walked at most once a second
        if since.len() == 30 + 16 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{since:?}");
    }
    assert_eq!(ask(&format!("?{}-0", epoch ^ 1))[9], 0, "the whole");
}

#[test]
fn digest_that_cannot_be_read_is_refused_and_counted_and_the_node_is_asked_on() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let times = AtomicUsize::new(0);
    let liar = ScriptedOrigin::new().answering(move |head, _| {
        let bad: [&[u8]; 4] = [
            b"squiddgst",
            b"weirdgst\x09\x00",
            b"weirdgst\x01\x00abc",
            b"",
        ];
        let (content, length) = match times.fetch_add(1, Ordering::Relaxed) % 5 {
            4 => (bad[3], 65 << 20),
            at => (bad[at], bad[at].len()),
        };
        assert!(
            head.start_line().starts_with("GET /weir/digest HTTP"),
            "{head:?}"
        );
        let report = "Weir-Peer: node=c, state=in, weight=100, outstanding=0, miss-pressure=0";
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{report}\r\n\r\n");
        [head.as_bytes(), content].concat()
    });
    let node = &cluster.nodes[0];
    node.reload(|config| {
        config.cluster.members[2] = member("c", liar.address());
        ask_often(config);
    });
    node.wait_for_at_least(Metric::DigestsRefused, 5);
    assert!(node.count(Metric::DigestsTaken) >= 1, "of the other one");
    let other = cluster.path_of(1);
    assert_eq!(cluster.get(0, &other).text(), other);
    drop(path);
}

#[test]
fn no_digest_is_asked_for_or_kept_without_memory_for_it() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    node.reload(ask_often);
    node.wait_for_at_least(Metric::DigestsTaken, 2);
    node.reload(|config| config.cluster.digest_memory = "0".parse().expect("a size"));
    node.wait_for_at_most(Metric::DigestBytes, 0);
}
