//! What a peer listener refuses.

use crate::nodes::{Nodes, ask_as_peer, fresh, refusals, set_secret};
use crate::support::RawClient;
use weir_measure::{Metric, PeerRefusal};

/// Of a member that is not taken for a stranger, so that it does not take this node for one.
const OTHER_MODE: &str = "Weir-Peer: node=a, mode=peer\r\n";
/// Without a secret, of what may be a member that this node has not learnt of yet.
const UNLISTED: &str = "Weir-Peer: node=z, mode=gateway\r\n";
const MEMBER: &str = "Weir-Peer: node=a, mode=gateway\r\n";

#[test]
fn request_without_the_field_of_a_member_is_refused_with_403() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    let own = "Weir-Peer: node=b, mode=gateway\r\n";
    let refused = [
        "",
        own,
        UNLISTED,
        OTHER_MODE,
        "Weir-Peer: node=a\r\n",
        "Weir-Peer: node=a, mode=gateway, proof=:YQ==:\r\n",
        &MEMBER.repeat(2),
    ];
    for fields in refused {
        let response = ask_as_peer(peers, "/x", fields);
        assert_eq!(response.status(), 403, "{fields}");
        let is_member = [OTHER_MODE, UNLISTED].contains(&fields);
        assert_eq!(response.head.has("weir-peer"), is_member, "{fields}");
    }
    let count = |reason| cluster.nodes[1].count(Metric::PeersRefused(reason));
    assert_eq!(count(PeerRefusal::NoField), 3, "none, half of one, and two");
    assert_eq!(count(PeerRefusal::Namesake), 1);
    assert_eq!(count(PeerRefusal::Unlisted), 1);
    assert_eq!(count(PeerRefusal::Mode), 1);
    assert_eq!(count(PeerRefusal::NotProved), 1);
    assert_eq!(refusals(&cluster.nodes[1]), 7);
    assert_eq!(cluster.asked("/x"), 0);
}

#[test]
fn member_may_ask_by_get_and_head_without_content_alone() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    let check = |request: &str, expected: u16| {
        let head = request.replacen("\r\n", &format!("\r\nHost: a.example\r\n{MEMBER}"), 1);
        let response = RawClient::connect(peers).ask(head);
        assert_eq!(response.status(), expected, "{request}");
    };
    check("GET http://a.example/y HTTP/1.1\r\n\r\n", 200);
    check(
        "POST http://a.example/y HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        405,
    );
    check(
        "PUT http://a.example/y HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
        405,
    );
    check(
        "GET http://a.example/y HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
        405,
    );
    check("DELETE http://a.example/y HTTP/1.1\r\n\r\n", 405);
    check("CONNECT a.example:443 HTTP/1.1\r\n\r\n", 405);
}

#[test]
fn operator_learns_that_a_member_is_not_proved_while_other_programs_are_refused() {
    let cluster = Nodes::start(fresh);
    let _folder = set_secret(&cluster);
    let node = &cluster.nodes[1];
    for name in ["z", "a"] {
        let field = format!("Weir-Peer: node={name}, mode=gateway, to=b\r\n");
        assert_eq!(ask_as_peer(node.listener(1), "/x", &field).status(), 403);
        let why = "its proof is not made with the secret of this node";
        node.wait_until_said(&format!("refused node {name} from 127.0.0.1: {why}"), 1);
    }
}

#[test]
fn stranger_that_does_not_know_the_secret_is_told_nothing() {
    let cluster = Nodes::start(fresh);
    let _folder = set_secret(&cluster);
    let peers = cluster.nodes[1].listener(1);
    for fields in [
        "",
        MEMBER,
        UNLISTED,
        "Weir-Peer: node=z, mode=gateway, to=b, proof=:YQ==:, nonce=:YQ==:\r\n",
        "Weir-Peer: node=a, mode=gateway, to=b, proof=:YQ==:, nonce=:YQ==:\r\n",
        "Weir-Peer: node=a, mode=gateway, to=c, proof=:YQ==:, nonce=:YQ==:\r\n",
    ] {
        let response = ask_as_peer(peers, "/x", fields);
        assert_eq!(response.status(), 403, "{fields}");
        assert!(!response.head.has("weir-peer"), "{fields}");
    }
    let count = |reason| cluster.nodes[1].count(Metric::PeersRefused(reason));
    assert_eq!(count(PeerRefusal::NoField), 1);
    assert_eq!(count(PeerRefusal::NotProved), 4);
    assert_eq!(count(PeerRefusal::OtherName), 1);
    assert_eq!(cluster.asked("/x"), 0);
}

#[test]
fn message_about_a_connection_is_taken_of_members_that_know_the_secret_alone() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    let check = |target: &str, fields: &str| {
        let response = RawClient::connect(peers).ask(format!(
            "POST {target} HTTP/1.1\r\nHost: b\r\n{fields}Content-Length: 40\r\n\r\n{:40}",
            "content"
        ));
        assert_eq!(response.status(), 403, "{target} {fields}");
    };
    let targets = [
        "/weir/hand-off",
        "/weir/hand-off/go",
        "/weir/hand-off/end",
        "/weir/hand-off/session",
        "/weir/hand-off/session/begin",
        "/weir/hand-off/moved",
        "/weir/hand-off/hold",
        "/weir/hand-off/steer",
        "/weir/hand-off/release",
        "/weir/hand-off/other",
    ];
    for target in targets {
        // without a secret nothing can be proved
        check(target, "Weir-Peer: node=a, mode=hand-off\r\n");
        check(target, "");
    }
    let _folder = set_secret(&cluster);
    for target in targets {
        check(target, "Weir-Peer: node=a, mode=hand-off\r\n");
        check(
            target,
            "Weir-Peer: node=a, mode=hand-off, to=b, proof=:YQ==:, nonce=:YQ==:\r\n",
        );
    }
    assert_eq!(cluster.nodes[1].count(Metric::ConnectionsAdopted), 0);
}
