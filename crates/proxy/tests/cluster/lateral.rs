//! What a node asks another one for, and what becomes of the answer.

use crate::nodes::{Nodes, ask_as_peer, fresh, get, member};
use crate::support::{ScriptedOrigin, span};
use weir_measure::Metric;

#[test]
fn target_is_requested_from_the_origin_once_whichever_nodes_are_asked() {
    let cluster = Nodes::start(fresh);
    for number in 0..30 {
        let path = format!("/{number}");
        for at in [0, 1, 2, 1] {
            let response = cluster.get(at, &path);
            assert_eq!((response.status(), response.text()), (200, path.clone()));
        }
        assert_eq!(cluster.asked(&path), 1, "{path}");
    }
    let lateral: u64 = cluster
        .nodes
        .iter()
        .map(|node| node.count(Metric::PeerRequests))
        .sum();
    assert!(lateral >= 60, "{lateral}");
}

#[test]
fn node_that_does_not_keep_a_target_stores_no_copy() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(0);
    for _ in 0..2 {
        let lateral = cluster.get(1, &path);
        assert_eq!(lateral.text(), path);
        let statuses = lateral.head.all("cache-status").join(", ");
        assert!(statuses.starts_with("weir;hit"), "{statuses}");
        assert!(
            statuses.ends_with("weir;fwd=uri-miss;fwd-status=200;detail=on-peer"),
            "{statuses}"
        );
    }
    assert_eq!(cluster.asked(&path), 1);
}

#[test]
fn what_nodes_tell_each_other_leaves_the_cluster_on_neither_side() {
    let cluster = Nodes::start(|head, content| {
        let answer = String::from_utf8(fresh(head, content)).expect("text");
        answer
            .replace("\r\n\r\n", "\r\nWeir-Peer: node=x, state=in\r\n\r\n")
            .into_bytes()
    });
    for at in [0, 1, 2] {
        for path in ["/a", "/b", "/c"] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: a.example\r\nWeir-Peer: node=a, mode=gateway\r\n\r\n"
            );
            let response = cluster.nodes[at].client().ask(request);
            assert!(!response.head.has("weir-peer"), "{:?}", response.head);
        }
    }
    let seen = cluster.origin.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|head| !head.has("weir-peer")), "{seen:?}");
}

#[test]
fn member_is_answered_with_how_the_node_is_from_the_cache_and_from_the_origin() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    for verdict in ["stored", "hit"] {
        let response = ask_as_peer(peers, "/told", "Weir-Peer: node=a, mode=gateway\r\n");
        assert!(response.verdict().contains(verdict), "{:?}", response.head);
        let report = response.head.field("weir-peer").expect("a report");
        assert!(report.starts_with("node=b, state=in, outstanding="));
    }
}

#[test]
fn request_of_a_member_does_not_wait_for_one_that_waits_for_a_member() {
    let cluster = Nodes::start(fresh);
    let mut paths = cluster.paths_of(2);
    let (path, other) = (paths.next().expect("a path"), paths.next().expect("a path"));
    let (node, silent) = (&cluster.nodes[0], ScriptedOrigin::new());
    node.reload(|config| {
        config.cluster.members[2] = member("c", silent.address());
        config.cluster.peer_timeout = span("5min");
        config.fetch.follower_wait = span("5min");
    });
    let asked = |path: &str| cluster.asked(path) - 1;
    // each waits for the other: the request of the member would wait behind that of the client
    let mut client = node.client();
    client.send(get(&path));
    let mut held = silent.accept();
    assert!(held.read_head().has("weir-peer"));
    let as_member = "Weir-Peer: node=c, mode=gateway\r\n";
    let response = ask_as_peer(node.listener(1), &path, as_member);
    assert_eq!((response.status(), response.text()), (200, path.clone()));
    assert_eq!(asked(&path), 1);
    held.send(
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\
         Weir-Peer: node=c, state=in, outstanding=0, miss-pressure=0\r\n\r\nheld",
    );
    assert_eq!(client.read_response().text(), "held");
    // those of members wait for one another
    assert_eq!(
        ask_as_peer(node.listener(1), &other, as_member).status(),
        200
    );
    assert_eq!(asked(&other), 1);
}

#[test]
fn request_of_a_member_is_never_sent_on_to_a_third_node() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let peers = cluster.nodes[1].listener(1);
    let response = ask_as_peer(peers, &path, "Weir-Peer: node=a, mode=gateway\r\n");
    assert_eq!(response.text(), path);
    assert_eq!(cluster.asked(&path), 2);
    assert_eq!(cluster.nodes[1].count(Metric::PeerRequests), 0);
}

#[test]
fn request_that_no_cache_answers_goes_to_the_origin_from_the_node_that_has_it() {
    let cluster = Nodes::start(fresh);
    for at in [0, 1, 2] {
        let post = "POST /form HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(cluster.nodes[at].client().ask(post).status(), 200);
        assert_eq!(cluster.nodes[at].count(Metric::PeerRequests), 0);
    }
}

#[test]
fn request_for_what_is_stored_alone_is_asked_of_the_node_that_keeps_it_and_of_no_origin() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let only = |path: &str| {
        let fields = "Host: a.example\r\nCache-Control: only-if-cached\r\n";
        format!("GET {path} HTTP/1.1\r\n{fields}\r\n")
    };
    for at in [0, 1, 2] {
        let response = cluster.nodes[at].client().ask(only(&path));
        assert_eq!((response.status(), response.text()), (200, path.clone()));
        for number in 0..9 {
            let unknown = format!("/unknown/{number}");
            let response = cluster.nodes[at].client().ask(only(&unknown));
            assert_eq!(response.status(), 504, "{unknown}");
            assert!(response.verdict().contains("only-if-cached"));
            assert_eq!(cluster.asked(&unknown), 0);
        }
        assert_eq!(cluster.nodes[at].count(Metric::PeersFailed), 0);
    }
    assert_eq!(cluster.asked(&path), 1);
}

#[test]
fn private_response_reaches_its_client_and_is_stored_by_no_node() {
    let cluster = Nodes::start(|head, _| {
        let who = head.field("cookie").unwrap_or("nobody").to_owned();
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: private, max-age=3600\r\nSet-Cookie: {who}\r\nContent-Length: {}\r\n\r\n{who}",
            who.len()
        )
        .into_bytes()
    });
    for user in ["alice", "bert", "cleo", "alice"] {
        for at in [0, 1, 2] {
            let response = cluster.nodes[at].client().ask(format!(
                "GET /mine HTTP/1.1\r\nHost: a.example\r\nCookie: {user}\r\n\r\n"
            ));
            assert_eq!(response.text(), user);
            assert_eq!(response.head.field("set-cookie"), Some(user));
        }
    }
    assert_eq!(cluster.asked("/mine"), 12);
    // after the first response the target is known to be for one client at a time
    let lateral = cluster
        .nodes
        .iter()
        .map(|node| node.count(Metric::PeerRequests));
    assert!(lateral.sum::<u64>() <= 2);
}

#[test]
fn cold_target_asked_by_many_clients_of_all_nodes_is_requested_once() {
    let cluster = Nodes::start(fresh);
    let clients: Vec<_> = cluster
        .nodes
        .iter()
        .flat_map(|node| node.asking(50, &get("/cold")))
        .collect();
    for mut client in clients {
        assert_eq!(client.read_response().text(), "/cold");
    }
    assert_eq!(cluster.asked("/cold"), 1);
}
