//! What a request holds, and what an operator waits for, while a member does not answer.

use crate::nodes::{Nodes, get, member};
use crate::purges::{Versions, post, purge_url};
use crate::support::{Head, OriginConnection, PATIENCE, RawClient, ScriptedOrigin, pattern, span};
use std::time::Instant;
use weir_measure::Metric;
use weir_proxy::admin::PurgeReach;

/// A member `c` of node `a` that takes messages and does not answer. There are two connections to
/// the origin.
fn silence(cluster: &Nodes) -> ScriptedOrigin {
    let silent = ScriptedOrigin::new();
    cluster.nodes[0].reload(|config| {
        config.limits.idle_per_next_hop_max = 2;
        config.limits.connections_per_next_hop_max = 2;
        config.cluster.peer_timeout = span("1min");
        config.cluster.members[2] = member("c", silent.address());
    });
    silent
}

/// Node `a` is asked to change `path`, and the origin has done so; the client waits.
fn begin_change(cluster: &Nodes, versions: &Versions, path: &str) -> RawClient {
    let mut client = cluster.nodes[0].client();
    let before = versions.of(path);
    client.send(post(path, ""));
    let until = Instant::now() + PATIENCE;
    while versions.of(path) == before {
        assert!(Instant::now() < until, "the origin is not asked for {path}");
        std::thread::yield_now();
    }
    client
}

/// More than there is room for at a member that does not answer: its clients.
fn fill_room(cluster: &Nodes, versions: &Versions) -> Vec<RawClient> {
    const BYTES: usize = 60_000;
    let long = "x".repeat(BYTES);
    let numbers = 0..(2 << 20) / BYTES;
    let paths = numbers.map(|number| format!("/{number}/{long}"));
    paths
        .map(|path| begin_change(cluster, versions, &path))
        .collect()
}

/// The next message of node `a`, which is answered: its lines.
fn answer_message(connection: &mut OriginConnection, number: usize) -> String {
    let head = connection.read_head();
    let content = connection.read_exactly(head.length().expect("a length"));
    let content = String::from_utf8(content).expect("text");
    // the first message learns the session
    let (status, text) = match number {
        0 => ("409 Conflict", "purged 1 s 0\n".to_owned()),
        _ => {
            // behind the number of the message and the members that are behind
            let orders = content.lines().skip(2);
            let orders = orders.filter(|line| !line.starts_with("proof "));
            let durable = "durable 0\n".repeat(orders.count());
            ("200 OK", format!("purged 1 s {number}\n{durable}"))
        }
    };
    connection.send(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nWeir-Peer: node=c, state=in, weight=100, \
         outstanding=0, miss-pressure=0\r\n\r\n{text}",
        text.len()
    ));
    content
}

#[test]
fn requests_that_wait_for_members_hold_no_connection_to_the_origin() {
    let versions = Versions::default();
    let cluster = versions.start();
    let silent = silence(&cluster);
    let changes = 0..4;
    let waiting = changes.map(|_| begin_change(&cluster, &versions, "/changed"));
    let waiting: Vec<RawClient> = waiting.collect();
    let response = cluster.get(0, "/changed");
    assert_eq!((response.status(), &*response.text()), (200, "4"));
    drop(silent);
    for mut client in waiting {
        assert_eq!(client.read_response().status(), 200);
    }
}

#[test]
fn response_that_has_waited_for_members_is_whole() {
    const LENGTHS: [usize; 4] = [0, 3, 100_000, 3 << 20];
    let answer = |head: &Head, _: &[u8]| {
        let length = head.field("x-length").expect("a length");
        let content = pattern(length.parse().expect("a number"));
        let mut response = b"HTTP/1.1 200 OK\r\n".to_vec();
        if head.field("x-form") == Some("chunked") {
            response.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in content.chunks(60_000) {
                response.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                response.extend_from_slice(chunk);
                response.extend_from_slice(b"\r\n");
            }
            response.extend_from_slice(b"0\r\n\r\n");
        } else {
            response.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
            response.extend_from_slice(&content);
        }
        response
    };
    for form in ["sized", "chunked"] {
        let cluster = Nodes::start(answer);
        let silent = silence(&cluster);
        // one after the other: the longest one holds its connection
        let clients = LENGTHS.map(|length| {
            let mut client = cluster.nodes[0].client();
            let fields = format!("X-Length: {length}\r\nX-Form: {form}\r\n");
            client.send(post(&format!("/{form}/{length}"), &fields));
            (client, length)
        });
        let mut connection = silent.accept();
        connection.read_head();
        drop(connection);
        drop(silent);
        for (mut client, length) in clients {
            let response = client.read_response();
            assert_eq!(response.status(), 200);
            assert!(response.body == pattern(length), "{form} {length}");
        }
    }
}

#[test]
fn client_that_leaves_frees_its_place_and_what_it_changed_is_told_when_there_is_room() {
    let versions = Versions::default();
    let cluster = versions.start();
    let path = cluster.path_of(0);
    let silent = silence(&cluster);
    let node = &cluster.nodes[0];
    let waiting = fill_room(&cluster, &versions);
    let last = begin_change(&cluster, &versions, &path);
    // the node has the response
    node.wait_for(Metric::Invalidated, 1);
    let clients = waiting.len() as u64 + 1;
    drop(waiting);
    drop(last);
    node.wait_for(Metric::ClientAborts, clients);
    let mut connection = silent.accept();
    let mut number = 0;
    let last = format!(" http://a.example{path}\n");
    while !answer_message(&mut connection, number).contains(&last) {
        number += 1;
        assert!(number < 100, "it is not told");
    }
    assert_eq!(node.count(Metric::PeerPurgesOverdue), 0);
}

#[test]
fn drain_waits_until_members_are_told_what_a_client_that_has_left_has_changed() {
    let versions = Versions::default();
    let mut cluster = versions.start();
    let path = cluster.path_of(0);
    let silent = silence(&cluster);
    let client = begin_change(&cluster, &versions, &path);
    let mut connection = silent.accept();
    drop(client);
    cluster.nodes[0].wait_for(Metric::ClientAborts, 1);
    let stopping = cluster.nodes[0].stopping();
    let mut is_told = false;
    for number in 0..2 {
        is_told |= answer_message(&mut connection, number).contains(&path);
    }
    assert!(is_told, "only that it drains");
    assert!(stopping.join().expect("no panic"), "something was cut");
}

#[test]
fn purge_of_the_operator_is_in_force_while_clients_wait_for_a_member() {
    let versions = Versions::default();
    let cluster = versions.start();
    let path = cluster.path_of(0);
    let silent = silence(&cluster);
    let waiting = fill_room(&cluster, &versions);
    versions.change(&path);
    assert_eq!(cluster.get(0, &path).text(), "0", "it is stored");
    std::thread::scope(|scope| {
        let node = &cluster.nodes[0];
        let purge = scope.spawn(|| purge_url(node, &path, PurgeReach::Cluster));
        // and told to all other members
        let until = Instant::now() + PATIENCE;
        while node.client().ask(get(&path)).text() != "1" {
            assert!(Instant::now() < until, "it is served on");
        }
        drop(silent);
        purge.join().expect("no panic");
    });
    drop(waiting);
}
