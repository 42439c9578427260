//! What is purged or invalidated at one node comes back at none.

use crate::nodes::{Nodes, fresh, get, member, refusals, set_secret};
use crate::support::{Head, RawClient, Response, Running, ScriptedOrigin, span};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use weir_measure::{Metric, PeerRefusal};
use weir_proxy::admin::{PurgeCall, PurgeReach, PurgeReport};
use weir_proxy::config::ByteSize;

/// An origin whose content has a version for each path; an unsafe request makes the next one.
#[derive(Clone, Default)]
pub(crate) struct Versions(Arc<Mutex<BTreeMap<String, u64>>>);

impl Versions {
    pub(crate) fn of(&self, path: &str) -> u64 {
        let versions = self.0.lock().expect("no panic");
        versions.get(path).copied().unwrap_or(0)
    }

    fn answer(&self, head: &Head) -> Vec<u8> {
        let mut words = head.start_line().split(' ');
        let (method, path) = (words.next(), words.next().expect("a target"));
        if method == Some("GET") {
            let version = self.of(path).to_string();
            return format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {}\r\n\r\n{version}",
                version.len()
            )
            .into_bytes();
        }
        let mut versions = self.0.lock().expect("no panic");
        let mut change = |path: &str| {
            let version = versions.entry(path.to_owned()).or_default();
            *version += 1;
            *version
        };
        let version = change(path);
        let mut named = String::new();
        for (field, name) in [
            ("x-location", "Location"),
            ("x-content-location", "Content-Location"),
        ] {
            if let Some(other) = head.field(field) {
                change(other);
                named = format!("{named}{name}: {other}\r\n");
            }
        }
        let status = head.field("x-status").unwrap_or("200");
        format!("HTTP/1.1 {status} X\r\n{named}X-Version: {version}\r\nContent-Length: 0\r\n\r\n")
            .into_bytes()
    }

    /// The origin has a new version of `path`.
    pub(crate) fn change(&self, path: &str) {
        let mut versions = self.0.lock().expect("no panic");
        *versions.entry(path.to_owned()).or_default() += 1;
    }

    pub(crate) fn start(&self) -> Nodes {
        let versions = self.clone();
        Nodes::start(move |head, _| versions.answer(head))
    }
}

pub(crate) fn post(path: &str, fields: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n{fields}\r\n")
}

pub(crate) fn purge_url(node: &Running, path: &str, reach: PurgeReach) -> PurgeReport {
    let call = PurgeCall::Url(format!("http://a.example{path}"));
    node.purge_at(reach, call).expect("purged here")
}

/// What each of the other nodes answered to a purge.
fn outcomes(report: PurgeReport) -> Vec<Result<(u64, bool), String>> {
    let members = report.members.into_iter();
    members.map(|member| member.outcome).collect()
}

/// Every node has it in memory, or what the one that keeps it has.
pub(crate) fn fill(cluster: &Nodes, path: &str) -> Vec<String> {
    (0..3).map(|at| cluster.get(at, path).text()).collect()
}

#[test]
fn response_stored_before_an_unsafe_request_at_any_node_is_served_by_none_after_it() {
    let versions = Versions::default();
    let cluster = versions.start();
    for owner in 0..3 {
        for at in 0..3 {
            for method in ["POST", "PUT", "DELETE"] {
                let path = cluster.path_of(owner);
                let before = versions.of(&path);
                assert_eq!(fill(&cluster, &path), vec![before.to_string(); 3]);
                let request = post(&path, "").replacen("POST", method, 1);
                let mut client = cluster.nodes[at].client();
                assert_eq!(client.ask(request).status(), 200);
                let after = (before + 1).to_string();
                assert_eq!(fill(&cluster, &path), vec![after; 3], "{method} at {at}");
            }
        }
    }
    for node in &cluster.nodes {
        assert_eq!(node.count(Metric::PeerPurgesUntold), 0);
        assert!(node.count(Metric::PeerPurgesApplied) >= 18);
    }
}

#[test]
fn location_and_content_location_of_the_same_origin_are_invalidated_at_all_nodes() {
    let versions = Versions::default();
    let cluster = versions.start();
    let paths = ["/made", "/about", "/else", "/a/form?made", "/a/?made"];
    for path in paths {
        assert_eq!(fill(&cluster, path), ["0", "0", "0"]);
    }
    let fields = "X-Location: /made\r\nX-Content-Location: /about\r\n";
    let mut client = cluster.nodes[1].client();
    assert_eq!(client.ask(post("/form", fields)).status(), 200);
    // a reference that has a query alone is of the same path
    versions.change("/a/form?made");
    versions.change("/a/?made");
    let fields = "X-Location: ?made\r\n";
    assert_eq!(client.ask(post("/a/form", fields)).status(), 200);
    for (path, expected) in paths.into_iter().zip(["1", "1", "0", "1", "0"]) {
        assert_eq!(fill(&cluster, path), [expected; 3], "{path}");
    }
}

#[test]
fn error_response_and_safe_request_invalidate_nothing_and_tell_no_node() {
    let versions = Versions::default();
    let cluster = versions.start();
    assert_eq!(fill(&cluster, "/x"), ["0", "0", "0"]);
    for status in ["404", "500"] {
        let request = post("/x", &format!("X-Status: {status}\r\n"));
        let status = status.parse::<u16>().expect("a status");
        assert_eq!(cluster.nodes[0].client().ask(request).status(), status);
    }
    assert_eq!(fill(&cluster, "/x"), ["0", "0", "0"]);
    for node in &cluster.nodes {
        assert_eq!(node.count(Metric::PeerPurgeMessages), 0);
    }
}

/// Clients of all nodes read and change few targets at once. Who begins to read after a change was
/// answered must not get what was before it, whichever node answers; copies are made all the while.
#[test]
fn no_read_that_begins_after_a_change_was_answered_is_of_before_it() {
    const PATHS: usize = 4;
    const REQUESTS: usize = 400;
    let versions = Versions::default();
    let cluster = versions.start();
    let answered: Vec<AtomicU64> = (0..PATHS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for client in 0..9_usize {
            let answered = &answered;
            let address = cluster.nodes[client % 3].address();
            scope.spawn(move || {
                let mut client_of_node = RawClient::connect(address);
                let mut number = client as u64 + 1;
                for _ in 0..REQUESTS {
                    number = number
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(99);
                    let path = usize::try_from(number >> 40).expect("small") % PATHS;
                    let target = format!("/{path}");
                    if (number >> 33).is_multiple_of(8) {
                        let response = client_of_node.ask(post(&target, ""));
                        let made = response.head.field("x-version").expect("a version");
                        let made: u64 = made.parse().expect("a number");
                        answered[path].fetch_max(made, Ordering::SeqCst);
                    } else {
                        let least = answered[path].load(Ordering::SeqCst);
                        let response = client_of_node.ask(get(&target));
                        let read: u64 = response.text().parse().expect("a version");
                        assert!(
                            read >= least,
                            "{target} is {read} at {client}, after {least}"
                        );
                    }
                }
            });
        }
    });
    for node in &cluster.nodes {
        assert_eq!(node.count(Metric::PeerPurgesUntold), 0);
        assert_eq!(node.count(Metric::Panics), 0);
    }
}

#[test]
fn node_that_knows_of_a_change_asks_no_node_that_may_not() {
    let versions = Versions::default();
    let cluster = versions.start();
    let path = cluster.path_of(2);
    assert_eq!(fill(&cluster, &path), ["0", "0", "0"]);
    let silent = ScriptedOrigin::new();
    for node in &cluster.nodes[..2] {
        node.reload(|config| {
            config.cluster.peer_timeout = span("1min");
            config.cluster.members[2] = member("c", silent.address());
        });
    }
    let mut client = cluster.nodes[0].client();
    client.send(post(&path, ""));
    // it has the message, and has not answered: nor has the client
    let mut told = silent.accept();
    let head = told.read_head();
    assert_eq!(head.start_line(), "PUT /weir/purges HTTP/1.1");
    let message = told.read_exactly(head.length().expect("a length"));
    let message = String::from_utf8(message).expect("text");
    assert!(
        message.contains(&format!(" gateway http://a.example{path}\n")),
        "{message}"
    );
    cluster.nodes[1].wait_for(Metric::PeerPurgesApplied, 1);
    for at in [0, 1, 0, 1] {
        assert_eq!(cluster.get(at, &path).text(), "1");
    }
    client.expect_no_bytes();
    silent.expect_untouched();
    drop(told);
    drop(silent);
    assert_eq!(client.read_response().status(), 200);
    assert_eq!(cluster.nodes[0].count(Metric::PeerPurgesUntold), 1);
}

#[test]
fn node_that_does_not_answer_delays_one_change_and_is_told_when_it_is_back() {
    let versions = Versions::default();
    let cluster = versions.start();
    let path = cluster.path_of(2);
    assert_eq!(fill(&cluster, &path), ["0", "0", "0"]);
    let real = cluster.nodes[2].listener(1);
    let silent = ScriptedOrigin::new();
    let node = &cluster.nodes[0];
    node.reload(|config| {
        config.cluster.peer_timeout = span("100ms");
        config.cluster.members[2] = member("c", silent.address());
    });
    assert_eq!(node.client().ask(post(&path, "")).status(), 200);
    // the other one may have been too slow, too
    let untold = node.count(Metric::PeerPurgesUntold);
    assert!(untold >= 1);
    assert!(node.count(Metric::PeerPurgesOverdue) >= 1);
    // the next ones do not wait for an answer, which would take as long as this test may
    node.reload(|config| config.cluster.peer_timeout = span("1min"));
    assert_eq!(node.client().ask(post(&path, "")).status(), 200);
    assert!(node.count(Metric::PeerPurgesUntold) > untold);
    assert!(node.count(Metric::PeerPurgesOverdue) >= 1);
    assert_eq!(cluster.get(2, &path).text(), "0", "nothing has told it");
    node.reload(|config| config.cluster.members[2] = member("c", real));
    drop(silent);
    node.wait_for(Metric::PeerPurgesOverdue, 0);
    cluster.nodes[2].wait_for(Metric::PeerPurgesApplied, 1);
    assert_eq!(cluster.get(2, &path).text(), "2");
    node.wait_until_said(
        "node c has been told what purges and invalidations it had missed",
        1,
    );
}

#[test]
fn purge_is_applied_by_all_nodes_and_the_answer_says_what_each_has_dropped() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    fill(&cluster, &path);
    let report = purge_url(&cluster.nodes[0], &path, PurgeReach::Cluster);
    assert_eq!(report.node.as_deref(), Some("a"));
    assert_eq!(report.purged, 0);
    let names: Vec<&str> = report.members.iter().map(|member| &*member.name).collect();
    assert_eq!(names, ["b", "c"]);
    assert!(report.is_everywhere());
    assert_eq!(outcomes(report), [Ok((0, true)), Ok((1, true))]);
    let asked = cluster.asked(&path);
    cluster.get(2, &path);
    assert_eq!(cluster.asked(&path), asked + 1, "it is not stored any more");
    let everything = cluster.nodes[1].purge_at(PurgeReach::Cluster, PurgeCall::All);
    let everything = everything.expect("purged here");
    assert!(everything.is_everywhere() && everything.all_purged() >= 1);
    cluster.get(2, &path);
    assert_eq!(cluster.asked(&path), asked + 2);
}

#[test]
fn purge_of_one_node_leaves_the_others_as_they_are() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    fill(&cluster, &path);
    let asked = cluster.asked(&path);
    let report = purge_url(&cluster.nodes[0], &path, PurgeReach::ThisNode);
    assert_eq!((report.node, report.members), (None, Vec::new()));
    fill(&cluster, &path);
    assert_eq!(cluster.asked(&path), asked);
    let report = purge_url(&cluster.nodes[2], &path, PurgeReach::ThisNode);
    assert_eq!(report.purged, 1);
}

#[test]
fn purge_names_the_node_that_has_stopped_and_why() {
    let mut cluster = Nodes::start(fresh);
    let stopped = cluster.nodes.pop().expect("three nodes");
    assert!(stopped.stop().join().expect("no panic"));
    for _ in 0..2 {
        let report = purge_url(&cluster.nodes[0], "/x", PurgeReach::Cluster);
        assert!(!report.is_everywhere());
        assert_eq!(
            outcomes(report),
            [Ok((0, true)), Err("it cannot be reached".into())]
        );
    }
    assert_eq!(cluster.nodes[0].count(Metric::PeerPurgesUntold), 2);
}

/// Passes messages on to `node` and the answers back; returns the messages.
pub(crate) fn relay(between: &ScriptedOrigin, node: SocketAddr, times: usize) -> Vec<Vec<u8>> {
    let mut from = between.accept();
    let mut to = RawClient::connect(node);
    let mut messages = Vec::new();
    for _ in 0..times {
        let head = from.read_head();
        let content = from.read_exactly(head.length().expect("a length"));
        let mut message = format!("{}\r\n", head.start_line()).into_bytes();
        for (name, value) in head.fields() {
            message.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        message.extend_from_slice(b"\r\n");
        message.extend_from_slice(&content);
        let answer = to.ask(&message);
        from.send(answer_bytes(&answer));
        messages.push(message);
    }
    messages
}

fn answer_bytes(answer: &Response) -> Vec<u8> {
    let mut bytes = format!("{}\r\n", answer.head.start_line()).into_bytes();
    for (name, value) in answer.head.fields() {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(answer.text().as_bytes());
    bytes
}

#[test]
fn message_that_is_sent_again_or_altered_purges_nothing() {
    let cluster = Nodes::start(fresh);
    let folder = set_secret(&cluster);
    let path = cluster.path_of(2);
    let real = cluster.nodes[2].listener(1);
    let between = ScriptedOrigin::new();
    cluster.nodes[0].reload(|config| {
        config.cluster.members[2] = member("c", between.address());
    });
    // the first message learns the session, the second one is carried out
    let (said, heard) = mpsc::channel();
    let messages = std::thread::scope(|scope| {
        scope.spawn(|| said.send(relay(&between, real, 2)));
        let report = purge_url(&cluster.nodes[0], &path, PurgeReach::Cluster);
        assert_eq!(outcomes(report), [Ok((0, true)), Ok((1, true))]);
        heard.recv().expect("messages")
    });
    cluster.get(2, &path);
    let applied = cluster.nodes[2].count(Metric::PeerPurgesApplied);
    let again = |message: &[u8]| RawClient::connect(real).ask(message).status();
    let text = String::from_utf8(messages[1].clone()).expect("text");
    assert_eq!(again(&messages[0]), 409);
    assert_eq!(again(&messages[1]), 409);
    for (from, to) in [
        (path.as_str(), "/of/2/x"),
        ("purge ", "purge-all "),
        ("proof ", "proof A"),
        ("node=a", "node=b"),
        ("mode=purges", "mode=gateway"),
        ("PUT ", "POST "),
        ("nonce=:", "nonce=:A"),
        ("number=", "number=1"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let altered = text.replacen(from, to, 1);
        let length = altered.split_once("\r\n\r\n").expect("a message").1.len();
        let own = text.split_once("\r\n\r\n").expect("a message").1.len();
        let altered = altered.replacen(
            &format!("Content-Length: {own}"),
            &format!("Content-Length: {length}"),
            1,
        );
        let status = again(altered.as_bytes());
        assert!(
            [403, 405, 409].contains(&status),
            "{to} is answered {status}"
        );
    }
    assert_eq!(cluster.nodes[2].count(Metric::PeerPurgesApplied), applied);
    let asked = cluster.asked(&path);
    cluster.get(2, &path);
    assert_eq!(cluster.asked(&path), asked, "it is stored");
    drop(folder);
}

#[test]
fn message_of_a_stranger_is_refused_before_its_content_is_read() {
    let cluster = Nodes::start(fresh);
    let peers = cluster.nodes[1].listener(1);
    let check = |field: &str, length: &str, expected: u16| {
        let head = format!("PUT /weir/purges HTTP/1.1\r\nHost: b\r\n{field}{length}\r\n");
        let response = RawClient::connect(peers).ask(head);
        assert_eq!(response.status(), expected, "{field}{length}");
    };
    let long = "Content-Length: 100000\r\n";
    let ours = "Weir-Peer: node=a, mode=purges\r\n";
    check("", long, 403);
    check("Weir-Peer: node=z, mode=purges\r\n", long, 403);
    check("Weir-Peer: node=b, mode=purges\r\n", long, 403);
    // a member, which may not ask so
    check("Weir-Peer: node=a, mode=gateway\r\n", long, 405);
    check(&ours.repeat(2), long, 403);
    // of a member, too, if it is too long or has no length
    check(ours, "Content-Length: 2000000\r\n", 403);
    check(ours, "Transfer-Encoding: chunked\r\n", 403);
    let nonsense = head_of_message(&place_of_message(&cluster.nodes[1], 1), 2) + "hi";
    assert_eq!(RawClient::connect(peers).ask(nonsense).status(), 403);
    // and to a client the target is one of the gateway
    let mut client = cluster.nodes[1].client();
    let put = format!(
        "PUT /weir/purges HTTP/1.1\r\nHost: a.example\r\n{ours}Content-Length: 2\r\n\r\nhi"
    );
    assert_eq!(client.ask(put).status(), 200);
    assert_eq!(cluster.nodes[1].count(Metric::PeerPurgesApplied), 0);
    let refused = |reason| cluster.nodes[1].count(Metric::PeersRefused(reason));
    assert_eq!(refused(PeerRefusal::NoField), 2);
    assert_eq!(refused(PeerRefusal::Unlisted), 1);
    assert_eq!(
        refused(PeerRefusal::Mode),
        2,
        "without a length, or too long"
    );
    assert_eq!(refused(PeerRefusal::Method), 1);
    assert_eq!(refused(PeerRefusal::Message), 1, "nonsense");
    assert_eq!(refusals(&cluster.nodes[1]), 8);
}

/// The head of a message in the name of node a to node b.
fn head_of_message(sequence: &str, length: usize) -> String {
    format!(
        "PUT /weir/purges HTTP/1.1\r\nHost: b\r\nWeir-Peer: node=a, mode=purges{sequence}\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

/// The place of the message with this number in the sequence of those to `node`, which says its
/// session.
fn place_of_message(node: &Running, number: u64) -> String {
    let unknown = head_of_message(", number=1", 2) + "hi";
    let answer = RawClient::connect(node.listener(1)).ask(unknown);
    assert_eq!(answer.status(), 409);
    let text = answer.text();
    let session = text.split(' ').nth(2).expect("purged 1 SESSION NUMBER");
    format!(", session=:{session}:, number={number}")
}

/// The head and the first byte of a message with this number in the name of node a, to `node`.
fn begin_message(node: &Running, number: u64, length: usize) -> RawClient {
    let head = head_of_message(&place_of_message(node, number), length);
    let mut program = RawClient::connect(node.listener(1));
    program.send(head + "h");
    program
}

#[test]
fn one_message_of_each_member_is_received_at_a_time() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[1];
    let mut first = begin_message(node, 1, 1 << 20);
    node.wait_for_at_least(Metric::RequestsInFlight, 1);
    let mut next = begin_message(node, 2, 2);
    first.expect_end();
    next.send("i");
    assert_eq!(next.read_response().status(), 403, "it is read to its end");
}

#[test]
fn copied_head_of_a_message_ends_no_message_that_is_under_way() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[1];
    let mut under_way = begin_message(node, 7, 2);
    node.wait_for_at_least(Metric::RequestsInFlight, 1);
    let session = |number| place_of_message(node, number);
    let stale = ", session=:AAAA:, number=8".to_owned();
    for place in [
        session(7),
        session(6),
        stale,
        ", number=8".to_owned(),
        String::new(),
    ] {
        let copy = head_of_message(&place, 2) + "hi";
        let answer = RawClient::connect(node.listener(1)).ask(copy);
        assert_eq!(answer.status(), 409, "{place}");
        assert!(answer.text().ends_with(" 7\n"), "{}", answer.text());
    }
    under_way.send("i");
    assert_eq!(
        under_way.read_response().status(),
        403,
        "it is read to its end"
    );
    // nor is the content of another message taken with it
    let place = place_of_message(node, 8);
    let session = place.split(':').nth(1).expect("a session");
    let content = format!("purges 1 {session} 9\nbehind AAAA\npurge-all 1\n");
    let message = head_of_message(&place, content.len()) + &content;
    assert_eq!(
        RawClient::connect(node.listener(1)).ask(message).status(),
        403
    );
    let content = content.replace(" 9\n", " 10\n");
    let place = place_of_message(node, 10);
    let message = head_of_message(&place, content.len()) + &content;
    assert_eq!(
        RawClient::connect(node.listener(1)).ask(message).status(),
        200
    );
}

#[test]
fn large_message_takes_the_memory_of_responses_that_arrive() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[1];
    node.reload(|config| {
        config.cache.memory = ByteSize::from_mib(1);
        config.cache.largest_response = config.cache.memory;
    });
    let mut large = begin_message(node, 1, 1 << 20);
    // refused while it comes, or whole and refused as nonsense
    large.try_send(vec![b'h'; (1 << 20) - 1]);
    let (received, _) = large.read_to_end();
    assert!(received.is_empty(), "there is no memory for it");
    let mut small = begin_message(node, 2, 16);
    small.send("hhhhhhhhhhhhhhh");
    assert_eq!(small.read_response().status(), 403, "it is read to its end");
}
