//! What becomes of a request whose node does not answer.

use crate::nodes::{Nodes, fresh, get, member, set_secret};
use crate::support::{ScriptedOrigin, span};
use weir_measure::Metric;
use weir_proxy::admin::{PurgeCall, PurgeReach};
use xtask::closed_port::ClosedPort;

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
fn request_for_which_a_node_has_no_connection_left_is_answered_by_another_one_at_once() {
    let cluster = Nodes::start(fresh);
    let mut paths = cluster.paths_of(2);
    let (slow, other) = (paths.next().expect("a path"), paths.next().expect("a path"));
    let node = &cluster.nodes[0];
    let busy = ScriptedOrigin::new();
    node.reload(|config| {
        config.cluster.members[2] = member("c", busy.address());
        config.cluster.peer_timeout = span("5min");
        config.limits.next_hop_wait = span("5min");
        config.limits.connections_per_next_hop_max = 1;
        config.limits.idle_per_next_hop_max = 1;
    });
    let mut waiting = node.client();
    waiting.send(get(&slow));
    let mut held = busy.accept();
    assert!(held.read_head().has("weir-peer"));
    assert_eq!(cluster.get(0, &other).text(), other);
    assert_eq!(node.count(Metric::PeersBusy), 1);
    assert_eq!(node.count(Metric::PeersFailed), 0, "it is not ejected");
    held.send(
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\
         Weir-Peer: node=c, state=in, outstanding=0, miss-pressure=0\r\n\r\nslow",
    );
    assert_eq!(waiting.read_response().text(), "slow");
}

#[test]
fn what_a_node_answers_for_itself_is_asked_of_the_origin_and_not_passed_on() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let asked = cluster.asked(&path);
    let closed = ClosedPort::hold().expect("a port");
    let nowhere = closed.address();
    // without a connection to the origin, and without a route
    for (count, route) in (1..).zip([(nowhere, "/"), (nowhere, "/none")]) {
        cluster.nodes[2].reload(|config| {
            config.routes[0].next_hops =
                vec![format!("http://{}", route.0).parse().expect("a URL")];
            config.routes[0].path = route.1.parse().expect("a path");
        });
        for node in [&cluster.nodes[0], &cluster.nodes[2]] {
            node.purge_at(PurgeReach::ThisNode, PurgeCall::All)
                .expect("purged");
        }
        let response = cluster.get(0, &path);
        assert_eq!((response.status(), response.text()), (200, path.clone()));
        let node = &cluster.nodes[0];
        assert_eq!(node.count(Metric::PeersDeclined), count);
        assert_eq!(node.count(Metric::PeersFailed), 0, "it is not ejected");
        let count = usize::try_from(count).expect("a small number");
        assert_eq!(cluster.asked(&path), asked + count);
    }
}

#[test]
fn error_of_the_origin_is_passed_on_and_asked_for_once() {
    let cluster = Nodes::start(|_, _| {
        b"HTTP/1.1 503 Service Unavailable\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nbusy".to_vec()
    });
    for at in [0, 1, 2] {
        let response = cluster.get(at, "/busy");
        assert_eq!(
            (response.status(), response.text()),
            (503, "busy".to_owned())
        );
    }
    assert_eq!(cluster.asked("/busy"), 1);
    let declined = cluster
        .nodes
        .iter()
        .map(|node| node.count(Metric::PeersDeclined));
    assert_eq!(declined.sum::<u64>(), 0);
}

#[test]
fn only_a_program_that_knows_the_secret_can_answer_for_a_member() {
    let cluster = Nodes::start(fresh);
    let _folder = set_secret(&cluster);
    let path = cluster.path_of(2);
    let impostor = ScriptedOrigin::new();
    cluster.nodes[0].reload(|config| {
        config.cluster.members[2] = member("c", impostor.address());
    });
    let mut client = cluster.nodes[0].client();
    client.send(get(&path));
    // all that a member says, and an interim response before it
    let _asked = impostor.answer(
        "HTTP/1.1 103 Early Hints\r\nLink: </evil>\r\n\r\nHTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\
         Weir-Peer: node=c, state=in, outstanding=0, miss-pressure=0, proof=:YQ==:\r\n\
         Content-Length: 5\r\n\r\nwrong",
    );
    assert_eq!(client.read_response().text(), path);
    assert_eq!(cluster.nodes[0].count(Metric::PeersFailed), 1);
    // and members know each other
    let other = cluster.path_of(1);
    assert_eq!(cluster.get(0, &other).text(), other);
    assert_eq!(cluster.nodes[0].count(Metric::PeersFailed), 1);
}

/// Each node adds fields of its own, and takes no more from another one than from others.
#[test]
fn request_head_too_large_for_another_node_is_sent_to_the_origin_and_fails_no_node() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let fillers: String = (0..127).map(|at| format!("X-{at}: a\r\n")).collect();
    let request = get(&path).replace("\r\n\r\n", &format!("\r\n{fillers}\r\n"));
    let response = cluster.nodes[0].client().ask(request);
    assert_eq!((response.status(), response.text()), (200, path.clone()));
    assert_eq!(cluster.asked(&path), 2);
    assert_eq!(cluster.nodes[0].count(Metric::PeersDeclined), 1);
    assert_eq!(cluster.nodes[0].count(Metric::PeersFailed), 0);
    let asked_on = cluster.path_of(2);
    assert_eq!(cluster.get(0, &asked_on).text(), asked_on);
}

#[test]
fn response_head_too_large_from_another_node_is_asked_of_the_origin_and_fails_no_node() {
    let fillers: String = (0..510).map(|at| format!("X-{at}: a\r\n")).collect();
    let cluster = Nodes::start(move |head, content| {
        let response = String::from_utf8(fresh(head, content)).expect("text");
        let line = "HTTP/1.1 200 OK\r\n";
        response
            .replace(line, &format!("{line}{fillers}"))
            .into_bytes()
    });
    for at in 0..3 {
        let response = cluster.get(at, "/large");
        assert_eq!(
            (response.status(), response.text()),
            (200, "/large".to_owned())
        );
    }
    assert_eq!(cluster.asked("/large"), 3);
    let sum = |metric| {
        cluster
            .nodes
            .iter()
            .map(|node| node.count(metric))
            .sum::<u64>()
    };
    assert_eq!(sum(Metric::PeersDeclined), 2);
    assert_eq!(sum(Metric::PeersFailed), 0);
}
