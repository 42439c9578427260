//! Members that have not been told of a purge, while other nodes can reach them.

use crate::health::passed_over;
use crate::nodes::{Nodes, get, member, start_node};
use crate::purges::{Versions, fill, post, purge_url, relay};
use crate::support::{
    Head, OriginConnection, PATIENCE, Running, ScriptedOrigin, span, tell_to_validate,
};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use weir_measure::Metric;
use weir_proxy::admin::{PurgeCall, PurgeReach};
use xtask::closed_port::ClosedPort;

/// How long answers of members are awaited, and targets held beyond that.
const PATIENCE_OF_NODES: Duration = Duration::from_millis(100);

/// Node `a` cannot reach node `c`, and `b` can.
fn cut_off(cluster: &Nodes, nowhere: &ClosedPort) {
    let node = &cluster.nodes[0];
    node.reload(|config| {
        config.cluster.peer_timeout = span("100ms");
        config.cluster.members[2] = member("c", nowhere.address());
    });
}

/// Does what `change` says at node `a` until node `b` has answered in time, which it may not on a
/// busy machine: all members but `c` are in step then.
fn change_in_step(cluster: &Nodes, change: impl Fn(&Running)) {
    let node = &cluster.nodes[0];
    let until = Instant::now() + PATIENCE;
    loop {
        let untold = node.count(Metric::PeerPurgesUntold);
        change(node);
        if node.count(Metric::PeerPurgesUntold) == untold + 1 {
            return;
        }
        assert!(Instant::now() < until, "node b never answers in time");
    }
}

/// Nodes of which `a` has purged the path, which has changed, and cannot tell `c`.
fn purged_without_c(versions: &Versions) -> (Nodes, String, ClosedPort) {
    let cluster = versions.start();
    let path = cluster.path_of(2);
    assert_eq!(fill(&cluster, &path), ["0"; 3]);
    let nowhere = ClosedPort::hold().expect("a port");
    cut_off(&cluster, &nowhere);
    versions.change(&path);
    change_in_step(&cluster, |node| {
        assert!(!purge_url(node, &path, PurgeReach::Cluster).is_everywhere());
    });
    (cluster, path, nowhere)
}

fn post_at(node: &Running, path: &str) {
    assert_eq!(node.client().ask(post(path, "")).status(), 200);
}

/// Node number `at` is killed and started again, at another address and with an empty store.
fn restart(cluster: &mut Nodes, at: usize, name: &str) {
    let next = start_node(name, cluster.origin.address());
    drop(std::mem::replace(&mut cluster.nodes[at], next));
    let members = cluster.members();
    let restarted = members[at].clone();
    for (number, node) in cluster.nodes.iter().enumerate() {
        node.reload(|config| match number == at {
            true => config.cluster.members.clone_from(&members),
            // what it was cut off from it stays so
            false => config.cluster.members[at] = restarted.clone(),
        });
    }
}

/// Node `a` can reach node `c` again, and has told it what it has missed.
fn reach_again(cluster: &Nodes) {
    let node = &cluster.nodes[0];
    let real = cluster.nodes[2].listener(1);
    node.reload(|config| config.cluster.members[2] = member("c", real));
    node.wait_for(Metric::PeerPurgesOverdue, 0);
}

/// Waits until no node holds a target any more for what node `a` has told by now: an operator's
/// purge has time for the disk, too, where a member does not answer, but not where it refuses.
fn wait_for_the_end_of_holds(cluster: &Nodes, disk: Duration) {
    // rounded up, and a hundredth more
    let longest = 2 * PATIENCE_OF_NODES + disk;
    let over = Instant::now() + longest + longest / 50 + Duration::from_millis(2);
    while Instant::now() < over {
        cluster.get(0, "/else");
    }
}

/// Waits until node `b` asks node `c` again.
fn wait_until_asked(cluster: &Nodes) {
    let until = Instant::now() + PATIENCE;
    for path in cluster.paths_of(2) {
        assert!(Instant::now() < until, "node c is never asked");
        let response = cluster.get(1, &path);
        if response
            .head
            .all("cache-status")
            .join(", ")
            .contains("on-peer")
        {
            return;
        }
    }
}

#[test]
fn node_that_was_told_takes_nothing_from_one_that_was_not() {
    let versions = Versions::default();
    let cluster = versions.start();
    let (posted, purged, dropped) = {
        let mut paths = cluster.paths_of(2);
        let mut next = || paths.next().expect("a path");
        (next(), next(), next())
    };
    let nowhere = ClosedPort::hold().expect("a port");
    cut_off(&cluster, &nowhere);
    change_in_step(&cluster, |node| post_at(node, &posted));
    let version = versions.of(&posted).to_string();
    wait_for_the_end_of_holds(&cluster, Duration::ZERO);
    assert_eq!(cluster.get(2, &posted).text(), "0", "nothing has told it");
    // node b can reach it
    let nodes = passed_over(&cluster.nodes[1]);
    assert_eq!(nodes, [None, None, Some("behind")]);
    for at in [1, 0] {
        assert_eq!(cluster.get(at, &posted).text(), version, "node {at}");
    }
    // the time for the disk is a part of the hold
    let disk = Duration::from_secs(5);
    versions.change(&purged);
    versions.change(&dropped);
    change_in_step(&cluster, |node| {
        assert!(!purge_url(node, &purged, PurgeReach::Cluster).is_everywhere());
    });
    change_in_step(&cluster, |node| {
        let everything = node.purge_at(PurgeReach::Cluster, PurgeCall::All);
        assert!(!everything.expect("purged here").is_everywhere());
    });
    wait_for_the_end_of_holds(&cluster, disk);
    for path in [&purged, &dropped] {
        assert_eq!(cluster.get(2, path).text(), "0", "nothing has told it");
        for at in [1, 0] {
            assert_eq!(cluster.get(at, path).text(), "1", "node {at}");
        }
    }
    reach_again(&cluster);
    for path in [&posted, &purged, &dropped] {
        assert_eq!(fill(&cluster, path), vec![versions.of(path).to_string(); 3]);
    }
    wait_until_asked(&cluster);
}

#[test]
fn node_that_knows_nothing_of_a_change_is_passed_over_once_the_client_has_its_answer() {
    let versions = Versions::default();
    let cluster = versions.start();
    let mut paths = cluster.paths_of(2);
    let (changed, other) = (paths.next().expect("a path"), paths.next().expect("a path"));
    drop(paths);
    let nowhere = ClosedPort::hold().expect("a port");
    cut_off(&cluster, &nowhere);
    let lateral = || cluster.nodes[1].count(Metric::PeerRequests);
    // it is not held, and is asked of member `c`
    let before = lateral();
    cluster.get(1, &other);
    assert_eq!(lateral(), before + 1);
    let asked = cluster.asked(&other);
    change_in_step(&cluster, |node| post_at(node, &changed));
    cluster.get(1, &other);
    assert_eq!(cluster.asked(&other), asked + 1, "node c has it");
}

#[test]
fn member_that_was_not_listed_for_a_moment_is_told_what_it_has_missed() {
    let versions = Versions::default();
    let cluster = versions.start();
    let path = cluster.path_of(2);
    assert_eq!(fill(&cluster, &path), ["0"; 3]);
    let node = &cluster.nodes[0];
    let listed = member("c", cluster.nodes[2].listener(1));
    // it has told it something before
    assert_eq!(node.client().ask(post("/else", "")).status(), 200);
    node.reload(|config| drop(config.cluster.members.pop()));
    assert_eq!(node.client().ask(post(&path, "")).status(), 200);
    assert_eq!(node.count(Metric::PeerPurgesUntold), 0, "it is no member");
    assert_eq!(cluster.get(1, &path).text(), "1", "node b has it as one");
    node.reload(|config| config.cluster.members.push(listed.clone()));
    cluster.nodes[2].wait_for(Metric::PeerPurgesApplied, 2);
    node.wait_for(Metric::PeerPurgesOverdue, 0);
    assert_eq!(fill(&cluster, &path), ["1"; 3]);
}

#[test]
fn node_that_is_not_listed_for_a_moment_tells_what_it_has_changed() {
    let versions = Versions::default();
    let cluster = versions.start();
    let path = cluster.path_of(2);
    assert_eq!(fill(&cluster, &path), ["0"; 3]);
    let node = &cluster.nodes[0];
    assert_eq!(node.client().ask(post("/else", "")).status(), 200);
    let members = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&members);
    node.reload(move |config| {
        let mut list = list.lock().expect("no panic");
        list.clone_from(&config.cluster.members);
        config.cluster.members.retain(|member| member.name == "a");
    });
    assert_eq!(node.client().ask(post(&path, "")).status(), 200);
    let members = members.lock().expect("no panic").clone();
    node.reload(|config| config.cluster.members.clone_from(&members));
    for other in [1, 2] {
        cluster.nodes[other].wait_for(Metric::PeerPurgesApplied, 2);
    }
    node.wait_for(Metric::PeerPurgesOverdue, 0);
    assert_eq!(fill(&cluster, &path), ["1"; 3]);
}

/// A response that may be stored, with a validator.
fn validated(head: &Head, _: &[u8]) -> Vec<u8> {
    let status = match head.field("if-none-match") {
        Some("\"same\"") => "304 Not Modified\r\n",
        _ => "200 OK\r\nContent-Length: 2\r\n",
    };
    let content = if status.starts_with("200") { "ok" } else { "" };
    format!("HTTP/1.1 {status}Cache-Control: max-age=3600\r\nETag: \"same\"\r\n\r\n{content}")
        .into_bytes()
}

#[test]
fn member_that_has_missed_more_than_there_is_room_for_keeps_what_it_has_and_validates_it() {
    let cluster = Nodes::start(validated);
    let path = cluster.path_of(2);
    let nowhere = ClosedPort::hold().expect("a port");
    cut_off(&cluster, &nowhere);
    let node = &cluster.nodes[0];
    let mut client = node.client();
    let long = "x".repeat(16_000);
    for number in 0..=(4 << 20) / 16_000 {
        let request = post(&format!("/{number}/{long}"), "");
        assert_eq!(client.ask(request).status(), 200);
    }
    node.wait_for(Metric::PeerPurgesOverdue, 1);
    let response = cluster.get(2, &path);
    assert!(response.verdict().contains("hit"), "{:?}", response.head);
    let entries = cluster.nodes[2].count(Metric::Purged);
    reach_again(&cluster);
    let response = cluster.nodes[2].client().ask(get(&path));
    for part in ["fwd=stale", "fwd-status=304", "detail=may-be-purged"] {
        assert!(response.verdict().contains(part), "{:?}", response.head);
    }
    assert_eq!(
        cluster.nodes[2].count(Metric::Purged),
        entries,
        "nothing is dropped"
    );
}

#[test]
fn what_is_in_flight_when_a_node_is_told_to_validate_is_not_stored() {
    let gate = Arc::new(Mutex::new(()));
    let asked = Arc::new(AtomicUsize::new(0));
    let (closed, count) = (Arc::clone(&gate), Arc::clone(&asked));
    let cluster = Nodes::start(move |head, content| {
        count.fetch_add(1, Ordering::SeqCst);
        drop(closed.lock().expect("no panic"));
        validated(head, content)
    });
    let path = cluster.path_of(2);
    let node = &cluster.nodes[2];
    purge_url(node, &path, PurgeReach::ThisNode);
    let before = asked.load(Ordering::SeqCst);
    let wait_for = |times: usize| {
        let until = Instant::now() + PATIENCE;
        while asked.load(Ordering::SeqCst) < before + times {
            assert!(Instant::now() < until, "the origin is not asked");
            std::thread::yield_now();
        }
    };
    let held = gate.lock().expect("no panic");
    let mut clients = [node.client(), node.client()];
    clients[0].send(get(&path));
    wait_for(1);
    assert!(tell_to_validate(node.listener(1)));
    drop(held);
    clients[0].read_response();
    clients[1].send(get(&path));
    let verdict = clients[1].read_response().verdict();
    assert!(verdict.contains("fwd=uri-miss"), "{verdict}");
    wait_for(2);
}

/// A member that answers purges at once, and nothing else.
fn answer_purges(member: &ScriptedOrigin, answers: usize) {
    let mut connection = member.accept();
    for number in 0..answers {
        read_purges(&mut connection);
        // the first message learns the session
        let (status, text) = match number {
            0 => ("409 Conflict", "purged 1 s 0\n".to_owned()),
            _ => ("200 OK", format!("purged 1 s {number}\ndurable 0\n")),
        };
        answer_as_c(&mut connection, status, &text);
    }
}

fn answer_as_c(connection: &mut OriginConnection, status: &str, text: &str) {
    connection.send(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nWeir-Peer: node=c, state=in, \
         weight=100, outstanding=0, miss-pressure=0\r\n\r\n{text}",
        text.len()
    ));
}

/// Reads a message, and returns its number.
fn read_purges(connection: &mut OriginConnection) -> u64 {
    let head = connection.read_head();
    assert_eq!(head.start_line(), "PUT /weir/purges HTTP/1.1");
    connection.read_exactly(head.length().expect("a length"));
    let field = head.field("weir-peer").expect("of a node");
    let number = field.split("number=").nth(1).expect("a number");
    let number = number.split(',').next().unwrap_or_default();
    number.parse().expect("a number")
}

#[test]
fn member_that_closes_a_connection_without_an_answer_is_told_over_another_one() {
    let versions = Versions::default();
    let cluster = versions.start();
    let scripted = ScriptedOrigin::new();
    let node = &cluster.nodes[0];
    node.reload(|config| {
        config.cluster.peer_timeout = span("20s");
        config.cluster.members[2] = member("c", scripted.address());
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let closed = read_purges(&mut scripted.accept());
            let mut connection = scripted.accept();
            let number = read_purges(&mut connection);
            assert!(number > closed, "{number} after {closed}");
            answer_as_c(
                &mut connection,
                "200 OK",
                &format!("purged 1 s {number}\ndurable 0\n"),
            );
        });
        let answer = node.client().ask(post("/else", ""));
        assert_eq!(answer.status(), 200);
    });
    assert_eq!(node.count(Metric::PeerPurgesUntold), 0);
    assert_eq!(node.count(Metric::PeerPurgeFailures), 0);
}

#[test]
fn member_that_answers_purges_is_not_held_for_silent() {
    let versions = Versions::default();
    let cluster = versions.start();
    let (path, other) = {
        let mut paths = cluster.paths_of(2);
        (paths.next().expect("a path"), paths.next().expect("a path"))
    };
    let scripted = ScriptedOrigin::new();
    let node = &cluster.nodes[0];
    node.reload(|config| {
        config.cluster.peer_timeout = span("5s");
        config.cluster.members[2] = member("c", scripted.address());
    });
    let mut client = node.client();
    client.send(get(&path));
    let _silent = scripted.accept();
    std::thread::scope(|scope| {
        scope.spawn(|| answer_purges(&scripted, 2));
        let answer = node.client().ask(post("/else", ""));
        assert_eq!(answer.status(), 200);
    });
    assert_eq!(node.count(Metric::PeerPurgesUntold), 0);
    assert_eq!(client.read_response().text(), "0");
    // it waits for an origin, and is asked on
    client.send(get(&other));
    let mut asked = scripted.accept();
    assert!(asked.read_head().start_line().contains(&other));
}

#[test]
fn what_a_node_was_to_tell_that_is_restarted_the_others_have_validated() {
    let (mut cluster, path, _nowhere) = purged_without_c(&Versions::default());
    assert_eq!(cluster.get(2, &path).text(), "0", "nothing has told it");
    restart(&mut cluster, 0, "a");
    // nothing is purged any more
    cluster.nodes[1].reload(|config| config.cluster.state_interval = span("50ms"));
    let until = Instant::now() + PATIENCE;
    while cluster.get(2, &path).text() != "1" {
        assert!(Instant::now() < until, "nothing tells node c");
    }
    cluster.nodes[1].wait_for(Metric::PeerPurgesOverdue, 0);
    assert_eq!(fill(&cluster, &path), ["1"; 3]);
}

#[test]
fn node_that_is_restarted_is_told_again_which_members_are_behind() {
    let (mut cluster, path, _nowhere) = purged_without_c(&Versions::default());
    restart(&mut cluster, 1, "b");
    cluster.nodes[0].reload(|config| config.cluster.state_interval = span("50ms"));
    let behind_at = || {
        let report = cluster.nodes[1].control().cluster().expect("a cluster");
        report.members[2].behind_at.clone()
    };
    let until = Instant::now() + PATIENCE;
    while behind_at() != ["a"] {
        assert!(Instant::now() < until, "node b is told nothing");
        std::thread::yield_now();
    }
    assert_eq!(cluster.get(1, &path).text(), "1");
    assert_eq!(cluster.get(2, &path).text(), "0", "nothing has told it");
    reach_again(&cluster);
    assert_eq!(fill(&cluster, &path), ["1"; 3]);
}

/// Waits until it accepts no client.
fn wait_until_draining(node: SocketAddr) {
    let until = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(node).is_ok() {
        assert!(Instant::now() < until, "it does not stop");
        std::thread::yield_now();
    }
}

#[test]
fn node_that_stops_tells_a_member_that_answers_what_that_has_missed() {
    let (mut cluster, path, _nowhere) = purged_without_c(&Versions::default());
    let between = ScriptedOrigin::new();
    cluster.nodes[0].reload(|config| {
        config.cluster.peer_timeout = span("1min");
        config.cluster.members[2] = member("c", between.address());
    });
    let mut first = between.accept();
    first.read_head();
    let address = cluster.nodes[0].address();
    let stopping = cluster.nodes[0].stopping();
    wait_until_draining(address);
    // it tries once more, over another connection, and then learns the session
    drop(first);
    relay(&between, cluster.nodes[2].listener(1), 2);
    assert!(stopping.join().expect("no panic"), "it is told in time");
    assert_eq!(cluster.get(2, &path).text(), "1");
}

#[test]
fn node_that_stops_does_not_wait_for_a_member_that_does_not_answer_and_names_it() {
    let (mut cluster, path, _nowhere) = purged_without_c(&Versions::default());
    let stopping = cluster.nodes[0].stopping();
    assert!(stopping.join().expect("no panic"), "nothing is cut");
    let line = "stopping without an answer of c to all purges and invalidations: what is there may \
                be outdated";
    let until = Instant::now() + PATIENCE;
    while cluster.nodes[0].said(line) == 0 {
        assert!(Instant::now() < until, "it is not named");
        std::thread::yield_now();
    }
    assert_eq!(cluster.get(2, &path).text(), "0", "nothing has told it");
}

/// Unsafe requests at once, and the bytes of their URLs: more than wait for a member at a time.
const BURST: usize = 200;
const BURST_URL_BYTES: usize = 60_000;

#[test]
fn burst_of_changes_with_long_urls_is_told_and_no_member_has_to_validate_what_it_has() {
    let all_have_asked = Barrier::new(BURST);
    let cluster = Nodes::start(move |head, content| {
        if !head.start_line().starts_with("POST") {
            return validated(head, content);
        }
        all_have_asked.wait();
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
    });
    let node = &cluster.nodes[0];
    node.reload(|config| {
        config.cluster.peer_timeout = span("1min");
        // one client may use half of them, and all of its requests are under way at once here
        config.limits.connections_per_next_hop_max = u32::try_from(2 * BURST).expect("few");
    });
    let paths = [1, 2].map(|at| cluster.path_of(at));
    let long = "x".repeat(BURST_URL_BYTES);
    let mut clients: Vec<_> = (0..BURST).map(|_| node.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(post(&format!("/{number}/{long}"), ""));
    }
    for client in &mut clients {
        assert_eq!(client.read_response().status(), 200);
    }
    assert_eq!(node.count(Metric::PeerPurgesUntold), 0);
    for (at, path) in (1..).zip(&paths) {
        let applied = cluster.nodes[at].count(Metric::PeerPurgesApplied);
        assert_eq!(applied, BURST as u64);
        let verdict = cluster.get(at, path).verdict();
        assert!(verdict == "hit", "{verdict}");
    }
}
