//! A file that changes at the origin by a PUT through any node, or is purged at any node, is served
//! by none as it was, also not by a node that stood still meanwhile.

use super::{NAMES, Nodes, path};
use crate::support::{PATIENCE, RawClient, Signal};
use std::process::{Command, Output};
use std::time::Instant;

/// What each node has for file 1.
fn contents(nodes: &Nodes) -> Vec<String> {
    let content = |at: usize| {
        let mut client = RawClient::connect(nodes.nodes[at].address());
        let reply = client.get(&format!("http://a.example{}", path(1)));
        reply.expect(200).text()
    };
    (0..NAMES.len()).map(content).collect()
}

fn put(nodes: &Nodes, at: usize, content: &str) {
    let mut client = RawClient::connect(nodes.nodes[at].address());
    let length = content.len();
    client.send(format!(
        "PUT {} HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}\r\n\r\n{content}",
        path(1)
    ));
    client.reply().expect(204);
}

/// `weir purge` at node number `at`.
fn purge(nodes: &Nodes, at: usize, arguments: &[&str]) -> Output {
    let admin = nodes.nodes[at].admin.to_string();
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["purge", "--admin", &admin])
        .args(arguments)
        .output()
        .expect("the binary was built with this test")
}

#[test]
fn file_that_is_put_through_any_node_is_new_at_every_node() {
    let nodes = Nodes::start();
    contents(&nodes);
    for round in 0..12 {
        let content = format!("version {round}\n");
        put(&nodes, round % 3, &content);
        assert_eq!(contents(&nodes), vec![content; 3], "round {round}");
    }
    for node in &nodes.nodes {
        let metrics = node.metrics();
        assert_eq!(metrics.count("weir_peer_purges_untold_total"), 0);
        assert_eq!(metrics.count("weir_peer_purge_failures_total"), 0);
    }
}

#[test]
fn purge_names_each_node_and_with_this_node_is_for_that_alone() {
    let nodes = Nodes::start();
    contents(&nodes);
    let url = format!("http://a.example{}", path(1));
    let here = purge(&nodes, 0, &["--this-node", &url]);
    assert!(here.status.success());
    assert_eq!(String::from_utf8_lossy(&here.stdout).lines().count(), 1);
    nodes.nginx.file(&path(1)[1..], b"changed\n");
    let purged = purge(&nodes, 0, &[&url]);
    let said = String::from_utf8_lossy(&purged.stdout).into_owned();
    assert!(purged.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with("purged ") && lines[0].ends_with(&url),
        "{said}"
    );
    for (line, name) in lines[1..].iter().zip(NAMES) {
        assert!(line.starts_with(&format!("{name}: purged ")), "{said}");
    }
    assert_eq!(lines.len(), 4);
    assert_eq!(contents(&nodes), ["changed\n"; 3]);
}

#[test]
fn node_that_stood_still_during_a_purge_serves_nothing_purged_when_it_goes_on() {
    let nodes = Nodes::start_waiting("2s");
    contents(&nodes);
    nodes.nodes[2].signal(Signal::Stop);
    nodes.nginx.file(&path(1)[1..], b"changed\n");
    let url = format!("http://a.example{}", path(1));
    let purged = purge(&nodes, 0, &[&url]);
    let said = String::from_utf8_lossy(&purged.stdout).into_owned();
    assert_eq!(purged.status.code(), Some(3), "{said}");
    assert!(said.contains("\nb: purged "), "{said}");
    assert!(
        said.contains("\nc: not purged as far as is known: it did not answer in time"),
        "{said}"
    );
    put(&nodes, 1, "changed again\n");
    nodes.nodes[2].signal(Signal::Continue);
    let until = Instant::now() + PATIENCE;
    for node in &nodes.nodes[..2] {
        let is_told = || node.metrics().count("weir_peer_purges_overdue") == 0;
        while !is_told() {
            assert!(Instant::now() < until, "it is never told");
            std::thread::yield_now();
        }
    }
    nodes.nodes[2].until("told", |metrics| {
        metrics.count("weir_peer_purges_applied_total") >= 2
    });
    assert_eq!(contents(&nodes), ["changed again\n"; 3]);
}

#[test]
fn killed_node_delays_no_change_and_the_purge_says_that_it_cannot_be_reached() {
    let mut nodes = Nodes::start();
    contents(&nodes);
    nodes.nodes[2].kill();
    put(&nodes, 0, "changed\n");
    put(&nodes, 1, "changed again\n");
    let purged = purge(&nodes, 0, &["--all"]);
    let said = String::from_utf8_lossy(&purged.stdout).into_owned();
    assert_eq!(purged.status.code(), Some(3), "{said}");
    assert!(
        said.contains("\nc: not purged as far as is known: it cannot be reached"),
        "{said}"
    );
    let error = String::from_utf8_lossy(&purged.stderr).into_owned();
    assert!(
        error.starts_with("error: cannot purge everything at all nodes"),
        "{error}"
    );
}
