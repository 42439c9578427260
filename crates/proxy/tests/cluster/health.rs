//! What nodes know of whether others answer and in which state they are, without a request of a
//! client.

use crate::nodes::{Nodes, fresh, get, member, refusals, set_secret};
use crate::support::{RawClient, Running, ScriptedOrigin, span};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};
use weir_measure::Metric;
use weir_proxy::admin::Control as _;
use weir_proxy::config::{Listener, ListenerKind, TokenFile};
use xtask::closed_port::ClosedPort;

const PATIENCE: Duration = Duration::from_secs(20);

/// Node number `at` asks the others how they are at once, and again each 50 ms.
fn ask_often(cluster: &Nodes, at: usize) {
    cluster.nodes[at].reload(|config| config.cluster.state_interval = span("50ms"));
}

/// The state of the member `name` as `node` knows it.
fn state(node: &Running, name: &str) -> &'static str {
    let report = node.control().cluster().expect("a cluster");
    let mut members = report.members.iter();
    let member = members.find(|member| member.name == name);
    member.expect("a member").state
}

/// Waits until `node` has the member `name` in one of `states`.
fn wait_for_state(node: &Running, name: &str, states: &[&str]) {
    let until = Instant::now() + PATIENCE;
    while !states.contains(&state(node, name)) {
        assert!(Instant::now() < until, "{name} is {}", state(node, name));
        thread::yield_now();
    }
}

#[test]
fn node_that_accepts_no_connection_is_gone_without_a_request_and_its_targets_go_elsewhere() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let node = &cluster.nodes[0];
    let closed = ClosedPort::hold().expect("a port");
    node.reload(|config| config.cluster.members[2] = member("c", closed.address()));
    ask_often(&cluster, 0);
    wait_for_state(node, "c", &["gone"]);
    node.wait_until_said("node c is gone: it cannot be reached", 1);
    assert_eq!(cluster.get(0, &path).text(), path);
    assert_eq!(node.count(Metric::PeersFailed), 0, "it is not asked for it");
    // it is there again
    let members = cluster.members();
    node.reload(|config| config.cluster.members = members);
    wait_for_state(node, "c", &["in"]);
    node.wait_until_said("node c is back", 1);
    assert_eq!(cluster.get(0, &cluster.path_of(2)).status(), 200);
}

#[test]
fn node_that_does_not_answer_is_gone_after_the_time_that_it_has() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    let silent = ScriptedOrigin::new();
    node.reload(|config| {
        config.cluster.peer_timeout = span("50ms");
        config.cluster.members[2] = member("c", silent.address());
    });
    ask_often(&cluster, 0);
    let mut asked = silent.accept();
    let head = asked.read_head();
    assert_eq!(head.start_line(), "GET /weir/state HTTP/1.1");
    let field = head.all("weir-peer").join(", ");
    assert!(
        field.contains("mode=state") && field.contains("state=in"),
        "{field}"
    );
    wait_for_state(node, "c", &["gone"]);
    node.wait_until_said("node c is gone: it does not answer in time", 1);
}

#[test]
fn node_that_drains_is_asked_for_nothing_from_then_on_until_it_says_otherwise() {
    let cluster = Nodes::start(fresh);
    let mut paths = cluster.paths_of(2);
    let (while_draining, after) = (paths.next(), paths.next());
    let (while_draining, after) = (while_draining.expect("a path"), after.expect("a path"));
    drop(paths);
    // it tells the others by itself, each time that this changes
    cluster.nodes[2].reload(|config| config.cluster.state_interval = span("10s"));
    let drain = |drains: bool| assert!(cluster.nodes[2].control().set_draining(drains));
    drain(true);
    for node in &cluster.nodes[..2] {
        wait_for_state(node, "c", &["draining"]);
    }
    let asked = |at: usize| cluster.nodes[at].count(Metric::PeerRequests);
    let before = refusals(&cluster.nodes[2]);
    let sum = asked(0) + asked(1);
    let owners = [0, 1].map(|at| cluster.get(at, &while_draining));
    for response in owners {
        assert_eq!(response.text(), while_draining);
    }
    assert!(asked(0) + asked(1) <= sum + 1, "one of the two keeps it");
    assert_eq!(refusals(&cluster.nodes[2]), before);
    drain(false);
    for node in &cluster.nodes[..2] {
        wait_for_state(node, "c", &["in"]);
    }
    let mut client = cluster.nodes[0].client();
    let response = client.ask(get(&after));
    let status = response.head.all("cache-status").join(", ");
    assert!(status.contains("weir;hit"), "node c has it: {status}");
}

/// Why the members are passed over for a target at `node`, in the order of their names.
pub(crate) fn passed_over(node: &Running) -> Vec<Option<&'static str>> {
    let route = node.control().route(None, "http://a.example/x");
    let route = route.expect("a route");
    let nodes = route.candidates.iter().filter(|it| it.name.is_some());
    nodes.map(|it| it.passed_over).collect()
}

#[test]
fn route_of_a_url_says_which_nodes_are_passed_over_and_why() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    assert_eq!(passed_over(node), [None, None, None]);
    let closed = ClosedPort::hold().expect("a port");
    node.reload(|config| config.cluster.members[2] = member("c", closed.address()));
    ask_often(&cluster, 0);
    assert!(cluster.nodes[1].control().set_draining(true));
    wait_for_state(node, "c", &["gone"]);
    wait_for_state(node, "b", &["draining"]);
    assert_eq!(passed_over(node), [None, Some("draining"), Some("ejected")]);
    assert_eq!(passed_over(&cluster.nodes[1])[1], Some("draining"));
}

#[test]
fn node_that_is_silent_about_a_request_is_asked_how_it_is_and_gone_if_it_is_silent_again() {
    let cluster = Nodes::start(fresh);
    let path = cluster.path_of(2);
    let node = &cluster.nodes[0];
    let silent = ScriptedOrigin::new();
    node.reload(|config| {
        config.cluster.peer_timeout = span("1s");
        config.cluster.state_interval = span("10s");
        config.cluster.members[2] = member("c", silent.address());
    });
    let mut client = node.client();
    client.send(get(&path));
    let mut held = silent.accept();
    assert!(
        held.read_head()
            .start_line()
            .ends_with(&format!("{path} HTTP/1.1"))
    );
    // the request keeps its time, and the message has all of this
    node.reload(|config| config.cluster.peer_timeout = span("1min"));
    assert_eq!(client.read_response().text(), path, "the next one is asked");
    assert_eq!(node.count(Metric::PeersFailed), 1);
    assert_eq!(state(node, "c"), "in", "it may wait for the origin");
    let mut asked = silent.accept();
    assert_eq!(asked.read_head().start_line(), "GET /weir/state HTTP/1.1");
    drop(asked);
    wait_for_state(node, "c", &["gone"]);
}

/// A message to `node` in the name of node c, which says that this drains.
fn say_that_c_drains(node: &Running) {
    let mut program = RawClient::connect(node.listener(1));
    let answer = program.ask(
        "GET /weir/state HTTP/1.1\r\nHost: a.example\r\n\
         Weir-Peer: node=c, mode=state, state=draining\r\n\r\n",
    );
    assert_eq!(answer.status(), 204);
}

#[test]
fn message_about_a_state_has_the_node_asked_and_its_answer_counts() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    say_that_c_drains(node);
    assert_eq!(state(node, "c"), "in", "any program may have a copy of one");
    node.wait_for_at_least(Metric::PeerStateMessages, 1);
    assert_eq!(state(node, "c"), "in");
    assert_eq!(node.count(Metric::PeerStateFailures), 0);
}

#[test]
fn node_is_asked_once_a_second_however_often_it_is_said_to_drain_and_answers() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    let began = Instant::now();
    let asked = || node.count(Metric::PeerStateMessages);
    // each is said after the last question, and for some it has been answered
    for _ in 0..100 {
        say_that_c_drains(node);
    }
    node.wait_for_at_least(Metric::PeerStateMessages, 2);
    for _ in 0..100 {
        say_that_c_drains(node);
    }
    let (asked, seconds) = (asked(), began.elapsed().as_secs());
    assert!(seconds >= 1, "two questions are a second apart");
    assert!(asked <= seconds + 1, "{asked} questions in {seconds} s");
    assert_eq!(state(node, "c"), "in");
}

#[test]
fn node_is_asked_once_at_a_time_however_often_it_is_said_to_drain() {
    let cluster = Nodes::start(fresh);
    let node = &cluster.nodes[0];
    let silent = ScriptedOrigin::new();
    node.reload(|config| {
        config.cluster.peer_timeout = span("1min");
        config.cluster.members[2] = member("c", silent.address());
    });
    say_that_c_drains(node);
    let mut asked = silent.accept();
    assert_eq!(asked.read_head().start_line(), "GET /weir/state HTTP/1.1");
    for _ in 0..3 {
        say_that_c_drains(node);
    }
    silent.expect_untouched();
    assert_eq!(node.count(Metric::PeerStateMessages), 1);
    // what was said meanwhile has it asked once more
    drop(asked);
    let _asked = silent.accept();
    assert_eq!(node.count(Metric::PeerStateMessages), 2);
}

#[test]
fn nodes_with_two_secrets_say_so_at_both_ends() {
    let cluster = Nodes::start(fresh);
    let [asks, refuses] = [0, 1].map(|at| &cluster.nodes[at]);
    let folder = set_secret(&cluster);
    let other = folder.path().join("other");
    std::fs::copy(folder.path().join("secret"), &other).expect("a copy with its mode");
    std::fs::write(&other, "another-secret-of-nodes").expect("a file");
    asks.reload(|config| config.cluster.secret_file = TokenFile::At(other));
    ask_often(&cluster, 0);
    wait_for_state(asks, "b", &["gone"]);
    let why = "it refused this node with 403: see its log, its secret may differ";
    asks.wait_until_said(&format!("node b is gone: {why}"), 1);
    let why = "its proof is not made with the secret of this node";
    refuses.wait_until_said(&format!("refused node a from 127.0.0.1: {why}"), 1);
}

#[test]
fn node_says_that_it_is_there_when_it_listens_to_those_that_have_it_as_gone() {
    let origin = ScriptedOrigin::new().answering(fresh);
    let addresses = [0, 1].map(|_| {
        let port = xtask::ports::take().expect("a port");
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    });
    let start = |at: usize| {
        Running::gateway_with(origin.address(), move |config| {
            config.listeners.push(Listener {
                address: addresses[at],
                mode: ListenerKind::Peer,
                name: None,
                tls: None,
                http2: None,
                proxy_protocol: Vec::new(),
            });
            config.cluster.node = Some(["a", "b"][at].to_owned());
            config.cluster.join_time = span("0s");
            // none of its own accord while this test runs well
            config.cluster.state_interval = span("10s");
            config.cluster.digest_memory = "0".parse().expect("a size");
            config.cluster.members = vec![member("a", addresses[0]), member("b", addresses[1])];
        })
    };
    let first = start(0);
    wait_for_state(&first, "b", &["gone"]);
    let second = start(1);
    wait_for_state(&first, "b", &["in"]);
    assert!(
        second.count(Metric::PeerStateMessages) > 0,
        "it has not said so"
    );
}

#[test]
fn message_about_the_state_is_no_request() {
    let cluster = Nodes::start(fresh);
    ask_often(&cluster, 0);
    cluster.nodes[0].wait_for_at_least(Metric::PeerStateMessages, 4);
    let first = cluster.nodes[1].count(Metric::FirstRequests);
    assert_eq!(first, 0, "it is in no log and not counted as a request");
    assert_eq!(cluster.nodes[0].count(Metric::PeerStateFailures), 0);
    assert_eq!(state(&cluster.nodes[0], "b"), "in");
}
