//! What becomes of a request whose node does not answer.

use crate::nodes::{Nodes, fresh, get, member};
use crate::support::{ScriptedOrigin, span};
use weir_measure::Metric;
use weir_proxy::config::TokenFile;

#[test]
fn node_that_has_stopped_costs_no_request_and_the_origin_is_asked_once_more() {
    let mut cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let stopped = cluster.nodes.pop().expect("three nodes");
    assert!(stopped.stop().join().expect("no panic"));
    for at in [0, 1, 0, 1] {
        let response = cluster.get(at, &path);
        assert_eq!((response.status(), response.text()), (200, path.clone()));
    }
    assert_eq!(cluster.asked(&path), 2);
    for node in &cluster.nodes {
        assert_eq!(node.count(Metric::PeersFailed), 1, "it is not asked again");
    }
}

#[test]
fn node_that_is_silent_for_longer_than_permitted_is_passed_over() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let silent = ScriptedOrigin::new();
    for node in &cluster.nodes[..2] {
        node.reload(|config| {
            config.cluster.peer_timeout = span("50ms");
            config.cluster.members[2] = member("c", silent.address());
        });
    }
    let mut client = cluster.nodes[0].client();
    client.send(get(&path));
    let mut asked = silent.accept();
    assert!(asked.read_head().has("weir-peer"));
    assert_eq!(client.read_response().text(), path);
    assert_eq!(cluster.nodes[0].count(Metric::PeersFailed), 1);
}

#[test]
fn answer_of_a_program_that_is_no_member_is_not_passed_on() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let stranger = ScriptedOrigin::new();
    cluster.nodes[0].reload(|config| {
        config.cluster.members[2] = member("c", stranger.address());
    });
    let mut client = cluster.nodes[0].client();
    client.send(get(&path));
    let _asked = stranger
        .answer("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nwrong");
    assert_eq!(client.read_response().text(), path);
}

#[test]
fn only_a_program_that_knows_the_secret_can_answer_for_a_member() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "an-agreed-secret-of-nodes").expect("a file");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret, private).expect("a file");
    let cluster = Nodes::start(fresh);
    for node in &cluster.nodes {
        let file = TokenFile::At(secret.clone());
        node.reload(|config| config.cluster.secret_file = file);
    }
    let path = cluster.path_of(2);
    let squatter = ScriptedOrigin::new();
    cluster.nodes[0].reload(|config| {
        config.cluster.members[2] = member("c", squatter.address());
    });
    let mut client = cluster.nodes[0].client();
    client.send(get(&path));
    // all that a member says, and an interim response before it
    let _asked = squatter.answer(
        "HTTP/1.1 103 Early Hints\r\nLink: </evil>\r\n\r\nHTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\
         Weir-Peer: node=c, state=in, weight=100, outstanding=0, miss-pressure=0, proof=:YQ==:\r\n\
         Content-Length: 5\r\n\r\nwrong",
    );
    assert_eq!(client.read_response().text(), path);
    assert_eq!(cluster.nodes[0].count(Metric::PeersFailed), 1);
    // and members know each other
    let other = cluster.path_of(1);
    assert_eq!(cluster.get(0, &other).text(), other);
    assert_eq!(cluster.nodes[0].count(Metric::PeersFailed), 1);
}
